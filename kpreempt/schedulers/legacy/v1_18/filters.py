"""The filters of 1.18 that do not read volumes, each following its plugin in ``framework/plugins`` of v1.18.19.

InterPodAffinity and PodTopologySpread count pods by topology, once for the whole cluster, and update the counts pod by
pod in a dry run. InterPodAffinity has three quirks there: an anti-affinity term of another pod without namespaces uses
the namespace of the pod that is scheduled; counts can therefore become negative and hide a conflict; and pods that are
only nominated, which have no node name, do not count for the pod's own terms. PodTopologySpread does not count pods
that are being deleted, but subtracts them when they are removed in a dry run; constraints with the same topology key
share their counts.

The others depend on one node alone: its spec, its labels, its resources and its pods. For NodeResourcesFit
(``noderesources/fit.go`` and ``nodeinfo/node_info.go``) a pod requests its containers or its largest init container,
plus its overhead; running pods are counted the same way (since 1.18.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.labels import LabelSelector, is_label_key
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.schedulers.disks import LIMIT_PREFIX
from kpreempt.schedulers.legacy.base.node_info import (
    HUGE_PAGES_PREFIX,
    NATIVE_PREFIX,
    PODS,
    Amounts,
    NodeInfo,
    PodInfo,
    add,
    amounts_of,
    is_native,
    largest_request,
)
from kpreempt.schedulers.legacy.base.predicates import (
    Check,
    LegacyError,
    disk_conflict,
    insufficient_resources,
    name_mismatch,
    not_cordoned,
    port_conflict,
    rejection,
    rejects_on,
    selector_mismatch,
    term_selects,
    untolerated_taint,
)
from kpreempt.schedulers.legacy.v1_18.framework import (
    CycleState,
    FilterPlugin,
    PodState,
    PreFilterRejectedError,
    selector_error,
)
from kpreempt.schedulers.lowest_counts import LowestCounts
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.details import AffinityConflict, SpreadConflict

REASON = "node(s) didn't match pod affinity/anti-affinity"
REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

TopologyPair = tuple[str, str]
# A rejection lists at most this many of the pods that cause it.
MAX_HOLDERS = 20


class Counts(dict[TopologyPair, int]):
    """Numbers of matching pods, without zeros: whether any count remains matters for the first pod of a group."""

    def on(self, node: Node, term: PodAffinityTerm) -> int:
        """Return the number of pods in the node's pair for the term."""
        key = term.topology_key
        return self.get((key, node.labels[key]), 0) if key in node.labels else 0

    def count(self, term: PodAffinityTerm, node: Node, delta: int) -> None:
        """Count a pod in the node's pair for the term, if the node has the label."""
        key = term.topology_key
        if key not in node.labels:
            return
        pair = key, node.labels[key]
        self[pair] = self.get(pair, 0) + delta
        if not self[pair]:
            del self[pair]


class AffinityState(PodState):
    """Pods that match the pod's terms, and terms of other pods that match it, per topology pair."""

    __slots__ = ("_pod", "affinity", "affinity_terms", "anti_affinity", "anti_affinity_terms", "existing")

    def __init__(self, pod: PodInfo) -> None:
        self._pod = pod.pod
        self.affinity_terms = pod.affinity_terms
        self.anti_affinity_terms = pod.anti_affinity_terms
        self.affinity = Counts()
        self.anti_affinity = Counts()
        self.existing = Counts()

    def clone(self) -> AffinityState:
        """Return a copy with independent counts."""
        made = copy(self)
        made.affinity, made.anti_affinity = Counts(self.affinity), Counts(self.anti_affinity)
        made.existing = Counts(self.existing)
        return made

    def count_all(self, nodes: Sequence[NodeInfo]) -> None:
        """Count the pods of all nodes, each with its own terms in its own namespace."""
        counts_own = bool(self.affinity_terms or self.anti_affinity_terms)
        for node_info in nodes:
            for existing in node_info.pods:
                self._count_terms_of(existing, existing.pod, node_info.node, 1)
                if counts_own:
                    self._count_own(existing.pod, node_info.node, 1)

    def update(self, moved: PodInfo, node: Node, delta: int) -> None:
        """Add a pod to the node (1) or remove it (-1); its terms use the namespace of the scheduled pod."""
        self._count_terms_of(moved, self._pod, node, delta)
        if moved.pod.spec.node_name:
            self._count_own(moved.pod, node, delta)

    def _count_terms_of(self, existing: PodInfo, owner: Pod, node: Node, delta: int) -> None:
        """Count another pod's anti-affinity; a term without namespaces uses that of ``owner``."""
        for term in existing.anti_affinity_terms:
            if term_selects(owner, term, self._pod):
                self.existing.count(term, node, delta)

    def _count_own(self, other: Pod, node: Node, delta: int) -> None:
        """Count a pod if all affinity terms of the scheduled pod select it, and per matching anti-affinity term."""
        if all(term_selects(self._pod, term, other) for term in self.affinity_terms):
            for term in self.affinity_terms:
                self.affinity.count(term, node, delta)
        for term in self.anti_affinity_terms:
            if term_selects(self._pod, term, other):
                self.anti_affinity.count(term, node, delta)

    def unmet_on(self, node: Node) -> PodAffinityTerm | None:
        """Return the first of the pod's affinity terms without a matching pod for the node.

        The first pod of its group, which only it itself matches in all terms, has none.
        """
        for term in self.affinity_terms:
            if self.affinity.on(node, term) <= 0:
                is_first = not self.affinity and all(
                    term_selects(self._pod, each, self._pod) for each in self.affinity_terms
                )
                return None if is_first else term
        return None


