"""Hard spread constraints as counts per domain (``plugins/podtopologyspread/filtering.go``, v1.36.3).

Also the constraints, prepared for matching (``plugins/podtopologyspread/common.go``, v1.36.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from kpreempt.model.labels import LabelSelector
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.framework.decision_cache import PodCache, answers_on
from kpreempt.schedulers.kube.framework.interface import PluginError
from kpreempt.schedulers.kube.framework.label_selectors import narrowed, selector_error
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.schedulers.lowest_counts import LowestCounts
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.details import SpreadConflict

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable


UnsatisfiableAction = Literal["DoNotSchedule", "ScheduleAnyway"]

_REPELLING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})

# The default for a pod without constraints, unless the configuration says otherwise.
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
    ),
)


class SpreadConstraint(NamedTuple):
    """One constraint with its defaults set; a ``selector`` of ``None`` matches no pod.

    ``counts_all``: a selector that matches everything counts every pod, as in older versions, instead of none.
    """

    max_skew: int
    topology_key: str
    selector: LabelSelector | None
    min_domains: int
    honors_node_affinity: bool
    honors_taints: bool
    counts_all: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether a pod with these labels is one of those to spread."""
        return self.selector is not None and self.selector.matches(labels)


def constraints_for(
    stated: Iterable[TopologySpreadConstraint],
    labels: Mapping[str, str],
    action: UnsatisfiableAction,
    behavior: Behavior,
) -> list[SpreadConstraint]:
    """Return the constraints with this action, for a pod with these labels.

    Raises ``PluginError`` with upstream's message if a selector cannot be parsed.
    """
    return [_constraint(each, labels, behavior) for each in stated if each.when_unsatisfiable == action]


def _constraint(stated: TopologySpreadConstraint, labels: Mapping[str, str], behavior: Behavior) -> SpreadConstraint:
    error = selector_error(stated.label_selector, as_json=behavior.reports_selectors_as_json)
    if error is not None:
        raise PluginError(error)
    selector = stated.label_selector
    if selector is not None and behavior.match_label_keys_in_pod_topology_spread:
        selector = narrowed(selector, {key: labels[key] for key in stated.match_label_keys if key in labels})
    is_policy_read = behavior.node_inclusion_policy_in_pod_topology_spread
    counts_domains = behavior.min_domains_in_pod_topology_spread
    return SpreadConstraint(
        max_skew=stated.max_skew,
        topology_key=stated.topology_key,
        selector=selector,
        min_domains=stated.min_domains if counts_domains and stated.min_domains is not None else 1,
        honors_node_affinity=not (is_policy_read and stated.node_affinity_policy == "Ignore"),
        honors_taints=is_policy_read and stated.node_taints_policy == "Honor",
        counts_all=behavior.counts_pods_for_empty_selectors,
    )


def has_all_keys(labels: Mapping[str, str], constraints: Iterable[SpreadConstraint]) -> bool:
    """Return whether a node with these labels is in a domain of every constraint."""
    return all(constraint.topology_key in labels for constraint in constraints)


def count_matching(node_info: NodeInfo, constraint: SpreadConstraint, namespace: str) -> int:
    """Return how many of the node's pods count for the constraint.

    Terminating pods do not. A selector that matches everything counts none here, although the incoming pod does match
    it (``countPodsMatchSelector``).
    """
    if not node_info.num_pods:
        return 0
    labels = node_info.labels_by_namespace.get(namespace)
    return sum(map(constraint.matches, labels)) if labels and is_counted(constraint) else 0


def counts_for(constraint: SpreadConstraint, namespace: str, pod: Pod) -> bool:
    """Return whether a pod that is not terminating counts for the constraint of a pod in ``namespace``."""
    if not is_counted(constraint) or pod.metadata.namespace != namespace:
        return False
    return constraint.matches(pod.metadata.labels)


def is_counted(constraint: SpreadConstraint) -> bool:
    """Return whether any existing pod counts for the constraint."""
    selector = constraint.selector
    return selector is not None and (constraint.counts_all or not selector.is_empty())


