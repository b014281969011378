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
from kpreempt.schedulers.kube.framework.memory import Changes, Findings
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex

# By key.
Budgets = Mapping[str, PodDisruptionBudget]


class _DryRun:
    """The victims on a node, and the budgets of all pods there that could have been some, with how many there are.

    ``beside`` are the pods that are nominated to the node and count there. ``now`` is the time that stood for missing
    start times, if any is missing.
    """

    __slots__ = ("beside", "budgets", "node_info", "now", "victims")

    def __init__(
        self,
        node_info: NodeInfo,
        victims: Victims,
        budgets: Mapping[str, tuple[PodDisruptionBudget, int]],
        beside: Sequence[Pod],
        now: datetime | None,
    ) -> None:
        self.node_info = node_info
        self.victims = victims
        self.budgets = budgets
        self.beside = beside
        self.now = now


class _Known:
    """The dry runs that held when they were asked for last, by node, and which of them may not hold any more."""

    def __init__(self, changes: Changes) -> None:
        self.runs: dict[str, _DryRun] = {}
        self._changes = changes
        self._seen = 0
        self._there: Budgets = {}
        self._selected: object = None
        # The nodes for which each budget counts, and those for which the time stood for a start time; perhaps more.
        self._by_budget: dict[str, set[str]] = {}
        self._timed: set[str] = set()

    def keep(self, name: str, dry_run: _DryRun) -> None:
        """What a dry run of the node came to."""
        self.runs[name] = dry_run
        for key in dry_run.budgets:
            self._by_budget.setdefault(key, set()).add(name)
        if dry_run.now is not None:
            self._timed.add(name)

    def follow(self, nodes: Sequence[NodeInfo], there: Budgets) -> tuple[set[str], list[tuple[str, set[str]]]]:
        """Go on to a cluster of the same nodes, which has these budgets.

        Returns the names of those that are other ones or have others nominated to them since, or that hang on the time;
        and the budgets that are others, with the nodes for which each may count.
        """
        selected = [(budget.metadata.namespace, budget.spec) for budget in there.values()]
        if selected != self._selected:
            self.runs.clear()
            self._by_budget.clear()
            self._timed.clear()
            self._selected = selected
        places, self._seen = self._changes.places[self._seen :], len(self._changes.places)
        before, self._there = self._there, there
        budgets = [(key, each) for key, each in self._by_budget.items() if before.get(key) is not there.get(key)]
        return {nodes[place].name for place in places} | self._timed, budgets


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
        self._cluster = cluster
        self._framework = framework
        self._budgets = budgets
        self._there: Budgets = {budget.key: budget for budget in cluster.cluster.pod_disruption_budgets}
        self._known = findings.column(("dry run", with_steps), 0, lambda _, changes: _Known(changes))

    def recall(self, nodes: Sequence[NodeInfo]) -> dict[str, Victims]:
        """The victims on those of ``nodes`` for which nothing has changed."""
        cluster, runs = self._cluster, self._known.runs
        changed, budgets = self._known.follow(cluster.node_infos, self._there)
        # Who is nominated to a node counts there for all but himself.
        for name in (changed | cluster.nominated_pods.keys()) & runs.keys():
            if not self._is_as_it_was(runs[name], cluster.by_name[name]):
                del runs[name]
        for key, names in budgets:
            for name in names & runs.keys():
                known = runs[name]
                if key in known.budgets and not self._is_as_before(*known.budgets[key], known.victims):
                    del runs[name]
        names_asked = [node_info.name for node_info in nodes]
        return {name: runs[name].victims for name in names_asked if name in runs}

    def _is_as_it_was(self, known: _DryRun, node_info: NodeInfo) -> bool:
        """Whether a node, who is nominated to it, and the time as far as it counts are those of a dry run."""
        is_same_time = known.now is None or known.now == self._cluster.now
        return known.node_info is node_info and is_same_time and known.beside == self._beside(node_info)

    def remember(self, nodes: Sequence[NodeInfo], outcomes: Mapping[str, Victims]) -> None:
        """Keep what dry runs of ``nodes`` came to."""
        for node_info in nodes:
            counts: dict[str, int] = {}
            now = None
            for info in node_info.pods:
                if info.priority < self._pod.priority:
                    if info.start is None:
                        now = self._cluster.now
                    for budget in self._budgets.selecting(info.pod):
                        counts[budget.key] = counts.get(budget.key, 0) + 1
            budgets = {key: (self._there[key], number) for key, number in counts.items()}
            victims, beside = outcomes[node_info.name], self._beside(node_info)
            self._known.keep(node_info.name, _DryRun(node_info, victims, budgets, beside, now))

    def _beside(self, node_info: NodeInfo) -> list[Pod]:
        """The pods nominated to the node that count beside those there."""
        if node_info.name not in self._cluster.nominated_pods:
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
