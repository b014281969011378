"""Which evictions would violate a PodDisruptionBudget.

Follows ``filterPodsWithPDBViolation`` in ``plugins/defaultpreemption/default_preemption.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.budgets import SelectingBudgets, taken_in_turn
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.verdict import BudgetUse


class PodWithBudgets(NamedTuple):
    """A pod, what its eviction takes from each budget that protects it, and whether one of them is violated.

    ``passed_over`` says that a violated budget was not the last that protects it, and those after it were left alone.
    """

    pod_info: PodInfo
    budgets: list[BudgetUse]
    violates: bool
    passed_over: bool = False


class BudgetIndex(SelectingBudgets):
    """The budgets of a cluster, and which of them protect a pod.

    Where it ``stops_at_violated``, a pod that violates a budget takes nothing from those after it.
    """

    def __init__(
        self,
        budgets: Sequence[PodDisruptionBudget],
        before: SelectingBudgets | None = None,
        *,
        stops_at_violated: bool = False,
    ) -> None:
        super().__init__(budgets, before)
        self.stops_at_violated = stops_at_violated

    def protecting(self, pod_info: PodInfo) -> list[PodDisruptionBudget]:
        """The budgets that count the pod; a pod that a budget holds as disrupted already is not counted again."""
        return [
            budget
            for budget in self.selecting(pod_info.pod)
            if budget.status is None or pod_info.pod.metadata.name not in budget.status.disrupted_pods
        ]

    def count(self, pod_infos: Sequence[PodInfo]) -> list[PodWithBudgets]:
        """What evicting all these pods, in this order, takes from the budgets."""
        protecting = [self.protecting(each) for each in pod_infos]
        taken = taken_in_turn(protecting, stops_at_violated=self.stops_at_violated)
        return [
            PodWithBudgets(pod_info, uses, any(use.left < 0 for use in uses), len(uses) < len(all_of))
            for pod_info, uses, all_of in zip(pod_infos, taken, protecting, strict=True)
        ]
