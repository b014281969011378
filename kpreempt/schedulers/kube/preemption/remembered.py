"""Dry runs that are remembered from one cluster to the next, for pods that are alike.

Who goes from a node hangs on the node with its pods and those nominated to it, on what the budgets of its pods allow,
and on nothing else where all filters that run look at nodes alone. So where one cluster follows another
(``framework/memory.py``), a node is tried again only once some of this has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

    __slots__ = ("beside", "budgets", "now", "victims")

    def __init__(
        self,
        victims: Victims,
        budgets: Mapping[str, tuple[PodDisruptionBudget, int]],
        beside: Sequence[Pod],
        now: datetime | None,
    ) -> None:
        self.victims = victims
        self.budgets = budgets
        self.beside = beside
        self.now = now


class _Standing:
    """The ``victims`` that held when they were asked for last, by node, and where they may not hold any more.

    That is on nodes that are other ones since, and on those for which the time or a budget that has changed counts.
    """

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._seen = 0
        self._there: Budgets = {}
        # By the budgets and, where it stood for a start time, the time from which they were found out.
        self._by_budget: dict[str, set[str]] = {}
        self._by_time: dict[datetime, set[str]] = {}
        self._known: dict[NodeInfo, _DryRun] = {}
        self.victims: dict[str, Victims] = {}

    def open_ones(self, nodes: Sequence[NodeInfo], known: dict[NodeInfo, _DryRun], now: datetime) -> set[str]:
        """The nodes to look at again whatever budgets allow, by name, of all ``nodes`` of the cluster."""
        places, self._seen = self._changes.places[self._seen :], len(self._changes.places)
        if known is not self._known:
            self._known = known
            self._by_budget.clear()
            self._by_time.clear()
            self.victims.clear()
            for node_info, dry_run in known.items():
                self.note(node_info.name, dry_run)
            return {node_info.name for node_info in nodes}
        found = {nodes[place].name for place in places}
        for time in [time for time in self._by_time if time != now]:
            found |= self._by_time.pop(time)
        return found

    def in_changed_budgets(self, there: Budgets) -> Iterator[tuple[str, set[str]]]:
        """The budgets that are other ones since, with the nodes for which each counts, by name."""
        before, self._there = self._there, there
        for key, names in self._by_budget.items():
            if before.get(key) is not there.get(key):
                yield key, names

    def note(self, name: str, dry_run: _DryRun) -> None:
        """What is known of the node hangs on this, too."""
        for key in dry_run.budgets:
            self._by_budget.setdefault(key, set()).add(name)
        if dry_run.now is not None:
            self._by_time.setdefault(dry_run.now, set()).add(name)


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
        self._nominated = cluster.nominated_pods
        self._framework = framework
        self._budgets = budgets
        there = cluster.cluster.pod_disruption_budgets
        self._there: Budgets = {budget.key: budget for budget in there}
        self._now = cluster.now
        question = f"dry run with steps {with_steps}"
        # What budgets select is the same for all nodes.
        given = [(budget.metadata.namespace, budget.spec) for budget in there]
        self._known: dict[NodeInfo, _DryRun] = findings.on(question, given)
        self._standing = findings.column(question, 0, lambda _, changes: _Standing(changes))

    def recall(self, nodes: Sequence[NodeInfo]) -> dict[str, Victims]:
        """The victims on those of ``nodes`` for which nothing has changed."""
        cluster, victims = self._cluster, self._standing.victims
        open_ones = self._standing.open_ones(cluster.node_infos, self._known, self._now)
        for key, changed in self._standing.in_changed_budgets(self._there):
            for name in changed & victims.keys():
                known = self._known.get(cluster.by_name[name])
                counted = known.budgets.get(key) if known is not None else None
                if counted is not None and not self._is_as_before(*counted, victims[name]):
                    del victims[name]
        # Who is nominated to a node counts there for all but himself.
        for name in self._nominated:
            known = self._known.get(cluster.by_name[name]) if name in cluster.by_name else None
            if known is not None and (name not in victims or known.beside != self._beside(cluster.by_name[name])):
                open_ones.add(name)
        for name in open_ones:
            found = self._recalled(cluster.by_name[name])
            if found is not None:
                victims[name] = found
            else:
                victims.pop(name, None)
        names = [node_info.node.metadata.name for node_info in nodes]
        return {name: victims[name] for name in names if name in victims}

    def _recalled(self, node_info: NodeInfo) -> Victims | None:
        """The victims on a node, where they are known and hold."""
        known = self._known.get(node_info)
        if known is None or (known.now is not None and known.now != self._now):
            return None
        if known.beside != self._beside(node_info):
            return None
        is_as_before = all(self._is_as_before(*each, known.victims) for each in known.budgets.values())
        return known.victims if is_as_before else None

    def remember(self, nodes: Sequence[NodeInfo], outcomes: Mapping[str, Victims]) -> None:
        """Keep what dry runs of ``nodes`` came to."""
        for node_info in nodes:
            counts: dict[int, int] = {}
            counted: dict[int, PodDisruptionBudget] = {}
            now = None
            for info in node_info.pods:
                if info.priority < self._pod.priority:
                    if info.start is None:
                        now = self._now
                    for budget in self._budgets.selecting(info.pod):
                        counted[id(budget)] = budget
                        counts[id(budget)] = counts.get(id(budget), 0) + 1
            budgets = {budget.key: (budget, counts[each]) for each, budget in counted.items()}
            name = node_info.name
            known = _DryRun(outcomes[name], budgets, self._beside(node_info), now)
            self._known[node_info] = known
            self._standing.note(name, known)
            self._standing.victims[name] = known.victims

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
