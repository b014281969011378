"""Which Workloads a Workload preempts, with classical preemption or Fair Sharing.

Follows ``pkg/scheduler/preemption`` of Kueue v0.19.2, with ``classical`` and ``classicalPreemptions`` (within the
ClusterQueue, to reclaim quota, and while borrowing), and ``fairsharing`` and ``fairPreemptions`` (starting with the
queue that has the greatest share).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from heapq import merge
from typing import NamedTuple

from kpreempt.model.quantity import MAX_INT64
from kpreempt.schedulers.kueue.chance import Chance
from kpreempt.schedulers.kueue.cluster_queues import NEVER, Info, Queue
from kpreempt.schedulers.kueue.objects import INITIAL_SHARE, Gate, KueueConfiguration
from kpreempt.schedulers.kueue.quota import NEGATIVE, Amounts, FlavorResource, Node, Share, fits_in_quota, share_of
from kpreempt.schedulers.kueue.topology_requests import ByFlavor, failure_of, place_all

IN_CLUSTER_QUEUE = "InClusterQueue"
IN_COHORT_RECLAMATION = "InCohortReclamation"
IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"

_LOWER_PRIORITY = "LowerPriority"
_LOWER_OR_NEWER = "LowerOrNewerEqualPriority"
_ANY = "Any"
_TIMESTAMP_BUFFER = 5 * 60 * 1000


class Target(NamedTuple):
    """A Workload to evict, and the reason."""

    info: Info
    reason: str


class Need(NamedTuple):
    """What a Workload needs: all its requests, and the flavors and resources that are short of quota."""

    info: Info
    queue: Queue
    short: frozenset[FlavorResource]
    quota: Amounts
    topology: ByFlavor


class Stage:
    """The ClusterQueues in a cycle. Workloads are removed tentatively and restored."""

    def __init__(
        self, queues: Mapping[str, Queue], config: KueueConfiguration, now: int, chance: Chance | None = None
    ) -> None:
        self.queues = queues
        self.chance = chance or Chance()
        self.config = config
        self.now = now
        self.by_node = {each.node: each for each in queues.values()}

    def remove(self, info: Info) -> None:
        """Remove a Workload's usage."""
        self.queues[info.cluster_queue].use(info.usage, info.topology_usage, -1)

    def restore(self, info: Info) -> None:
        """Restore a Workload's usage."""
        self.queues[info.cluster_queue].use(info.usage, info.topology_usage)

    @contextmanager
    def without(self, infos: Iterable[Info]) -> Iterator[None]:
        """Simulate without these Workloads: their quota is free, and they cannot be preempted."""
        gone = list(infos)
        for each in gone:
            self.remove(each)
            self.queues[each.cluster_queue].remove_admitted(each)
        yield
        for each in gone:
            self.restore(each)
            self.queues[each.cluster_queue].add_admitted(each)

    def other_queues(self, queue: Queue) -> Iterable[Queue]:
        """Return the other active ClusterQueues in the tree of ``queue``."""
        for node in queue.node.root.all_queues():
            found = self.by_node.get(node)
            if found is not None and found is not queue:
                yield found

    def candidates(self, policy: str, need: Need, queue: Queue) -> Iterator[Info]:
        """Yield the Workloads of a ClusterQueue that a policy allows to preempt, in preemption order."""
        most = MAX_INT64 if policy == _ANY else need.info.effective_priority
        if policy == _LOWER_PRIORITY:
            most -= 1
        for each in queue.in_order(need.short):
            if each.effective_priority > most:
                # Only Workloads that are already evicted come before those with lower priority.
                if not each.is_evicted:
                    return
            elif self.satisfies(policy, need.info, each):
                yield each

    def satisfies(self, policy: str, info: Info, candidate: Info) -> bool:
        """Return whether a policy lets ``info`` preempt ``candidate``."""
        is_lower = info.effective_priority > candidate.effective_priority
        if policy == _LOWER_PRIORITY or (policy == _LOWER_OR_NEWER and is_lower):
            return is_lower
        if policy == _LOWER_OR_NEWER:
            ahead = candidate.queued_since - info.queued_since
            enough = _TIMESTAMP_BUFFER if self.config.has(Gate.TIMESTAMP_BUFFER) else 0
            return info.effective_priority == candidate.effective_priority and ahead > enough
        return policy == _ANY

    def fits(self, need: Need, *, may_borrow: bool) -> bool:
        """Return whether a Workload would fit now."""
        node = need.queue.node
        for fr, amount in need.quota.items():
            if (not may_borrow and node.borrows_with(fr, amount)) or amount > max(0, node.available(fr)):
                return False
        return not need.topology or failure_of(place_all(need.topology, need.queue)) is None

    def fill_back(self, need: Need, targets: list[Target], *, may_borrow: bool) -> list[Target]:
        """Drop the targets that are not needed, and restore the usage of all targets.

        The last target always stays, and takes the place of each one that is dropped.
        """
        for index in range(len(targets) - 2, -1, -1):
            self.restore(targets[index].info)
            if self.fits(need, may_borrow=may_borrow):
                targets[index] = targets[-1]
                targets.pop()
            else:
                self.remove(targets[index].info)
        self.restore_all(targets)
        return targets

    def restore_all(self, targets: Iterable[Target]) -> None:
        """Restore the usage of all targets."""
        for each in targets:
            self.restore(each.info)


