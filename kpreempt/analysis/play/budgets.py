"""PodDisruptionBudgets that count down and recover as the disruption controller would have it.

Follows ``pkg/controller/disruption/disruption.go`` (``updatePdbStatus``) of kube-controller-manager v1.36.3: what a
budget allows is how many of its pods are healthy beyond those that it wants; pods that are told to go are not healthy.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.verdict.play import BudgetLow


class Budgets:
    """All budgets, with what each allowed at least so far."""

    def __init__(self, budgets: list[PodDisruptionBudget]) -> None:
        self.now = list(budgets)
        self._before = [_allowed(budget) for budget in budgets]
        self._least = list(self._before)
        self._violations = [0] * len(budgets)

    def change(self, pod: Pod, by: int) -> None:
        """A pod became healthy (1), or is so no more (-1)."""
        for index, budget in enumerate(self.now):
            status, selector = budget.status, budget.spec.selector
            if status is None or selector is None or budget.metadata.namespace != pod.metadata.namespace:
                continue
            if not selector.matches(pod.metadata.labels):
                continue
            healthy = status.current_healthy + by
            allowed = max(healthy - status.desired_healthy, 0) if status.expected_pods > 0 else 0
            status = msgspec.structs.replace(status, current_healthy=healthy, disruptions_allowed=allowed)
            self.now[index] = msgspec.structs.replace(budget, status=status)
            self._least[index] = min(self._least[index], allowed)

    def violated(self, keys: list[str]) -> None:
        """The leaving of a victim broke these budgets."""
        for index, budget in enumerate(self.now):
            if budget.key in keys:
                self._violations[index] += 1

    def lows(self) -> list[BudgetLow]:
        """The budgets that were touched."""
        return [
            BudgetLow(
                budget=budget.key,
                before=before,
                least=least,
                after=_allowed(budget),
                violations=violations,
            )
            for budget, before, least, violations in zip(
                self.now, self._before, self._least, self._violations, strict=True
            )
            if least != before or violations or _allowed(budget) != before
        ]


def _allowed(budget: PodDisruptionBudget) -> int:
    return budget.status.disruptions_allowed if budget.status is not None else 0
