"""The budgets that select a pod, and the disruptions that evictions use; each version defines what a violation is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kpreempt.model.labels import SelectorIndex
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, check_selecting
from kpreempt.verdict import BudgetUse


class SelectingBudgets:
    """The budgets of a cluster, indexed by what they select.

    A budget with no selector, or with an empty or invalid one, selects nothing. ``before`` are the budgets of the
    previous cluster: if they have the same selectors, cached results are reused.
    """

    def __init__(self, budgets: Sequence[PodDisruptionBudget], before: SelectingBudgets | None = None) -> None:
        self.budgets = budgets
        self._of_labels: dict[tuple[str, int], list[PodDisruptionBudget]] = {}
        # By namespace, the positions of its budgets in the input; and, computed on demand, what the selecting ones
        # select.
        self._positions: dict[str, list[int]] = {}
        self._selectors: dict[str, tuple[list[int], SelectorIndex]] = {}
        # By namespace and the identity of labels, which many pods share; the labels are stored so that the identity
        # stays valid.
        self._known: dict[tuple[str, int], tuple[Mapping[str, str], list[int]]] = {}
        if before is not None and before._selects_as(budgets):
            self._positions, self._selectors, self._known = before._positions, before._selectors, before._known
            return
        for position, budget in enumerate(budgets):
            self._positions.setdefault(budget.metadata.namespace, []).append(position)

    def selecting(self, pod: Pod) -> list[PodDisruptionBudget]:
        """Return the budgets whose selectors match the pod, in input order; callers must not change the list.

        Raises ``InputError`` if there are too many.
        """
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        key = namespace, id(labels)
        found = self._of_labels.get(key)
        if found is None:
            found = self._of_labels[key] = [self.budgets[position] for position in self.positions_of(pod)]
        return found

    def positions_of(self, pod: Pod) -> Sequence[int]:
        """Return the positions of the same budgets in the input."""
        key = pod.metadata.namespace, id(pod.metadata.labels)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = pod.metadata.labels, self._matching(pod)
        return known[1]

    def selects_as(self, before: SelectingBudgets) -> bool:
        """Return whether these were derived from ``before``, and select the same pods."""
        return self._known is before._known

    def changes_since(self, before: SelectingBudgets) -> Iterator[tuple[int, PodDisruptionBudget, PodDisruptionBudget]]:
        """Yield the budgets that changed: position, old and new; both sets select the same pods."""
        for position, (then, now) in enumerate(zip(before.budgets, self.budgets, strict=True)):
            if then is not now:
                yield position, then, now

    def _matching(self, pod: Pod) -> list[int]:
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        if not labels or namespace not in self._positions:
            return []
        if namespace not in self._selectors:
            selecting = {
                position: selector
                for position in self._positions[namespace]
                if (selector := self.budgets[position].spec.selector) is not None
                and not selector.is_empty()
                and selector.is_valid()
            }
            self._selectors[namespace] = list(selecting), SelectorIndex(selecting.values())
        positions, index = self._selectors[namespace]
        found = index.matching(labels)
        check_selecting(pod.key, len(found))
        return [positions[each] for each in found]

    def _selects_as(self, budgets: Sequence[PodDisruptionBudget]) -> bool:
        """Return whether the budgets have the same selectors as these, in the same order."""
        if len(budgets) != len(self.budgets):
            return False
        return all(
            one is other or (one.spec is other.spec and one.metadata.namespace == other.metadata.namespace)
            for one, other in zip(budgets, self.budgets, strict=True)
        )


def claimed_in_order(
    covering: Iterable[Sequence[PodDisruptionBudget]], *, stops_at_violated: bool = False
) -> list[list[BudgetUse]]:
    """Return the disruptions that evicting pods one after the other uses of the budgets covering each pod.

    Every budget of a pod is decremented, even if another one is already violated, unless ``stops_at_violated``.
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
