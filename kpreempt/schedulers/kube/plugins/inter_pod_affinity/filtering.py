"""Required pod affinity and anti-affinity as counts (``plugins/interpodaffinity/filtering.go``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kpreempt.schedulers.kube.framework.affinity_terms import AffinityTerm
from kpreempt.schedulers.kube.framework.memory import Findings, answers_on
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.evidence import Evidence
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.incoming import IncomingPod, matches_all_terms
from kpreempt.verdict import SUCCESS, Code, Status

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

# How many terms of how many pods match, by topology key and value. Pairs without any are absent.
TopologyCounts = dict[tuple[str, str], int]


class FilterState:
    """The counts that decide about a node.

    ``affinity``: existing pods that match all affinity terms of the incoming pod, once per term. ``anti_affinity``:
    existing pods that match one of its anti-affinity terms. ``existing_anti_affinity``: anti-affinity terms of existing
    pods that match the incoming one. ``evidence`` is shared by clones.
    """

    __slots__ = ("affinity", "anti_affinity", "evidence", "existing_anti_affinity", "incoming")

    def __init__(self, incoming: IncomingPod, evidence: Evidence) -> None:
        self.incoming = incoming
        self.evidence = evidence
        self.affinity: TopologyCounts = {}
        self.anti_affinity: TopologyCounts = {}
        self.existing_anti_affinity: TopologyCounts = {}

    def clone(self) -> FilterState:
        """A copy whose counts are independent of this one's."""
        other = FilterState(self.incoming, self.evidence)
        other.affinity = dict(self.affinity)
        other.anti_affinity = dict(self.anti_affinity)
        other.existing_anti_affinity = dict(self.existing_anti_affinity)
        return other

    @property
    def is_indifferent(self) -> bool:
        """Whether no node can be refused: the pod requires nothing and nobody refuses it."""
        incoming = self.incoming
        return not self.existing_anti_affinity and not incoming.affinity_terms and not incoming.anti_affinity_terms

    def update(self, pod_info: PodInfo, labels: Mapping[str, str], delta: int) -> None:
        """Count a pod that came to (1) or left (-1) a node with these labels."""
        self._update_existing(pod_info, labels, delta)
        self._update_incoming(pod_info, labels, delta)

    def _update_existing(self, pod_info: PodInfo, labels: Mapping[str, str], delta: int) -> None:
        terms = pod_info.required_anti_affinity_terms
        if terms:
            incoming = self.incoming
            matching = (term for term in terms if term.matches(incoming.pod, incoming.namespace_labels))
            _count(self.existing_anti_affinity, matching, labels, delta)

    def _update_incoming(self, pod_info: PodInfo, labels: Mapping[str, str], delta: int) -> None:
        incoming, pod = self.incoming, pod_info.pod
        if matches_all_terms(incoming.affinity_terms, pod):
            _count(self.affinity, incoming.affinity_terms, labels, delta)
        if incoming.anti_affinity_terms:
            matching = (term for term in incoming.anti_affinity_terms if term.matches(pod, None))
            _count(self.anti_affinity, matching, labels, delta)

    def add_all(
        self, nodes: Sequence[NodeInfo], table: PodTable | None, *, refusing: Sequence[NodeInfo] | None = None
    ) -> None:
        """Count all pods of all nodes; those that cannot matter are not looked at.

        ``table`` has the pods of ``nodes`` in columns, where the cluster is big. ``refusing`` are the nodes on which
        somebody may refuse the incoming pod, where they are not all of them.
        """
        if table is not None:
            self._add_table(nodes, table)
            return
        for node_info in nodes if refusing is None else refusing:
            for pod_info in node_info.pods_with_required_anti_affinity:
                self._update_existing(pod_info, node_info.node.labels, 1)
        if not self.incoming.affinity_terms and not self.incoming.anti_affinity_terms:
            return
        for node_info in nodes:
            labels = node_info.node.labels
            for pod_info in node_info.pods:
                self._update_incoming(pod_info, labels, 1)

    def add_known(self, nodes: Sequence[NodeInfo], findings: Findings) -> None:
        """As ``add_all``, where only nodes are looked at that are not known."""
        mine = (self.affinity, self.anti_affinity, self.existing_anti_affinity)
        for node_counts in filter(None, answers_on(findings.on("affinity filter"), nodes, self._counts_on)):
            for counts, more in zip(mine, node_counts, strict=True):
                for pair, count in more.items():
                    counts[pair] = counts.get(pair, 0) + count

    def _counts_on(self, node_info: NodeInfo) -> tuple[TopologyCounts, ...]:
        """The three counts over the pods of one node; empty where there is nothing to count."""
        found = FilterState(self.incoming, self.evidence)
        found.add_all([node_info], None)
        counts = (found.affinity, found.anti_affinity, found.existing_anti_affinity)
        return counts if any(counts) else ()

    def _add_table(self, nodes: Sequence[NodeInfo], table: PodTable) -> None:
        incoming = self.incoming
        existing = table.count_anti_affinity(lambda term: term.matches(incoming.pod, incoming.namespace_labels))
        for key, amounts in existing.items():
            for node_info, count in zip(nodes, table.total(amounts).tolist(), strict=True):
                if count:
                    _count_key(self.existing_anti_affinity, key, node_info.node.labels, count)
        if incoming.affinity_terms:
            counts = table.count_matching(lambda pod: matches_all_terms(incoming.affinity_terms, pod))
            for node_info, count in zip(nodes, counts, strict=True):
                if count:
                    _count(self.affinity, incoming.affinity_terms, node_info.node.labels, count)
        for term in incoming.anti_affinity_terms:
            counts = table.count_matching(partial(term.matches, namespace_labels=None))
            for node_info, count in zip(nodes, counts, strict=True):
                if count:
                    _count(self.anti_affinity, [term], node_info.node.labels, count)


