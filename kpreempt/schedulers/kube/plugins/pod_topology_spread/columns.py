"""PodTopologySpread in columns, for big clusters: hard constraints as limits, soft ones as scores.

A domain may have as many matching pods as the emptiest other domain plus the allowed skew. In a dry run, only the pods
of one node change, so the counts of all other domains are constant. With ``others`` for the lowest of these, the check
``count + self - min(count, others) <= maxSkew`` is equivalent to ``count <= others + maxSkew - self``, because a domain
that has the fewest pods never exceeds the skew.

Scores are those of ``scoring.py``. Which domains nodes are in, and whether they count, is computed once for pods with
the same requirements; the number of selected pods on a node is recomputed when the node changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.bulk.limits import ALWAYS, NEVER, Excess, Limit, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Floats, Integers, PodTable
from kpreempt.schedulers.kube.bulk.score_columns import NumberColumn
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.pod_topology_spread.filtering import (
    REASON_SKEW,
    FilterState,
    NodeInclusion,
    SpreadConstraint,
    has_all_keys,
    is_counted,
    too_many_pods,
)
from kpreempt.schedulers.kube.plugins.pod_topology_spread.scoring import HOSTNAME, natural_log
from kpreempt.verdict import Code, Status

# With at least this many nodes, the pods of all nodes are counted together.
_MANY = 16


def spread_limits(plugin: str, state: FilterState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
    """Return one limit per constraint; ``None`` if constraints share counts.

    Nodes without a topology label are left out.
    """
    if state.shares_counts:
        return None
    left_out = [not has_all_keys(node_info.node.labels, state.constraints) for node_info in nodes]
    limits = [_limit(state, index, table, nodes) for index in range(len(state.constraints))]

    def reject(excess: Excess) -> Status:
        if not excess.is_bare:
            return Status(Code.UNSCHEDULABLE, [REASON_SKEW])
        index, node = excess.exceeded.index(True), nodes[excess.node].node
        domain = node.labels[state.constraints[index].topology_key]
        if not state.is_counted(node, index):
            return too_many_pods(state, index, domain, state.counts[index].get(domain, 0), state.minimum(index))
        count = excess.sums[index]
        return too_many_pods(state, index, domain, count, min(state.lowest_other(index, domain), count))

    def adds(info: PodInfo) -> list[int]:
        return [int(_counts(state, index, info.pod)) for index in range(len(state.constraints))]

    return PluginLimits(plugin, limits, reject, np.array(left_out, dtype=np.bool_), adds=adds)


def _counts(state: FilterState, index: int, pod: Pod) -> bool:
    is_there = pod.metadata.namespace == state.pod.metadata.namespace
    return is_there and state.constraints[index].matches(pod.metadata.labels)


def _limit(state: FilterState, index: int, table: PodTable, nodes: Sequence[NodeInfo]) -> Limit:
    constraint = state.constraints[index]
    self_match = int(constraint.matches(state.pod.metadata.labels))
    _, representatives = table.label_groups
    amounts = table.per_group([int(_counts(state, index, pod)) for pod in representatives])
    used, most = [], []
    for node_info in nodes:
        domain = node_info.node.labels.get(constraint.topology_key, "")
        count = state.counts[index].get(domain, 0)
        if state.is_counted(node_info.node, index):
            used.append(count)
            most.append(state.lowest_other(index, domain) + constraint.max_skew - self_match)
        else:
            # Pods on a node that does not count change nothing.
            used.append(0)
            most.append(ALWAYS if count + self_match - state.minimum(index) <= constraint.max_skew else NEVER)
    return Limit(np.array(used, dtype=np.int64), np.array(most, dtype=np.int64), amounts)


class SpreadScores:
    """How crowded the feasible nodes are, which are at the ``places`` of the state."""

    def __init__(
        self,
        state: CycleState,
        pod: Pod,
        constraints: Sequence[SpreadConstraint],
        cluster: ClusterState,
        *,
        requires_all_keys: bool,
    ) -> None:
        findings = state.findings
        assert state.places is not None
        self._findings, self._of_shape = findings, state.scheduling_findings or findings
        self._pod, self._constraints, self._cluster, self._places = pod, constraints, cluster, state.places
        self._size = len(cluster.node_infos)
        # The system default constraints select the same pods.
        self._on_hosts: dict[int, Integers] = {}
        self._has_all: Booleans | None = None
        if requires_all_keys:
            keys = tuple(constraint.topology_key for constraint in constraints)
            self._has_all = self._kept(("has", keys), lambda node: has_all_keys(node.labels, constraints))

    def normalized(self, inclusion: NodeInclusion) -> Integers:
        """Return 0 to 100: the highest for the least crowded node, and 0 for nodes without a required label."""
        scored = np.ones(len(self._places), np.bool_) if self._has_all is None else self._has_all[self._places]
        crowding = np.zeros(len(self._places), np.float64)
        for index, constraint in enumerate(self._constraints):
            crowding += self._crowding(index, constraint, inclusion, self._places[scored])
        whole = np.floor(crowding)
        scores = whole.astype(np.int64) + (crowding - whole >= 0.5)
        lowest, highest = (scores[scored].min(), scores[scored].max()) if scored.any() else (0, 0)
        if highest == 0:
            return np.where(scored, MAX_NODE_SCORE, 0)
        return np.where(scored, MAX_NODE_SCORE * (highest + lowest - scores) // highest, 0)

    def _crowding(
        self, index: int, constraint: SpreadConstraint, inclusion: NodeInclusion, fitting: Integers
    ) -> Floats:
        """Return what a constraint adds for each feasible node; ``fitting`` are those whose domains count."""
        same = next(place for place, each in enumerate(self._constraints) if each.selector is constraint.selector)
        if same not in self._on_hosts:
            self._on_hosts[same] = self._selected(index, constraint)
        on_hosts, places = self._on_hosts[same], self._places
        key = constraint.topology_key
        domains, has_domain = self._domains(key)
        if key == HOSTNAME:
            counts, num_domains = on_hosts[places], len(fitting)
        else:
            is_fit = np.zeros(int(domains.max()) + 1, np.bool_)
            is_fit[domains[fitting]] = True
            # The nodes whose pods count.
            policies = constraint.honors_node_affinity, constraint.honors_taints
            included = self._kept(
                ("included", policies),
                lambda node: inclusion.is_node_included(node) and inclusion.is_included(node, constraint),
            )
            counting = included & is_fit[domains]
            if self._has_all is not None:
                counting &= self._has_all
            of_domains = np.zeros(len(is_fit), np.int64)
            np.add.at(of_domains, domains[counting], on_hosts[counting])
            counts, num_domains = of_domains[domains[places]], int(np.count_nonzero(is_fit))
        weight = natural_log(float(num_domains + 2))
        added = counts.astype(np.float64) * weight + float(constraint.max_skew - 1)
        return np.where(has_domain[places], added, 0.0)

    def _selected(self, index: int, constraint: SpreadConstraint) -> Integers:
        """Return how many pods of each node of the cluster count."""
        cluster, namespace, selector = self._cluster, self._pod.metadata.namespace, constraint.selector
        everywhere = np.arange(self._size)
        if selector is None or not is_counted(constraint):
            return np.zeros(self._size, np.int64)

        def find_out(places: list[int]) -> Sequence[int]:
            nodes = [cluster.node_infos[place] for place in places]
            if len(nodes) <= _MANY:
                return [sum(map(selector.matches, each.labels_by_namespace.get(namespace, ()))) for each in nodes]
            selected = cluster.selected_pods(namespace, selector)
            return [selected.get(each.name, 0) for each in nodes]

        if self._findings is None:
            return np.array(find_out(everywhere.tolist()), np.int64)
        return self._findings.column(("spread", index), self._size, NumberColumn).at(everywhere, find_out)

    def _domains(self, key: str) -> tuple[Integers, Booleans]:
        """Return the number of each node's domain, and whether it has the label; nodes without it share one domain."""

        def find_out() -> tuple[Integers, Booleans]:
            labels = [node_info.node.metadata.labels.get(key) for node_info in self._cluster.node_infos]
            numbers = {value: number for number, value in enumerate(dict.fromkeys(each or "" for each in labels))}
            domains = np.array([numbers[each or ""] for each in labels], np.int64)
            return domains, np.array([each is not None for each in labels], np.bool_)

        return self._of_shape.cached(("domains", key), find_out) if self._of_shape is not None else find_out()

    def _kept(self, key: object, is_so: Callable[[Node], bool]) -> Booleans:
        def find_out() -> Booleans:
            return np.array([is_so(node_info.node) for node_info in self._cluster.node_infos], np.bool_)

        return self._of_shape.cached(key, find_out) if self._of_shape is not None else find_out()
