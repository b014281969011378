"""What 1.18 decides by when it preempts (``core/generic_scheduler.go`` and ``util/utils.go``, v1.18.19).

A pod that has not started counts as starting at the moment of each comparison: later than all that have, and of two
such pods the one that is asked about first is the more important.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice, permutations

from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.legacy.base.budgets import PodWithBudgets, really_taken
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.schedulers.legacy.base.victims import Importance

REASON_NEVER = "not eligible due to preemptionPolicy=Never."

# All orders of four budgets.
_MAX_ORDERS = 24


def more_important(now: datetime) -> Importance:
    """``MoreImportantPod``: the higher priority, then the earlier start."""

    def is_more_important(one: PodInfo, other: PodInfo) -> bool:
        if one.priority != other.priority:
            return one.priority > other.priority
        if one.start is None and other.start is None:
            return True
        return (one.start or now) < (other.start or now)

    return is_more_important


def count_budgets(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[PodWithBudgets]:
    """Which evictions violate a budget (``filterPodsWithPDBViolation``), with what they really take from which.

    Pods that a budget counts as disrupted already are not spared.
    """
    violations = _violations([budgets.selecting(info.pod) for info in pods])
    taken = really_taken(pods, budgets)
    return list(map(PodWithBudgets, pods, violations, taken))


def _violations(covering: Sequence[Sequence[PodDisruptionBudget]]) -> list[bool]:
    """For each pod, given the budgets that cover it, whether its eviction violates one.

    Each pod takes one from its budgets in turn until it comes to one of which nothing is left. That one it violates,
    and does not ask the rest.
    """
    left: dict[str, int] = {}
    violations = []
    for budgets in covering:
        violates = False
        for budget in budgets:
            remaining = left.get(budget.key, budget.allowed)
            if remaining <= 0:
                violates = True
                break
            left[budget.key] = remaining - 1
        violations.append(violates)
    return violations


def depends_on_order(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> bool:
    """Whether another order of the budgets makes other evictions violations; with five and more not all are tried."""
    covering = [budgets.selecting(info.pod) for info in pods]
    shared = list({budget.key: None for each in covering if len(each) > 1 for budget in each})
    as_given = _violations(covering) if shared else []
    for order in islice(permutations(shared), _MAX_ORDERS if shared else 0):
        # A pod under one budget has it alone in any order.
        ordered = [each if len(each) < 2 else sorted(each, key=lambda it: order.index(it.key)) for each in covering]
        if _violations(ordered) != as_given:
            return True
    return False
