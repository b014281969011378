"""Which budgets select a pod, and what evictions take from them; what violates one is each version's own affair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.verdict import BudgetUse


class SelectingBudgets:
    """The budgets of a cluster by what they select.

    A budget without a selector, or with an empty or a broken one, selects nothing.
    """

    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        # Pods of one workload have the same labels, so most look-ups are repeated ones.
        self._selecting: dict[tuple[str, frozenset[tuple[str, str]]], list[PodDisruptionBudget]] = {}
        for budget in budgets:
            selector = budget.spec.selector
            if selector is not None and not selector.is_empty() and selector.is_valid():
                self._by_namespace.setdefault(budget.metadata.namespace, []).append(budget)

    def selecting(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets whose selector matches the pod, in the order of the input."""
        metadata = pod.metadata
        if not metadata.labels:
            return []
        key = metadata.namespace, frozenset(metadata.labels.items())
        selecting = self._selecting.get(key)
        if selecting is None:
            selecting = self._selecting[key] = [
                budget
                for budget in self._by_namespace.get(metadata.namespace, ())
                if budget.spec.selector is not None and budget.spec.selector.matches(metadata.labels)
            ]
        return selecting


def taken_in_turn(
    covering: Iterable[Sequence[PodDisruptionBudget]], *, stops_at_violated: bool = False
) -> list[list[BudgetUse]]:
    """What evicting pods one after the other takes from the budgets that cover each.

    Every budget of a pod is decremented, also when another one is violated already, unless it ``stops_at_violated``.
    """
    left: dict[str, int] = {}
    taken = []
    for budgets in covering:
        uses: list[BudgetUse] = []
        for budget in budgets:
            allowed = left.get(budget.key, budget.allowed)
            left[budget.key] = allowed - 1
            uses.append(BudgetUse(budget.key, allowed, allowed - 1))
            if allowed <= 0 and stops_at_violated:
                break
        taken.append(uses)
    return taken
