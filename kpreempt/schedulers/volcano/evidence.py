"""The state of a session, as evidence, and its end: phases, conditions and events.

The end follows ``framework/session.go`` and ``cache/cache.go`` of Volcano v1.8.0.
"""

from __future__ import annotations

import msgspec

from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.plugins import gang
from kpreempt.schedulers.volcano.plugins.drf import Drf
from kpreempt.schedulers.volcano.plugins.proportion import Proportion, QueueShare
from kpreempt.schedulers.volcano.resources import CPU, MEMORY, UNLIMITED, Resource
from kpreempt.schedulers.volcano.session import Session
from kpreempt.schedulers.volcano.task import ALLOCATED_STATUSES, TaskStatus
from kpreempt.verdict.volcano import Amounts, Closing, JobState, PodGroupEnd, PodMessage, QueueState, SessionEvent

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
    fit_errors = {job.uid: _fit_errors(job) for job in session.jobs.values() if job.nodes_fit_errors}
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


def _fit_errors(job: Job) -> dict[str, str]:
    found = {job.tasks[uid].key: str(errors) for uid, errors in job.nodes_fit_errors.items() if uid in job.tasks}
    return dict(sorted(found.items()))


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
