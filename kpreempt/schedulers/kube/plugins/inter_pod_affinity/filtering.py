"""Required pod affinity and anti-affinity as counts (``plugins/interpodaffinity/filtering.go``, v1.36.3).

The incoming pod's affinity terms are prepared for matching (``plugins/interpodaffinity/plugin.go``, v1.36.3).

The namespaces that a term's selector matches are looked up once and added to the term, and the selector is dropped.
Some versions drop it on a copy: it stays, and is matched against empty labels. So a selector that matches a namespace
without labels (``team notin (a)``, ``!team``) lets a term match pods in every namespace there.

The pods responsible for a rejection are looked up only when a node is rejected (``Evidence``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.decision_cache import PodCache, answers_on
from kpreempt.schedulers.kube.framework.label_selectors import AffinityTerm, selector_error
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.details import AffinityConflict

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable


# Listing more pods than this is not useful.
MAX_HOLDERS = 5

TopologyPair = tuple[str, str]


class _Conflict(NamedTuple):
    """A pod on a node, and the term that it matches or has."""

    node_name: str
    pod_info: PodInfo
    term: AffinityTerm


_Search = Callable[[NodeInfo], Iterator[tuple[TopologyPair, _Conflict]]]


class _Growing:
    """Conflicts of a domain, found lazily and cached."""

    def __init__(self, source: Iterator[_Conflict]) -> None:
        self._source = source
        self._known: list[_Conflict] = []

    def __iter__(self) -> Iterator[_Conflict]:
        yield from self._known
        for conflict in self._source:
            self._known.append(conflict)
            yield conflict


class Evidence:
    """Finds the pods responsible for a rejection, only on the nodes of the domain, and only as many as are listed.

    A dry run and nominated pods change only the node being evaluated, so for that node its current pods count, not the
    indexed ones.
    """

    def __init__(self, incoming: IncomingPod, nodes: Sequence[NodeInfo], findings: PodCache | None = None) -> None:
        self._incoming = incoming
        self._nodes = nodes
        self._findings = findings
        # By topology key and value.
        self._domains: dict[str, dict[str | None, list[NodeInfo]]] = {}
        self._known: dict[tuple[str, TopologyPair], _Growing] = {}

    def of_affinity(self, term: AffinityTerm, labels: Mapping[str, str]) -> AffinityConflict:
        """Return the term for which no pod was found."""
        value = labels.get(term.topology_key, "")
        return AffinityConflict("affinity", term.topology_key, value, _text(term))

    def of_anti_affinity(self, pair: TopologyPair, node_info: NodeInfo) -> AffinityConflict:
        """Return the pods in the domain that the incoming pod's anti-affinity excludes."""
        conflicts = self._present("affinity refused", pair, node_info, self._rejected_on)
        return _conflict("antiAffinity", pair, conflicts)

    def of_existing_anti_affinity(self, pair: TopologyPair, node_info: NodeInfo) -> AffinityConflict:
        """Return the pods in the domain whose anti-affinity excludes the incoming pod."""
        conflicts = self._present("affinity refusing", pair, node_info, self._refusing_on)
        return _conflict("existingAntiAffinity", pair, conflicts)

    def _present(self, search_name: str, pair: TopologyPair, node_info: NodeInfo, search: _Search) -> list[_Conflict]:
        """Return the first few conflicts of a domain, without pods that were removed from the node."""
        conflicts = self._known.get((search_name, pair))
        if conflicts is None:
            conflicts = self._known[search_name, pair] = _Growing(self._found(search_name, pair, search))
        present = (
            conflict
            for conflict in conflicts
            if conflict.node_name != node_info.name or conflict.pod_info in node_info.pods
        )
        found = list(islice(present, MAX_HOLDERS))
        # Nothing is left: the reason is a nominated pod, which is on no node of the cluster.
        return found or [conflict for other, conflict in search(node_info) if other == pair][:MAX_HOLDERS]

    def _found(self, search_name: str, pair: TopologyPair, search: _Search) -> Iterator[_Conflict]:
        key, value = pair
        if key not in self._domains:
            domains = self._domains[key] = {}
            for node_info in self._nodes:
                domains.setdefault(node_info.node.labels.get(key), []).append(node_info)
        nodes = self._domains[key].get(value, [])
        if self._findings is None:
            conflicts: Iterable[Iterable[tuple[TopologyPair, _Conflict]]] = map(search, nodes)
        else:
            conflicts = answers_on(self._findings.on(search_name), nodes, lambda node_info: tuple(search(node_info)))
        return (conflict for other, conflict in chain.from_iterable(conflicts) if other == pair)

    def _rejected_on(self, node_info: NodeInfo) -> Iterator[tuple[TopologyPair, _Conflict]]:
        labels = node_info.node.labels
        terms = [term for term in self._incoming.anti_affinity_terms if term.topology_key in labels]
        for pod_info in node_info.pods:
            for term in terms:
                if term.matches(pod_info.pod, None):
                    pair = (term.topology_key, labels[term.topology_key])
                    yield pair, _Conflict(node_info.name, pod_info, term)

    def _refusing_on(self, node_info: NodeInfo) -> Iterator[tuple[TopologyPair, _Conflict]]:
        labels, incoming = node_info.node.labels, self._incoming
        for pod_info in node_info.pods_with_required_anti_affinity:
            for term in pod_info.required_anti_affinity_terms:
                if term.topology_key in labels and term.matches(incoming.pod, incoming.namespace_labels):
                    pair = (term.topology_key, labels[term.topology_key])
                    yield pair, _Conflict(node_info.name, pod_info, term)


