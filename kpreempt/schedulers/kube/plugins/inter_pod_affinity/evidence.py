"""Which pods stand behind a refusal by pod affinity. Looked up only once a node is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from kpreempt.schedulers.kube.framework.affinity_terms import AffinityTerm
from kpreempt.schedulers.kube.framework.memory import Findings, answers_on
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.incoming import IncomingPod
from kpreempt.verdict.details import AffinityConflict

# More holders than this tell a reader nothing more.
MAX_HOLDERS = 5

TopologyPair = tuple[str, str]


class _Conflict(NamedTuple):
    """A pod on a node, and the term that it matches or holds."""

    node_name: str
    pod_info: PodInfo
    term: AffinityTerm


_Search = Callable[[NodeInfo], Iterator[tuple[TopologyPair, _Conflict]]]


class _Growing:
    """Conflicts of a domain, looked for as far as somebody reads, and kept."""

    def __init__(self, source: Iterator[_Conflict]) -> None:
        self._source = source
        self._known: list[_Conflict] = []

    def __iter__(self) -> Iterator[_Conflict]:
        yield from self._known
        for conflict in self._source:
            self._known.append(conflict)
            yield conflict


class Evidence:
    """Finds the pods that a refusal is due to, on the nodes of the domain alone, and no more of them than are told.

    A dry run and nominated pods change nothing but the node that they look at, so for that node the pods that it holds
    at the moment count, not the indexed ones.
    """

    def __init__(self, incoming: IncomingPod, nodes: Sequence[NodeInfo], findings: Findings | None = None) -> None:
        self._incoming = incoming
        self._nodes = nodes
        self._findings = findings
        # By topology key and value.
        self._domains: dict[str, dict[str | None, list[NodeInfo]]] = {}
        self._known: dict[tuple[str, TopologyPair], _Growing] = {}

    def of_affinity(self, term: AffinityTerm, labels: Mapping[str, str]) -> AffinityConflict:
        """The term for which no pod was found."""
        value = labels.get(term.topology_key, "")
        return AffinityConflict("affinity", term.topology_key, value, _text(term))

    def of_anti_affinity(self, pair: TopologyPair, node_info: NodeInfo) -> AffinityConflict:
        """The pods in the domain that the incoming pod refuses."""
        conflicts = self._present("affinity refused", pair, node_info, self._refused_on)
        return _conflict("antiAffinity", pair, conflicts)

    def of_existing_anti_affinity(self, pair: TopologyPair, node_info: NodeInfo) -> AffinityConflict:
        """The pods in the domain that refuse the incoming pod."""
        conflicts = self._present("affinity refusing", pair, node_info, self._refusing_on)
        return _conflict("existingAntiAffinity", pair, conflicts)

    def _present(self, question: str, pair: TopologyPair, node_info: NodeInfo, search: _Search) -> list[_Conflict]:
        """The first few conflicts of a domain, without pods that are gone from the node."""
        present = (
            conflict
            for conflict in self._conflicts(question, pair, search)
            if conflict.node_name != node_info.name or conflict.pod_info in node_info.pods
        )
        found = list(islice(present, MAX_HOLDERS))
        # Nothing left: then it is due to a nominated pod, which no node of the cluster holds.
        return found or [conflict for other, conflict in search(node_info) if other == pair][:MAX_HOLDERS]

    def _conflicts(self, question: str, pair: TopologyPair, search: _Search) -> _Growing:
        conflicts = self._known.get((question, pair))
        if conflicts is None:
            conflicts = self._known[question, pair] = _Growing(self._found(question, pair, search))
        return conflicts

    def _found(self, question: str, pair: TopologyPair, search: _Search) -> Iterator[_Conflict]:
        key, value = pair
        if key not in self._domains:
            domains = self._domains[key] = {}
            for node_info in self._nodes:
                domains.setdefault(node_info.node.labels.get(key), []).append(node_info)
        nodes = self._domains[key].get(value, [])
        if self._findings is None:
            conflicts: Iterable[Iterable[tuple[TopologyPair, _Conflict]]] = map(search, nodes)
        else:
            conflicts = answers_on(self._findings.on(question), nodes, lambda node_info: tuple(search(node_info)))
        return (conflict for other, conflict in chain.from_iterable(conflicts) if other == pair)

    def _refused_on(self, node_info: NodeInfo) -> Iterator[tuple[TopologyPair, _Conflict]]:
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
    """One record for several pods; the selector is that of the first one's term."""
    selector = _text(conflicts[0].term) if conflicts else ""
    holders = list(dict.fromkeys(conflict.pod_info.key for conflict in conflicts))
    return AffinityConflict(rule, *pair, selector, holders)


def _text(term: AffinityTerm) -> str:
    return "nothing" if term.selector is None else str(term.selector)
