"""drf: jobs by dominant share, and queues and jobs as a tree (hdrf; ``plugins/drf/drf.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.volcano.cache import ALLOCATED_STATUSES, Job, Queue, Task
from kpreempt.schedulers.volcano.configuration import PluginOption, parse_float
from kpreempt.schedulers.volcano.resources import NIL, Resource, SchedulerPanicError, share_of
from kpreempt.schedulers.volcano.session import Session, Vote

# Shares that differ by less count as equal when victims are chosen.
_TOLERANCE = 0.000001


class Drf:
    """The share of every job and, with a hierarchy, of every queue."""

    def __init__(self, session: Session, has_hierarchy: bool) -> None:
        self._session = session
        self._total = session.total.clone()
        self._allocated = Resource()
        self.holdings: dict[str, Holding] = {}
        self.hierarchy = Hierarchy(self._total) if has_hierarchy else None
        for job in session.walk_jobs():
            allocated = Resource()
            for task in job.with_status(*ALLOCATED_STATUSES):
                allocated.add(task.request)
            holding = self.holdings[job.uid] = Holding(allocated)
            holding.update_share(self._total)
            if self.hierarchy is not None:
                self._allocated.add(allocated)
                self.hierarchy.add_job(job, session.queues[job.queue], holding, self._allocated)

    def compare_jobs(self, left: Job, right: Job) -> int:
        """Order the job with the lower share first."""
        left_share, right_share = self.holdings[left.uid].share, self.holdings[right.uid].share
        return (left_share > right_share) - (left_share < right_share)

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[str]:
        """Allow a job to preempt another one whose share would remain at least as high as its own."""
        requested = dominant_share(
            self.holdings[preemptor.job_id].allocated.clone().add(preemptor.request), self._total
        )
        left: dict[str, Resource] = {}
        reasons = []
        for candidate in candidates:
            if candidate.job_id not in left:
                left[candidate.job_id] = self.holdings[candidate.job_id].allocated.clone()
            # Candidates that are not chosen also count as gone when the next task of their job is checked.
            remaining = left[candidate.job_id].sub(candidate.request, f"job {candidate.job_id}")
            share = dominant_share(remaining, self._total)
            if requested < share or abs(requested - share) <= _TOLERANCE:
                reasons.append("")
            else:
                reasons.append(f"job {candidate.job_id} would have a share of {share:.4g}, below {requested:.4g}")
        return reasons

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[str]:
        """Allow a queue to reclaim from a queue that would still come after it in the hierarchy."""
        assert self.hierarchy is not None
        session, allocated, tree = self._session, self._allocated.clone(), self.hierarchy.clone()
        job = session.jobs[reclaimer.job_id]
        queue = session.queues[job.queue]
        own = self.holdings[job.uid].clone()
        own.allocated.add(reclaimer.request)
        allocated.add(reclaimer.request)
        own.update_share(self._total)
        tree.add_job(job, queue, own, allocated)
        reasons = []
        for candidate in candidates:
            their_job = session.jobs[candidate.job_id]
            their_queue = session.queues[their_job.queue]
            allocated.sub(candidate.request)
            theirs = self.holdings[their_job.uid].clone()
            theirs.allocated.sub(candidate.request, f"job {their_job.uid}")
            theirs.update_share(self._total)
            tree.add_job(their_job, their_queue, theirs, allocated)
            difference = tree.compare(queue, their_queue)
            allocated.add(candidate.request)
            theirs.allocated.add(candidate.request)
            theirs.update_share(self._total)
            tree.add_job(their_job, their_queue, theirs, allocated)
            reasons.append("" if difference < 0 else f"queue {their_queue.name} would not come after {queue.name}")
        return reasons

    def change(self, task: Task, sign: int) -> None:
        """Update shares when a task is allocated or released; raise ``SchedulerPanicError`` if its job held less."""
        holding = self.holdings[task.job_id]
        for amount in (holding.allocated, self._allocated) if self.hierarchy else (holding.allocated,):
            if sign > 0:
                amount.add(task.request)
            else:
                amount.sub(task.request, f"job {task.job_id}")
        holding.update_share(self._total)
        if self.hierarchy is not None:
            job = self._session.jobs[task.job_id]
            self.hierarchy.add_job(job, self._session.queues[job.queue], holding, self._allocated)


def open_drf(session: Session, option: PluginOption) -> Drf:
    """Register drf's functions."""
    first = next(plugin for tier in session.configuration.tiers for plugin in tier if plugin.name == option.name)
    plugin = Drf(session, has_hierarchy=first.switches["enableHierarchy"])
    session.register(Vote.PREEMPTABLE, option.name, plugin.preemptable)
    session.register(Vote.JOB_ORDER, option.name, plugin.compare_jobs)
    if plugin.hierarchy is not None:
        # The queue that is unsaturated, or has the lower weighted share, comes first.
        session.register(Vote.QUEUE_ORDER, option.name, plugin.hierarchy.compare)
        session.register(Vote.RECLAIMABLE, option.name, plugin.reclaimable)
    session.on_change(lambda task: plugin.change(task, 1), lambda task: plugin.change(task, -1))
    return plugin


