"""Which of two pods is more important, and pods sorted by importance, equal ones as Go sorts them.

``MoreImportantPod`` (``pkg/scheduler/util/utils.go``, v1.36.3) compares priority, then start time. It has no final
tie-break, and a pod without a start time counts as starting now, with ``now`` read twice in a comparison. The order of
equal pods is therefore an artifact of the sorting algorithm.

PodDisruptionBudget violations follow ``filterPodsWithPDBViolation`` in
``plugins/defaultpreemption/default_preemption.go`` of v1.36.3.

``rank_victims`` returns the order in which a node's pods would be evicted (``SelectVictimsOnNode``,
``default_preemption.go``, v1.36.3). Victim selection removes all pods of lower priority from the node and then
reprieves them, first those whose eviction violates a budget, each group most important first. So the last pod to be
reprieved is the first victim, if evicting it frees what the incoming pod lacks; a pod that frees none of that stays,
whatever its rank.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.budgets import SelectingBudgets, claimed_in_order
from kpreempt.schedulers.equal_pods import update_of
from kpreempt.schedulers.go_sort import sorted_as_in_go
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.verdict import BudgetUse

if TYPE_CHECKING:
    from kpreempt.verdict.at_risk import RankedVictim

# Stands for a missing start time, which counts as now.
NO_START = float("inf")
# The scheduler whose lease a recording watches. Others may run independently, with caches that started at another time.
_SCHEDULER = "default-scheduler"


def is_more_important(one: PodInfo, other: PodInfo, now: datetime, *, reads_starts_once: bool = False) -> bool:
    """Return whether ``one`` is reprieved before ``other``: by priority, then by earlier start.

    If both have no start time, the result is always true, because upstream's clock advances between its two readings.
    But if it ``reads_starts_once``, when pods are listed, the pod listed first is more important, and that order is
    unknown here.
    """
    if one.priority != other.priority:
        return one.priority > other.priority
    if one.start is None and other.start is None:
        return not reads_starts_once
    return (one.start or now) < (other.start or now)


def sort_by_importance(
    pods: Sequence[PodInfo],
    now: datetime,
    *,
    has_scheduler_order: bool,
    reads_starts_once: bool = False,
    listed: Mapping[str, int] | None = None,
) -> list[PodInfo]:
    """Sort the pods, most important first.

    If upstream ``reads_starts_once``, pods without a start time are in the order in which they were ``listed``
    (positions by key; ``None``: the given order).

    If the pods are in the scheduler's order, equal ones end up in the order that Go's sort gives them. Otherwise they
    are in the likely order: an update moves a pod to the end of its node's list, so the most recently updated comes
    last. Pods without a start time are in reverse, because Go's sort reverses short runs of them.
    """
    ordered = list(pods)
    if not has_scheduler_order:
        latest_last = sorted(ordered, key=lambda pod: update_of(pod.pod))
        if reads_starts_once:
            return sorted(latest_last, key=tie_of)
        without_start = [pod for pod in reversed(latest_last) if pod.start is None]
        return sorted([*(pod for pod in latest_last if pod.start is not None), *without_start], key=tie_of)
    keys = [(-pod.priority, pod.start) for pod in ordered]
    if all(start is not None for _, start in keys) and len(set(keys)) == len(keys):
        return sorted(ordered, key=lambda pod: (-pod.priority, pod.start or now))
    if not reads_starts_once:
        return sorted_as_in_go(ordered, lambda one, other: is_more_important(one, other, now))
    places = listed if listed is not None else {pod.key: place for place, pod in enumerate(ordered)}

    def rank(pod: PodInfo) -> tuple[int, datetime, int]:
        return -pod.priority, pod.start or now, -1 if pod.start is not None else places[pod.key]

    return sorted_as_in_go(ordered, lambda one, other: rank(one) < rank(other))


def have_equal_rank(one: PodInfo, other: PodInfo) -> bool:
    """Return whether neither pod is more important, or each is."""
    return one.priority == other.priority and one.start == other.start


def tie_of(pod: PodInfo | Pod) -> tuple[int, float]:
    """Return what equal pods share, priority and start, as a key that sorts the most important first."""
    return -pod.priority, NO_START if pod.start is None else pod.start.timestamp()


def stand_in_order(
    cluster: ClusterSnapshot, node_info: NodeInfo, priority: int | None, *, scheduler: str = _SCHEDULER
) -> bool:
    """Return whether the node's pods below ``priority`` (``None``: all) are in the scheduler's order.

    They are not if a what-if has changed the node's pods.
    """
    if cluster.has_scheduler_order:
        return True
    order = cluster.pod_orders.get(node_info.name)
    if order is None or scheduler != _SCHEDULER:
        return False
    keys = [info.key for info in node_info.pods]
    if set(keys) != {*filter(None, order.places), *order.unplaced}:
        return False
    counted = {info.key for info in node_info.pods if priority is None or info.priority < priority}
    in_order = [key for key in order.places if key in counted]
    return not counted & order.unplaced and in_order == [key for key in keys if key in counted]


class PodWithBudgets(NamedTuple):
    """A pod, the disruptions its eviction uses of each budget that protects it, and whether one of these is violated.

    ``has_unchecked_budgets`` means that a violated budget was not the last one; the ones after it were not decremented.
    """

    pod_info: PodInfo
    budgets: list[BudgetUse]
    violates: bool
    has_unchecked_budgets: bool = False


# How many nodes are known at most, counting each again when its pods change.
_MAX_NODES_KNOWN = 20_000


class VictimCounts(NamedTuple):
    """What a dry run of a node depends on: how many of its evictable pods each budget selects, by budget position.

    ``is_timed`` means that a start time is missing, so the current time is used.
    """

    budgets: Mapping[int, int]
    is_timed: bool


class _OnNode(NamedTuple):
    """The pods of a node, the lowest priority first, with their priorities, and counts by the number of pods below."""

    pods: list[PodInfo]
    priorities: list[int]
    counts: dict[int, VictimCounts]


class BudgetIndex(SelectingBudgets):
    """The budgets of a cluster, and the pods that they protect.

    If it ``stops_at_violated``, a pod that violates a budget does not decrement the budgets after it.
    """

    def __init__(
        self,
        budgets: Sequence[PodDisruptionBudget],
        before: SelectingBudgets | None = None,
        *,
        stops_at_violated: bool = False,
    ) -> None:
        super().__init__(budgets, before)
        self.stops_at_violated = stops_at_violated
        self._on_nodes: dict[NodeInfo, _OnNode] = {}
        if isinstance(before, BudgetIndex) and self.selects_as(before):
            self._on_nodes = before._on_nodes

    def victims_on(self, node_info: NodeInfo, priority: int) -> VictimCounts:
        """Count the pods of a node below ``priority`` by budget; once for a node with the same pods below it."""
        known = self._on_nodes.get(node_info)
        if known is None:
            if len(self._on_nodes) > _MAX_NODES_KNOWN:
                self._on_nodes.clear()
            pods = sorted(node_info.pods, key=attrgetter("priority"))
            known = self._on_nodes[node_info] = _OnNode(pods, [info.priority for info in pods], {})
        number = bisect_left(known.priorities, priority)
        found = known.counts.get(number)
        if found is None:
            below = known.pods[:number]
            budgets = Counter(chain.from_iterable(self.positions_of(info.pod) for info in below))
            is_timed = any(info.start is None for info in below)
            found = known.counts[number] = VictimCounts(budgets, is_timed)
        return found

    def protecting(self, pod_info: PodInfo) -> list[PodDisruptionBudget]:
        """Return the budgets that count the pod; a budget does not count a pod in its ``disruptedPods`` again."""
        return [
            budget
            for budget in self.selecting(pod_info.pod)
            if budget.status is None or pod_info.pod.metadata.name not in budget.status.disrupted_pods
        ]

    def count(self, pod_infos: Sequence[PodInfo]) -> list[PodWithBudgets]:
        """Return the disruptions that evicting all these pods, in this order, uses of the budgets."""
        protecting = [self.protecting(each) for each in pod_infos]
        taken = claimed_in_order(protecting, stops_at_violated=self.stops_at_violated)
        return [
            PodWithBudgets(pod_info, uses, any(use.remaining < 0 for use in uses), len(uses) < len(all_of))
            for pod_info, uses, all_of in zip(pod_infos, taken, protecting, strict=True)
        ]


def rank_victims(
    node_info: NodeInfo,
    priority: int,
    budgets: BudgetIndex,
    now: datetime,
    *,
    has_scheduler_order: bool,
    reads_starts_once: bool = False,
) -> list[RankedVictim]:
    """List the node's pods below ``priority``, first victim first."""
    from kpreempt.verdict.at_risk import RankedVictim  # noqa: PLC0415 - only for pods at risk

    potential = [info for info in node_info.pods if info.priority < priority]
    counted = budgets.count(
        sort_by_importance(potential, now, has_scheduler_order=has_scheduler_order, reads_starts_once=reads_starts_once)
    )
    put_back = [*(each for each in counted if each.violates), *(each for each in counted if not each.violates)]
    places = {each.pod_info.key: place for place, each in enumerate(reversed(put_back), start=1)}
    # The first and last rank of each pod that has equals; any of these may also be the one that violates.
    spans: dict[str, tuple[int, int]] = {}
    for _, tie in groupby(() if has_scheduler_order else counted, lambda each: tie_of(each.pod_info)):
        taken = {each.pod_info.key: places[each.pod_info.key] for each in tie}
        if len(taken) > 1:
            spans |= dict.fromkeys(taken, (min(taken.values()), max(taken.values())))
    return [
        RankedVictim(
            pod=each.pod_info.key,
            priority=each.pod_info.priority,
            rank=spans.get(each.pod_info.key, (place, UNSET))[0],
            last_rank=spans.get(each.pod_info.key, (place, UNSET))[1],
            start_time=each.pod_info.start,
            violates_budget=each.violates,
            budgets=each.budgets,
        )
        for place, each in enumerate(reversed(put_back), start=1)
    ]
