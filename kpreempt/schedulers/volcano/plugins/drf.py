"""drf: jobs, and queues in a hierarchy, by their dominant share (``plugins/drf/drf.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.volcano.cache import Queue
from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.hierarchy import Hierarchy, Holding, dominant_share
from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.resources import Resource
from kpreempt.schedulers.volcano.session import Session
from kpreempt.schedulers.volcano.task import ALLOCATED_STATUSES, Task
from kpreempt.schedulers.volcano.votes import Vote

NAME = "drf"
# Shares that differ by less count as equal when victims are chosen.
_TOLERANCE = 0.000001


class Drf:
    """The share of every job, and with a hierarchy that of every queue."""

    def __init__(self, session: Session, has_hierarchy: bool) -> None:
        self._session = session
        self._total = session.total.clone()
        self._allocated = Resource()
        self.holdings: dict[str, Holding] = {}
        self._hierarchy = Hierarchy(self._total) if has_hierarchy else None
        for job in session.walk_jobs():
            allocated = Resource()
            for task in job.with_status(*ALLOCATED_STATUSES):
                allocated.add(task.request)
            holding = self.holdings[job.uid] = Holding(allocated)
            holding.update_share(self._total)
            if self._hierarchy is not None:
                self._allocated.add(allocated)
                self._hierarchy.put(job, session.queues[job.queue], holding, self._allocated)

    def compare_jobs(self, left: Job, right: Job) -> int:
        """The job with the lower share goes first."""
        left_share, right_share = self.holdings[left.uid].share, self.holdings[right.uid].share
        return (left_share > right_share) - (left_share < right_share)

    def compare_queues(self, left: Queue, right: Queue) -> int:
        """The queue that is unsaturated, or has the lower weighted share, goes first."""
        assert self._hierarchy is not None
        difference = self._hierarchy.compare(left, right)
        return (difference > 0) - (difference < 0)

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[str]:
        """A job may take from one that would have no lower a share than itself then."""
        wanted = self._share(self.holdings[preemptor.job_id].allocated.clone().add(preemptor.request))
        left: dict[str, Resource] = {}
        reasons = []
        for candidate in candidates:
            if candidate.job_id not in left:
                left[candidate.job_id] = self.holdings[candidate.job_id].allocated.clone()
            # Candidates that are spared count as gone too when the next of their job is judged.
            share = self._share(left[candidate.job_id].sub(candidate.request, f"job {candidate.job_id}"))
            if wanted < share or abs(wanted - share) <= _TOLERANCE:
                reasons.append("")
            else:
                reasons.append(f"job {candidate.job_id} would have a share of {share:.4g}, below {wanted:.4g}")
        return reasons

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[str]:
        """A queue may take from one that would stand behind it in the hierarchy still."""
        assert self._hierarchy is not None
        session, allocated, tree = self._session, self._allocated.clone(), self._hierarchy.clone()
        job = session.jobs[reclaimer.job_id]
        queue = session.queues[job.queue]
        own = self.holdings[job.uid].clone()
        own.allocated.add(reclaimer.request)
        allocated.add(reclaimer.request)
        own.update_share(self._total)
        tree.put(job, queue, own, allocated)
        reasons = []
        for candidate in candidates:
            their_job = session.jobs[candidate.job_id]
            their_queue = session.queues[their_job.queue]
            allocated.sub(candidate.request)
            theirs = self.holdings[their_job.uid].clone()
            theirs.allocated.sub(candidate.request, f"job {their_job.uid}")
            theirs.update_share(self._total)
            tree.put(their_job, their_queue, theirs, allocated)
            difference = tree.compare(queue, their_queue)
            allocated.add(candidate.request)
            theirs.allocated.add(candidate.request)
            theirs.update_share(self._total)
            tree.put(their_job, their_queue, theirs, allocated)
            reasons.append("" if difference < 0 else f"queue {their_queue.name} would not stand behind {queue.name}")
        return reasons

    def allocate(self, task: Task) -> None:
        """A task was given room."""
        self._change(task, 1)

    def deallocate(self, task: Task) -> None:
        """A task gave its room up; raises ``SchedulerPanicError`` where its job held less."""
        self._change(task, -1)

    def _change(self, task: Task, sign: int) -> None:
        holding = self.holdings[task.job_id]
        for amount in (holding.allocated, self._allocated) if self._hierarchy else (holding.allocated,):
            if sign > 0:
                amount.add(task.request)
            else:
                amount.sub(task.request, f"job {task.job_id}")
        holding.update_share(self._total)
        if self._hierarchy is not None:
            job = self._session.jobs[task.job_id]
            self._hierarchy.put(job, self._session.queues[job.queue], holding, self._allocated)

    def _share(self, allocated: Resource) -> float:
        return dominant_share(allocated, self._total)


def open_session(session: Session, _option: PluginOption) -> Drf:
    """Register what drf has a say in."""
    first = next(plugin for tier in session.configuration.tiers for plugin in tier if plugin.name == NAME)
    has_hierarchy = first.is_on("enableHierarchy")
    plugin = Drf(session, has_hierarchy)
    session.register(Vote.PREEMPTABLE, NAME, plugin.preemptable)
    session.register(Vote.JOB_ORDER, NAME, plugin.compare_jobs)
    if has_hierarchy:
        session.register(Vote.QUEUE_ORDER, NAME, plugin.compare_queues)
        session.register(Vote.RECLAIMABLE, NAME, plugin.reclaimable)
    session.on_change(plugin.allocate, plugin.deallocate)
    return plugin
