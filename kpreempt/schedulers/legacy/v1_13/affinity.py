"""Inter-pod affinity in 1.13: which topology pairs hold pods that matter, kept right while pods come and go.

``predicateMetadata`` (``algorithm/predicates/metadata.go``) and ``InterPodAffinityMatches``
(``algorithm/predicates/predicates.go``) of v1.13.12.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.schedulers.legacy.base.checks import PASSES, refusal, term_selects
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.topology_pairs import Pair, TopologyPairs
from kpreempt.verdict import Status
from kpreempt.verdict.details import AffinityConflict

NOT_MATCHED = "node(s) didn't match pod affinity/anti-affinity"
AFFINITY_NOT_MATCHED = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_NOT_MATCHED = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY_NOT_MATCHED = "node(s) didn't satisfy existing pods anti-affinity rules"


class Affinity:
    """What matters to one pod: pods that its terms select, and pods whose anti-affinity selects it."""

    def __init__(self, pod: PodInfo, cluster: Cluster) -> None:
        self._pod = pod
        self.wanted = TopologyPairs()
        self.refused = TopologyPairs()
        self.refusing = TopologyPairs()
        for node_info in cluster.node_infos:
            for info in node_info.pods:
                self.refusing.add(info, self._pairs_refusing(info, node_info.labels))
                if pod.has_affinity:
                    self.wanted.add(info, self._pairs_wanted(info, node_info.labels))
                    self.refused.add(info, self._pairs_refused(info, node_info.labels))
        for pairs in (self.wanted, self.refused, self.refusing):
            pairs.settle()

    def clone(self) -> Affinity:
        """A copy that can be changed without touching this one."""
        copy = Affinity.__new__(Affinity)
        copy._pod = self._pod
        copy.wanted, copy.refused, copy.refusing = self.wanted.clone(), self.refused.clone(), self.refusing.clone()
        return copy

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was put on the node.

        Two oddities: a nominated pod, which is on no node yet, counts for the pod's own terms no more than if it were
        not there; and a pod that any anti-affinity term selects counts for all of them.
        """
        self.refusing.add(info, self._pairs_refusing(info, node_info.labels))
        if info.pod.spec.node_name and self._pod.has_affinity:
            self.wanted.add(info, self._pairs_wanted(info, node_info.labels))
            terms = self._pod.anti_affinity_terms
            if any(term_selects(self._pod.pod, term, info.pod) for term in terms):
                self.refused.add(info, _pairs(terms, node_info.labels))

    def remove_pod(self, info: PodInfo) -> None:
        """A pod was taken off its node."""
        self.refusing.remove(info)
        self.wanted.remove(info)
        self.refused.remove(info)

    def check(self, node_info: NodeInfo) -> Status:
        """Whether the pod's terms and those of the pods that are there allow it on the node."""
        for pair in node_info.labels.items():
            if pair in self.refusing:
                return self._existing_conflict(pair)
        labels = node_info.labels
        terms = self._pod.affinity_terms
        missing = next((term for term in terms if _pair(term, labels) not in self.wanted), None)
        if missing is not None and (self.wanted or not self._selects_itself()):
            detail = _conflict("affinity", missing, labels, [])
            return refusal(NOT_MATCHED, AFFINITY_NOT_MATCHED, detail=detail)
        for term in self._pod.anti_affinity_terms:
            refused = _pair(term, labels)
            if refused is not None and refused in self.refused:
                detail = _conflict("antiAffinity", term, labels, self.refused.holders(refused))
                return refusal(NOT_MATCHED, ANTI_AFFINITY_NOT_MATCHED, detail=detail)
        return PASSES

    def _existing_conflict(self, pair: Pair) -> Status:
        detail = AffinityConflict("existingAntiAffinity", *pair, "", self.refusing.holders(pair))
        return refusal(NOT_MATCHED, EXISTING_ANTI_AFFINITY_NOT_MATCHED, detail=detail)

    def _selects_itself(self) -> bool:
        """The first of a group of pods that want each other has nobody yet to be beside."""
        pod = self._pod.pod
        return all(term_selects(pod, term, pod) for term in self._pod.affinity_terms)

    def _pairs_refusing(self, info: PodInfo, labels: Mapping[str, str]) -> list[Pair]:
        return _pairs(
            (term for term in info.anti_affinity_terms if term_selects(info.pod, term, self._pod.pod)), labels
        )

    def _pairs_wanted(self, info: PodInfo, labels: Mapping[str, str]) -> list[Pair]:
        """A pod counts as wanted only where all terms select it."""
        terms = self._pod.affinity_terms
        if not all(term_selects(self._pod.pod, term, info.pod) for term in terms):
            return []
        return _pairs(terms, labels)

    def _pairs_refused(self, info: PodInfo, labels: Mapping[str, str]) -> list[Pair]:
        terms = (term for term in self._pod.anti_affinity_terms if term_selects(self._pod.pod, term, info.pod))
        return _pairs(terms, labels)


def _pairs(terms: Iterable[PodAffinityTerm], labels: Mapping[str, str]) -> list[Pair]:
    return [(term.topology_key, labels[term.topology_key]) for term in terms if term.topology_key in labels]


def _pair(term: PodAffinityTerm, labels: Mapping[str, str]) -> Pair | None:
    value = labels.get(term.topology_key)
    return None if value is None else (term.topology_key, value)


def _conflict(rule: str, term: PodAffinityTerm, labels: Mapping[str, str], holders: list[str]) -> AffinityConflict:
    selector = str(term.label_selector) if term.label_selector is not None else ""
    return AffinityConflict(rule, term.topology_key, labels.get(term.topology_key, ""), selector, holders)