class Variant(Enum):
    """Why a candidate may be preempted."""

    WITHIN = IN_CLUSTER_QUEUE
    # The candidate's quota is closer to the preemptor in the tree.
    HIERARCHY = IN_COHORT_RECLAMATION
    WITHOUT_BORROWING = "InCohortReclamation, without borrowing"
    WHILE_BORROWING = IN_COHORT_RECLAIM_WHILE_BORROWING

    @property
    def reason(self) -> str:
        return IN_COHORT_RECLAMATION if self is self.WITHOUT_BORROWING else self.value


class Candidate(NamedTuple):
    """A Workload that may be preempted."""

    info: Info
    variant: Variant
    source: _Source


class _Source(NamedTuple):
    """A ClusterQueue whose Workloads a policy allows to preempt; ``common`` is the lowest common cohort.

    With ``has_advantage``, their quota is closer to the preemptor in the tree.
    """

    queue: Queue
    policy: str
    common: Node | None
    has_advantage: bool


class Candidates:
    """All Workloads that may be preempted, in the order in which they are tried."""

    def __init__(self, stage: Stage, need: Need) -> None:
        self._stage, self._need = stage, need
        hierarchy, by_priority = self._in_cohort()
        policy = need.queue.preemption.within_cluster_queue
        within = [] if policy == NEVER else [_Source(need.queue, policy, None, False)]
        self._parts = [hierarchy, by_priority, within]
        self.has_hierarchy = self._has_any(hierarchy)
        self.has_others = self.has_hierarchy or self._has_any(by_priority)

    def valid(self, *, may_borrow: bool) -> Iterator[Candidate]:
        """Yield the valid candidates. Later ones depend on which were removed in the meantime."""
        hierarchy, by_priority, within = self._parts
        if may_borrow and not self._need.queue.preemption.may_borrow:
            by_priority = []
        # Workloads that are already evicted come first, in the same order.
        for is_evicted in (True, False):
            for part in (hierarchy, by_priority, within):
                streams = [
                    self._of(each, is_evicted=is_evicted, may_borrow=may_borrow)
                    for each in part
                    if not is_evicted or ((own := each.queue.in_order(self._need.short)) and own[0].is_evicted)
                ]
                # A candidate may have been drawn while its ClusterQueue was still borrowing.
                yield from (
                    each
                    for each in merge(*streams, key=lambda each: each.info.loss_order)
                    if self._is_valid(each.source)
                )

    def _has_any(self, part: list[_Source]) -> bool:
        return any(True for source in part for _ in self._stage.candidates(source.policy, self._need, source.queue))

    def _is_valid(self, source: _Source) -> bool:
        """Return whether a ClusterQueue has valid candidates; once false, it stays false as others are removed."""
        if source.queue is self._need.queue:
            return True
        node, short = source.queue.node, self._need.short
        if node.is_within_nominal(short):
            return False
        for cohort in node.ancestors:
            if cohort is source.common:
                break
            if cohort.is_within_nominal(short):
                return False
        return True

    def _in_cohort(self) -> tuple[list[_Source], list[_Source]]:
        need = self._need
        hierarchy: list[_Source] = []
        by_priority: list[_Source] = []
        if need.queue.node.parent is None or need.queue.preemption.reclaim_within_cohort == NEVER:
            return hierarchy, by_priority
        before: Node | None = None
        has_advantage, rest = fits_in_quota(need.queue.node, need.quota)
        for cohort in need.queue.node.ancestors:
            found = hierarchy if has_advantage else by_priority
            self._add_below(found, cohort, cohort, before, has_advantage=has_advantage)
            fits, rest = fits_in_quota(cohort, rest)
            has_advantage = has_advantage or fits
            before = cohort
        return hierarchy, by_priority

    def _add_below(
        self, found: list[_Source], cohort: Node, common: Node, passed: Node | None, *, has_advantage: bool
    ) -> None:
        own, short, by_node = self._need.queue, self._need.short, self._stage.by_node
        policy = own.preemption.reclaim_within_cohort
        for child in cohort.cohorts:
            if child is not passed and not child.is_within_nominal(short):
                self._add_below(found, child, common, passed, has_advantage=has_advantage)
        for node in cohort.queues:
            if not node.is_within_nominal(short):
                queue = by_node.get(node)
                if queue is not None and queue is not own and queue.workloads:
                    found.append(_Source(queue, policy, common, has_advantage))

    def _of(self, source: _Source, *, is_evicted: bool, may_borrow: bool) -> Iterator[Candidate]:
        for info in self._stage.candidates(source.policy, self._need, source.queue):
            if (is_evicted and not info.is_evicted) or not self._is_valid(source):
                return
            variant = self._variant(source, info)
            if info.is_evicted is is_evicted and not (may_borrow and variant is Variant.WITHOUT_BORROWING):
                yield Candidate(info, variant, source)

    def _variant(self, source: _Source, info: Info) -> Variant:
        need = self._need
        if source.queue is need.queue:
            return Variant.WITHIN
        if source.has_advantage:
            return Variant.HIERARCHY
        borrow = need.queue.preemption.borrow_within_cohort
        if borrow is None or borrow.policy == NEVER or info.effective_priority >= need.info.effective_priority:
            return Variant.WITHOUT_BORROWING
        threshold = borrow.max_priority_threshold
        if threshold is not None and info.effective_priority > threshold:
            return Variant.WITHOUT_BORROWING
        return Variant.WHILE_BORROWING


