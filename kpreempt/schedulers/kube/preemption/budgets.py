"""Which evictions would violate a PodDisruptionBudget.

Follows ``filterPodsWithPDBViolation`` in ``plugins/defaultpreemption/default_preemption.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
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


class BudgetIndex:
    """The budgets of a cluster by namespace.

    A budget without a selector, or with an empty or a broken one, protects nothing. Where it ``stops_at_violated``,
    a pod that violates a budget takes nothing from those after it.
    """

    def __init__(self, budgets: Sequence[PodDisruptionBudget], *, stops_at_violated: bool = False) -> None:
        self.stops_at_violated = stops_at_violated
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        # Pods of one workload have the same labels, so most look-ups are repeated ones.
        self._selecting: dict[tuple[str, frozenset[tuple[str, str]]], list[PodDisruptionBudget]] = {}
        for budget in budgets:
            selector = budget.spec.selector
            if selector is not None and not selector.is_empty() and selector.is_valid():
                self._by_namespace.setdefault(budget.metadata.namespace, []).append(budget)

    def protecting(self, pod_info: PodInfo) -> list[PodDisruptionBudget]:
        """The budgets that count the pod; a pod that a budget holds as disrupted already is not counted again."""
        return [
            budget
            for budget in self.selecting(pod_info.pod)
            if budget.status is None or pod_info.pod.metadata.name not in budget.status.disrupted_pods
        ]

    def selecting(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets whose selector matches the pod."""
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

    def count(self, pod_infos: Sequence[PodInfo]) -> list[PodWithBudgets]:
        """What evicting all these pods, in this order, takes from the budgets.

        Every budget that protects a pod is decremented, also when another one is violated already, unless the index
        ``stops_at_violated``.
        """
        left: dict[str, int] = {}
        counted = []
        for pod_info in pod_infos:
            uses: list[BudgetUse] = []
            protecting = self.protecting(pod_info)
            for budget in protecting:
                allowed = left.get(budget.key, budget.status.disruptions_allowed if budget.status else 0)
                left[budget.key] = allowed - 1
                uses.append(BudgetUse(budget.key, allowed, allowed - 1))
                if allowed <= 0 and self.stops_at_violated:
                    break
            violates = any(use.left < 0 for use in uses)
            counted.append(PodWithBudgets(pod_info, uses, violates, len(uses) < len(protecting)))
        return counted