class Holding:
    """What a job, or a subtree, holds, and its dominant share of the cluster."""

    __slots__ = ("allocated", "share")

    def __init__(self, allocated: Resource, share: float = 0.0) -> None:
        self.allocated = allocated
        self.share = share

    def clone(self) -> Holding:
        return Holding(self.allocated.clone(), self.share)

    def update_share(self, total: Resource) -> None:
        self.share = dominant_share(self.allocated, total)


def dominant_share(allocated: Resource, total: Resource) -> float:
    """Return the largest fraction of the cluster held of any resource."""
    return max(0.0, *(share_of(allocated.get(name), total.get(name)) for name in total.names()), 0.0)


class _Node:
    """A queue on some level or, as a leaf, a job; only leaves have no map of children."""

    __slots__ = ("children", "holding", "is_saturated", "request", "weight")

    def __init__(
        self, holding: Holding, weight: float, children: dict[str, _Node] | None, request: Resource | None = None
    ) -> None:
        self.holding = holding
        self.weight = weight
        self.children = children
        self.request = request or Resource()
        self.is_saturated = False

    def clone(self) -> _Node:
        children = None if self.children is None else {key: child.clone() for key, child in self.children.items()}
        copy = _Node(self.holding.clone(), self.weight, children, self.request)
        copy.is_saturated = self.is_saturated
        return copy


class Hierarchy:
    """The tree, from its root down."""

    def __init__(self, total: Resource) -> None:
        self._total = total
        self._root = _Node(Holding(Resource()), 1.0, {})

    def clone(self) -> Hierarchy:
        copy = Hierarchy(self._total)
        copy._root = self._root.clone()
        return copy

    def add_job(self, job: Job, queue: Queue, holding: Holding, allocated: Resource) -> None:
        """Add a job with its holdings to the tree, and recompute all shares; ``allocated`` is the cluster total.

        Raises ``SchedulerPanicError`` if a queue has fewer weights than levels.
        """
        node = self._root
        weights = queue.weights.split("/")
        for level, name in enumerate(queue.hierarchy.split("/")[1:], 1):
            assert node.children is not None
            if name not in node.children:
                if level >= len(weights):
                    raise SchedulerPanicError(
                        f"runtime error: index out of range [{level}] with length {len(weights)}",
                        f"the hierarchy weights of queue {queue.name}",
                    )
                node.children[name] = _Node(Holding(Resource()), max(parse_float(weights[level]), 1.0), {})
            node = node.children[name]
        assert node.children is not None
        node.children[job.uid] = _Node(holding, 1.0, None, job.total_request.clone())
        demanding = frozenset(name for name in self._total.names() if allocated.get(name) < self._total.get(name))
        self._update(self._root, demanding)

    def compare(self, left: Queue, right: Queue) -> float:
        """Compare level by level: unsaturated first, then by weighted share. Negative if ``left`` comes first."""
        left_path, right_path = left.hierarchy.split("/"), right.hierarchy.split("/")
        left_node: _Node | None = self._root
        right_node: _Node | None = self._root
        depth = min(len(left_path), len(right_path))
        for level in range(depth):
            if left_node is None or right_node is None:
                queue = left if left_node is None else right
                raise SchedulerPanicError(NIL, f"queue {queue.name}, which is not in the hierarchy")
            if left_node.is_saturated != right_node.is_saturated:
                return 1.0 if left_node.is_saturated else -1.0
            left_share = left_node.holding.share / left_node.weight
            right_share = right_node.holding.share / right_node.weight
            if left_share != right_share:
                return left_share - right_share
            if level < depth - 1:
                left_node = (left_node.children or {}).get(left_path[level + 1])
                right_node = (right_node.children or {}).get(right_path[level + 1])
        return 0.0

    def _update(self, node: _Node, demanding: frozenset[str]) -> None:
        if node.children is None:
            # A job is saturated if it has all it requests of a resource, or requests one of which nothing is left.
            held, request = node.holding.allocated, node.request
            node.is_saturated = any(
                request.get(name) != 0 and (held.get(name) >= request.get(name) or name not in demanding)
                for name in held.names()
            )
            return
        children = [node.children[key] for key in sorted(node.children)]
        for child in children:
            self._update(child, demanding)
        # Unsaturated children count only with the lowest of their shares.
        least = 1.0
        for child in children:
            if child.holding.share != 0 and not child.is_saturated:
                least = min(least, dominant_share(child.holding.allocated, self._total))
        allocated = Resource()
        for child in children:
            if child.holding.share == 0:
                continue
            if child.is_saturated:
                allocated.add(child.holding.allocated)
            else:
                allocated.add(child.holding.allocated.clone().multiply(least / child.holding.share))
        node.holding = Holding(allocated)
        node.holding.update_share(self._total)
        node.is_saturated = all(child.is_saturated for child in children)
