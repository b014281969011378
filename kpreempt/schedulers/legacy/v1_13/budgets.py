"""Which evictions violate a budget in 1.13 (``filterPodsWithPDBViolation``, ``core/generic_scheduler.go``, v1.13.12).

Nothing is counted: a budget that allows one disruption is violated by no number of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.legacy.base.budgets import BudgetIndex, PodWithBudgets, allowed_by
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.verdict import BudgetUse


def mark_violations(pods: Sequence[PodInfo], budgets: BudgetIndex) -> list[PodWithBudgets]:
    """A pod's eviction is a violation where one of its budgets allows none now."""
    marked = []
    for info in pods:
        matching = budgets.of(info)
        uses = [BudgetUse(budget.key, allowed_by(budget), allowed_by(budget) - 1) for budget in matching]
        marked.append(PodWithBudgets(info, any(use.allowed <= 0 for use in uses), uses))
    return marked
