"""Preferred pod affinity as weights per topology (``plugins/interpodaffinity/scoring.go``, v1.36.3).

It counts the incoming pod's preferences about existing pods, their preferences about it, and, with a configured weight,
their required affinity terms that it matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.decision_cache import PodCache, answers_on
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE
from kpreempt.schedulers.kube.framework.label_selectors import WeightedAffinityTerm
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.filtering import SelectedNamespaces, with_selected_namespaces

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable

# Weight by topology key and value. A pair exists as soon as a term matched, even if weights cancel out.
TopologyWeights = dict[str, dict[str, int]]
# The same as triples, one for every term that matched.
_Weights = list[tuple[str, str, int]]
# Shared by all nodes that have none, of which many may be cached.
_NO_WEIGHTS: _Weights = []


class Preferences:
    """Sums up weights over existing pods, for one incoming pod."""

    def __init__(
        self,
        pod_info: PodInfo,
        namespaces: SelectedNamespaces,
        namespace_labels: Mapping[str, str],
        hard_affinity_weight: int,
        *,
        keeps_selectors: bool,
    ) -> None:
        self.weights: TopologyWeights = {}
        self._pod = pod_info.pod
        self._wanted = with_selected_namespaces(
            pod_info.preferred_affinity_terms, namespaces, keeps_selectors=keeps_selectors
        )
        self._unwanted = with_selected_namespaces(
            pod_info.preferred_anti_affinity_terms, namespaces, keeps_selectors=keeps_selectors
        )
        self._namespace_labels = namespace_labels
        self._hard_affinity_weight = hard_affinity_weight

    def add_all(self, nodes: Sequence[NodeInfo], *, has_preferences: bool, findings: PodCache | None = None) -> None:
        """Add the weights of all pods; without own preferences, only those of pods with any affinity.

        With ``findings``, only nodes without cached results are evaluated.
        """
        if findings is None:
            weighed: Iterable[_Weights] = (self._weights_on(node_info, has_preferences) for node_info in nodes)
        else:
            known = findings.on("preferences")
            weighed = answers_on(known, nodes, lambda node_info: self._weights_on(node_info, has_preferences))
        self._sum_up(chain.from_iterable(weighed))

    def add_table(self, nodes: Sequence[NodeInfo], table: PodTable) -> None:
        """Do the same over the pods of ``nodes``, which ``table`` has in columns."""
        for terms, sign in ((self._wanted, 1), (self._unwanted, -1)):
            for term in terms:
                counts = table.count_matching(partial(term.matches, namespace_labels=None))
                for node_info, count in zip(nodes, counts, strict=True):
                    if count:
                        self._sum_up(_weight(term.topology_key, node_info.node.labels, sign * term.weight * count))
        for node_info in table.nodes_with_affinity:
            found: _Weights = []
            for existing in node_info.pods_with_affinity:
                self._add_those_of(found, existing, node_info.node.labels)
            self._sum_up(found)

    def _sum_up(self, weights: Iterable[tuple[str, str, int]]) -> None:
        for key, value, weight in weights:
            values = self.weights.setdefault(key, {})
            values[value] = values.get(value, 0) + weight

    def _weights_on(self, node_info: NodeInfo, has_preferences: bool) -> _Weights:
        labels = node_info.node.labels
        found: list[tuple[str, str, int]] = []
        if labels:
            for existing in node_info.pods if has_preferences else node_info.pods_with_affinity:
                self._add_terms(found, self._wanted, existing.pod, None, labels, 1)
                self._add_terms(found, self._unwanted, existing.pod, None, labels, -1)
                if existing.has_affinity:
                    self._add_those_of(found, existing, labels)
        return found or _NO_WEIGHTS

    def _add_those_of(self, found: _Weights, existing: PodInfo, labels: Mapping[str, str]) -> None:
        """Add the weights of an existing pod with affinity for the incoming one."""
        if self._hard_affinity_weight > 0:
            for term in existing.required_affinity_terms:
                if term.matches(self._pod, self._namespace_labels):
                    found += _weight(term.topology_key, labels, self._hard_affinity_weight)
        self._add_terms(found, existing.preferred_affinity_terms, self._pod, self._namespace_labels, labels, 1)
        self._add_terms(found, existing.preferred_anti_affinity_terms, self._pod, self._namespace_labels, labels, -1)

    def _add_terms(
        self,
        found: _Weights,
        terms: Iterable[WeightedAffinityTerm],
        pod: Pod,
        namespace_labels: Mapping[str, str] | None,
        labels: Mapping[str, str],
        sign: int,
    ) -> None:
        for term in terms:
            if term.matches(pod, namespace_labels):
                found += _weight(term.topology_key, labels, sign * term.weight)


def _weight(key: str, labels: Mapping[str, str], weight: int) -> _Weights:
    """Return the weight for the domain of a node with these labels, if it is in one."""
    value = labels.get(key)
    return [] if value is None else [(key, value, weight)]


def has_preferences(pod: Pod) -> bool:
    """Return whether the pod prefers or avoids other pods."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    requested, unwanted = affinity.pod_affinity, affinity.pod_anti_affinity
    return bool(requested and requested.preferred) or bool(unwanted and unwanted.preferred)


def node_weight(weights: TopologyWeights, node_info: NodeInfo) -> int:
    """Return the sum of the weights of the node's topologies; negative if avoidance prevails."""
    labels = node_info.node.labels
    return sum(values.get(labels[key], 0) for key, values in weights.items() if key in labels)


def normalized(scores: list[int]) -> list[int]:
    """Scale scores so that the lowest becomes 0 and the highest 100; all 0 if they are equal."""
    lowest, highest = min(scores, default=0), max(scores, default=0)
    if highest == lowest:
        return [0] * len(scores)
    # Floats as upstream: an exact division could be off by one.
    span = float(highest - lowest)
    return [int(float(MAX_NODE_SCORE) * (float(score - lowest) / span)) for score in scores]
