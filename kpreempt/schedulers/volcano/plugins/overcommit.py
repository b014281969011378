"""overcommit: jobs are let in up to a multiple of the cluster (``plugins/overcommit/overcommit.go``, v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.job import Job, still_reserved
from kpreempt.schedulers.volcano.resources import Missing, Resource
from kpreempt.schedulers.volcano.session import PERMIT, REJECT, Session, Vote
from kpreempt.verdict.volcano import SessionEvent

NAME = "overcommit"
_DEFAULT_FACTOR = 1.2


def open_session(session: Session, option: PluginOption) -> None:
    """Register what overcommit has a say in; raises ``SchedulerPanicError`` where more is used than there can be."""
    factor = option.number("overcommit-factor", _DEFAULT_FACTOR)
    if factor < 1.0:
        factor = _DEFAULT_FACTOR
    total, used = Resource(), Resource()
    for node in session.nodes.values():
        total.add(node.allocatable)
        used.add(node.used)
    idle = total.multiply(factor).sub(used, "the cluster, whose nodes are used beyond their capacity")
    inqueue = Resource()
    for job in session.walk_jobs():
        if job.phase == "Inqueue" and job.states_min_resources:
            inqueue.add(job.min_resources)
        else:
            inqueue.add(still_reserved(job))

    def enqueueable(job: Job) -> int:
        if not job.states_min_resources:
            return PERMIT
        if inqueue.clone().add(job.min_resources).less_equal(idle, Missing.ZERO):
            return PERMIT
        session.recorder.events.append(
            SessionEvent("PodGroup", job.uid, "Normal", "Unschedulable", "resource in cluster is overused")
        )
        return REJECT

    def note_enqueued(job: Job) -> None:
        if job.states_min_resources:
            inqueue.add(job.min_resources)

    session.register(Vote.JOB_ENQUEUEABLE, NAME, enqueueable)
    session.register(Vote.JOB_ENQUEUED, NAME, note_enqueued)