def check_node(state: FilterState, node_info: NodeInfo) -> Status:
    """Refuse a node: for good where the pods that are wanted are missing, otherwise where someone refuses someone."""
    labels = node_info.node.labels
    unmet = unmet_affinity_term(state, labels)
    if unmet is not None:
        detail = state.evidence.of_affinity(unmet, labels)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_AFFINITY], detail=detail)
    if state.anti_affinity:
        for term in state.incoming.anti_affinity_terms:
            pair = (term.topology_key, labels.get(term.topology_key, ""))
            if term.topology_key in labels and state.anti_affinity.get(pair, 0) > 0:
                detail = state.evidence.of_anti_affinity(pair, node_info)
                return Status(Code.UNSCHEDULABLE, [REASON_ANTI_AFFINITY], detail=detail)
    if state.existing_anti_affinity:
        for pair in labels.items():
            if state.existing_anti_affinity.get(pair, 0) > 0:
                detail = state.evidence.of_existing_anti_affinity(pair, node_info)
                return Status(Code.UNSCHEDULABLE, [REASON_EXISTING_ANTI_AFFINITY], detail=detail)
    return SUCCESS


def unmet_affinity_term(state: FilterState, labels: Mapping[str, str], num_gone: int = 0) -> AffinityTerm | None:
    """The affinity term that keeps the pod off a node with these labels, or ``None``.

    All topology keys must be there. The first pod of a group that wants its own kind is let in: no pod anywhere
    matches its terms, and it matches them itself. ``num_gone`` are the pods that match all terms and left the node.
    """
    if num_gone:
        _count(state.affinity, state.incoming.affinity_terms, labels, -num_gone)
        unmet = unmet_affinity_term(state, labels)
        _count(state.affinity, state.incoming.affinity_terms, labels, num_gone)
        return unmet
    unmet = None
    for term in state.incoming.affinity_terms:
        value = labels.get(term.topology_key)
        if value is None:
            return term
        if unmet is None and state.affinity.get((term.topology_key, value), 0) <= 0:
            unmet = term
    is_first = unmet and not state.affinity and matches_all_terms(state.incoming.affinity_terms, state.incoming.pod)
    return None if is_first else unmet


def _count(counts: TopologyCounts, terms: Iterable[AffinityTerm], labels: Mapping[str, str], delta: int) -> None:
    for term in terms:
        _count_key(counts, term.topology_key, labels, delta)


def _count_key(counts: TopologyCounts, key: str, labels: Mapping[str, str], delta: int) -> None:
    value = labels.get(key)
    if value is not None:
        pair = (key, value)
        count = counts.get(pair, 0) + delta
        if count:
            counts[pair] = count
        else:
            counts.pop(pair, None)
