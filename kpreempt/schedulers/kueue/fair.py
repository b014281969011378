"""Fair sharing: preempting who has the greatest share.

Follows ``pkg/scheduler/preemption/fairsharing`` and ``fairPreemptions`` of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kpreempt.schedulers.kueue import configuration as gates
from kpreempt.schedulers.kueue.cluster_queues import NEVER, Queue
from kpreempt.schedulers.kueue.preemption import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAMATION,
    Need,
    Stage,
    Target,
)
from kpreempt.schedulers.kueue.quota import Node
from kpreempt.schedulers.kueue.shares import NEGATIVE, Share, share_of
from kpreempt.schedulers.kueue.workloads import Info


class _Stream:
    """The candidates of a ClusterQueue that are left, of which ``first`` is the next."""

    __slots__ = ("_rest", "first")

    def __init__(self, infos: Iterator[Info]) -> None:
        self._rest = infos
        self.first = next(infos, None)

    def pop(self) -> Info:
        """Take the next one away."""
        info = self.first
        assert info is not None
        self.first = next(self._rest, None)
        return info


class Ordering:
    """Which ClusterQueue loses a Workload next: from the root down where the share is greatest."""

    def __init__(self, stage: Stage, queue: Queue, candidates: Mapping[str, _Stream]) -> None:
        self._stage, self._queue = stage, queue
        self._ancestors = set(queue.node.ancestors)
        self._left = candidates
        self._pruned: set[Node] = set()

    def __iter__(self) -> Iterator[Queue]:
        node = self._queue.node
        if node.parent is None:
            while node not in self._pruned and self.has_any(self._queue):
                yield self._queue
            return
        root = node.root
        while root not in self._pruned:
            found = self._next(root)
            if found is not None:
                yield found

    def has_any(self, queue: Queue) -> bool:
        """Whether a ClusterQueue has candidates left."""
        stream = self._left.get(queue.name)
        return stream is not None and stream.first is not None

    def pop(self, queue: Queue) -> Info:
        """The next candidate of a ClusterQueue."""
        return self._left[queue.name].pop()

    def drop(self, queue: Queue) -> None:
        """Leave a ClusterQueue alone from now on."""
        self._pruned.add(queue.node)

    def sides(self, queue: Queue) -> tuple[Node, Node]:
        """The two nodes below the lowest common cohort: the preemptor's and that of ``queue``."""
        common = next(each for each in queue.node.ancestors if each in self._ancestors)
        return _below(self._queue.node, common), _below(queue.node, common)

    def _next(self, cohort: Node) -> Queue | None:
        queue, queue_share = self._highest_queue(cohort)
        child, child_share = self._highest_cohort(cohort)
        if queue is None and child is None:
            self._pruned.add(cohort)
            return None
        if child is not None and child_share.rank >= queue_share.rank:
            return self._next(child)
        return queue

    def _highest_queue(self, cohort: Node) -> tuple[Queue | None, Share]:
        best: Queue | None = None
        highest = NEGATIVE
        for node in cohort.queues:
            queue = self._stage.by_node.get(node)
            if queue is None or node in self._pruned:
                continue
            share = share_of(node)
            if (not share.is_borrowing and queue is not self._queue) or not self.has_any(queue):
                self._pruned.add(node)
            elif best is None or share.rank > highest.rank:
                best, highest = queue, share
            elif share.rank == highest.rank and self._first(queue) < self._first(best):
                best = queue
        return best, highest

    def _first(self, queue: Queue) -> tuple[bool, bool, tuple[int, int, str]]:
        info = self._left[queue.name].first
        assert info is not None
        return not info.is_evicted, queue is self._queue, info.loss_order

    def _highest_cohort(self, cohort: Node) -> tuple[Node | None, Share]:
        shares: list[tuple[Node, Share]] = []
        for child in cohort.cohorts:
            if child in self._pruned:
                continue
            share = share_of(child)
            if not share.is_borrowing and child not in self._ancestors:
                self._pruned.add(child)
            else:
                shares.append((child, share))
        if not shares:
            return None, NEGATIVE
        highest = max(share.rank for _, share in shares)
        return self._stage.chance.pick([each for each in reversed(shares) if each[1].rank == highest])