class InterPodAffinity(FilterPlugin):
    """Check anti-affinity of existing pods, then the pod's own affinity and anti-affinity."""

    name = "InterPodAffinity"

    def pre_filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> AffinityState:
        """Count all pods; an invalid selector ends the attempt."""
        existing = (term for node_info in nodes for other in node_info.pods for term in other.anti_affinity_terms)
        for term in existing:
            error = selector_error(term.label_selector)
            if error:
                raise LegacyError(f"calculating preFilterState: {error}")
        for term in (*pod.affinity_terms, *pod.anti_affinity_terms):
            error = selector_error(term.label_selector)
            if error:
                raise PreFilterRejectedError(f"calculating preFilterState: {error}")
        state = AffinityState(pod)
        state.count_all(nodes)
        return state

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Reject nodes: unmet affinity is unresolvable, while pods with conflicting anti-affinity may be evicted."""
        counts = state.of(AffinityState)
        node = node_info.node
        refusing = [(key, value) for key, value in node.labels.items() if counts.existing.get((key, value), 0) > 0]
        if refusing:
            # Only conflicting pods on this node are listed, not those on others of the domain.
            pair = refusing[0]
            found = {
                other.key: term
                for other in node_info.pods
                for term in other.anti_affinity_terms
                if term.topology_key == pair[0] and term_selects(other.pod, term, state.pod.pod)
            }
            selector = _text(next(iter(found.values())).label_selector) if found else ""
            detail = AffinityConflict("existingAntiAffinity", *pair, selector, list(found)[:MAX_HOLDERS])
            return rejection(REASON, REASON_EXISTING_ANTI_AFFINITY, detail=detail, code=Code.UNSCHEDULABLE)
        unmet = counts.unmet_on(node)
        if unmet is not None:
            detail = _conflict("affinity", unmet, node, [])
            return rejection(REASON, REASON_AFFINITY, detail=detail, code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        for term in counts.anti_affinity_terms:
            if counts.anti_affinity.on(node, term) > 0:
                holders = [other.key for other in node_info.pods if term_selects(state.pod.pod, term, other.pod)]
                detail = _conflict("antiAffinity", term, node, holders)
                return rejection(REASON, REASON_ANTI_AFFINITY, detail=detail, code=Code.UNSCHEDULABLE)
        return SUCCESS


def _conflict(rule: str, term: PodAffinityTerm, node: Node, holders: list[str]) -> AffinityConflict:
    value = node.labels.get(term.topology_key, "")
    return AffinityConflict(rule, term.topology_key, value, _text(term.label_selector), holders[:MAX_HOLDERS])


def _text(selector: LabelSelector | None) -> str:
    return "nothing" if selector is None else str(selector)


REASON_SPREAD = "node(s) didn't match pod topology spread constraints"

MAX_DOMAINS = 20


def _selects(constraint: TopologySpreadConstraint, pod: Pod) -> bool:
    """Return whether the pod has the labels; a missing selector matches nothing."""
    return constraint.label_selector is not None and constraint.label_selector.matches(pod.metadata.labels)


class SpreadState(PodState):
    """Matching pods per topology key and domain."""

    __slots__ = ("_namespace", "constraints", "counts", "paths")

    def __init__(self, pod: Pod) -> None:
        self._namespace = pod.metadata.namespace
        constraints = pod.spec.topology_spread_constraints
        self.constraints = [each for each in constraints if each.when_unsatisfiable == "DoNotSchedule"]
        self.counts: dict[tuple[str, str], int] = {}
        self.paths = {constraint.topology_key: LowestCounts() for constraint in self.constraints}

    def clone(self) -> SpreadState:
        """Return a copy with independent counts."""
        made = copy(self)
        made.counts = dict(self.counts)
        made.paths = {key: copy(paths) for key, paths in self.paths.items()}
        return made

    def count_all(self, pod: Pod, nodes: Sequence[NodeInfo]) -> None:
        """Count on nodes that match the pod's node affinity and have all topology keys."""
        if not self.constraints:
            return
        for node_info in nodes:
            node = node_info.node
            if not pod.spec.selects(node.name, node.labels) or not self.paths.keys() <= node.labels.keys():
                continue
            counted = [
                other.pod
                for other in node_info.pods
                if other.pod.metadata.deletion_timestamp is None and other.pod.metadata.namespace == self._namespace
            ]
            for constraint in self.constraints:
                matching = sum(_selects(constraint, other) for other in counted)
                pair = (constraint.topology_key, node.labels[constraint.topology_key])
                self.counts[pair] = self.counts.get(pair, 0) + matching
        for (key, domain), count in self.counts.items():
            self.paths[key].update(domain, count)

    def update(self, moved: PodInfo, node: Node, delta: int) -> None:
        """Add a pod to the node (1) or remove it (-1), even if it is terminating or node affinity excludes it."""
        pod = moved.pod
        if pod.metadata.namespace != self._namespace or not self.paths.keys() <= node.labels.keys():
            return
        for constraint in self.constraints:
            if _selects(constraint, pod):
                key = constraint.topology_key
                domain = node.labels[key]
                count = self.counts.get((key, domain), 0) + delta
                self.counts[key, domain] = count
                self.paths[key].update(domain, count)

    def shown_counts(self, key: str, domain: str) -> dict[str, int]:
        """Return counts to display: the domains with the fewest pods, and ``domain``, by name."""
        counts = {each: count for (of_key, each), count in self.counts.items() if of_key == key}
        fewest = sorted(counts, key=lambda each: (counts[each], each))[: MAX_DOMAINS - 1]
        return {each: counts[each] for each in sorted({*fewest, domain} & counts.keys())}


