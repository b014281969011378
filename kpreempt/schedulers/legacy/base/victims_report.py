"""What a reader needs to know of victims: owner, start, grace period, and what they really take from budgets."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.meta import controller_name
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from kpreempt.schedulers.legacy.base.budgets import BudgetRule, really_taken
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.victims import Importance, put_back_order
from kpreempt.verdict import Standing, Victim


def victims_of(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[Victim]:
    """The victims in their order, each with what its eviction takes from its budgets after those before it."""
    return [
        Victim(
            pod=info.key,
            priority=info.priority,
            owner=controller_name(info.pod.metadata),
            start_time=info.start,
            grace_period_seconds=info.pod.spec.grace_seconds,
            terminating=info.pod.metadata.deletion_timestamp is not None,
            budgets=taken,
        )
        for info, taken in zip(pods, really_taken(pods, budgets), strict=True)
    ]


def rank_victims(
    node_info: NodeInfo, priority: int, is_more_important: Importance, rule: BudgetRule, budgets: SelectingBudgets
) -> list[Standing]:
    """The node's pods below ``priority``, the last to be put back and so the first to go first."""
    potential = [info for info in node_info.pods if info.priority < priority]
    put_back = put_back_order(sorted_as_before_go_1_19(potential, is_more_important), rule, budgets)
    return [
        Standing(
            pod=each.pod_info.key,
            priority=each.pod_info.priority,
            place=place,
            start_time=each.pod_info.start,
            violates_budget=each.violates,
            budgets=each.budgets,
        )
        for place, each in enumerate(reversed(put_back), start=1)
    ]