def _below(node: Node, common: Node) -> Node:
    found = node
    for each in node.ancestors:
        if each is common:
            return found
        found = each
    return found


class _Run:
    """One search for targets; the preemptor's usage counts until the end."""

    def __init__(self, stage: Stage, need: Need) -> None:
        self._stage, self._need = stage, need
        self.targets: list[Target] = []
        self._later: dict[str, list[Info]] = {}

    def first(self, candidates: Mapping[str, _Stream], strategy: str) -> bool:
        """The first strategy: whether the Workload fits in the end."""
        ordering = Ordering(self._stage, self._need.queue, candidates)
        node = self._need.queue.node
        is_entitled = self._stage.config.has(gates.PREEMPT_WITHIN_NOMINAL) and not any(
            node.borrows_with(fr) for fr in self._need.short
        )
        for queue in ordering:
            if queue is self._need.queue or is_entitled:
                reason = IN_CLUSTER_QUEUE if queue is self._need.queue else IN_COHORT_RECLAMATION
                if self._take(ordering.pop(queue), reason):
                    return True
            elif self._first_of(queue, ordering, strategy):
                return True
        return False

    def _first_of(self, queue: Queue, ordering: Ordering, strategy: str) -> bool:
        own, other = ordering.sides(queue)
        own_share, other_share = share_of(own).rank, share_of(other).rank
        while ordering.has_any(queue):
            info = ordering.pop(queue)
            if strategy == gates.INITIAL_SHARE:
                passes = own_share < other_share
            else:
                queue.node.remove(info.usage)
                passes = own_share <= share_of(other).rank
                queue.node.add(info.usage)
            if passes:
                return self._take(info, IN_COHORT_FAIR_SHARING)
            self._later.setdefault(queue.name, []).append(info)
        return False

    def second(self) -> bool:
        """The second strategy, over those who failed the first."""
        later = {name: _Stream(iter(each)) for name, each in self._later.items()}
        ordering = Ordering(self._stage, self._need.queue, later)
        for queue in ordering:
            own, other = ordering.sides(queue)
            info = ordering.pop(queue)
            if share_of(own).rank < share_of(other).rank and self._take(info, IN_COHORT_FAIR_SHARING):
                return True
            ordering.drop(queue)
        return False

    def _take(self, info: Info, reason: str) -> bool:
        """Remove a Workload, and say whether the preemptor fits now."""
        self._stage.remove(info)
        self.targets.append(Target(info, reason))
        self._need.queue.node.remove(self._need.quota)
        fits = self._stage.fits(self._need, may_borrow=True)
        self._need.queue.node.add(self._need.quota)
        return fits


def fair_targets(stage: Stage, need: Need) -> list[Target]:
    """Whom a Workload preempts under fair sharing; nobody, where that would not help."""
    assert stage.config.fair_sharing is not None
    strategies = stage.config.fair_sharing.strategies
    candidates = _candidates(stage, need)
    if all(each.first is None for each in candidates.values()):
        return []
    run = _Run(stage, need)
    node = need.queue.node
    node.add(need.quota)
    fits = run.first(candidates, strategies[0]) or (len(strategies) > 1 and run.second())
    node.remove(need.quota)
    if fits:
        return stage.fill_back(need, run.targets, may_borrow=True)
    stage.restore_all(run.targets)
    return []


def _candidates(stage: Stage, need: Need) -> dict[str, _Stream]:
    preemption = need.queue.preemption
    found: dict[str, _Stream] = {}
    if preemption.within_cluster_queue != NEVER:
        own = stage.candidates(preemption.within_cluster_queue, need, need.queue)
        found[need.queue.name] = _Stream(own)
    if need.queue.node.parent is None or preemption.reclaim_within_cohort == NEVER:
        return found
    for queue in stage.others(need.queue):
        if any(queue.node.borrows_with(fr) for fr in need.short):
            found[queue.name] = _Stream(stage.candidates(preemption.reclaim_within_cohort, need, queue))
    return found
