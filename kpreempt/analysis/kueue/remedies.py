"""Finds what gets a pending Workload admitted, each proven by cycles with the Workload alone and with all pending ones.

Quotas are raised by the smallest amount that suffices, once without preemption and once with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import combinations
from typing import Any

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.kueue.manifest import PRIORITY_LABEL
from kpreempt.analysis.kueue.objects import (
    DecodeDocument,
    document_of,
    with_edits,
    with_objects,
)
from kpreempt.analysis.kueue.readings import MAX_CYCLES, MAX_HEADS, Cycles, Decided, queue_of, read_cycles
from kpreempt.analysis.kueue.requester import Requester
from kpreempt.analysis.nodes.copies import Copier, kinds_of, with_nodes
from kpreempt.analysis.remedies.edits import merge_patched
from kpreempt.analysis.remedies.excluded import is_device, is_set_by_controller
from kpreempt.analysis.remedies.search import Candidate, first_step, search, similar_name
from kpreempt.model.kueue import KUEUE_GROUP, AdmissionCheck, ClusterQueue, Condition, Workload
from kpreempt.model.meta import replace_in
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, quantity, quantity_text
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kueue import (
    Info,
    KueueConfiguration,
    KueueObjects,
    Outcomes,
    RequestedQuota,
    SnapshotQueue,
    infos_of,
    run_cycles,
)
from kpreempt.schedulers.kueue.cluster_queues import NEVER
from kpreempt.verdict.kueue import AdmissionRun
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedySearch, RemedyStage

# Limits: the number of Workloads in all runs, of runs, of remedies, and of amounts that are combined.
_MAX_WORKLOADS = 40_000
_MIN_RUNS = 8
_MAX_RUNS = 80
_MAX_SHOWN = 6
_MAX_PRIORITY = 1_000_000_000
_MAX_COMBINED = 8
_MAX_NODES = 8

# How many of a Workload's pods kube-scheduler would place, and how many there are; nothing is known without nodes.
Place = Callable[[Workload, AdmissionRun, KueueObjects], tuple[int, int]]
Amounts = dict[str, int]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A Workload that is not admitted, among Kueue's objects, and the object with which it is changed."""

    workload: Workload
    requester: Requester
    objects: KueueObjects
    config: KueueConfiguration
    now: datetime
    decode: DecodeDocument
    place: Place
    has_time: Callable[[], bool]


def find_remedies(problem: Problem) -> tuple[list[Remedy], RemedySearch]:
    """The remedies for a Workload, and how thorough the search was."""
    prover = _Prover(problem)
    candidates = list(_Candidates(problem, prover).found())
    found, searched = search(
        candidates, prover.prove, has_time=prover.has_runs, most_tried=_MAX_RUNS, most_shown=_MAX_SHOWN
    )
    if prover.refused or searched.untried:
        untried, reason = searched.untried + prover.refused, "limit" if problem.has_time() else "time"
        searched = msgspec.structs.replace(searched, untried=untried, reason=reason)
    # Those that only help without other pending Workloads are worth little if others always help.
    return [each for each in found if each.solves] or found, searched


def holders(objects: KueueObjects, cycles: Cycles) -> set[str]:
    """The Workloads that have quota after the cycles."""
    held = {each.key for each in objects.workloads if each.status.admission is not None}
    for cycle in cycles:
        held |= cycle["admissions"].keys()
        held -= set(cycle["requeued"])
    return held


