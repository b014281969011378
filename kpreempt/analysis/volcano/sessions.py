"""What a Volcano session does with a cluster, and what happens to jobs that are submitted to it, or to a single pod.

For a single pod it has the same interface as the other schedulers, so that results can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kpreempt.admission import admit, admit_claim
from kpreempt.admission.volcano import admit_pod_group, with_pod_groups
from kpreempt.analysis.algorithms import api_server_of
from kpreempt.analysis.pod_inputs import Decode, without_namesakes
from kpreempt.analysis.volcano.jobs import Gang, VolcanoJob, after_enqueue, as_submitted, group_name, job_rejections
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import NO_EXTRAS
from kpreempt.model.meta import replace_in, with_creation_time
from kpreempt.model.pod import Pod
from kpreempt.model.volcano import VOLCANO_SCHEDULER_NAME, PodGroup, Queue
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.scheduler_table import VOLCANO
from kpreempt.schedulers.interface import NO_RULES, QueueRules, Settings
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.schedulers.volcano import VolcanoConfiguration, job_id_of, run_session
from kpreempt.schedulers.volcano.session import Chance
from kpreempt.verdict import (
    Assumption,
    Candidate,
    ClusterSummary,
    Code,
    NodeEvaluation,
    Outcome,
    PodSummary,
    Status,
    Verdict,
)
from kpreempt.verdict.at_risk import RankedVictim
from kpreempt.verdict.volcano import (
    AttemptOutcome,
    GangAnswer,
    GangOutcome,
    GangTask,
    GangVictim,
    NodeAttempt,
    Placement,
    Sample,
    SampledOutcome,
    SessionAnswer,
    SessionVerdict,
)

if TYPE_CHECKING:
    from kpreempt.schedulers.interface import PodChanges


PodOrGroup = TypeVar("PodOrGroup", Pod, PodGroup)
_WAITING_PHASES = ("", "Pending")


class Volcano(msgspec.Struct, frozen=True):
    """Volcano's scheduler: its configuration, the time, and the number of random samples (``runs``)."""

    configuration: VolcanoConfiguration
    now: datetime
    runs: int = 0
    seed: int = 0
    chance: Callable[[int], Chance] | None = None
    with_scores: bool = True

    def session(self, cluster: ClusterSnapshot) -> SessionVerdict:
        """Run one session; everything is referred to by name."""
        return run_session(cluster, self.configuration, now=self.now, with_scores=self.with_scores)

    def sample(self, cluster: ClusterSnapshot) -> Sample | None:
        """Run sessions with random choices, from ``seed`` on; ``None`` if there are no ``runs``."""
        if not self.runs or self.chance is None:
            return None
        ends: Counter[bytes] = Counter()
        outcomes: dict[bytes, SampledOutcome] = {}
        evicted: Counter[str] = Counter()
        for number in range(self.runs):
            chance = self.chance(self.seed + number)
            session = run_session(cluster, self.configuration, now=self.now, chance=chance, with_scores=False)
            outcome = _end_of(session)
            key = msgspec.json.encode(outcome)
            ends[key] += 1
            outcomes[key] = outcome
            evicted.update(outcome.evicted)
        ranked = sorted(ends.items(), key=lambda item: (-item[1], item[0]))
        return Sample(
            runs=self.runs,
            seed=self.seed,
            outcomes=[msgspec.structs.replace(outcomes[key], times=times) for key, times in ranked],
            evicted=dict(sorted(evicted.items())),
        )