class NodeInclusion:
    """Which nodes' pods and domains count for a pod: by its node affinity, its tolerations and the policies."""

    def __init__(self, pod: Pod, behavior: Behavior) -> None:
        self._pod = pod
        self._reads_policies = behavior.node_inclusion_policy_in_pod_topology_spread
        self._compares_numbers = behavior.taint_toleration_comparison_operators
        # Whether each constraint has its own counts.
        self.counts_by_constraint = behavior.counts_spread_by_constraint

    def is_node_included(self, node: Node) -> bool:
        """Return whether the node can count for any constraint; without the policies, node affinity decides for all."""
        return self._reads_policies or self._pod.spec.selects(node.name, node.labels)

    def is_included(self, node: Node, constraint: SpreadConstraint) -> bool:
        """Return whether the node counts for this constraint, given that it can count at all."""
        if not self._reads_policies:
            return True
        if constraint.honors_node_affinity and not self._pod.spec.selects(node.name, node.labels):
            return False
        if not constraint.honors_taints:
            return True
        taint = find_untolerated_taint(
            node.spec.taints, self._pod.spec.tolerations, _REPELLING_EFFECTS, compares_numbers=self._compares_numbers
        )
        return taint is None


REASON_SKEW = "node(s) didn't match pod topology spread constraints"
REASON_MISSING_LABEL = f"{REASON_SKEW} (missing required label)"

# A rejection shows the counts of at most this many domains: those with the fewest pods, and the node's own.
MAX_DOMAINS = 20


_T = TypeVar("_T")


class FilterState:
    """Matching pods per constraint and domain. Clones share everything except the counts.

    If constraints on one topology key share their counts (``shares_counts``), as in older versions, the counts on a
    node are the last constraint's, and a pod counts once for each constraint that it matches when it is added or
    removed.
    """

    __slots__ = (
        "_inclusion",
        "_shown_domains",
        "_slots",
        "constraints",
        "counts",
        "lowest",
        "pod",
        "self_matches",
        "shares_counts",
    )

    def __init__(self, pod: Pod, constraints: Sequence[SpreadConstraint], inclusion: NodeInclusion) -> None:
        self.pod = pod
        self.constraints = constraints
        keys = [constraint.topology_key for constraint in constraints]
        self.shares_counts = not inclusion.counts_by_constraint and len(set(keys)) < len(keys)
        # By constraint, the first constraint with which it shares counts.
        self._slots = [keys.index(key) if self.shares_counts else index for index, key in enumerate(keys)]
        self.counts: list[dict[str, int]] = self._shared([{} for _ in constraints])
        self.lowest = self._shared([LowestCounts() for _ in constraints])
        # By constraint, whether the pod itself is one of those to spread: 1 or 0.
        self.self_matches = [int(constraint.matches(pod.metadata.labels)) for constraint in constraints]
        self._inclusion = inclusion
        self._shown_domains: dict[int, list[str]] = {}

    def _shared(self, values: list[_T]) -> list[_T]:
        return [values[slot] for slot in self._slots]

    def clone(self) -> FilterState:
        """Return a copy with independent counts."""
        other = FilterState.__new__(FilterState)
        other.pod = self.pod
        other.constraints = self.constraints
        other.self_matches = self.self_matches
        other.shares_counts, other._slots = self.shares_counts, self._slots
        other.counts = self._shared([dict(counts) for counts in self.counts])
        other.lowest = self._shared([LowestCounts(lowest.first, lowest.second) for lowest in self.lowest])
        other._inclusion = self._inclusion
        other._shown_domains = self._shown_domains
        return other

    def add_all(
        self, nodes: Sequence[NodeInfo], table: PodTable | None = None, findings: PodCache | None = None
    ) -> None:
        """Count the pods of all nodes; every eligible node's domain exists even without pods.

        ``table`` has the pods of ``nodes`` in columns, for big clusters. With ``findings``, only nodes without cached
        results are counted.
        """
        if findings is not None:
            self._add(chain.from_iterable(answers_on(findings.on("spread filter"), nodes, self._counts_on)))
            return
        if table is None or self.shares_counts:
            self._add(chain.from_iterable(map(self._counts_on, nodes)))
            return
        namespace = self.pod.metadata.namespace
        counts = [
            table.count_matching(partial(counts_for, constraint, namespace), skips_terminating=True)
            for constraint in self.constraints
        ]
        self._add(
            (index, node_info.node.labels[constraint.topology_key], counts[index][position])
            for position, node_info in enumerate(nodes)
            for index, constraint in self._eligible(node_info.node)
        )

    def _counts_on(self, node_info: NodeInfo) -> list[tuple[int, str, int]]:
        """Return the constraints for which a node counts: index, the node's domain and its matching pods."""
        namespace = self.pod.metadata.namespace
        counts = [
            (
                self._slots[index],
                node_info.node.labels[constraint.topology_key],
                count_matching(node_info, constraint, namespace),
            )
            for index, constraint in self._eligible(node_info.node)
        ]
        return list({each[0]: each for each in counts}.values()) if self.shares_counts else counts

    def _add(self, counts_of_nodes: Iterable[tuple[int, str, int]]) -> None:
        for index, domain, count in counts_of_nodes:
            counts = self.counts[index]
            counts[domain] = counts.get(domain, 0) + count
        for counts, lowest in zip(self.counts, self.lowest, strict=True):
            for domain, count in counts.items():
                lowest.update(domain, count)

    def update(self, pod: Pod, node: Node, delta: int) -> None:
        """Count a pod that was added to (1) or removed from (-1) the node.

        As upstream, but unlike ``add_all``, this counts terminating pods and treats the empty selector as matching
        everything.
        """
        if pod.metadata.namespace != self.pod.metadata.namespace:
            return
        for index, constraint in self._eligible(node):
            if constraint.matches(pod.metadata.labels):
                domain = node.labels[constraint.topology_key]
                count = self.counts[index].get(domain, 0) + delta
                self.counts[index][domain] = count
                self.lowest[index].update(domain, count)

    def _eligible(self, node: Node) -> list[tuple[int, SpreadConstraint]]:
        """Return the constraints for which the node counts, with their index."""
        if not self._inclusion.is_node_included(node) or not has_all_keys(node.labels, self.constraints):
            return []
        return [
            (index, constraint)
            for index, constraint in enumerate(self.constraints)
            if self._inclusion.is_included(node, constraint)
        ]

    def is_counted(self, node: Node, index: int) -> bool:
        """Return whether pods on the node count for a constraint."""
        return any(each == index for each, _ in self._eligible(node))

    def lowest_other(self, index: int, domain: str) -> int:
        """Return the lowest count of any other domain; 0 if there are fewer domains than minDomains."""
        if len(self.counts[index]) < self.constraints[index].min_domains:
            return 0
        lowest = self.lowest[index]
        return lowest.first[1] if lowest.first[0] != domain else lowest.second[1]

    def minimum(self, index: int) -> int:
        """Return the lowest count of any domain of a constraint; 0 if there are fewer domains than minDomains."""
        if len(self.counts[index]) < self.constraints[index].min_domains:
            return 0
        return self.lowest[index].first[1]

    def shown_counts(self, index: int, domain: str, count: int) -> dict[str, int]:
        """Return counts for reports, by name: those of the domains with the fewest pods, and of ``domain``.

        ``domain`` has ``count`` pods, whatever is counted here.
        """
        counts = self.counts[index]
        if counts.get(domain, count) != count:
            counts = {**counts, domain: count}
        domains = self._shown_domains.get(index)
        if domains is None:
            domains = nsmallest(MAX_DOMAINS, counts, key=lambda each: (counts[each], each))
            self._shown_domains[index] = domains
        shown = domains if domain in domains or domain not in counts else [*domains[: MAX_DOMAINS - 1], domain]
        return {each: counts[each] for each in sorted(shown)}