def classical_targets(stage: Stage, need: Need) -> list[Target]:
    """Return the Workloads to preempt; none if preemption would not help."""
    candidates = Candidates(stage, need)
    forbids = not need.queue.preemption.may_borrow
    node = need.queue.node
    is_under = all(node.quota(fr).nominal > node.usage.get(fr, 0) for fr in need.short)
    # Whether borrowing is allowed in each attempt.
    attempts: tuple[bool, ...] = (True, False)
    if not candidates.has_others or (forbids and not is_under):
        attempts = (True,)
    elif forbids and not candidates.has_hierarchy:
        attempts = (False, True)
    for may_borrow in attempts:
        targets: list[Target] = []
        for each in candidates.valid(may_borrow=may_borrow):
            stage.remove(each.info)
            targets.append(Target(each.info, each.variant.reason))
            if stage.fits(need, may_borrow=may_borrow):
                return stage.fill_back(need, targets, may_borrow=may_borrow)
        stage.restore_all(targets)
    return []


class _Stream:
    """The remaining candidates of a ClusterQueue; ``first`` is the next one."""

    __slots__ = ("_rest", "first")

    def __init__(self, infos: Iterator[Info]) -> None:
        self._rest = infos
        self.first = next(infos, None)

    def pop(self) -> Info:
        """Remove and return the next candidate."""
        info = self.first
        assert info is not None
        self.first = next(self._rest, None)
        return info