class PodTopologySpread(FilterPlugin):
    """Rejects nodes without a topology key, and those whose domain would have too many matching pods."""

    name = "PodTopologySpread"

    def pre_filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> SpreadState:
        """Count all pods; an invalid selector ends the attempt."""
        state = SpreadState(pod.pod)
        for constraint in state.constraints:
            error = selector_error(constraint.label_selector)
            if error:
                raise LegacyError(f"obtaining pod's hard topology spread constraints: {error}")
        state.count_all(pod.pod, nodes)
        return state

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Check the skew of each constraint with the pod on this node; every rejection is resolvable."""
        spread = state.of(SpreadState)
        labels = node_info.node.labels
        for constraint in spread.constraints:
            key = constraint.topology_key
            if key not in labels:
                missing = SpreadConflict(
                    key, "", max_skew=constraint.max_skew, selector=_text(constraint.label_selector)
                )
                return rejection(REASON_SPREAD, detail=missing, code=Code.UNSCHEDULABLE)
            count, minimum = spread.counts.get((key, labels[key]), 0), spread.paths[key].first[1]
            self_match = int(_selects(constraint, state.pod.pod))
            skew = count + self_match - minimum
            if skew > constraint.max_skew:
                detail = SpreadConflict(
                    topology_key=key,
                    topology_value=labels[key],
                    count=count,
                    self_match=self_match,
                    minimum=minimum,
                    skew=skew,
                    max_skew=constraint.max_skew,
                    selector=_text(constraint.label_selector),
                    counts=spread.shown_counts(key, labels[key]),
                )
                return rejection(REASON_SPREAD, detail=detail, code=Code.UNSCHEDULABLE)
        return SUCCESS


REASON_LABELS = "node(s) didn't have the requested labels"

_FINAL = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


class NodeCheck(FilterPlugin):
    """A plugin that runs a predicate's check."""

    def __init__(self, name: str, check: Check) -> None:
        self.name = name
        self._check = check

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Reject the node if the predicate does."""
        status = self._check(state, node_info)
        return SUCCESS if status.is_success else status


NODE_UNSCHEDULABLE = NodeCheck("NodeUnschedulable", not_cordoned("node(s) were unschedulable", _FINAL))
NODE_NAME = NodeCheck("NodeName", rejects_on(name_mismatch, "node(s) didn't match the requested hostname", _FINAL))
NODE_PORTS = NodeCheck(
    "NodePorts",
    rejects_on(port_conflict, "node(s) didn't have free ports for the requested pod ports", Code.UNSCHEDULABLE),
)
NODE_AFFINITY = NodeCheck("NodeAffinity", rejects_on(selector_mismatch, "node(s) didn't match node selector", _FINAL))
TAINT_TOLERATION = NodeCheck(
    "TaintToleration",
    rejects_on(untolerated_taint, "node(s) had taint {{{0.key}: {0.value}}}, that the pod didn't tolerate", _FINAL),
)
# Two pods may share an in-line disk only if both read only, and an EBS disk never.
VOLUME_RESTRICTIONS = NodeCheck(
    "VolumeRestrictions", rejects_on(disk_conflict, "node(s) had no available disk", Code.UNSCHEDULABLE)
)


class NodeLabel(FilterPlugin):
    """Rejects nodes by the presence or absence of labels; only runs if a Policy file names it."""

    name = "NodeLabel"

    def __init__(self) -> None:
        # Labels that a node must have, and must not have, whatever their value.
        self.present: list[str] = []
        self.absent: list[str] = []

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Check the keys of the node's labels."""
        labels = node_info.labels
        if all(key in labels for key in self.present) and not any(key in labels for key in self.absent):
            return SUCCESS
        return rejection(REASON_LABELS, code=_FINAL)