def check_node(state: FilterState, node: Node) -> Status:
    """Reject a node without a topology label permanently, and one whose domain would have too many pods for now."""
    for index, constraint in enumerate(state.constraints):
        domain = node.labels.get(constraint.topology_key)
        if domain is None:
            detail = SpreadConflict(
                constraint.topology_key, "", max_skew=constraint.max_skew, selector=_text(constraint)
            )
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_MISSING_LABEL], detail=detail)
        count, minimum = state.counts[index].get(domain, 0), state.minimum(index)
        self_match = state.self_matches[index]
        if count + self_match - minimum > constraint.max_skew:
            return too_many_pods(state, index, domain, count, minimum)
    return SUCCESS


def too_many_pods(state: FilterState, index: int, domain: str, count: int, minimum: int) -> Status:
    """Reject a domain with ``count`` matching pods for a constraint, if the emptiest domain has ``minimum``."""
    constraint, self_match = state.constraints[index], state.self_matches[index]
    detail = SpreadConflict(
        topology_key=constraint.topology_key,
        topology_value=domain,
        count=count,
        self_match=self_match,
        minimum=minimum,
        skew=count + self_match - minimum,
        max_skew=constraint.max_skew,
        selector=_text(constraint),
        counts=state.shown_counts(index, domain, count),
        min_domains=constraint.min_domains if constraint.min_domains > 1 else None,
    )
    return Status(Code.UNSCHEDULABLE, [REASON_SKEW], detail=detail)


def _text(constraint: SpreadConstraint) -> str:
    return "nothing" if constraint.selector is None else str(constraint.selector)
