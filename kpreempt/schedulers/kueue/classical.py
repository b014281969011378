"""Classical preemption: within the ClusterQueue, reclaiming what was lent, and doing so while borrowing.

Follows ``pkg/scheduler/preemption/classical`` and ``classicalPreemptions`` of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from heapq import merge
from typing import NamedTuple

from kpreempt.schedulers.kueue.cluster_queues import NEVER, Queue
from kpreempt.schedulers.kueue.preemption import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
    Need,
    Stage,
    Target,
)
from kpreempt.schedulers.kueue.quota import Node, fits_in_quota
from kpreempt.schedulers.kueue.workloads import Info


class Variant(Enum):
    """Why a candidate may be preempted."""

    WITHIN = IN_CLUSTER_QUEUE
    # The quota that it uses is nearer to the preemptor.
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
    """A ClusterQueue whose Workloads may be preempted, by a policy; ``common`` is the lowest cohort above both.

    With ``has_advantage`` the quota that they use is nearer to the preemptor.
    """

    queue: Queue
    policy: str
    common: Node | None
    has_advantage: bool


class Candidates:
    """All whom a Workload may preempt, in the order in which they are tried."""

    def __init__(self, stage: Stage, need: Need) -> None:
        self._stage, self._need = stage, need
        hierarchy, by_priority = self._in_cohort()
        self._parts = [hierarchy, by_priority, self._within()]
        self.has_hierarchy = self._has_any(hierarchy)
        self.has_others = self.has_hierarchy or self._has_any(by_priority)

    def valid(self, *, may_borrow: bool) -> Iterator[Candidate]:
        """Those that may go. Who comes later depends on who has gone by then."""
        hierarchy, by_priority, within = self._parts
        if may_borrow and not self._need.queue.preemption.may_borrow:
            by_priority = []
        # Those that were evicted already come first, in the same order.
        for is_evicted in (True, False):
            for part in (hierarchy, by_priority, within):
                sources = filter(self._has_evicted, part) if is_evicted else part
                streams = [self._of(each, is_evicted=is_evicted, may_borrow=may_borrow) for each in sources]
                # One may have been drawn while its ClusterQueue still borrowed.
                yield from (each for each in merge(*streams, key=_loss_order) if self._is_valid(each.source))

    def _has_evicted(self, source: _Source) -> bool:
        first = next(iter(source.queue.in_order(self._need.short)), None)
        return first is not None and first.is_evicted

    def _has_any(self, part: list[_Source]) -> bool:
        return any(True for source in part for _ in self._stage.candidates(source.policy, self._need, source.queue))

    def _is_valid(self, source: _Source) -> bool:
        """Whether anybody of a ClusterQueue may go; once that is over, it stays so while others go."""
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

    def _within(self) -> list[_Source]:
        queue = self._need.queue
        policy = queue.preemption.within_cluster_queue
        return [] if policy == NEVER else [_Source(queue, policy, None, False)]

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


def _loss_order(candidate: Candidate) -> tuple[int, int, str]:
    return candidate.info.loss_order


def classical_targets(stage: Stage, need: Need) -> list[Target]:
    """Whom a Workload preempts; nobody, where that would not help."""
    candidates = Candidates(stage, need)
    for may_borrow in _attempts(need, candidates):
        targets: list[Target] = []
        for each in candidates.valid(may_borrow=may_borrow):
            stage.remove(each.info)
            targets.append(Target(each.info, each.variant.reason))
            if stage.fits(need, may_borrow=may_borrow):
                return stage.fill_back(need, targets, may_borrow=may_borrow)
        stage.restore_all(targets)
    return []


def _attempts(need: Need, candidates: Candidates) -> tuple[bool, ...]:
    """Whether borrowing is allowed, attempt by attempt."""
    forbids = not need.queue.preemption.may_borrow
    node = need.queue.node
    is_under = all(node.quota(fr).nominal > node.usage.get(fr, 0) for fr in need.short)
    if not candidates.has_others or (forbids and not is_under):
        return (True,)
    return (False, True) if forbids and not candidates.has_hierarchy else (True, False)
