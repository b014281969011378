"""gang: a job runs with its least number of tasks or not at all (``plugins/gang/gang.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.job import FitErrors, Job
from kpreempt.schedulers.volcano.session import PERMIT, REJECT, Session, Vote
from kpreempt.schedulers.volcano.task import ALLOCATED_STATUSES, Task, TaskStatus
from kpreempt.verdict.volcano import PodGroupCondition

NAME = "gang"
_NOT_ENOUGH_TASKS = "NotEnoughTasks"
_NOT_ENOUGH_OF_SPEC = "NotEnoughPodsOfTask"


def open_session(session: Session, _option: PluginOption) -> None:
    """Register what gang has a say in."""

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

    session.register(Vote.JOB_VALID, NAME, _invalid_reason)
    session.register(Vote.PREEMPTABLE, NAME, evictable)
    session.register(Vote.RECLAIMABLE, NAME, evictable)
    session.register(Vote.JOB_ORDER, NAME, lambda left, right: int(left.is_ready) - int(right.is_ready))
    session.register(Vote.JOB_READY, NAME, lambda job: job.has_ready_specs() and job.is_ready)
    session.register(Vote.JOB_PIPELINED, NAME, _pipelined)
    session.register(Vote.JOB_STARVING, NAME, lambda job: job.waiting_count + job.ready_count < job.min_available)


def close_session(session: Session) -> None:
    """Say on every pod group whether its gang is complete."""
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
    if not job.has_valid_specs():
        return _NOT_ENOUGH_OF_SPEC, "Not enough valid pods of each task for gang-scheduling"
    if (valid := job.valid_count) < job.min_available:
        return _NOT_ENOUGH_TASKS, (
            f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {job.min_available}"
        )
    return None


def _pipelined(job: Job) -> int:
    is_enough = job.has_pipelined_specs() and job.waiting_count + job.ready_count >= job.min_available
    return PERMIT if is_enough else REJECT
