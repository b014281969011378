"""Which budgets cover a pod, and what evictions really take from them.

Whether a budget makes a pod's eviction a violation is each version's own affair (``BudgetRule``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.verdict import BudgetUse


class PodWithBudgets(NamedTuple):
    """A pod that may be evicted, whether that would violate a budget, and what it takes from which."""

    pod_info: PodInfo
    violates: bool
    budgets: list[BudgetUse]


class BudgetIndex:
    """The budgets of a cluster by namespace."""

    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for budget in budgets:
            self._by_namespace.setdefault(budget.metadata.namespace, []).append(budget)

    def of(self, info: PodInfo) -> list[PodDisruptionBudget]:
        """The budgets that select the pod, in the order of the input; a nil or empty selector selects nothing."""
        labels = info.pod.metadata.labels
        if not labels:
            return []
        return [
            budget
            for budget in self._by_namespace.get(info.pod.metadata.namespace, ())
            if (selector := budget.spec.selector) is not None
            and not selector.is_empty()
            and selector.is_valid()
            and selector.matches(labels)
        ]


# Marks the pods, which come most important first, whose eviction would violate a budget.
BudgetRule = Callable[[Sequence[PodInfo], BudgetIndex], list[PodWithBudgets]]


def allowed_by(budget: PodDisruptionBudget) -> int:
    """How many disruptions the budget allows now."""
    return budget.status.disruptions_allowed if budget.status else 0


def without_budgets(pods: Sequence[PodInfo], _: BudgetIndex) -> list[PodWithBudgets]:
    """The rule of a version that asks no budget."""
    return [PodWithBudgets(info, False, []) for info in pods]


def really_taken(pods: Sequence[PodInfo], budgets: BudgetIndex) -> list[list[BudgetUse]]:
    """What each eviction in turn takes from the pod's budgets, whatever the scheduler makes of that."""
    left: dict[str, int] = {}
    uses = []
    for info in pods:
        taken = []
        for budget in budgets.of(info):
            before = left.get(budget.key, allowed_by(budget))
            left[budget.key] = before - 1
            taken.append(BudgetUse(budget.key, before, before - 1))
        uses.append(taken)
    return uses