class VolcanoManifest(msgspec.Struct, frozen=True):
    """What is submitted: objects of Volcano's own, and pods of others. ``source`` is for messages."""

    queues: list[Queue] = []
    jobs: list[VolcanoJob] = []
    groups: list[PodGroup] = []
    templates: list[PodTemplate] = []
    source: str = ""


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are submitted together, with the object of each, by id.

    ``waiting`` are Volcano jobs, whose pods are only created once the job is enqueued; ``rejected`` are rejected jobs,
    with the reasons.
    """

    cluster: ClusterSnapshot
    origins: dict[str, str]
    waiting: dict[str, VolcanoJob] = {}
    rejected: dict[str, tuple[VolcanoJob, list[str]]] = {}
    assumptions: list[Assumption] = []


def answer_session(cluster: ClusterSnapshot, volcano: Volcano, assumptions: Sequence[Assumption] = ()) -> SessionAnswer:
    """Run a session on the cluster, in which Volcano's controllers have processed every pod."""
    cluster = with_pod_groups(cluster)
    session = volcano.session(cluster)
    session = msgspec.structs.replace(session, assumptions=[*session.assumptions, *assumptions])
    return SessionAnswer(session=session, sample=volcano.sample(cluster))


def submit(
    cluster: ClusterSnapshot,
    *,
    now: datetime,
    decode: Decode,
    jobs: Sequence[VolcanoJob] = (),
    groups: Sequence[PodGroup] = (),
    pods: Sequence[tuple[Pod, str]] = (),
) -> Submission:
    """The cluster after these were accepted: Volcano jobs, pod groups, and pods with their origin.

    Pods must be admitted already. If a pod names another scheduler, an assumption says so. Raises the errors of
    ``decode``.
    """
    cluster, assumptions = without_namesakes(cluster, [pod for pod, _ in pods])
    for group in groups:
        cluster = _with_group(cluster, _stamped(admit_pod_group(group, cluster), now))
    origins = {group.key: f"PodGroup {group.key}" for group in groups}
    waiting, refused = {}, {}
    for job in jobs:
        key = f"{job.namespace}/{group_name(job)}"
        origins[key] = f"Job {job.namespace}/{job.name}"
        if rejections := job_rejections(job, cluster):
            refused[key] = (job, rejections)
            continue
        waiting[key] = job
        cluster = _with_gang(cluster, as_submitted(job, cluster.priority_classes), now, decode, job)[0]
    submitted = []
    for pod, origin in pods:
        scheduler_name = pod.spec.scheduler_name
        if scheduler_name != VOLCANO_SCHEDULER_NAME:
            message = f"names scheduler {scheduler_name}; explained as if it named {VOLCANO_SCHEDULER_NAME}"
            assumptions.append(Assumption(f"Pod {pod.key}", "spec.schedulerName", message))
        volcano_pod = replace_in(_stamped(pod, now), "spec", scheduler_name=VOLCANO_SCHEDULER_NAME)
        submitted.append((volcano_pod, origin))
    cluster = with_pod_groups(msgspec.structs.replace(cluster, pods=[*cluster.pods, *(pod for pod, _ in submitted)]))
    keys = {pod.key: origin or f"Pod {pod.key}" for pod, origin in submitted}
    for pod in cluster.pods:
        if pod.key in keys and (job_id := job_id_of(pod)):
            origins.setdefault(job_id, keys[pod.key])
    return Submission(cluster=cluster, origins=origins, waiting=waiting, rejected=refused, assumptions=assumptions)


