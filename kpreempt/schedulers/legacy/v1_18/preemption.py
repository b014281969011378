"""What 1.18 decides by when it preempts (``core/generic_scheduler.go`` and ``util/utils.go``, v1.18.19).

A pod that has not started counts as starting at the moment of each comparison: later than all that have, and of two
such pods the one that is asked about first is the more important.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kpreempt.schedulers.legacy.base.budgets import BudgetIndex, PodWithBudgets, allowed_by, really_taken
from kpreempt.schedulers.legacy.base.choice import (
    FEWEST_VICTIMS,
    FEWEST_VIOLATIONS,
    LOWEST_FIRST_VICTIM,
    SMALLEST_SUM,
    Criterion,
)
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.schedulers.legacy.base.victims import Importance, Victims

REASON_NEVER = "not eligible due to preemptionPolicy=Never."


def more_important(now: datetime) -> Importance:
    """``MoreImportantPod``: the higher priority, then the earlier start."""

    def is_more_important(one: PodInfo, other: PodInfo) -> bool:
        if one.priority != other.priority:
            return one.priority > other.priority
        if one.start is None and other.start is None:
            return True
        return (one.start or now) < (other.start or now)

    return is_more_important


def count_budgets(pods: Sequence[PodInfo], budgets: BudgetIndex) -> list[PodWithBudgets]:
    """Which evictions violate a budget (``filterPodsWithPDBViolation``).

    Each pod takes one from every budget that covers it, in their order, until it comes to one of which nothing is left.
    That pod violates it, and does not ask the rest. Pods that the budget counts as disrupted already are not spared.
    """
    left: dict[str, int] = {}
    counted = []
    for info, taken in zip(pods, really_taken(pods, budgets), strict=True):
        violates = False
        for budget in budgets.of(info):
            remaining = left.get(budget.key, allowed_by(budget))
            if remaining <= 0:
                violates = True
                break
            left[budget.key] = remaining - 1
        counted.append(PodWithBudgets(info, violates, taken))
    return counted


def criteria(now: datetime) -> list[Criterion]:
    """The rules of ``pickOneNodeForPreemption``; the last is that the latest start wins."""

    def shown(victims: Victims) -> str:
        start = earliest_start(victims.pods, now)
        return "now" if start is None else start.strftime("%Y-%m-%dT%H:%M:%SZ")

    def rank(victims: Victims) -> float:
        return -(earliest_start(victims.pods, now) or now).timestamp()

    latest_start = Criterion("latestStart", shown, rank)
    return [FEWEST_VIOLATIONS, LOWEST_FIRST_VICTIM, SMALLEST_SUM, FEWEST_VICTIMS, latest_start]


def earliest_start(victims: Sequence[PodInfo], now: datetime) -> datetime | None:
    """The earliest start among the victims of the highest priority; ``None`` where that is a pod not started yet."""
    highest = max(info.priority for info in victims)
    return min((info.start for info in victims if info.priority == highest), key=lambda start: start or now)