def _conflict(rule: str, pair: TopologyPair, conflicts: list[_Conflict]) -> AffinityConflict:
    """Return one record for several pods; the selector is from the first one's term."""
    selector = _text(conflicts[0].term) if conflicts else ""
    holders = {conflict.pod_info.key: conflict.node_name for conflict in conflicts}
    return AffinityConflict(rule, *pair, selector, [*holders], [*holders.values()])


def _text(term: AffinityTerm) -> str:
    return "nothing" if term.selector is None else str(term.selector)


# The names of the namespaces that match a selector.
SelectedNamespaces = Callable[[LabelSelector], frozenset[str]]
_Term = TypeVar("_Term", bound=AffinityTerm)


class IncomingPod:
    """A pod, its required terms with all namespaces that they apply to, and the labels of its namespace."""

    __slots__ = ("affinity_terms", "anti_affinity_terms", "namespace_labels", "pod")

    def __init__(
        self,
        pod_info: PodInfo,
        namespaces: SelectedNamespaces,
        namespace_labels: Mapping[str, str],
        *,
        keeps_selectors: bool,
    ) -> None:
        self.pod = pod_info.pod
        self.affinity_terms = with_selected_namespaces(
            pod_info.required_affinity_terms, namespaces, keeps_selectors=keeps_selectors
        )
        self.anti_affinity_terms = with_selected_namespaces(
            pod_info.required_anti_affinity_terms, namespaces, keeps_selectors=keeps_selectors
        )
        self.namespace_labels = namespace_labels


def with_selected_namespaces(
    terms: Sequence[_Term], namespaces: SelectedNamespaces, *, keeps_selectors: bool
) -> list[_Term]:
    """Return the terms, each with the namespaces matching its selector added to those that it names.

    Unless the version ``keeps_selectors``, only these names remain.
    """
    found = []
    for term in terms:
        selector, merged = term.namespace_selector, term
        if selector is not None and not selector.is_empty():
            merged = copy(term)
            merged.namespaces = term.namespaces | namespaces(selector)
            if not keeps_selectors:
                merged.namespace_selector = None
        found.append(merged)
    return found


def matches_all_terms(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Return whether there are terms and every one of them selects the pod."""
    return bool(terms) and all(term.matches(pod, None) for term in terms)


def parse_error(pod: Pod, behavior: Behavior) -> str | None:
    """Return upstream's message for a pod with a selector that cannot be parsed (``PodInfo.Update``)."""
    affinity = pod.spec.affinity
    requested = affinity.pod_affinity if affinity else None
    refused = affinity.pod_anti_affinity if affinity else None
    groups = {
        "requiredAffinityTerms": requested.required if requested else [],
        "requiredAntiAffinityTerms": refused.required if refused else [],
        "preferredAffinityTerms": [each.pod_affinity_term for each in requested.preferred] if requested else [],
        "preferredAntiAffinityTerms": [each.pod_affinity_term for each in refused.preferred] if refused else [],
    }
    errors = []
    for group, terms in groups.items():
        selectors = (selector for term in terms for selector in (term.label_selector, term.namespace_selector))
        found = (selector_error(selector, as_json=behavior.reports_selectors_as_json) for selector in selectors)
        error = next(filter(None, found), None)
        if error is not None:
            errors.append(f"{group}: {error}")
    if not errors:
        return None
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


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
        """Return a copy with independent counts."""
        other = FilterState(self.incoming, self.evidence)
        other.affinity = dict(self.affinity)
        other.anti_affinity = dict(self.anti_affinity)
        other.existing_anti_affinity = dict(self.existing_anti_affinity)
        return other

    @property
    def is_indifferent(self) -> bool:
        """Whether no node can be rejected: the pod has no required terms, and no pod excludes it."""
        incoming = self.incoming
        return not self.existing_anti_affinity and not incoming.affinity_terms and not incoming.anti_affinity_terms

    def update(self, pod_info: PodInfo, labels: Mapping[str, str], delta: int) -> None:
        """Count a pod that was added to (1) or removed from (-1) a node with these labels."""
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
        """Count all pods of all nodes, skipping those that cannot matter.

        ``table`` has the pods of ``nodes`` in columns, for big clusters. ``refusing`` are the nodes with pods that may
        exclude the incoming pod, if these are not all nodes.
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

    def add_known(self, nodes: Sequence[NodeInfo], findings: PodCache) -> None:
        """Do the same as ``add_all``, evaluating only nodes without cached results."""
        mine = (self.affinity, self.anti_affinity, self.existing_anti_affinity)
        for node_counts in filter(None, answers_on(findings.on("affinity filter"), nodes, self._counts_on)):
            for counts, more in zip(mine, node_counts, strict=True):
                for pair, count in more.items():
                    counts[pair] = counts.get(pair, 0) + count

    def _counts_on(self, node_info: NodeInfo) -> tuple[TopologyCounts, ...]:
        """Return the three counts over the pods of one node; empty if there is nothing to count."""
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
    """Reject a node: permanently if pods required by affinity are missing, otherwise because of anti-affinity."""
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


def unmet_affinity_term(state: FilterState, labels: Mapping[str, str], num_removed: int = 0) -> AffinityTerm | None:
    """Return the affinity term that keeps the pod off a node with these labels, or ``None``.

    All topology keys must exist. The first pod of a group with affinity to itself is admitted: no pod anywhere matches
    its terms, and it matches them itself. ``num_removed`` is the number of pods that match all terms and were removed
    from the node.
    """
    if num_removed:
        _count(state.affinity, state.incoming.affinity_terms, labels, -num_removed)
        unmet = unmet_affinity_term(state, labels)
        _count(state.affinity, state.incoming.affinity_terms, labels, num_removed)
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