def explain_submission(
    submission: Submission, volcano: Volcano, decode: Decode, assumptions: Sequence[Assumption] = ()
) -> list[GangAnswer]:
    """What happens to each job of a submission.

    If jobs wait for their pods, a first session may enqueue them; then their pods are created, and a second session
    places them.
    """
    cluster = submission.cluster
    found = [
        _rejected_answer(key, *submission.rejected[key]) for key in submission.origins if key in submission.rejected
    ]
    if len(found) == len(submission.origins):
        return found
    sessions = [volcano.session(cluster)]
    ends = sessions[0].final.pod_groups if sessions[0].final else {}
    enqueued = {key for key in submission.waiting if key in ends and ends[key].phase not in _WAITING_PHASES}
    extra_assumptions: list[Assumption] = [*submission.assumptions, *assumptions]
    if enqueued:
        cluster = after_session(cluster, sessions[0], now=volcano.now)
        for key in sorted(enqueued):
            job = submission.waiting[key]
            gang = after_enqueue(job, cluster.priority_classes)
            cluster, made = _with_gang(cluster, gang, volcano.now, decode, job)
            extra_assumptions += made
        sessions.append(volcano.session(cluster))
    afterwards = None
    last = sessions[-1]
    if any(action.pipelined for action in last.actions) and not last.panics:
        afterwards = volcano.session(after_session(cluster, last, now=volcano.now, is_settled=True))
    sample = volcano.sample(cluster)
    for key, origin in submission.origins.items():
        if key in submission.rejected:
            continue
        answer = _answer(key, origin, cluster, sessions, afterwards)
        found.append(
            msgspec.structs.replace(answer, sample=sample, assumptions=[*answer.assumptions, *extra_assumptions])
        )
    return found


def after_session(
    cluster: ClusterSnapshot, session: SessionVerdict, *, now: datetime, is_settled: bool = False
) -> ClusterSnapshot:
    """The cluster after a session: phases are set, tasks are bound, and victims are terminating.

    With ``is_settled``, all terminating pods are gone, and bound pods are running. Pipelined tasks are not kept.
    """
    binds = {bind.task: bind.node for action in session.actions for bind in action.binds}
    evicted = {eviction.task for action in session.actions for eviction in action.evictions}

    def changed(pod: Pod) -> Pod:
        if pod.key in binds:
            phase = "Running" if is_settled else pod.status.phase
            return msgspec.structs.replace(
                pod,
                spec=msgspec.structs.replace(pod.spec, node_name=binds[pod.key]),
                status=msgspec.structs.replace(pod.status, phase=phase),
            )
        if pod.key in evicted:
            return replace_in(pod, "metadata", deletion_timestamp=now)
        return pod

    pods = list(map(changed, cluster.pods))
    if is_settled:
        pods = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    ends = session.final.pod_groups if session.final else {}
    groups = [
        replace_in(group, "status", phase=ends[group.key].phase) if group.key in ends else group
        for group in cluster.pod_groups
    ]
    return msgspec.structs.replace(cluster, pods=pods, pod_groups=groups)


