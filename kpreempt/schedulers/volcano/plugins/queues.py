"""The plugins that decide what queues get: proportion and overcommit of Volcano v1.8.0.

proportion: queues share the cluster by weight (``plugins/proportion/proportion.go``). overcommit: jobs are enqueued up
to a multiple of the cluster (``plugins/overcommit/overcommit.go``).
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.volcano.cache import ALLOCATED_STATUSES, Job, Queue, Task, TaskStatus, still_reserved
from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.resources import (
    UNLIMITED,
    Missing,
    Resource,
    SchedulerPanicError,
    larger,
    share_of,
    smaller,
)
from kpreempt.schedulers.volcano.session import PERMIT, REJECT, Session, Vote
from kpreempt.verdict.volcano import SessionEvent

# Rounds after which sharing is considered endless. Amounts at least halve each round.
_MAX_ROUNDS = 10_000


class QueueShare:
    """What a queue with jobs deserves, holds and requests."""

    def __init__(self, queue: Queue, unguaranteed: Resource) -> None:
        self.weight = queue.weight
        self.share = 0.0
        self.deserved = Resource()
        self.allocated = Resource()
        self.request = Resource()
        # What its jobs hold beyond their minimum, and the unused reservations of enqueued jobs.
        self.elastic = Resource()
        self.inqueue = Resource()
        self.guarantee = Resource.from_quantities(queue.guarantee) if queue.guarantee else Resource()
        self.capability = unguaranteed.clone().add(self.guarantee)
        if queue.capability:
            limit = Resource.from_quantities(queue.capability)
            limit.cpu = UNLIMITED if limit.cpu <= 0 else limit.cpu
            limit.memory = UNLIMITED if limit.memory <= 0 else limit.memory
            self.capability = smaller(self.capability, limit)

    def add(self, job: Job) -> None:
        """Add a job to the queue."""
        for task in job.with_status(*ALLOCATED_STATUSES):
            self.allocated.add(task.request)
            self.request.add(task.request)
        for task in job.with_status(TaskStatus.PENDING):
            self.request.add(task.request)
        if job.phase == "Inqueue":
            self.inqueue.add(job.min_resources)
        self.inqueue.add(still_reserved(job))
        self.elastic.add(job.elastic_resources)

    def update_share(self) -> None:
        deserved, allocated = self.deserved, self.allocated
        self.share = max((share_of(allocated.get(name), deserved.get(name)) for name in deserved.names()), default=0.0)
        self.share = max(self.share, 0.0)

    @property
    def is_overused(self) -> bool:
        """Return whether the queue holds at least what it deserves of every resource."""
        return self.deserved.less_equal(self.allocated, Missing.ZERO)


class Proportion:
    """The shares of all queues that have jobs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        guaranteed = Resource()
        for queue in session.queues.values():
            if queue.guarantee:
                guaranteed.add(Resource.from_quantities(queue.guarantee))
        shares: dict[str, QueueShare] = {}
        for job in session.walk_jobs():
            if job.queue not in shares:
                left = session.total.clone().sub(guaranteed, "the guarantees of all queues")
                shares[job.queue] = QueueShare(session.queues[job.queue], left)
            shares[job.queue].add(job)
        self.shares = {name: shares[name] for name in sorted(shares)}
        self._divide()

    def _divide(self) -> None:
        """Divide the cluster by weight, in rounds, until nothing is left or no queue can take more."""
        remaining = self._session.total.clone()
        met: set[str] = set()
        for _ in range(_MAX_ROUNDS):
            total_weight = sum(share.weight for name, share in self.shares.items() if name not in met)
            if total_weight == 0:
                return
            before = remaining.clone()
            more, less = Resource(), Resource()
            for name, share in self.shares.items():
                if name in met:
                    continue
                old = share.deserved.clone()
                share.deserved.add(remaining.clone().multiply(share.weight / total_weight))
                share.deserved.lower_to(share.capability, Missing.INFINITY)
                share.deserved.lower_to(share.request, Missing.ZERO)
                share.deserved = larger(share.deserved, share.guarantee)
                share.update_share()
                if share.request.less_equal(share.deserved, Missing.ZERO) or share.deserved.is_same(old):
                    met.add(name)
                increased, decreased = share.deserved.difference(old, Missing.ZERO)
                more.add(increased)
                less.add(decreased)
            remaining.sub(more, "the shares of the queues").add(less)
            if remaining.is_empty() or remaining.is_same(before):
                return
        raise SchedulerPanicError("sharing the cluster among the queues does not terminate")

    def compare(self, left: Queue, right: Queue) -> int:
        """Order the queue with the lower share first."""
        left_share, right_share = self.shares[left.name].share, self.shares[right.name].share
        return (left_share > right_share) - (left_share < right_share)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[str]:
        """Let queues give back what they hold beyond what they deserve."""
        left: dict[str, Resource] = {}
        reasons = []
        for candidate in candidates:
            queue = self._session.jobs[candidate.job_id].queue
            share = self.shares[queue]
            allocated = left.setdefault(queue, share.allocated.clone())
            if allocated.less_partly(reclaimer.request, Missing.ZERO):
                reasons.append(f"queue {queue} has less of some resource than is requested")
            elif allocated.less_equal(share.deserved, Missing.ZERO):
                reasons.append(f"queue {queue} has no more than its deserved resources")
            else:
                allocated.sub(candidate.request, f"queue {queue}")
                reasons.append("")
        return reasons

    def is_allocatable(self, queue: Queue, task: Task) -> bool:
        """Return whether the queue has enough left of what it deserves."""
        share = self.shares[queue.name]
        free, _ = share.deserved.difference(share.allocated, Missing.ZERO)
        return task.request.less_equal(free, Missing.ZERO)

    def enqueueable(self, job: Job) -> int:
        """Enqueue a job if its minimum still fits in what the queue may hold."""
        share = self.shares[job.queue]
        if not job.states_min_resources:
            return PERMIT
        requested = job.min_resources.add(share.allocated).add(share.inqueue).sub(share.elastic, f"queue {job.queue}")
        limit = share.capability.clone()
        if limit.scalars is not None:
            named = requested.scalars or {}
            limit.scalars = {name: amount for name, amount in limit.scalars.items() if name in named}
        if requested.less_equal(limit, Missing.INFINITY):
            share.inqueue.add(job.min_resources)
            return PERMIT
        self._session.recorder.events.append(
            SessionEvent("PodGroup", job.uid, "Normal", "Unschedulable", "queue resource quota insufficient")
        )
        return REJECT

    def change(self, task: Task, sign: int) -> None:
        """Update shares when a task is allocated or released; raise ``SchedulerPanicError`` if the queue held less."""
        queue = self._session.jobs[task.job_id].queue
        share = self.shares[queue]
        if sign > 0:
            share.allocated.add(task.request)
        else:
            share.allocated.sub(task.request, f"queue {queue}")
        share.update_share()


def open_proportion(session: Session, option: PluginOption) -> Proportion:
    """Register proportion's functions."""
    plugin = Proportion(session)
    session.register(Vote.QUEUE_ORDER, option.name, plugin.compare)
    session.register(Vote.RECLAIMABLE, option.name, plugin.reclaimable)
    session.register(Vote.OVERUSED, option.name, lambda queue: plugin.shares[queue.name].is_overused)
    session.register(Vote.ALLOCATABLE, option.name, plugin.is_allocatable)
    session.register(Vote.JOB_ENQUEUEABLE, option.name, plugin.enqueueable)
    session.on_change(lambda task: plugin.change(task, 1), lambda task: plugin.change(task, -1))
    return plugin


_DEFAULT_FACTOR = 1.2


def open_overcommit(session: Session, option: PluginOption) -> None:
    """Register overcommit's functions; raise ``SchedulerPanicError`` if usage exceeds capacity."""
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

    session.register(Vote.JOB_ENQUEUEABLE, option.name, enqueueable)
    session.register(Vote.JOB_ENQUEUED, option.name, note_enqueued)
