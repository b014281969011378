"""Which budgets cover a pod, and what evictions really take from them.

Whether a budget makes a pod's eviction a violation is each version's own affair (``BudgetRule``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kpreempt.schedulers.budgets import SelectingBudgets, taken_in_turn
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.verdict import BudgetUse


class PodWithBudgets(NamedTuple):
    """A pod that may be evicted, whether that would violate a budget, and what it takes from which."""

    pod_info: PodInfo
    violates: bool
    budgets: list[BudgetUse]


# Marks the pods, which come most important first, whose eviction would violate a budget.
BudgetRule = Callable[[Sequence[PodInfo], SelectingBudgets], list[PodWithBudgets]]


def without_budgets(pods: Sequence[PodInfo], _: SelectingBudgets) -> list[PodWithBudgets]:
    """The rule of a version that asks no budget."""
    return [PodWithBudgets(info, False, []) for info in pods]


def really_taken(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[list[BudgetUse]]:
    """What each eviction in turn takes from the pod's budgets, whatever the scheduler makes of that."""
    return taken_in_turn(budgets.selecting(info.pod) for info in pods)
