"""priority: higher priority goes first, and evicts lower (``plugins/priority/priority.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.session import Session, Vote
from kpreempt.schedulers.volcano.task import Task

NAME = "priority"


def open_session(session: Session, _option: PluginOption) -> None:
    """Register what priority has a say in."""

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

    session.register(Vote.TASK_ORDER, NAME, lambda left, right: right.priority - left.priority)
    session.register(Vote.JOB_ORDER, NAME, lambda left, right: right.priority - left.priority)
    session.register(Vote.PREEMPTABLE, NAME, preemptable)
    session.register(Vote.JOB_STARVING, NAME, lambda job: job.ready_count + job.waiting_count < len(job.tasks))