class _Prover:
    """Runs cycles with changes, up to a limit, and compares them with those without."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        among = max(1, len(problem.objects.workloads))
        self._runs_left = max(_MIN_RUNS, min(_MAX_RUNS, _MAX_WORKLOADS // among))
        # The search for amounts leaves these for proofs.
        self._kept_runs = self._runs_left // 2
        self._known: dict[bytes, Remedy | None] = {}
        # The number of candidates that were not tried.
        self.refused = 0

    def has_runs(self) -> bool:
        """Whether another candidate can be proven."""
        return self._runs_left > 1 and self._problem.has_time()

    @cached_property
    def _infos(self) -> Any:
        return infos_of(self._problem.objects, self._problem.config)

    @cached_property
    def _before(self) -> Outcomes:
        return self._together(self._problem.objects)

    def _together(self, objects: KueueObjects) -> Outcomes:
        self._runs_left -= 1
        problem = self._problem
        return run_cycles(objects, problem.config, now=problem.now, cycles=MAX_CYCLES, heads=MAX_HEADS)

    def alone(self, candidate: Candidate) -> AdmissionRun | None:
        """The result if the Workload is certainly admitted as the only pending one, else ``None``.

        It must not preempt Workloads of the same or a higher priority.
        """
        if self._runs_left <= self._kept_runs or not self._problem.has_time():
            self.refused += 1
            return None
        return self._alone(*self._changed(candidate))

    def _alone(self, objects: KueueObjects, workload: Workload) -> AdmissionRun | None:
        self._runs_left -= 1
        key = workload.key
        is_same = workload is self._problem.workload
        infos = self._infos if is_same and objects.workloads is self._problem.objects.workloads else None
        decided, assumptions = read_cycles(objects, self._problem.config, self._problem.now, [key], infos)
        found = Decided(decided.cycles, objects).reading(workload)
        priorities = {each.key: each.spec.priority or 0 for each in objects.workloads}
        is_harmless = all(priorities[each.workload] < priorities[key] for each in found.targets)
        return found if found.admitted_in and is_harmless and not assumptions else None

    def _changed(self, candidate: Candidate) -> tuple[KueueObjects, Workload]:
        problem = self._problem
        objects, key = problem.objects, problem.workload.key
        own = [each for each in candidate.edits if each.object == problem.requester.object]
        if others := [each for each in candidate.edits if each.object != problem.requester.object]:
            objects = with_edits(objects, others, problem.decode)
        workload = before = _by_key(objects)[key]
        if own:
            workload = problem.requester.changed(workload, own)
        for change in candidate.changes:
            if change.kind is ChangeKind.PRIORITY:
                workload = replace_in(workload, "spec", priority=change.after)
            elif change.kind is ChangeKind.REPAIR:
                objects = with_objects(objects, [_active_check(change.subject, objects)])
            elif change.kind is ChangeKind.ADD_NODE:
                like = next(each for each in objects.cluster.nodes if each.name == change.subject)
                added = Copier(objects.cluster, now=problem.now).like(like, change.after or 1)
                objects = msgspec.structs.replace(objects, cluster=with_nodes(objects.cluster, added))
        if workload is not before:
            objects = with_objects(objects, [("workloads", workload)])
        return objects, _by_key(objects)[key]

    def prove(self, candidate: Candidate) -> Remedy | None:
        """The remedy if the Workload is admitted, and no Workload of the same or a higher priority is worse off."""
        key = msgspec.json.encode([candidate.changes, candidate.edits])
        if key not in self._known:
            if not self.has_runs():
                self.refused += 1
                return None
            self._known[key] = self._proven(candidate)
        return self._known[key]

    def _proven(self, candidate: Candidate) -> Remedy | None:
        objects, workload = self._changed(candidate)
        alone = self._alone(objects, workload)
        if alone is None:
            return None
        after = self._together(objects)
        priorities = {each.key: each.spec.priority or 0 for each in objects.workloads}
        own = priorities.pop(workload.key)
        held_before = [holders(objects, each) - {workload.key} for each in _all_cycles(self._before)]
        preempted_before = {key for each in _all_cycles(self._before) for key in _requeued(each)}
        evicted = {each.workload for each in alone.targets}
        is_solved = after.are_all and not after.is_cut
        for cycles in _all_cycles(after):
            held = holders(objects, cycles)
            losing = set.intersection(*held_before) - held
            evicted |= _requeued(cycles) - preempted_before
            if any(priorities[each] >= own for each in losing) or len(held) + len(losing) < min(map(len, held_before)):
                return None
            is_solved = is_solved and workload.key in held
        evicted.discard(workload.key)
        if any(priorities[each] >= own for each in evicted):
            return None
        placed, pods = self._problem.place(workload, alone, objects)
        return candidate.remedy(solves=is_solved, evicted=sorted(evicted), scheduled=placed, pods=pods)


def _all_cycles(outcomes: Outcomes) -> list[Cycles]:
    return [outcomes.cycles, *outcomes.alternatives]


def _requeued(cycles: Cycles) -> set[str]:
    return {key for cycle in cycles for key in cycle["requeued"]}


def _by_key(objects: KueueObjects) -> dict[str, Workload]:
    return {each.key: each for each in objects.workloads}


def _active_check(subject: str, objects: KueueObjects) -> tuple[str, AdmissionCheck]:
    name = subject.partition(" ")[2]
    check = next(each for each in objects.checks if each.metadata.name == name)
    return "checks", replace_in(check, "status", conditions=[Condition(type="Active", status="True")])


class _Candidates:
    """Candidates from the cause: what is broken first, then the Workload, quotas, policies, and the priority."""

    def __init__(self, problem: Problem, prover: _Prover) -> None:
        self._problem, self._prover = problem, prover
        self._workload, self._objects = problem.workload, problem.objects
        self._requester = problem.requester
        self._namespace = problem.workload.metadata.namespace
        self._local = {
            each.metadata.name: each
            for each in problem.objects.local_queues
            if each.metadata.namespace == self._namespace
        }
        self._queues = {each.name: each for each in problem.objects.cluster_queues}

    def found(self) -> Iterator[Candidate]:
        """All candidates."""
        queue = self._queues.get(queue_of(self._workload, self._objects))
        yield from self._active()
        yield from self._stopped()
        if queue is not None:
            yield from self._inactive(queue)
            yield from self._namespaces(queue)
        yield from self._other_local_queues(is_wrong=queue is None)
        if queue is None:
            return
        infos = infos_of(self._objects, self._problem.config)
        snapshot_queue = SnapshotQueue(self._objects, infos, self._problem.config, self._problem.now)
        if queue.name not in snapshot_queue.active:
            return
        flavors = [each.name for group in queue.spec.resource_groups for each in group.flavors]
        quotas = {each: snapshot_queue.quota_of(self._workload.key, each) for each in dict.fromkeys(flavors)}
        yield from self._fewer_pods()
        yield from self._requests(quotas)
        yield from self._tolerations(quotas)
        yield from _policies(queue)
        yield from self._priorities()
        for field in ("nominalQuota", "borrowingLimit"):
            for flavor, quota in quotas.items():
                yield from self._raised(queue, flavor, quota, field)
        for flavor, quota in quotas.items():
            yield from self._lending(queue, flavor, quota)
        yield from self._more_nodes(quotas)

    def _set(
        self, stage: RemedyStage, target: str, *fields: tuple[str, Any], edits: Sequence[ObjectEdit], **more: Any
    ) -> Candidate:
        changes = [Change(ChangeKind.SET, target, field=field, value=value) for field, value in fields]
        return Candidate(stage=stage, changes=changes, edits=edits, **more)

    def _active(self) -> Iterator[Candidate]:
        if not self._workload.spec.active:
            name = f"Workload {self._workload.key}"
            edit = ObjectEdit(name, {"spec": {"active": True}})
            yield self._set(RemedyStage.REPAIR, name, ("spec.active", True), edits=[edit], is_alone=True)

    def _stopped(self) -> Iterator[Candidate]:
        """Queues that an administrator stopped."""
        local = self._local.get(self._workload.spec.queue_name)
        queue = self._queues.get(local.spec.cluster_queue) if local is not None else None
        stopped = [
            f"{type(each).__name__} {each.metadata.namespace and each.metadata.namespace + '/'}{each.metadata.name}"
            for each in (local, queue)
            if each is not None and each.spec.stop_policy != "None"
        ]
        if stopped:
            changes = [Change(ChangeKind.SET, each, field="spec.stopPolicy", value="None") for each in stopped]
            edits = [ObjectEdit(each, {"spec": {"stopPolicy": "None"}}) for each in stopped]
            yield Candidate(stage=RemedyStage.REPAIR, changes=changes, edits=edits)

    def _inactive(self, queue: ClusterQueue) -> Iterator[Candidate]:
        """Flavors and admission checks that are missing, or checks that are not active."""
        name = f"ClusterQueue {queue.name}"
        flavors = {each.name for each in self._objects.flavors}
        listed = dict.fromkeys(each.name for group in queue.spec.resource_groups for each in group.flavors)
        if missing := [each for each in listed if each not in flavors]:
            near = {each: similar_name(each, flavors - listed.keys()) for each in missing}
            if all(near.values()):
                patch = self._groups_patch(queue, lambda flavor, _: {"name": near.get(flavor, flavor)})
                fields = [(f"flavors[{each}].name", near[each]) for each in missing]
                yield self._set(RemedyStage.REPAIR, name, *fields, edits=[ObjectEdit(name, patch)])
            names = [f"ResourceFlavor {each}" for each in missing]
            yield Candidate(
                stage=RemedyStage.REPAIR,
                changes=[Change(ChangeKind.CREATE, each) for each in names],
                edits=[_flavor(each) for each in names],
            )
        checks = {each.metadata.name: each for each in self._objects.checks}
        strategy = queue.spec.admission_checks_strategy.admission_checks
        wanted = dict.fromkeys([*queue.spec.admission_checks, *(each.name for each in strategy)])
        if missing := [each for each in wanted if each not in checks]:
            yield self._checks(queue, {each: similar_name(each, checks.keys() - wanted.keys()) for each in missing})
        if inactive := [each for each in wanted if each in checks and not checks[each].is_active]:
            repaired = [Change(ChangeKind.REPAIR, f"AdmissionCheck {each}") for each in inactive]
            yield Candidate(stage=RemedyStage.REPAIR, changes=repaired)

    def _checks(self, queue: ClusterQueue, near: Mapping[str, str]) -> Candidate:
        """Replace missing admission checks by those with similar names, and drop the others."""
        name = f"ClusterQueue {queue.name}"
        spec = document_of(self._objects, name).get("spec", {})
        patch: Document = {}
        if names := spec.get("admissionChecks"):
            patch["admissionChecks"] = [kept for each in names if (kept := near.get(each, each))]
        if rules := (spec.get("admissionChecksStrategy") or {}).get("admissionChecks"):
            kept_rules = [{**each, "name": kept} for each in rules if (kept := near.get(each["name"], each["name"]))]
            patch["admissionChecksStrategy"] = {"admissionChecks": kept_rules}
        fields = [(f"admissionChecks[{each}]{'.name' if other else ''}", other or None) for each, other in near.items()]
        return self._set(RemedyStage.REPAIR, name, *fields, edits=[ObjectEdit(name, {"spec": patch})])

    def _namespaces(self, queue: ClusterQueue) -> Iterator[Candidate]:
        """The labels that the ClusterQueue's selector requires of the namespace."""
        selector = queue.spec.namespace_selector
        namespaces = {each.metadata.name: each for each in self._objects.cluster.namespaces}
        own = namespaces.get(self._namespace)
        if own is None or selector is None or selector.matches(own.metadata.labels) or not selector.match_labels:
            return
        labels = {key: value for key, value in selector.match_labels.items() if own.metadata.labels.get(key) != value}
        name = f"Namespace {self._namespace}"
        edit = ObjectEdit(name, {"metadata": {"labels": labels}})
        fields = [(f"metadata.labels[{key}]", value) for key, value in labels.items()]
        yield self._set(RemedyStage.REPAIR, name, *fields, edits=[edit])

    def _other_local_queues(self, *, is_wrong: bool) -> Iterator[Candidate]:
        """Other LocalQueues of the namespace; if the Workload's own is wrong, one with a similar name first."""
        own = self._workload.spec.queue_name
        others = sorted(self._local.keys() - {own})
        near = similar_name(own, others) if is_wrong else ""
        ordered = sorted(others, key=lambda each: each != near)
        for each in ordered:
            field, edit = self._requester.with_queue(each)
            stage = RemedyStage.REPAIR if each == near else RemedyStage.REQUESTER
            target, manager = self._requester.object, self._requester.manager
            yield self._set(stage, target, (field, each), edits=[edit], manager=manager)

    def _fewer_pods(self) -> Iterator[Candidate]:
        """The largest number of pods of a single pod set that suffices."""
        if len(self._workload.spec.pod_sets) != 1:
            return
        (pod_set,) = self._workload.spec.pod_sets

        def fewer(step: int) -> Candidate | None:
            found = self._requester.with_count(0, pod_set.count - 1 - step)
            if found is None:
                return None
            field, edit = found
            after = pod_set.count - 1 - step
            change = Change(
                ChangeKind.SET, self._requester.object, before=pod_set.count, after=after, field=field, value=after
            )
            manager = self._requester.manager
            return Candidate(stage=RemedyStage.REQUESTER, changes=[change], edits=[edit], manager=manager)

        yield from self._first(pod_set.count - 1, fewer)

    def _requests(self, quotas: Mapping[str, Mapping[str, RequestedQuota]]) -> Iterator[Candidate]:
        """The largest requests that fit in the unused quota of a flavor, if all pods request the same."""
        if len(self._workload.spec.pod_sets) != 1:
            return
        (pod_set,) = self._workload.spec.pod_sets
        for quota in quotas.values():
            short = {name: each for name, each in quota.items() if each.requested > each.available}
            per_pod = {
                name: (-(each.requested - each.available) // pod_set.count, each.requested // pod_set.count)
                for name, each in short.items()
                if pod_set.count
            }
            if not per_pod or any(is_device(each) or each == "pods" for each in per_pod):
                continue
            if all(before + less > 0 for less, before in per_pod.values()):
                yield from self._smaller(per_pod)

    def _smaller(self, per_pod: Mapping[str, tuple[int, int]]) -> Iterator[Candidate]:
        """Reduce the requests of the container that requests most."""

        def smaller(spec: Mapping[str, Any]) -> Document:
            containers = [*spec.get("containers", ())]
            for resource, (less, _) in per_pod.items():
                amounts = [
                    _amount(resource, each.get("resources", {}).get("requests", {}).get(resource, 0))
                    for each in containers
                ]
                largest = amounts.index(max(amounts))
                requests = {resource: _text(resource, amounts[largest] + less)}
                containers[largest] = merge_patched(containers[largest], {"resources": {"requests": requests}})
            return {"containers": containers}

        edit = self._requester.with_spec(smaller)
        if edit is None:
            return
        changes = [
            Change(ChangeKind.REQUEST, resource, before=before, after=before + less)
            for resource, (less, before) in per_pod.items()
        ]
        manager = self._requester.manager
        yield Candidate(stage=RemedyStage.REQUESTER, changes=changes, edits=[edit], manager=manager)

    def _tolerations(self, quotas: Iterable[str]) -> Iterator[Candidate]:
        """Tolerate the taints of a flavor."""
        flavors = {each.name: each for each in self._objects.flavors}
        for name in quotas:
            flavor = flavors.get(name)
            if flavor is None:
                continue
            own = [each for pod_set in self._workload.spec.pod_sets for each in pod_set.template.spec.tolerations]
            taints = [
                each
                for each in flavor.spec.node_taints
                if find_untolerated_taint([each], [*own, *flavor.spec.tolerations], _EFFECTS, compares_numbers=True)
            ]
            if not taints or any(map(is_set_by_controller, taints)):
                continue
            more = [
                {"key": each.key, "operator": "Equal", "value": each.value, "effect": each.effect} for each in taints
            ]

            def tolerating(spec: Mapping[str, Any], more: list[Document] = more) -> Document:
                return {"tolerations": [*spec.get("tolerations", ()), *more]}

            edit = self._requester.with_spec(tolerating)
            if edit is not None:
                texts = [f"{each.key}{'=' if each.value else ''}{each.value}:{each.effect}" for each in taints]
                changes = [Change(ChangeKind.TOLERATION, each) for each in texts]
                manager = self._requester.manager
                yield Candidate(stage=RemedyStage.REQUESTER, changes=changes, edits=[edit], manager=manager)

    def _more_nodes(self, quotas: Iterable[str]) -> Iterator[Candidate]:
        """Add as few nodes as suffice for a flavor with a topology, whose nodes Kueue counts."""
        labels = [
            each.spec.node_labels for each in self._objects.flavors if each.spec.topology_name and each.name in quotas
        ]
        for kind in kinds_of(self._objects.cluster) if labels else ():
            if not any(own.items() <= kind.like.labels.items() for own in labels):
                continue

            def added(step: int, name: str = kind.like.name) -> Candidate:
                change = Change(ChangeKind.ADD_NODE, name, after=step + 1)
                return Candidate(stage=RemedyStage.CAPACITY, changes=[change])

            yield from self._first(_MAX_NODES, added)

    def _raised(
        self, queue: ClusterQueue, flavor: str, quota: Mapping[str, RequestedQuota], field: str
    ) -> Iterator[Candidate]:
        """Raise a quota of a flavor, by as much as is missing, and by the least that suffices with preemption."""
        missing = {name: each.requested - each.available for name, each in quota.items()}
        most = {name: amount for name, amount in missing.items() if amount > 0}
        ahead = self._ahead(queue, quota)

        def raised(more: Mapping[str, int]) -> Candidate | None:
            return self._with_quota(queue, flavor, field, more)

        for count, waiting in enumerate([{}, *ahead]):
            more = {name: max(0, missing[name]) + waiting.get(name, 0) for name in {**most, **waiting}}
            full = raised(more)
            if full is None:
                continue
            yield full
            if not count:
                least = self._least(most, quota, raised)
                if least is not None and least != most and (smaller := raised(least)) is not None:
                    yield smaller
            remedy = self._prover.prove(full)
            if remedy is None or remedy.solves:
                return

    def _ahead(self, queue: ClusterQueue, quota: Mapping[str, RequestedQuota]) -> list[Amounts]:
        """The requests of pending Workloads that may go first, added up one by one, its own ClusterQueue's first."""
        own = self._workload.spec.priority or 0
        pending: list[tuple[bool, int, Info]] = []
        for info in infos_of(self._objects, self._problem.config):
            other = self._queues.get(queue_of(info.workload, self._objects))
            if other is None or info.has_quota or info.key == self._workload.key:
                continue
            is_same = other.name == queue.name
            if (is_same and info.effective_priority >= own) or (not is_same and queue.cohort == other.cohort != ""):
                pending.append((not is_same, -info.effective_priority, info))
        totals: Amounts = {}
        found: list[Amounts] = []
        for *_, info in sorted(pending, key=lambda each: each[:2]):
            for request in info.requests:
                for name in request.requests.keys() & quota.keys():
                    totals[name] = totals.get(name, 0) + request.requests[name]
            found.append(dict(totals))
        return found[:_MAX_COMBINED]

    def _least(
        self, most: Amounts, quota: Mapping[str, RequestedQuota], raised: Callable[[Amounts], Candidate | None]
    ) -> Amounts | None:
        """The least amounts that suffice if Workloads of lower priority are preempted, resource by resource."""
        least = dict(most)
        for name in most:
            steps = sorted(_steps(quota[name], most[name]))

            def amounts(step: int, name: str = name, steps: Sequence[int] = steps) -> Amounts:
                return {**least, name: steps[step]}

            found = [*self._first(len(steps), lambda step, amounts=amounts: raised(amounts(step)))]  # type: ignore[misc]
            if not found:
                return None
            change = next((each for each in found[0].changes if each.value == name), None)
            least[name] = (change.after or 0) - (change.before or 0) if change is not None else 0
        return least

    def _with_quota(self, queue: ClusterQueue, flavor: str, field: str, more: Mapping[str, int]) -> Candidate | None:
        """Raise the quotas or limits of a flavor; ``None`` if no limit would change."""
        name = f"ClusterQueue {queue.name}"
        changes = []

        def changed(found: str, resource: Document) -> Document:
            kind = str(resource.get("name"))
            if found != flavor or not more.get(kind) or resource.get(field) is None:
                return {}
            before = _amount(kind, resource[field])
            after = before + more[kind]
            subject = f"{kind} in flavor {flavor} of {name}"
            changes.append(Change(ChangeKind.QUOTA, subject, before=before, after=after, field=field, value=kind))
            return {field: _text(kind, after)}

        patch = self._groups_patch(queue, lambda _, __: {}, changed)
        edits = [ObjectEdit(name, patch)]
        return Candidate(stage=RemedyStage.CAPACITY, changes=changes, edits=edits) if changes else None

    def _lending(self, queue: ClusterQueue, flavor: str, quota: Mapping[str, RequestedQuota]) -> Iterator[Candidate]:
        """Let another ClusterQueue of the cohort lend what is missing."""
        more = {name: each.requested - each.available for name, each in quota.items()}
        more = {name: amount for name, amount in more.items() if amount > 0}
        others = [each for each in self._queues.values() if each.cohort == queue.cohort and each.name != queue.name]
        for each in others if queue.cohort else []:
            candidate = self._with_quota(each, flavor, "lendingLimit", more)
            if candidate is not None:
                yield candidate

    def _groups_patch(
        self,
        queue: ClusterQueue,
        of_flavor: Callable[[str, Document], Document],
        of_resource: Callable[[str, Document], Document] = lambda _, __: {},
    ) -> Document:
        """The patch of a ClusterQueue with changed flavors or resources."""
        spec = document_of(self._objects, f"ClusterQueue {queue.name}").get("spec", {})
        groups = [
            {
                **group,
                "flavors": [
                    {
                        **flavor,
                        **of_flavor(flavor["name"], flavor),
                        "resources": [
                            {**each, **of_resource(flavor["name"], each)} for each in flavor.get("resources", ())
                        ],
                    }
                    for flavor in group.get("flavors", ())
                ],
            }
            for group in spec.get("resourceGroups", ())
        ]
        return {"spec": {"resourceGroups": groups}}

    def _priorities(self) -> Iterator[Candidate]:
        """The lowest priority just above that of another Workload that suffices."""
        own = self._workload.spec.priority or 0
        priorities = {each.spec.priority or 0 for each in self._objects.workloads if each.key != self._workload.key}
        steps = sorted(each + 1 for each in priorities if own <= each < _MAX_PRIORITY)
        exists = any(each is self._workload for each in self._objects.workloads) and self._workload.metadata.uid
        name = f"Workload {self._workload.key}"

        def higher(step: int) -> Candidate | None:
            after, edits = steps[step], list[ObjectEdit]()
            if exists:
                edits = [ObjectEdit(name, {"spec": {"priority": after}})]
            elif (found := self._priority_class(after)) is not None:
                label, after = found
                edits = [ObjectEdit(self._requester.object, {"metadata": {"labels": {PRIORITY_LABEL: label}}})]
            change = Change(ChangeKind.PRIORITY, name, before=own, after=after)
            return Candidate(stage=RemedyStage.PRIORITY, changes=[change], edits=edits, is_alone=True)

        yield from self._first(len(steps), higher)

    def _priority_class(self, least: int) -> tuple[str, int] | None:
        """The lowest WorkloadPriorityClass with at least this priority."""
        classes = self._objects.cluster.documents.get(f"WorkloadPriorityClass.{KUEUE_GROUP}", ())
        found = [(each["value"], each["metadata"]["name"]) for each in classes if isinstance(each.get("value"), int)]
        value, name = min((each for each in found if each[0] >= least), default=(0, ""))
        return (name, value) if name else None

    def _first(self, steps: int, candidate_at: Callable[[int], Candidate | None]) -> Iterator[Candidate]:
        """The first of the steps that gets the Workload admitted, if all after it do, too."""

        def suffices(step: int) -> Candidate | None:
            candidate = candidate_at(step)
            reading = self._prover.alone(candidate) if candidate is not None else None
            return candidate if reading is not None else None

        best = first_step(steps, suffices)
        if best is not None:
            yield best


_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def _flavor(name: str) -> ObjectEdit:
    metadata = {"name": name.partition(" ")[2]}
    document = {"apiVersion": f"{KUEUE_GROUP}/v1beta2", "kind": "ResourceFlavor", "metadata": metadata, "spec": {}}
    return ObjectEdit(name, document, creates=True)


def _unit(resource: str) -> int:
    return NANO_PER_MILLI if resource == "cpu" else NANO_PER_UNIT


def _amount(resource: str, value: Any) -> int:
    """Convert a quantity as in a manifest."""
    return -(-quantity(str(value)).nano // _unit(resource))


def _text(resource: str, amount: int) -> str:
    """Format an amount as a quantity."""
    return quantity_text(amount * _unit(resource))


def _steps(quota: RequestedQuota, most: int) -> set[int]:
    """The amounts, up to ``most``, at which something new is possible.

    The request is then within the nominal quota, or within what could be available at all, or Workloads of lower
    priority free the rest.
    """
    lower = quota.lower[:_MAX_COMBINED]
    freed = {sum(each) for size in range(len(lower) + 1) for each in combinations(lower, size)}
    missing = quota.requested - quota.available
    steps = {quota.requested - quota.nominal, quota.requested - quota.potential, *(missing - each for each in freed)}
    return {each for each in steps if 0 <= each <= most} | {0, most}


def _policies(queue: ClusterQueue) -> Iterator[Candidate]:
    """Policies that let a Workload preempt more, or that let it overtake a head that does not fit."""
    preemption, name = queue.spec.preemption, f"ClusterQueue {queue.name}"
    reclaim, borrow = preemption.reclaim_within_cohort, preemption.borrow_within_cohort
    options: list[dict[str, Any]] = []
    if preemption.within_cluster_queue == NEVER:
        options.append({"withinClusterQueue": "LowerPriority"})
    if queue.cohort and reclaim == NEVER:
        options.append({"reclaimWithinCohort": "LowerPriority"})
    if queue.cohort and reclaim != "Any":
        options.append({"reclaimWithinCohort": "Any"})
    if queue.cohort and not preemption.may_borrow:
        # Kueue's webhook rejects preemption while borrowing without reclamation.
        needed = {"reclaimWithinCohort": "LowerPriority"} if reclaim == NEVER else {}
        options.append({**needed, "borrowWithinCohort": {"policy": "LowerPriority"}})
    elif borrow is not None and borrow.max_priority_threshold is not None and queue.cohort:
        options.append({"borrowWithinCohort": {"maxPriorityThreshold": None}})
    for each in options:
        changes = [
            Change(ChangeKind.SET, name, field=f"spec.preemption.{path}", value=value)
            for field, found in each.items()
            for path, value in (
                [(f"{field}.{key}", value) for key, value in found.items()]
                if isinstance(found, dict)
                else [(field, found)]
            )
        ]
        edit = ObjectEdit(name, {"spec": {"preemption": each}})
        yield Candidate(stage=RemedyStage.LIMIT, changes=changes, edits=[edit])
    if queue.spec.queueing_strategy == "StrictFIFO":
        change = Change(ChangeKind.SET, name, field="spec.queueingStrategy", value="BestEffortFIFO")
        edit = ObjectEdit(name, {"spec": {"queueingStrategy": "BestEffortFIFO"}})
        yield Candidate(stage=RemedyStage.LIMIT, changes=[change], edits=[edit])
