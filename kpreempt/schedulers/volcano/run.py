"""A whole session: open, every action, close (``pkg/scheduler/scheduler.go`` of Volcano v1.8.0).

The state of a session is evidence. Its end (phases, conditions and events) follows ``framework/session.go`` and
``cache/cache.go`` of Volcano v1.8.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import ModuleType

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.unread import unread_in_session
from kpreempt.schedulers.volcano.actions import allocate, backfill, enqueue, preempt, reclaim
from kpreempt.schedulers.volcano.cache import cache_of
from kpreempt.schedulers.volcano.configuration import PluginOption, VolcanoConfiguration
from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.plugins import (
    binpack,
    conformance,
    drf,
    gang,
    nodeorder,
    overcommit,
    predicates,
    priority,
    proportion,
)
from kpreempt.schedulers.volcano.plugins.drf import Drf
from kpreempt.schedulers.volcano.plugins.proportion import Proportion, QueueShare
from kpreempt.schedulers.volcano.recorder import ActionRecord, Recorder
from kpreempt.schedulers.volcano.resources import CPU, MEMORY, UNLIMITED, Resource, SchedulerPanicError
from kpreempt.schedulers.volcano.session import Chance, Order, Session
from kpreempt.schedulers.volcano.task import ALLOCATED_STATUSES, TaskStatus
from kpreempt.verdict.volcano import (
    ActionEvidence,
    Amounts,
    Closing,
    JobState,
    Opening,
    OperationKind,
    Panic,
    Placement,
    PodGroupEnd,
    PodMessage,
    QueueState,
    SessionEvent,
    SessionVerdict,
)

_ACTIONS: Mapping[str, ModuleType] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
}
_PLUGINS: Mapping[str, Callable[[Session, PluginOption], object]] = {
    "gang": gang.open_session,
    "priority": priority.open_session,
    "conformance": conformance.open_session,
    "drf": drf.open_session,
    "proportion": proportion.open_session,
    "predicates": predicates.open_session,
    "nodeorder": nodeorder.open_session,
    "binpack": binpack.open_session,
    "overcommit": overcommit.open_session,
}


def run_session(
    cluster: ClusterSnapshot,
    configuration: VolcanoConfiguration,
    *,
    now: datetime,
    chance: Chance | None = None,
    with_scores: bool = True,
) -> SessionVerdict:
    """What Volcano would do with the cluster in one session.

    ``chance`` takes one of the ways through what the genuine scheduler leaves to it; without, everything goes by name.
    ``with_scores`` tells what every node scores for every pending task when the session opens.
    """
    return _Run(cluster, configuration, now, Order(chance), with_scores=with_scores).verdict()


class _Run:
    def __init__(
        self,
        cluster: ClusterSnapshot,
        configuration: VolcanoConfiguration,
        now: datetime,
        order: Order,
        *,
        with_scores: bool,
    ) -> None:
        self._with_scores = with_scores
        self._cache = cache_of(cluster, now=now)
        pending = [pod for pod in cluster.pods if not pod.spec.node_name and not pod.is_terminal]
        self._unread = unread_in_session(cluster, pending)
        self._configuration = configuration
        self._order = order
        self._recorder = Recorder()
        self._opening: Opening | None = None
        self._actions: list[ActionEvidence] = []

    def verdict(self) -> SessionVerdict:
        """Run the session to its end, or to where the genuine scheduler dies."""
        final, panic, session = None, None, None
        try:
            session = Session(self._cache, self._configuration, self._order, self._recorder)
            state = self._open(session)
            for name in self._configuration.actions:
                record = self._recorder.begin(name)
                _ACTIONS[name].execute(session)
                self._actions.append(_evidence(record, *state_of(state)))
            self._recorder.begin("")
            final = close_session(session, closes_gang=state.has_gang)
        except SchedulerPanicError as error:
            record = self._recorder.record
            panic = Panic(record.action, self._recorder.current_task, str(error), error.on)
            if record.action:
                self._actions.append(_evidence(record, {}, {}))
        return SessionVerdict(
            configured_actions=list(self._configuration.actions),
            panics=panic is not None,
            panic=panic,
            opening=self._opening,
            actions=self._actions,
            final=final,
            ignored=dict(sorted(self._cache.ignored.items())),
            assumptions=[
                *self._configuration.assumptions,
                *self._unread,
                *((*session.volumes.assumptions, *session.view.assumptions) if session else ()),
            ],
        )

    def _open(self, session: Session) -> State:
        state = State(session)
        for tier in self._configuration.tiers:
            for option in tier:
                if option.name in _PLUGINS:
                    state.add(option.name, _PLUGINS[option.name](session, option))
        jobs, queues = state_of(state)
        scores = {
            task.key: session.scores(task, list(session.nodes.values()))
            for job in session.jobs.values()
            for task in job.with_status(TaskStatus.PENDING)
            if self._with_scores
        }
        self._opening = Opening(jobs, queues, {key: found for key, found in sorted(scores.items()) if found})
        return state


def _evidence(record: ActionRecord, jobs: dict[str, JobState], queues: dict[str, QueueState]) -> ActionEvidence:
    pipelined, allocated = _still_placed(record)
    return ActionEvidence(
        action=record.action,
        evictions=record.evictions,
        pipelined=pipelined,
        binds=record.binds,
        allocated=allocated,
        enqueued=sorted(record.enqueued) or None,
        trace=record.trace,
        skipped=record.skipped,
        attempts=record.attempts,
        statements=record.statements,
        jobs=jobs,
        queues=queues,
    )


def _still_placed(record: ActionRecord) -> tuple[list[Placement], list[Placement]]:
    """Tasks that an action promised room, and those that it gave room and did not bind.

    They stand where they were first placed, even where that was undone and done again.
    """
    placed: dict[tuple[OperationKind, str], str] = {}
    for kind, task, node, _ in record.trace:
        if kind in (OperationKind.PIPELINE, OperationKind.ALLOCATE):
            placed[kind, task] = node
        elif kind is OperationKind.UNPIPELINE:
            placed[OperationKind.PIPELINE, task] = ""
        elif kind is OperationKind.UNALLOCATE:
            placed[OperationKind.ALLOCATE, task] = ""
    for bind in record.binds:
        placed[OperationKind.ALLOCATE, bind.task] = ""
    by_kind: dict[OperationKind, list[Placement]] = {OperationKind.PIPELINE: [], OperationKind.ALLOCATE: []}
    for (kind, task), node in placed.items():
        if node:
            by_kind[kind].append(Placement(task, node))
    return by_kind[OperationKind.PIPELINE], by_kind[OperationKind.ALLOCATE]


_UNFINISHED_PHASES = ("Unknown", "Pending", "Inqueue")
_WAITING = (TaskStatus.ALLOCATED, TaskStatus.PENDING, TaskStatus.PIPELINED)
_ALL_UNAVAILABLE = "all nodes are unavailable"
_UNSCHEDULABLE = "Unschedulable"


class State:
    """A session with the plugins whose shares are told."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.proportion: Proportion | None = None
        self.drf: Drf | None = None
        self.has_gang = False

    def add(self, name: str, plugin: object) -> None:
        """A plugin that was opened."""
        if isinstance(plugin, Proportion):
            self.proportion = plugin
        elif isinstance(plugin, Drf):
            self.drf = plugin
        self.has_gang |= name == "gang"


