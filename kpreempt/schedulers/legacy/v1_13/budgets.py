"""Which evictions violate a budget in 1.13 (``filterPodsWithPDBViolation``, ``core/generic_scheduler.go``, v1.13.12).

Nothing is counted: a budget that allows one disruption is violated by no number of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.legacy.base.budgets import PodWithBudgets
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.verdict import BudgetUse


def mark_violations(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[PodWithBudgets]:
    """A pod's eviction is a violation where one of its budgets allows none now."""
    marked = []
    for info in pods:
        matching = budgets.selecting(info.pod)
        uses = [BudgetUse(budget.key, budget.allowed, budget.allowed - 1) for budget in matching]
        marked.append(PodWithBudgets(info, any(use.allowed <= 0 for use in uses), uses))
    return marked
