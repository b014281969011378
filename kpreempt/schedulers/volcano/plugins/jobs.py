"""The plugins that evaluate jobs and tasks individually: gang, priority and conformance of Volcano v1.8.0.

gang: a job runs with its minimum number of tasks or not at all (``plugins/gang/gang.go``). priority: higher priority
comes first, and evicts lower (``plugins/priority/priority.go``). conformance: critical pods are never evicted
(``plugins/conformance/conformance.go``).
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.volcano.cache import ALLOCATED_STATUSES, HOLDING, VALID, FitErrors, Job, Task, TaskStatus
from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.session import PERMIT, REJECT, Session, Vote
from kpreempt.verdict.volcano import PodGroupCondition

_NOT_ENOUGH_TASKS = "NotEnoughTasks"
_NOT_ENOUGH_OF_SPEC = "NotEnoughPodsOfTask"


def open_gang(session: Session, option: PluginOption) -> None:
    """Register gang's functions."""

    def evictable(_evictor: Task, candidates: Sequence[Task]) -> list[str]:
        left: dict[str, int] = {}
        reasons = []
        for candidate in candidates:
            job = session.jobs[candidate.job_id]
            ready = left.setdefault(job.uid, job.ready_count)
            if ready > job.min_available:
                left[job.uid] = ready - 1
                reasons.append("")
            else:
                tasks = "task" if ready == 1 else "tasks"
                reasons.append(f"job {job.uid} has {ready} ready {tasks} and needs {job.min_available}")
        return reasons

    def pipelined(job: Job) -> int:
        is_enough = job.waiting_count + job.ready_count >= job.min_available
        return PERMIT if is_enough and job.has_specs(*HOLDING, TaskStatus.PIPELINED) else REJECT

    session.register(Vote.JOB_VALID, option.name, _invalid_reason)
    session.register(Vote.PREEMPTABLE, option.name, evictable)
    session.register(Vote.RECLAIMABLE, option.name, evictable)
    session.register(Vote.JOB_ORDER, option.name, lambda left, right: int(left.is_ready) - int(right.is_ready))
    session.register(Vote.JOB_READY, option.name, lambda job: job.has_specs(*HOLDING) and job.is_ready)
    session.register(Vote.JOB_PIPELINED, option.name, pipelined)
    session.register(
        Vote.JOB_STARVING, option.name, lambda job: job.waiting_count + job.ready_count < job.min_available
    )


def close_gang(session: Session) -> None:
    """Set a condition on every pod group that says whether its gang is complete."""
    for job in session.walk_jobs():
        if job.is_ready:
            condition = PodGroupCondition("Scheduled", "True", "tasks in gang are ready to be scheduled", "")
            job.set_condition(condition)
            continue
        undone = sum(
            (task.last_transaction or task).status in ALLOCATED_STATUSES for task in job.with_status(TaskStatus.PENDING)
        )
        short = job.min_available - undone - job.ready_count
        job.fit_error = f"{short}/{len(job.tasks)} tasks in gang unschedulable: {job.fit_message()}"
        job.set_condition(PodGroupCondition("Unschedulable", "True", "NotEnoughResources", job.fit_error))
        for task in job.with_status(TaskStatus.ALLOCATED):
            job.nodes_fit_errors.setdefault(task.uid, FitErrors(job.fit_error))


def _invalid_reason(job: Job) -> tuple[str, str] | None:
    if not job.has_specs(*VALID):
        return _NOT_ENOUGH_OF_SPEC, "Not enough valid pods of each task for gang-scheduling"
    if (valid := job.count(*VALID)) < job.min_available:
        return _NOT_ENOUGH_TASKS, (
            f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {job.min_available}"
        )
    return None


def open_priority(session: Session, option: PluginOption) -> None:
    """Register priority's functions."""

    def preemptable(preemptor: Task, candidates: Sequence[Task]) -> list[str]:
        own = session.jobs[preemptor.job_id]
        reasons = []
        for candidate in candidates:
            job = session.jobs[candidate.job_id]
            if job.uid != own.uid and job.priority >= own.priority:
                reasons.append(f"its job's priority {job.priority} is not below {own.priority}")
            elif job.uid == own.uid and candidate.priority >= preemptor.priority:
                reasons.append(f"its priority {candidate.priority} is not below {preemptor.priority}")
            else:
                reasons.append("")
        return reasons

    session.register(Vote.TASK_ORDER, option.name, lambda left, right: right.priority - left.priority)
    session.register(Vote.JOB_ORDER, option.name, lambda left, right: right.priority - left.priority)
    session.register(Vote.PREEMPTABLE, option.name, preemptable)
    session.register(Vote.JOB_STARVING, option.name, lambda job: job.ready_count + job.waiting_count < len(job.tasks))


_CRITICAL_CLASSES = ("system-cluster-critical", "system-node-critical")
_SYSTEM_NAMESPACE = "kube-system"


def open_conformance(session: Session, option: PluginOption) -> None:
    """Register conformance's functions."""

    def evictable(_evictor: Task, candidates: Sequence[Task]) -> list[str]:
        reasons = []
        for task in candidates:
            reason = f"it is in {_SYSTEM_NAMESPACE}" if task.pod.metadata.namespace == _SYSTEM_NAMESPACE else ""
            if task.pod.spec.priority_class_name in _CRITICAL_CLASSES:
                reason = f"its priority class is {task.pod.spec.priority_class_name}"
            reasons.append(reason)
        return reasons

    session.register(Vote.PREEMPTABLE, option.name, evictable)
    session.register(Vote.RECLAIMABLE, option.name, evictable)
