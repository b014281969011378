"""Finds what gets a job bound that Volcano would not bind, each proven by the sessions of another submission.

A remedy must not cost a job of the same or a higher priority its tasks, neither by evictions nor by their places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.nodes.copies import Copier, kinds_of, with_nodes
from kpreempt.analysis.remedies.edits import edited, merge_patched
from kpreempt.analysis.remedies.excluded import CORDON_TAINT, is_critical
from kpreempt.analysis.remedies.search import Candidate, first_step, search, similar_name
from kpreempt.analysis.volcano.jobs import VolcanoJob, read_volcano_job
from kpreempt.analysis.volcano.sessions import Volcano, VolcanoManifest
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in, mappings_in
from kpreempt.model.meta import controller_of
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, quantity, quantity_text
from kpreempt.model.volcano import DEFAULT_QUEUE, SCHEDULING_VERSION, PodGroup, Queue
from kpreempt.schedulers.volcano import job_id_of
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedySearch, RemedyStage
from kpreempt.verdict.volcano import GangAnswer, GangOutcome, Placement

# A session can take long, so few of them are run.
_MAX_RUNS = 60
_MAX_NODES = 8
_MAX_WEIGHT = 64
_SYSTEM_PRIORITY = 2_000_000_000

Submit = Callable[[ClusterSnapshot, VolcanoManifest, Volcano], GangAnswer]


class Problem(NamedTuple):
    """A job that is not bound, as it was submitted to a cluster."""

    before: GangAnswer
    cluster: ClusterSnapshot
    manifest: VolcanoManifest
    volcano: Volcano
    submit: Submit
    has_time: Callable[[], bool]


def is_bound(answer: GangAnswer) -> bool:
    """Whether enough of a job's tasks are bound, at once or once its victims are gone."""
    promised = sum(task.status == "Pipelined" for task in answer.tasks)
    is_kept = 0 < promised <= answer.bound_in_next_session
    return answer.outcome is GangOutcome.BOUND or (answer.outcome is GangOutcome.PIPELINED and is_kept)


def find_remedies(problem: Problem) -> tuple[list[Remedy], RemedySearch]:
    """The remedies for a job, and how thorough the search was."""
    prover = _Prover(problem)
    candidates = list(_Candidates(problem, prover).found())
    found, searched = search(candidates, prover.prove, has_time=prover.has_runs, most_tried=_MAX_RUNS)
    if prover.refused or searched.untried:
        untried, reason = searched.untried + prover.refused, "limit" if problem.has_time() else "time"
        searched = msgspec.structs.replace(searched, untried=untried, reason=reason)
    return found, searched


