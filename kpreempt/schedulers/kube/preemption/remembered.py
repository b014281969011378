"""Dry runs that are remembered from one cluster to the next, for pods that are alike.

Who goes from a node hangs on the node with its pods and those nominated to it, on what the budgets of its pods allow,
and on nothing else where all filters that run look at nodes alone. So where one cluster follows another
(``framework/memory.py``), a node is tried again only once some of this has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.interface import FilterRunner, Victims
from kpreempt.schedulers.kube.framework.memory import Findings
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex

# By key.
Budgets = Mapping[str, PodDisruptionBudget]


class _DryRun:
    """The victims on a node, and the budgets of all pods there that could have been some, with how many there are.

    ``beside`` are the pods that are nominated to the node and count there. ``there`` are the budgets of the cluster for
    which it is known to hold. ``now`` is the time that stood for missing start times, if any is missing.
    """

    __slots__ = ("beside", "budgets", "now", "there", "victims")

    def __init__(
        self,
        victims: Victims,
        budgets: Mapping[str, tuple[PodDisruptionBudget, int]],
        beside: Sequence[Pod],
        there: Budgets,
        now: datetime | None,
    ) -> None:
        self.victims = victims
        self.budgets = budgets
        self.beside = beside
        self.there = there
        self.now = now


class RememberedDryRuns:
    """What is known of the dry runs of pods like ``pod``, of those ``with_steps`` or of others."""

    def __init__(
        self,
        findings: Findings,
        pod: Pod,
        cluster: ClusterState,
        budgets: BudgetIndex,
        framework: FilterRunner,
        *,
        with_steps: bool,
    ) -> None:
        self._pod = pod
        self._nominated = cluster.nominated_pods
        self._framework = framework
        self._budgets = budgets
        there = cluster.cluster.pod_disruption_budgets
        self._there: Budgets = {budget.key: budget for budget in there}
        self._now = cluster.now
        # What budgets select is the same for all nodes.
        given = [(budget.metadata.namespace, budget.spec) for budget in there]
        self._known: dict[NodeInfo, _DryRun] = findings.on(f"dry run with steps {with_steps}", given)

    def recall(self, nodes: Sequence[NodeInfo]) -> dict[str, Victims]:
        """The victims on those of ``nodes`` for which nothing has changed."""
        found = {}
        # By the identity of budgets that were there: the keys of those that are not there now.
        changes: dict[int, set[str]] = {}
        recalled, now, nominated = self._known.get, self._now, self._nominated
        for node_info in nodes:
            known = recalled(node_info)
            if known is None or (known.now is not None and known.now != now):
                continue
            name = node_info.name
            if known.beside != (self._beside(node_info) if name in nominated else []):
                continue
            changed = changes.get(id(known.there))
            if changed is None:
                there = self._there
                changed = {key for key, budget in known.there.items() if there.get(key) is not budget}
                changes[id(known.there)] = changed
            if changed:
                asked = known.budgets.keys() & changed
                if not all(self._is_as_before(*known.budgets[key], known.victims) for key in asked):
                    continue
            known.there = self._there
            found[name] = known.victims
        return found

    def remember(self, nodes: Sequence[NodeInfo], outcomes: Mapping[str, Victims]) -> None:
        """Keep what dry runs of ``nodes`` came to."""
        for node_info in nodes:
            counts: dict[str, int] = {}
            now = None
            for info in node_info.pods:
                if info.priority < self._pod.priority:
                    if info.start is None:
                        now = self._now
                    for budget in self._budgets.selecting(info.pod):
                        counts[budget.key] = counts.get(budget.key, 0) + 1
            budgets = {key: (self._there[key], number) for key, number in counts.items()}
            outcome, beside = outcomes[node_info.name], self._beside(node_info)
            self._known[node_info] = _DryRun(outcome, budgets, beside, self._there, now)

    def _beside(self, node_info: NodeInfo) -> list[Pod]:
        """The pods nominated to the node that count beside those there."""
        if node_info.name not in self._nominated:
            return []
        return [info.pod for info in self._framework.nominated_pods_beside(self._pod, node_info.name)]

    def _is_as_before(self, before: PodDisruptionBudget, pods: int, victims: Victims) -> bool:
        """Whether a budget that selects so many pods of a node leaves the outcome there as it was.

        Steps tell what it allows. Without them it is all the same whether that is enough for all pods or for more.
        """
        budget = self._there.get(before.key)
        if budget is before or budget is None or victims.steps:
            return budget is before
        is_same_allowance = min(budget.allowed, pods) == min(before.allowed, pods)
        return is_same_allowance and _disrupted(budget) == _disrupted(before)


def _disrupted(budget: PodDisruptionBudget) -> object:
    """The pods that a budget holds as disrupted already."""
    return budget.status.disrupted_pods if budget.status is not None else None