class Ordering:
    """The ClusterQueue that loses a Workload next: from the root down, the side with the greatest share."""

    def __init__(self, stage: Stage, queue: Queue, candidates: Mapping[str, _Stream]) -> None:
        self._stage, self._queue = stage, queue
        self._ancestors = set(queue.node.ancestors)
        self._left = candidates
        # Nodes that are skipped from now on.
        self.pruned: set[Node] = set()

    def __iter__(self) -> Iterator[Queue]:
        node = self._queue.node
        if node.parent is None:
            while node not in self.pruned and self.has_any(self._queue):
                yield self._queue
            return
        root = node.root
        while root not in self.pruned:
            found = self._next(root)
            if found is not None:
                yield found

    def has_any(self, queue: Queue) -> bool:
        """Return whether a ClusterQueue has candidates left."""
        stream = self._left.get(queue.name)
        return stream is not None and stream.first is not None

    def pop(self, queue: Queue) -> Info:
        """Remove and return the next candidate of a ClusterQueue."""
        return self._left[queue.name].pop()

    def sides(self, queue: Queue) -> tuple[Node, Node]:
        """Return the children of the lowest common cohort on the preemptor's side and on the side of ``queue``."""
        common = next(each for each in queue.node.ancestors if each in self._ancestors)
        return _below(self._queue.node, common), _below(queue.node, common)

    def _next(self, cohort: Node) -> Queue | None:
        queue, queue_share = self._highest_queue(cohort)
        child, child_share = self._highest_cohort(cohort)
        if queue is None and child is None:
            self.pruned.add(cohort)
            return None
        if child is not None and child_share.rank >= queue_share.rank:
            return self._next(child)
        return queue

    def _highest_queue(self, cohort: Node) -> tuple[Queue | None, Share]:
        best: Queue | None = None
        highest = NEGATIVE
        for node in cohort.queues:
            queue = self._stage.by_node.get(node)
            if queue is None or node in self.pruned:
                continue
            share = share_of(node)
            if (not share.is_borrowing and queue is not self._queue) or not self.has_any(queue):
                self.pruned.add(node)
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
            if child in self.pruned:
                continue
            share = share_of(child)
            if not share.is_borrowing and child not in self._ancestors:
                self.pruned.add(child)
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
    """One search for targets; the preemptor's usage is counted until it ends."""

    def __init__(self, stage: Stage, need: Need) -> None:
        self._stage, self._need = stage, need
        self.targets: list[Target] = []
        self._later: dict[str, list[Info]] = {}

    def first(self, candidates: Mapping[str, _Stream], strategy: str) -> bool:
        """Apply the first strategy; return whether the Workload fits."""
        ordering = Ordering(self._stage, self._need.queue, candidates)
        node = self._need.queue.node
        is_entitled = self._stage.config.has(Gate.PREEMPT_WITHIN_NOMINAL) and not any(
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
            if strategy == INITIAL_SHARE:
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
        """Apply the second strategy to the candidates that failed the first."""
        later = {name: _Stream(iter(each)) for name, each in self._later.items()}
        ordering = Ordering(self._stage, self._need.queue, later)
        for queue in ordering:
            own, other = ordering.sides(queue)
            info = ordering.pop(queue)
            if share_of(own).rank < share_of(other).rank and self._take(info, IN_COHORT_FAIR_SHARING):
                return True
            ordering.pruned.add(queue.node)
        return False

    def _take(self, info: Info, reason: str) -> bool:
        """Remove a Workload, and return whether the preemptor fits now."""
        self._stage.remove(info)
        self.targets.append(Target(info, reason))
        self._need.queue.node.remove(self._need.quota)
        fits = self._stage.fits(self._need, may_borrow=True)
        self._need.queue.node.add(self._need.quota)
        return fits


def fair_targets(stage: Stage, need: Need) -> list[Target]:
    """Return the Workloads to preempt under fair sharing; none if preemption would not help."""
    assert stage.config.fair_sharing is not None
    strategies = stage.config.fair_sharing.strategies
    preemption = need.queue.preemption
    found: dict[str, _Stream] = {}
    if preemption.within_cluster_queue != NEVER:
        found[need.queue.name] = _Stream(stage.candidates(preemption.within_cluster_queue, need, need.queue))
    if need.queue.node.parent is not None and preemption.reclaim_within_cohort != NEVER:
        for queue in stage.other_queues(need.queue):
            if any(queue.node.borrows_with(fr) for fr in need.short):
                found[queue.name] = _Stream(stage.candidates(preemption.reclaim_within_cohort, need, queue))
    if all(each.first is None for each in found.values()):
        return []
    run = _Run(stage, need)
    node = need.queue.node
    node.add(need.quota)
    fits = run.first(found, strategies[0]) or (len(strategies) > 1 and run.second())
    node.remove(need.quota)
    if fits:
        return stage.fill_back(need, run.targets, may_borrow=True)
    stage.restore_all(run.targets)
    return []