class _Prover:
    """Submits the job again with changes, up to a limit."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._runs_left = _MAX_RUNS
        self._known: dict[bytes, Remedy | None] = {}
        # The number of candidates that were not tried.
        self.refused = 0

    def has_runs(self) -> bool:
        """Whether another candidate can be tried."""
        return self._runs_left > 0 and self._problem.has_time()

    def helps(self, candidate: Candidate) -> Candidate | None:
        """The candidate if it is proven."""
        return candidate if self.prove(candidate) is not None else None

    def prove(self, candidate: Candidate) -> Remedy | None:
        """The remedy if the job is bound, and no job of the same or a higher priority is worse off."""
        key = msgspec.json.encode([candidate.changes, candidate.edits])
        if key not in self._known:
            if not self.has_runs():
                self.refused += 1
                return None
            self._runs_left -= 1
            self._known[key] = self._proven(candidate)
        return self._known[key]

    def _proven(self, candidate: Candidate) -> Remedy | None:
        cluster, manifest, volcano = self._changed(candidate)
        after = self._problem.submit(cluster, manifest, volcano)
        if not is_bound(after):
            return None
        outcomes = after.sample.outcomes if after.sample is not None else []
        if not all(_has_enough(after, each.binds, each.pipelined) for each in outcomes):
            return None
        own = {task.task for task in after.tasks}
        harmed = _evicted(after) - _evicted(self._problem.before) | (_bound(self._problem.before) - _bound(after))
        harmed -= own
        priorities = _priorities(after)
        pods = {pod.key: pod for pod in cluster.pods}
        for task in harmed:
            pod = pods.get(task)
            other = priorities.get(job_id_of(pod), 0) if pod is not None else 0
            if pod is None or is_critical(pod) or other >= priorities.get(after.job, 0):
                return None
        placed = [task for task in after.tasks if task.status in ("Bound", "Pipelined", "Running")]
        return candidate.remedy(
            nodes=sorted({task.node for task in placed}),
            evicted=sorted(_evicted(after) - _evicted(self._problem.before)),
            scheduled=len(placed),
            pods=len(after.tasks),
        )

    def _changed(self, candidate: Candidate) -> tuple[ClusterSnapshot, VolcanoManifest, Volcano]:
        problem = self._problem
        cluster, manifest, volcano = problem.cluster, problem.manifest, problem.volcano
        jobs = {_name(job): job for job in manifest.jobs}
        for edit in candidate.edits:
            if edit.object in jobs:
                job = jobs[edit.object]
                document = merge_patched(job.document, edit.patch)
                jobs[edit.object] = read_volcano_job(document, job.namespace, source=job.reader.source)
            elif edit.creates:
                queue = msgspec.convert(edit.patch, Queue)
                cluster = msgspec.structs.replace(cluster, queues=[*cluster.queues, queue])
            else:
                submitted = msgspec.structs.replace(
                    ClusterSnapshot(), pod_groups=manifest.groups, queues=manifest.queues
                )
                submitted = edited(submitted, [edit])
                cluster = edited(cluster, [edit])
                manifest = msgspec.structs.replace(manifest, groups=submitted.pod_groups, queues=submitted.queues)
        for change in candidate.changes:
            if change.kind is ChangeKind.ADD_NODE:
                like = next(node for node in cluster.nodes if node.name == change.subject)
                cluster = with_nodes(cluster, Copier(cluster, now=volcano.now).like(like, change.after or 1))
            elif change.field == "actions":
                actions = tuple(str(change.value).split(", "))
                volcano = msgspec.structs.replace(
                    volcano, configuration=volcano.configuration._replace(actions=actions)
                )
        return cluster, msgspec.structs.replace(manifest, jobs=list(jobs.values())), volcano


def _has_enough(answer: GangAnswer, binds: Sequence[Placement], pipelined: Sequence[Placement]) -> bool:
    """Whether a random session places as many of the job's tasks as are needed."""
    own = {task.task for task in answer.tasks}
    return len(own & {each.task for each in (*binds, *pipelined)}) >= min(answer.min_available, len(own))


def _evicted(answer: GangAnswer) -> set[str]:
    return {each.task for session in answer.sessions for action in session.actions for each in action.evictions}


def _bound(answer: GangAnswer) -> set[str]:
    """The tasks that the sessions bind, the next one included."""
    sessions = [*answer.sessions, *([answer.next_session] if answer.next_session is not None else [])]
    return {each.task for session in sessions for action in session.actions for each in action.binds}


def _priorities(answer: GangAnswer) -> Mapping[str, int]:
    opening = answer.sessions[-1].opening if answer.sessions else None
    return {key: job.priority for key, job in opening.jobs.items()} if opening is not None else {}


def _name(job: VolcanoJob) -> str:
    return f"Job {job.namespace}/{job.name}"