REASON_TOO_MANY_PODS = "Too many pods"

_QUOTA_PREFIX = "requests."


def is_scalar(name: str) -> bool:
    """Return whether a resource other than CPU, memory and ephemeral storage counts (``IsScalarResourceName``)."""
    # For example, resources of device plugins (``IsExtendedResourceName``).
    is_extended = not is_native(name) and not name.startswith(_QUOTA_PREFIX) and is_label_key(_QUOTA_PREFIX + name)
    return is_extended or name.startswith((HUGE_PAGES_PREFIX, LIMIT_PREFIX)) or NATIVE_PREFIX in name


def requests_of(pod: Pod, *, counts_overhead: bool = True) -> Amounts:
    """Return the pod's requests; overhead counts under the gate PodOverhead, which is on by default."""
    total = largest_request(pod, is_scalar)
    if counts_overhead:
        add(total, amounts_of(pod.spec.overhead, is_scalar))
    return total


class RequestState(PodState):
    """The pod's requests, which do not depend on other pods."""

    __slots__ = ("requests",)

    def __init__(self, requests: Amounts) -> None:
        self.requests = requests


class NodeResourcesFit(FilterPlugin):
    """Rejects nodes with insufficient resources for the pod, or without a free pod slot.

    Resources that are ``ignored`` are left to extenders.
    """

    name = "NodeResourcesFit"

    def __init__(self, *, counts_overhead: bool = True, ignored: frozenset[str] = frozenset()) -> None:
        self._counts_overhead = counts_overhead
        self._ignored = ignored

    def pre_filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> RequestState:
        """Compute the pod's requests."""
        return RequestState(requests_of(pod.pod, counts_overhead=self._counts_overhead))

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Report every insufficient resource; none is unresolvable, even if the node is too small."""
        short = insufficient_resources(state.of(RequestState).requests, node_info, ignored=self._ignored)
        if short is None:
            return SUCCESS
        names = [shortfall.resource for shortfall in short.shortfalls]
        reasons = [REASON_TOO_MANY_PODS if name == PODS else f"Insufficient {name}" for name in names]
        return rejection(*reasons, detail=short, code=Code.UNSCHEDULABLE)
