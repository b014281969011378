"""Inter-pod affinity in 1.8 (``algorithm/predicates``: ``predicates.go`` and ``metadata.go``, v1.8.15).

The terms of the pods that are there are known beforehand. The pod's own are looked up among all pods every time, so
each may be met by another pod.
"""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.schedulers.legacy.base.checks import PASSES, refusal, term_selects
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.topology_pairs import Pair, TopologyPairs
from kpreempt.verdict import Status
from kpreempt.verdict.details import AffinityConflict

AFFINITY_NOT_MATCHED = "MatchInterPodAffinity"


class Affinity:
    """What matters to one pod: its own terms, and pods whose anti-affinity selects it."""

    def __init__(self, pod: PodInfo, cluster: Cluster) -> None:
        self._pod = pod
        self._wanted = [_OwnTerm(pod, term, cluster) for term in pod.affinity_terms]
        self._refused = [_OwnTerm(pod, term, cluster) for term in pod.anti_affinity_terms]
        self._refusing = TopologyPairs()
        for node_info in cluster.node_infos:
            for info in node_info.pods:
                self.add_pod(info, node_info)
        self._refusing.settle()

    def clone(self) -> Affinity:
        """A copy that can be changed without touching this one."""
        copy = Affinity.__new__(Affinity)
        copy._pod, copy._wanted, copy._refused = self._pod, self._wanted, self._refused
        copy._refusing = self._refusing.clone()
        return copy

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was put on the node.

        An oddity: where any of its terms selects the pod, the topology of its last term is taken, because upstream
        keeps a pointer to the loop's variable.
        """
        terms = info.anti_affinity_terms
        if any(term_selects(info.pod, term, self._pod.pod) for term in terms):
            key = terms[-1].topology_key
            if key in node_info.labels:
                self._refusing.add(info, [(key, node_info.labels[key])])

    def remove_pod(self, info: PodInfo) -> None:
        """A pod was taken off its node."""
        self._refusing.remove(info)

    def check(self, node_info: NodeInfo) -> Status:
        """Whether the terms of the pods that are there, and the pod's own, allow it on the node."""
        for pair in node_info.labels.items():
            if pair in self._refusing:
                return refusal(AFFINITY_NOT_MATCHED, detail=self._existing_conflict(pair))
        for wanted in self._wanted:
            if not wanted.is_met(node_info) and not (wanted.selects_its_pod() and not wanted.is_anywhere(node_info)):
                return refusal(AFFINITY_NOT_MATCHED, detail=wanted.conflict("affinity", node_info))
        for refused in self._refused:
            if refused.is_met(node_info):
                return refusal(AFFINITY_NOT_MATCHED, detail=refused.conflict("antiAffinity", node_info))
        return PASSES

    def _existing_conflict(self, pair: Pair) -> AffinityConflict:
        return AffinityConflict("existingAntiAffinity", *pair, "", self._refusing.holders(pair))


class _OwnTerm:
    """One of the pod's terms, with the number of pods that it selects on each node and in each domain."""

    def __init__(self, pod: PodInfo, term: PodAffinityTerm, cluster: Cluster) -> None:
        self._pod = pod.pod
        self._term = term
        self._on_node: dict[str, int] = {}
        self._in_domain: dict[str, int] = {}
        for node_info in cluster.node_infos:
            count = self._count(node_info)
            if count:
                self._on_node[node_info.name] = count
                domain = self._domain(node_info.labels)
                if domain is not None:
                    self._in_domain[domain] = self._in_domain.get(domain, 0) + count
        self._total = sum(self._on_node.values())

    def is_met(self, node_info: NodeInfo) -> bool:
        """Whether a selected pod is in the node's domain; of the node's own pods those that are on it now count."""
        domain = self._domain(node_info.labels)
        return domain is not None and self._in_domain.get(domain, 0) + self._change(node_info) > 0

    def is_anywhere(self, node_info: NodeInfo) -> bool:
        """Whether a selected pod is on any node."""
        return self._total + self._change(node_info) > 0

    def selects_its_pod(self) -> bool:
        """Whether the pod selects itself: the first of a group has nobody yet to be beside."""
        return term_selects(self._pod, self._term, self._pod)

    def conflict(self, rule: str, node_info: NodeInfo) -> AffinityConflict:
        """What the node lacks, or has."""
        selector = str(self._term.label_selector) if self._term.label_selector is not None else ""
        domain = self._domain(node_info.labels) or ""
        holders = [info.key for info in node_info.pods if term_selects(self._pod, self._term, info.pod)]
        return AffinityConflict(rule, self._term.topology_key, domain, selector, holders)

    def _change(self, node_info: NodeInfo) -> int:
        return self._count(node_info) - self._on_node.get(node_info.name, 0)

    def _count(self, node_info: NodeInfo) -> int:
        return sum(term_selects(self._pod, self._term, info.pod) for info in node_info.pods)

    def _domain(self, labels: Mapping[str, str]) -> str | None:
        return labels.get(self._term.topology_key)