class _Candidates:
    """Candidates from the cause: the queue first, then the job, nodes, the queue's share, actions, and the priority."""

    def __init__(self, problem: Problem, prover: _Prover) -> None:
        self._problem, self._prover = problem, prover
        self._before, self._cluster = problem.before, problem.cluster
        self._job = next((each for each in problem.manifest.jobs if _name(each) == problem.before.origin), None)
        groups = [*problem.manifest.groups, *problem.cluster.pod_groups]
        self._group = next((each for each in groups if each.key == problem.before.job), None)
        queues = {each.metadata.name: each for each in (*problem.cluster.queues, *problem.manifest.queues)}
        self._queues = queues
        self._queue = queues.get(problem.before.queue or DEFAULT_QUEUE)

    def found(self) -> Iterator[Candidate]:
        """All candidates."""
        yield from self._closed_queue()
        yield from self._missing_queue()
        yield from self._too_few_replicas()
        if self._before.outcome in (GangOutcome.REJECTED, GangOutcome.IGNORED, GangOutcome.PANIC):
            return
        yield from self._selectors()
        yield from self._requests()
        yield from self._capability()
        yield from self._actions()
        yield from self._cordoned()
        # These run sessions to find the smallest amount.
        yield from self._fewer_tasks()
        yield from self._weight()
        yield from self._priority()
        yield from self._more_nodes()

    def _of_requester(self, job_patch: Document, group_patch: Document) -> ObjectEdit | None:
        """The edit of the job, or of its pod group."""
        if self._job is not None:
            return ObjectEdit(_name(self._job), {"spec": job_patch})
        if self._group is not None:
            return ObjectEdit(f"PodGroup {self._group.key}", {"spec": group_patch})
        return None

    def _manager(self) -> str:
        """The Volcano job that resets the fields of its pod group."""
        owner = controller_of(self._group.metadata) if self._job is None and self._group is not None else None
        namespace = self._before.job.partition("/")[0]
        return f"{owner.kind} {namespace}/{owner.name}" if owner is not None else ""

    def _set(
        self, stage: RemedyStage, edit: ObjectEdit, field: str, after: Any, before: int | None = None, manager: str = ""
    ) -> Candidate:
        number = after if isinstance(after, int) else None
        change = Change(ChangeKind.SET, edit.object, before=before, after=number, field=field, value=after)
        return Candidate(stage=stage, changes=[change], edits=[edit], manager=manager)

    def _closed_queue(self) -> Iterator[Candidate]:
        if self._queue is not None and self._queue.status.state not in ("", "Open"):
            edit = ObjectEdit(f"Queue {self._queue.metadata.name}", {"status": {"state": "Open"}})
            yield self._set(RemedyStage.REPAIR, edit, "status.state", "Open")

    def _missing_queue(self) -> Iterator[Candidate]:
        name = self._before.queue or DEFAULT_QUEUE
        if self._queue is not None or name == DEFAULT_QUEUE:
            return
        near = similar_name(name, self._queues)
        edit = self._of_requester({"queue": near}, {"queue": near}) if near else None
        if edit is not None:
            yield self._set(RemedyStage.REPAIR, edit, "spec.queue", near, manager=self._manager())
        document = {
            "apiVersion": SCHEDULING_VERSION,
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, "reclaimable": True},
        }
        created = ObjectEdit(f"Queue {name}", document, creates=True)
        yield Candidate(stage=RemedyStage.REPAIR, changes=[Change(ChangeKind.CREATE, created.object)], edits=[created])

    def _too_few_replicas(self) -> Iterator[Candidate]:
        """A job that needs more tasks than it has."""
        if self._job is not None and self._before.outcome is GangOutcome.REJECTED:
            replicas = sum(each.replicas for each in self._job.tasks)
            if 0 < replicas < self._job.min_available:
                edit = ObjectEdit(_name(self._job), {"spec": {"minAvailable": replicas}})
                yield self._set(RemedyStage.REPAIR, edit, "spec.minAvailable", replicas, self._job.min_available)

    def _fewer_tasks(self) -> Iterator[Candidate]:
        """The largest number of tasks at the same time that is enough."""
        needed = self._before.min_available
        field = "spec.minAvailable" if self._job is not None else "spec.minMember"

        def fewer(step: int) -> Candidate | None:
            after = needed - 1 - step
            edit = self._of_requester({"minAvailable": after}, self._smaller_group(after))
            if edit is None:
                return None
            found = self._set(RemedyStage.REQUESTER, edit, field, after, needed, self._manager())
            return self._prover.helps(found)

        found = first_step(needed - 1, fewer)
        if found is not None:
            yield found

    def _smaller_group(self, after: int) -> Document:
        """The patch of a pod group that needs fewer tasks; its ``minResources`` shrink alike if they keep it out."""
        group = self._group or PodGroup()
        patch: Document = {"minMember": after}
        if self._before.outcome is GangOutcome.NOT_ENQUEUED and group.spec.min_resources and group.spec.min_member:
            patch["minResources"] = {
                name: quantity_text(each.nano * after // group.spec.min_member)
                for name, each in group.spec.min_resources.items()
            }
        return patch

    def _with_specs(self, change: Callable[[Mapping[str, Any]], Document]) -> ObjectEdit | None:
        """The edit that merges a change into the pod spec of every task of the job; ``None`` if nothing changes."""
        if self._job is None:
            return None
        before = list(mappings_in(mapping_in(self._job.document, "spec"), "tasks"))
        tasks = [
            merge_patched(each, {"template": {"spec": change(mapping_in(each, "template", "spec"))}}) for each in before
        ]
        return ObjectEdit(_name(self._job), {"spec": {"tasks": tasks}}) if tasks != before else None

    def _selectors(self) -> Iterator[Candidate]:
        """Values of node selectors that no node has, but for another spelling."""
        if self._job is None:
            return
        labels: dict[str, set[str]] = {}
        for node in self._cluster.nodes:
            for key, value in node.labels.items():
                labels.setdefault(key, set()).add(value)
        wrong = {
            (key, value): near
            for task in self._job.tasks
            for key, value in mapping_in(task.spec, "nodeSelector").items()
            if value not in labels.get(key, ()) and (near := similar_name(str(value), labels.get(key, ())))
        }

        def respelled(spec: Mapping[str, Any]) -> Document:
            selector = mapping_in(spec, "nodeSelector")
            return {"nodeSelector": {key: wrong.get((key, value), value) for key, value in selector.items()}}

        edit = self._with_specs(lambda spec: respelled(spec) if mapping_in(spec, "nodeSelector") else {})
        if wrong and edit is not None:
            changes = [Change(ChangeKind.LABEL_VALUE, f"{key}={near}") for (key, _), near in wrong.items()]
            yield Candidate(stage=RemedyStage.REPAIR, changes=changes, edits=[edit])

    def _requests(self) -> Iterator[Candidate]:
        """Request less by what the closest node lacks."""
        missing = {name: round(amount) for name, amount in self._before.missing.items()}
        amounts: dict[str, tuple[int, int]] = {}
        if not missing or not missing.keys() <= {"cpu", "memory"}:
            return

        def smaller(spec: Mapping[str, Any]) -> Document:
            containers = [*mappings_in(spec, "containers")]
            for name, lacks in missing.items():
                requests = [_requested(each, name) for each in containers]
                largest = requests.index(max(requests))
                before, after = sum(requests), requests[largest] - lacks
                if after <= 0:
                    return {}
                amounts[name] = (before, before - lacks)
                patch = {"resources": {"requests": {name: quantity_text(after * _unit(name))}}}
                containers[largest] = merge_patched(containers[largest], patch)
            return {"containers": containers}

        edit = self._with_specs(smaller)
        if edit is not None:
            changes = [
                Change(ChangeKind.REQUEST, name, before=before, after=after)
                for name, (before, after) in amounts.items()
            ]
            yield Candidate(stage=RemedyStage.REQUESTER, changes=changes, edits=[edit])

    def _cordoned(self) -> Iterator[Candidate]:
        cordoned = [node for node in self._cluster.nodes if node.spec.unschedulable]
        for node in cordoned:
            taints = [msgspec.to_builtins(each) for each in node.spec.taints if each.key != CORDON_TAINT]
            edit = ObjectEdit(f"Node {node.name}", {"spec": {"unschedulable": None, "taints": taints or None}})
            change = Change(ChangeKind.UNCORDON, node.name)
            yield Candidate(stage=RemedyStage.CAPACITY, changes=[change], edits=[edit])

    def _more_nodes(self) -> Iterator[Candidate]:
        """Add as few nodes of a kind as suffice."""
        for kind in kinds_of(self._cluster):

            def added(step: int, name: str = kind.like.name) -> Candidate | None:
                change = Change(ChangeKind.ADD_NODE, name, after=step + 1)
                return self._prover.helps(Candidate(stage=RemedyStage.CAPACITY, changes=[change]))

            found = None if kind.like.spec.unschedulable else first_step(_MAX_NODES, added)
            if found is not None:
                yield found

    def _capability(self) -> Iterator[Candidate]:
        """Raise the queue's limits by what the job requests of them."""
        queue = self._queue
        if queue is None or not queue.spec.capability:
            return
        states = [
            state
            for session in self._before.sessions
            for action in session.actions
            if (state := action.queues.get(queue.metadata.name)) is not None
        ]
        if not states:
            return
        state, requests = states[0], self._min_requests()
        changes, patch = [], {}
        for name, limit in queue.spec.capability.items():
            before = -(-limit.nano // _unit(name))
            used = {kind: getattr(state, kind).get(name, 0) for kind in ("allocated", "inqueue", "elastic", "request")}
            reserved = used["allocated"] + used["inqueue"] - used["elastic"]
            after = round(max(reserved + requests.get(name, 0), used["request"]) / _scale(name))
            if before < after:
                subject = f"{name} of Queue {queue.metadata.name}"
                changes.append(
                    Change(ChangeKind.QUOTA, subject, before=before, after=after, field="capability", value=name)
                )
                patch[name] = quantity_text(after * _unit(name))
        if changes:
            edit = ObjectEdit(f"Queue {queue.metadata.name}", {"spec": {"capability": patch}})
            yield Candidate(stage=RemedyStage.LIMIT, changes=changes, edits=[edit])

    def _min_requests(self) -> Mapping[str, float]:
        """The ``minResources`` of the job, as a session counts them."""
        group = self._group
        if group is not None:
            return {
                name: each.nano // _unit(name) * _scale(name) for name, each in (group.spec.min_resources or {}).items()
            }
        totals: dict[str, float] = {}
        for task in self._job.tasks if self._job is not None else ():
            for container in mappings_in(task.spec, "containers"):
                for name in mapping_in(container, "resources", "requests"):
                    amount = _requested(container, name) * min(task.replicas, self._before.min_available)
                    totals[name] = totals.get(name, 0) + amount * _scale(name)
        return totals

    def _weight(self) -> Iterator[Candidate]:
        """Raise the queue's weight to the lowest that suffices."""
        queue = self._queue
        if queue is None or len(self._queues) < 2:
            return
        weight = queue.spec.weight
        name = queue.metadata.name

        def heavier(step: int) -> Candidate | None:
            edit = ObjectEdit(f"Queue {name}", {"spec": {"weight": weight + 1 + step}})
            return self._prover.helps(self._set(RemedyStage.LIMIT, edit, "spec.weight", weight + 1 + step, weight))

        found = first_step(_MAX_WEIGHT, heavier)
        if found is not None:
            yield found

    def _actions(self) -> Iterator[Candidate]:
        """Configure actions that evict tasks."""
        actions = self._problem.volcano.configuration.actions
        for more in ("preempt", "reclaim"):
            if more not in actions:
                names = [*actions, more]
                change = Change(ChangeKind.SET, "volcano-scheduler.conf", field="actions", value=", ".join(names))
                options = [f"--actions={','.join(names)}"]
                yield Candidate(stage=RemedyStage.LIMIT, changes=[change], options=options)

    def _priority(self) -> Iterator[Candidate]:
        """The lowest priority class that suffices."""
        own = _priorities(self._before).get(self._before.job, 0)
        classes = sorted(
            (each.value, each.metadata.name)
            for each in self._cluster.priority_classes
            if own < each.value < _SYSTEM_PRIORITY
        )

        def higher(step: int) -> Candidate | None:
            value, name = classes[step]
            edit = self._of_requester(
                {"priorityClassName": name, **self._with_class(name)}, {"priorityClassName": name}
            )
            if edit is None:
                return None
            change = Change(ChangeKind.PRIORITY, f"{edit.object} (to {name})", before=own, after=value)
            found = Candidate(
                stage=RemedyStage.PRIORITY, changes=[change], edits=[edit], manager=self._manager(), is_alone=True
            )
            return self._prover.helps(found)

        found = first_step(len(classes), higher)
        if found is not None:
            yield found

    def _with_class(self, name: str) -> Document:
        """The tasks of the job with another priority class, if theirs is stated."""
        edit = self._with_specs(lambda spec: {"priorityClassName": name} if spec.get("priorityClassName") else {})
        return {"tasks": edit.patch["spec"]["tasks"]} if edit is not None else {}


def _unit(resource: str) -> int:
    return NANO_PER_MILLI if resource == "cpu" else NANO_PER_UNIT


def _scale(resource: str) -> int:
    """How a session counts: extended resources in thousandths."""
    return 1 if resource in ("cpu", "memory") else 1000


def _requested(container: Mapping[str, Any], resource: str) -> int:
    value = mapping_in(container, "resources", "requests").get(resource, 0)
    return -(-quantity(str(value)).nano // _unit(resource))
