"""The end of a session: phases, conditions and events (``framework/session.go``, ``cache/cache.go``, v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.plugins import gang
from kpreempt.schedulers.volcano.session import Session
from kpreempt.schedulers.volcano.task import ALLOCATED_STATUSES, TaskStatus
from kpreempt.verdict.volcano import Closing, PodGroupEnd, PodMessage, SessionEvent

_UNFINISHED_PHASES = ("Unknown", "Pending", "Inqueue")
_WAITING = (TaskStatus.ALLOCATED, TaskStatus.PENDING, TaskStatus.PIPELINED)
_ALL_UNAVAILABLE = "all nodes are unavailable"
_UNSCHEDULABLE = "Unschedulable"


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