def state_of(state: State) -> tuple[dict[str, JobState], dict[str, QueueState]]:
    """All jobs, and the queues that have any where proportion counts, at this moment."""
    jobs = {job.uid: _job(state, job) for job in state.session.jobs.values()}
    if state.proportion is None:
        return jobs, {}
    return jobs, {name: _queue(share) for name, share in state.proportion.shares.items()}


def amounts(resource: Resource) -> Amounts:
    """The amounts by resource, whole ones as whole numbers."""
    named = {CPU: resource.cpu, MEMORY: resource.memory, **dict(sorted((resource.scalars or {}).items()))}
    return {name: _number(amount) for name, amount in named.items()}


def _number(amount: float) -> float:
    if amount >= UNLIMITED:
        return -1
    return int(amount) if amount.is_integer() else amount


def _job(state: State, job: Job) -> JobState:
    session = state.session
    return JobState(
        queue=job.queue,
        priority=job.priority,
        min_available=job.min_available,
        phase=job.phase,
        tasks=job.counts(),
        ready_num=job.ready_count,
        waiting_num=job.waiting_count,
        valid=session.invalid_reason(job) is None,
        ready=session.is_ready(job),
        pipelined=session.is_pipelined(job),
        starving=session.is_starving(job),
        allocated=amounts(job.allocated),
        share=state.drf.holdings[job.uid].share if state.drf else msgspec.UNSET,
    )


def _queue(share: QueueShare) -> QueueState:
    return QueueState(
        weight=share.weight,
        share=share.share,
        deserved=amounts(share.deserved),
        allocated=amounts(share.allocated),
        request=amounts(share.request),
        overused=share.is_overused,
        capability=amounts(share.capability),
        inqueue=amounts(share.inqueue),
        elastic=amounts(share.elastic),
    )


def close_session(session: Session, *, closes_gang: bool) -> Closing:
    """What users see of the session when it is over."""
    fit_errors = {}
    for job in session.jobs.values():
        if job.nodes_fit_errors:
            errors = job.nodes_fit_errors.items()
            found = {job.tasks[uid].key: str(each) for uid, each in errors if uid in job.tasks}
            fit_errors[job.uid] = dict(sorted(found.items()))
    if closes_gang:
        gang.close_session(session)
    events = session.recorder.events
    pods: dict[str, PodMessage] = {}
    for job in session.jobs.values():
        job.phase = _phase(job)
        events.append(_event(job))
        for status in _WAITING:
            for task in job.with_status(status):
                reason, message = job.reason_of(task)
                message = message or job.fit_error or _ALL_UNAVAILABLE
                pods[task.key] = PodMessage(reason, message)
                events.append(SessionEvent("Pod", task.key, "Warning", "FailedScheduling", message))
    groups = {job.uid: PodGroupEnd(job.phase, list(job.conditions)) for job in session.jobs.values()}
    return Closing(groups, fit_errors, pods, list(events))


def _phase(job: Job) -> str:
    is_unschedulable = _UNSCHEDULABLE in job.own_conditions
    if job.count(TaskStatus.RUNNING) and is_unschedulable:
        return "Unknown"
    succeeded = job.count(TaskStatus.SUCCEEDED)
    holding = job.count(*ALLOCATED_STATUSES) + succeeded
    if holding >= job.min_available:
        return "Completed" if succeeded == holding else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"


def _event(job: Job) -> SessionEvent:
    if job.phase not in _UNFINISHED_PHASES:
        return SessionEvent("PodGroup", job.uid, "Normal", "Scheduled", "pod group is ready")
    pending = job.count(TaskStatus.PENDING)
    message = f"{pending}/{len(job.tasks)} tasks in gang unschedulable: {job.fit_message()}"
    return SessionEvent("PodGroup", job.uid, "Warning", _UNSCHEDULABLE, message)
