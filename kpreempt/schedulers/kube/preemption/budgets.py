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
    """A pod, what its eviction takes from each budget that protects it, and whether one of them is violated."""

    pod_info: PodInfo
    budgets: list[BudgetUse]
    violates: bool


class BudgetIndex(SelectingBudgets):
    """The budgets of a cluster, and which of them protect a pod."""

    def protecting(self, pod_info: PodInfo) -> list[PodDisruptionBudget]:
        """The budgets that count the pod; a pod that a budget holds as disrupted already is not counted again."""
        return [
            budget
            for budget in self.selecting(pod_info.pod)
            if budget.status is None or pod_info.pod.metadata.name not in budget.status.disrupted_pods
        ]

    def count(self, pod_infos: Sequence[PodInfo]) -> list[PodWithBudgets]:
        """What evicting all these pods, in this order, takes from the budgets."""
        taken = taken_in_turn(map(self.protecting, pod_infos))
        return [
            PodWithBudgets(pod_info, uses, any(use.left < 0 for use in uses))
            for pod_info, uses in zip(pod_infos, taken, strict=True)
        ]
