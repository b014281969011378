"""Which budgets select a pod, and what evictions take from them; what violates one is each version's own affair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.model.labels import SelectorIndex
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, check_selecting
from kpreempt.verdict import BudgetUse


class SelectingBudgets:
    """The budgets of a cluster by what they select.

    A budget without a selector, or with an empty or a broken one, selects nothing.
    """

    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for budget in budgets:
            selector = budget.spec.selector
            if selector is not None and not selector.is_empty() and selector.is_valid():
                self._by_namespace.setdefault(budget.metadata.namespace, []).append(budget)
        self._selectors = {
            namespace: SelectorIndex(budget.spec.selector for budget in group if budget.spec.selector is not None)
            for namespace, group in self._by_namespace.items()
        }

    def selecting(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets whose selector matches the pod, in the order of the input; ``InputError`` for too many."""
        metadata = pod.metadata
        if not metadata.labels or metadata.namespace not in self._selectors:
            return []
        budgets = self._by_namespace[metadata.namespace]
        found = self._selectors[metadata.namespace].matching(metadata.labels)
        check_selecting(pod.key, len(found))
        return [budgets[index] for index in found]


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
