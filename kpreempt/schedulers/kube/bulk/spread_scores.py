"""Soft spread constraints as scores of many nodes at once: what ``pod_topology_spread/scoring.py`` gives each of them.

Which nodes are in which domain, and count at all, is found out once for pods of a shape, and how many pods a
selector picks on a node when that node has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.bulk.pod_table import Integers
from kpreempt.schedulers.kube.bulk.score_columns import NumberColumn
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE
from kpreempt.schedulers.kube.plugins.pod_topology_spread.constraints import (
    NodeInclusion,
    SpreadConstraint,
    has_all_keys,
    is_counted,
)
from kpreempt.schedulers.kube.plugins.pod_topology_spread.logarithm import natural_log
from kpreempt.schedulers.kube.plugins.pod_topology_spread.scoring import HOSTNAME

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
# On so many nodes the pods of all are asked for at once.
_MANY = 16


class SpreadScores:
    """How crowded the nodes are that fit, which are at the ``places`` of the state."""

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
        self._findings, self._of_shape = findings, state.shape_findings or findings
        self._pod, self._constraints, self._cluster, self._places = pod, constraints, cluster, state.places
        self._size = len(cluster.node_infos)
        # The constraints that the system states select the same pods.
        self._on_hosts: dict[int, Integers] = {}
        self._has_all: Booleans | None = None
        if requires_all_keys:
            keys = tuple(constraint.topology_key for constraint in constraints)
            self._has_all = self._kept(("has", keys), lambda node: has_all_keys(node.labels, constraints))

    def normalized(self, inclusion: NodeInclusion) -> Integers:
        """0 to 100: the least crowded node has the most, and nodes without a wanted label have 0."""
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
        """What a constraint adds to each node that fits; ``fitting`` are those whose domains count."""
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
            counting = self._included(constraint, inclusion) & is_fit[domains]
            if self._has_all is not None:
                counting &= self._has_all
            of_domains = np.zeros(len(is_fit), np.int64)
            np.add.at(of_domains, domains[counting], on_hosts[counting])
            counts, num_domains = of_domains[domains[places]], int(np.count_nonzero(is_fit))
        weight = natural_log(float(num_domains + 2))
        added = counts.astype(np.float64) * weight + float(constraint.max_skew - 1)
        return np.where(has_domain[places], added, 0.0)

    def _selected(self, index: int, constraint: SpreadConstraint) -> Integers:
        """How many pods of each node of the cluster count."""
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
        """The number of each node's domain, and whether it has the label; those without are in one domain."""

        def find_out() -> tuple[Integers, Booleans]:
            labels = [node_info.node.metadata.labels.get(key) for node_info in self._cluster.node_infos]
            numbers = {value: number for number, value in enumerate(dict.fromkeys(each or "" for each in labels))}
            domains = np.array([numbers[each or ""] for each in labels], np.int64)
            return domains, np.array([each is not None for each in labels], np.bool_)

        return self._of_shape.kept(("domains", key), find_out) if self._of_shape is not None else find_out()

    def _included(self, constraint: SpreadConstraint, inclusion: NodeInclusion) -> Booleans:
        """The nodes whose pods count."""
        policies = constraint.honors_node_affinity, constraint.honors_taints
        return self._kept(
            ("included", policies),
            lambda node: inclusion.is_node_included(node) and inclusion.is_included(node, constraint),
        )

    def _kept(self, question: object, is_so: Callable[[Node], bool]) -> Booleans:
        def find_out() -> Booleans:
            return np.array([is_so(node_info.node) for node_info in self._cluster.node_infos], np.bool_)

        return self._of_shape.kept(question, find_out) if self._of_shape is not None else find_out()