def _with_gang(
    cluster: ClusterSnapshot, gang: Gang, now: datetime, decode: Decode, job: VolcanoJob
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster with a job's group, claims and pods, as the API server would store them."""
    decoded = partial(decode, source=job.reader.source, line=job.reader.line)
    cluster = _with_group(cluster, _stamped(decoded("PodGroup", gang.group), now))
    claims = [decoded("PersistentVolumeClaim", document) for document in gang.claims]
    known = {claim.key for claim in cluster.persistent_volume_claims}
    new_claims = [admit_claim(claim, cluster) for claim in claims if claim.key not in known]
    cluster = msgspec.structs.replace(
        cluster, persistent_volume_claims=[*cluster.persistent_volume_claims, *new_claims]
    )
    pods, assumptions, rules = [], [], api_server_of(cluster)
    for document in gang.pods:
        admission = admit(decoded("Pod", document), cluster, rules)
        assumptions += admission.assumptions
        pods.append(_stamped(admission.pod, now))
    assumptions += [
        Assumption(
            f"Job {job.namespace}/{job.name}", f"spec.tasks[{name}]", "its pods are created once other tasks run"
        )
        for name in gang.blocked_pods
    ]
    keys = {pod.key for pod in pods}
    others = [pod for pod in cluster.pods if pod.key not in keys]
    return msgspec.structs.replace(cluster, pods=[*others, *pods]), assumptions


def _with_group(cluster: ClusterSnapshot, group: PodGroup) -> ClusterSnapshot:
    """The cluster with a group, replacing the one with the same name."""
    others = [each for each in cluster.pod_groups if each.key != group.key]
    return msgspec.structs.replace(cluster, pod_groups=[*others, group])


def _stamped(created: PodOrGroup, now: datetime) -> PodOrGroup:
    """The object right after its creation: with a time, and a pod with a phase."""
    if isinstance(created, Pod) and not created.status.phase:
        created = replace_in(created, "status", phase="Pending")
    return msgspec.structs.replace(created, metadata=with_creation_time(created.metadata, now))


def _answer(
    key: str,
    origin: str,
    cluster: ClusterSnapshot,
    sessions: list[SessionVerdict],
    afterwards: SessionVerdict | None,
) -> GangAnswer:
    last = sessions[-1]
    group = next((group for group in cluster.pod_groups if group.key == key), None)
    own = {pod.key: pod for pod in cluster.pods if job_id_of(pod) == key}
    jobs = {pod.key: job_id_of(pod) for pod in cluster.pods}
    queues = {state: found.queue for state, found in (last.opening.jobs if last.opening else {}).items()}
    victims = [
        GangVictim(
            task=eviction.task,
            node=eviction.node,
            job=jobs.get(eviction.task, ""),
            queue=queues.get(jobs.get(eviction.task, ""), ""),
            action=action.action,
            by=eviction.by,
        )
        for action in last.actions
        for eviction in action.evictions
        if eviction.by in own
    ]
    outcome, reason = _outcome(key, last)
    missing_for, nearest = _nearest(key, last) if outcome is GangOutcome.NOT_PLACED else ("", None)
    after = [bind for action in afterwards.actions for bind in action.binds if bind.task in own] if afterwards else []
    return GangAnswer(
        job=key,
        origin=origin,
        queue=queues.get(key, group.spec.queue if group else ""),
        min_available=group.spec.min_member if group else 0,
        outcome=outcome,
        reason=reason,
        tasks=_tasks(own.values(), last),
        victims=victims,
        sessions=sessions,
        next_session=afterwards,
        bound_in_next_session=len(after),
        missing=nearest.missing if nearest else {},
        missing_for=missing_for,
        missing_on=nearest.node if nearest else "",
        assumptions=list(last.assumptions),
    )


def _nearest(key: str, session: SessionVerdict) -> tuple[str, NodeAttempt | None]:
    """The last task of a job that found no node for lack of capacity, with the node that came closest."""
    for action in reversed(session.actions):
        for attempt in reversed(action.attempts):
            if attempt.job != key or attempt.outcome is not AttemptOutcome.NO_NODE:
                continue
            candidates = [node for node in attempt.nodes if node.missing]
            if candidates:
                return attempt.task, min(
                    candidates, key=lambda node: (len(node.missing), *sorted(node.missing.items()))
                )
            if attempt.nearest is not None:
                return attempt.task, attempt.nearest
    return "", None


def _rejected_answer(key: str, job: VolcanoJob, reasons: list[str]) -> GangAnswer:
    return GangAnswer(
        job=key,
        origin=f"Job {job.namespace}/{job.name}",
        queue=job.queue,
        min_available=job.min_available,
        outcome=GangOutcome.REJECTED,
        reason="; ".join(reasons),
        tasks=[],
        victims=[],
        sessions=[],
    )


def _outcome(key: str, session: SessionVerdict) -> tuple[GangOutcome, str]:
    if session.panic is not None:
        return GangOutcome.PANIC, session.panic.message
    if key in session.ignored:
        return GangOutcome.IGNORED, session.ignored[key]
    assert session.final is not None and session.opening is not None
    state = session.actions[-1].jobs[key] if session.actions else session.opening.jobs[key]
    end = session.final.pod_groups[key]
    if end.phase in _WAITING_PHASES:
        vetoes = [
            veto
            for action in session.actions
            for attempt in action.attempts
            if attempt.job == key and not attempt.task
            for veto in attempt.vetoes
        ]
        return GangOutcome.NOT_ENQUEUED, ", ".join(dict.fromkeys(vetoes))
    if not state.valid:
        reasons = [skip.reason for action in session.actions for skip in action.skipped if skip.subject == key]
        return GangOutcome.INVALID, next(iter(reasons), "")
    if state.ready:
        return GangOutcome.BOUND, ""
    if state.waiting_num and state.pipelined:
        return GangOutcome.PIPELINED, ""
    return GangOutcome.NOT_PLACED, ""


def _tasks(pods: Iterable[Pod], session: SessionVerdict) -> list[GangTask]:
    placed: dict[str, tuple[str, str]] = {}
    for action in session.actions:
        for status, placements in (
            ("Pipelined", action.pipelined),
            ("Allocated", action.allocated),
            ("Bound", action.binds),
        ):
            for each in placements:
                placed[each.task] = (status, each.node)
        for eviction in action.evictions:
            placed[eviction.task] = ("Evicted", eviction.node)
    messages = session.final.pods if session.final else {}
    tasks = []
    for pod in sorted(pods, key=lambda pod: pod.key):
        status, node = placed.get(pod.key, (pod.status.phase or "Pending", pod.spec.node_name))
        message = messages[pod.key].message if pod.key in messages else ""
        tasks.append(GangTask(task=pod.key, status=status, node=node, message=message))
    return tasks


def _end_of(session: SessionVerdict) -> SampledOutcome:
    """The result of a session, sorted so that equal results are equal."""

    def sorted_placements(name: str) -> list[Placement]:
        found = [each for action in session.actions for each in getattr(action, name)]
        return sorted(found, key=lambda each: (each.task, each.node))

    return SampledOutcome(
        times=0,
        evicted=sorted(eviction.task for action in session.actions for eviction in action.evictions),
        pipelined=sorted_placements("pipelined"),
        binds=sorted_placements("binds"),
        enqueued=sorted(key for action in session.actions for key in action.enqueued or ()),
        panics=session.panics,
    )


_NO_BUDGETS = "Volcano evicts without checking PodDisruptionBudgets; violations are not counted"
_NOT_ATTEMPTED = (GangOutcome.IGNORED, GangOutcome.INVALID, GangOutcome.NOT_ENQUEUED, GangOutcome.PANIC)
_SETTINGS = Settings(facts=behavior()._asdict())


# A cluster, and the time of the session.
Prepared = tuple[ClusterSnapshot, datetime]


class VolcanoOfPods:
    """A scheduler that runs a session with the one pod added, and reports what happened to it.

    Pending pods of the cluster take part in the session, so that a gang is complete if its other pods are pending
    there.
    """

    algorithm = VOLCANO
    scheduler_names = frozenset({VOLCANO_SCHEDULER_NAME})
    extra_fields = NO_EXTRAS
    decisions_depend_on_pod_identity = False
    is_monotonic_in_priority = False

    def __init__(self, configuration: VolcanoConfiguration, decode: Decode) -> None:
        self._configuration, self._decode = configuration, decode

    def prepare(
        self,
        cluster: ClusterSnapshot,
        *,
        now: datetime,
        is_queued: bool = True,
        before: Prepared | None = None,
        changes: PodChanges | None = None,
        expects_equivalent_pods: bool = False,
    ) -> Prepared:
        """Keep the cluster; each session reads all of it."""
        return cluster, now

    @property
    def assumptions(self) -> list[Assumption]:
        """The assumptions of its configuration, which every session has."""
        return list(self._configuration.assumptions)

    @property
    def settings(self) -> Settings:
        """The default settings: it has no feature gates."""
        return _SETTINGS

    def queue_rules(self, prepared: Callable[[], Prepared], phases: Phases = NO_PHASES) -> QueueRules:
        """No rules: Volcano's jobs are not in such a queue."""
        return NO_RULES

    def decide(
        self,
        prepared: Prepared,
        pod: Pod,
        *,
        records_steps: bool = True,
        records_scores: bool = True,
        records_nodes: bool = True,
        records_odds: bool = True,
        phases: Phases = NO_PHASES,
        is_popped: bool = False,
    ) -> Verdict:
        """The result of the session for the pod."""
        cluster, now = prepared
        volcano = Volcano(self._configuration, now, with_scores=False)
        # During a simulation the pod already exists; it must not be treated as another pod with the same name.
        others = [each for each in cluster.pods if each.key != pod.key or each.spec.node_name]
        cluster = msgspec.structs.replace(cluster, pods=others)
        submission = submit(cluster, now=now, decode=self._decode, pods=[(pod, "")])
        return _verdict(pod, cluster, explain_submission(submission, volcano, self._decode)[0])

    def describe_node(self, prepared: Prepared, pod: Pod, node_name: str) -> NodeEvaluation:
        """Not supported: a session does not evaluate a single node."""
        raise NotImplementedError

    def capacity_of_nodes(self, prepared: Prepared, pod: Pod, most: int) -> None:
        """Unknown: a session decides about whole jobs."""

    def rank_victims(self, prepared: Prepared, node_name: str, priority: int) -> list[RankedVictim]:
        """Not supported: victims depend on the whole session."""
        raise NotImplementedError


def _verdict(pod: Pod, cluster: ClusterSnapshot, answer: GangAnswer) -> Verdict:
    task = next((task for task in answer.tasks if task.task == pod.key), None)
    attempts = [
        attempt
        for action in (answer.sessions[-1].actions if answer.sessions else ())
        for attempt in action.attempts
        if attempt.task == pod.key
    ]
    rejected = attempts[-1].rejected if attempts else {}
    victims = [victim.task for victim in answer.victims if victim.by == pod.key]
    outcome, node = Outcome.UNSCHEDULABLE, ""
    if answer.outcome in _NOT_ATTEMPTED:
        outcome = Outcome.NOT_SCHEDULED
    elif task is not None and task.status in ("Bound", "Pipelined"):
        outcome, node = (Outcome.PREEMPTS if victims else Outcome.LANDS), task.node
    fits = outcome is Outcome.LANDS
    budgets = [Assumption(VOLCANO, "PodDisruptionBudget", _NO_BUDGETS)] if victims else []
    return Verdict(
        algorithm=VOLCANO,
        outcome=outcome,
        reason=_reason(answer) if outcome is Outcome.NOT_SCHEDULED else "",
        pod=PodSummary(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            priority=pod.priority,
            priority_class_name=pod.spec.priority_class_name,
            scheduler_name=pod.spec.scheduler_name,
        ),
        cluster=ClusterSummary(nodes=len(cluster.nodes), pods=len(cluster.pods)),
        filter={name: Status(Code.UNSCHEDULABLE, [reason]) for name, reason in rejected.items()},
        feasible_nodes=[node.name for node in cluster.nodes if node.name not in rejected] if fits else [],
        chosen_nodes=((attempts[-1].tied if attempts else []) or [node]) if fits else [],
        lands_on=[node] if fits else [],
        candidates=[Candidate(node, victims)] if victims else [],
        nominated_nodes=[node] if victims else [],
        message=task.message if task is not None and not node else "",
        assumptions=[*answer.assumptions, *budgets],
    )


def _reason(answer: GangAnswer) -> str:
    """Why the pod is not tried."""
    if answer.outcome is GangOutcome.NOT_ENQUEUED:
        by = f", rejected by {answer.reason}" if answer.reason else ""
        return f"its pod group is not enqueued in queue {answer.queue}{by}"
    if answer.outcome is GangOutcome.PANIC:
        return f"the scheduler panics: {answer.reason}"
    return f"its pod group is {answer.outcome.lower()}: {answer.reason}"
