"""Check which flavors a pod set may use, and place pod sets on topology domains.

Whether a pod set may use a flavor is checked before quota (``checkFlavorForPodSets``). Placement follows
``pkg/scheduler/flavorassigner/tas_flavorassigner.go`` and ``pkg/cache/scheduler/tas_flavor_snapshot.go`` of Kueue
v0.19.2: count how many pods fit in each domain from the nodes up, find the lowest level at which all fit, and go down
from there with as few domains as possible. Leaders and nested slices are not modeled; an assumption reports them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kpreempt.model.affinity import NodeSelectorTerm
from kpreempt.model.kueue import PodSet, ResourceFlavor, TopologyRequest
from kpreempt.model.pod import PodSpec
from kpreempt.model.taints import Toleration, find_untolerated_taint
from kpreempt.schedulers.kueue.assignment import TOPOLOGY_PLACEMENT_FAILED, Assignment, Mode, PodSetAssignment
from kpreempt.schedulers.kueue.cluster_queues import Group, Info, Queue
from kpreempt.schedulers.kueue.quota import Requests, pod_requests_of
from kpreempt.schedulers.kueue.topology import (
    HOSTNAME,
    PODS,
    Domain,
    DomainPods,
    FlavorTopology,
    Leaf,
    Placed,
    add_requests,
    copies_that_fit,
    domain_id,
    remaining_of,
)


def is_explicit(pod_set: PodSet) -> bool:
    """Return whether a pod set requests topology placement; without a request, the ClusterQueue may imply it."""
    return pod_set.topology_request is not None and pod_set.topology_request.is_explicit


def why_not(flavor: ResourceFlavor, pod_set: PodSet, queue: Queue, group: Group, *, has_topologies: bool) -> str:
    """Return why a pod set cannot use a flavor, or an empty string. The first reason counts."""
    if has_topologies and (reason := _topology_mismatch(flavor, pod_set, queue, group)):
        return reason
    spec = pod_set.template.spec
    tolerations = [*spec.tolerations, *flavor.spec.tolerations]
    taint = find_untolerated_taint(flavor.spec.node_taints, tolerations, _EFFECTS, compares_numbers=True)
    if taint is not None:
        return f"untolerated taint {{{taint.key} {taint.value} {taint.effect} <nil>}} in flavor {flavor.name}"
    if not matches_labels(spec, flavor.spec.node_labels):
        return f"flavor {flavor.name} doesn't match node affinity"
    return ""


def matches_labels(spec: PodSpec, labels: dict[str, str]) -> bool:
    """Return whether node selector and required node affinity match a flavor's labels, for keys that the flavor has."""
    if any(labels[key] != value for key, value in spec.node_selector.items() if key in labels):
        return False
    required = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
    if required is None:
        return True
    terms = []
    for term in required.node_selector_terms:
        known = [each for each in term.match_expressions if each.key in labels]
        if not known:
            # Terms are alternatives: a term without requirements for this flavor matches.
            return True
        terms.append(NodeSelectorTerm(match_expressions=known))
    return not terms or any(term.matches("", labels) for term in terms)


def _topology_mismatch(flavor: ResourceFlavor, pod_set: PodSet, queue: Queue, group: Group) -> str:
    if not (is_explicit(pod_set) or queue.is_topology_only):
        return f'Flavor "{flavor.name}" supports only TopologyAwareScheduling' if flavor.spec.topology_name else ""
    request = pod_set.topology_request
    if request is None or not request.is_explicit:
        return ""
    if not flavor.spec.topology_name:
        requested = pod_requests_of(pod_set.template.spec)
        overlaps = any(name in group.covered for name in requested)
        return f'Flavor "{flavor.name}" does not support TopologyAwareScheduling' if overlaps else ""
    topology = queue.topologies.get(flavor.name)
    if topology is None:
        return f'Flavor "{flavor.name}" information missing in TAS cache'
    key = level_key(topology, request)
    slices = request.pod_set_slice_required_topology or topology.levels[-1]
    if key is None or topology.level_of(key) is None or topology.level_of(slices) is None:
        return f'Flavor "{flavor.name}" does not contain the requested level'
    return ""


def level_key(topology: FlavorTopology, request: TopologyRequest) -> str | None:
    """Return the label of the requested level."""
    if request.required is not None:
        return request.required
    if request.preferred is not None:
        return request.preferred
    if request.pod_set_slice_required_topology is not None:
        return topology.levels[0]
    return topology.levels[-1] if request.unconstrained else None


@dataclass(slots=True, frozen=True)
class TopologyRequests:
    """A pod set to place on a flavor's domains."""

    pod_set: PodSet
    count: int
    pod_requests: Requests
    is_implied: bool


ByFlavor = dict[str, list[TopologyRequests]]


def requests_for(assignment: Assignment, info: Info, queue: Queue) -> ByFlavor:
    """Return the pod sets to place, by flavor. A pod set that cannot be placed at all is an error of the assignment."""
    found: ByFlavor = {}
    for pod_set in info.pod_sets:
        given = assignment.pod_set(pod_set.name)
        if given is None or not (is_explicit(pod_set) or queue.is_topology_only):
            continue
        if given.error or given.count == 0 or given.placed is not None:
            continue
        flavor, error = _only_flavor(given, queue)
        if error:
            given.error, assignment.overall = error, None
        elif queue.has_multikueue or (not info.has_quota and flavor in queue.provisioned_flavors):
            given.is_delayed = True
        else:
            pod_requests = pod_requests_of(pod_set.template.spec)
            to_place = TopologyRequests(
                pod_set, given.count, pod_requests, not is_explicit(pod_set) and queue.is_topology_only
            )
            found.setdefault(flavor, []).append(to_place)
    return found


def _only_flavor(given: PodSetAssignment, queue: Queue) -> tuple[str, str]:
    """Return the only flavor with a topology, or the error."""
    if not queue.topologies:
        return "", "workload requires Topology, but there is no TAS cache information"
    flavors = sorted({each.name for each in given.flavors.values() if each.name in queue.topologies})
    if not flavors:
        return "", "no TAS flavor assigned"
    return (flavors[0], "") if len(flavors) == 1 else ("", f"more than one TAS flavor assigned: {', '.join(flavors)}")


def place_all(to_place: ByFlavor, queue: Queue, *, is_empty: bool = False) -> dict[str, Placement]:
    """Place each pod set, or report why it cannot be placed; with ``is_empty``, as if no topology had placed a pod.

    Flavors are taken by name and pod sets in order; each pod set sees those before it.
    """
    found: dict[str, Placement] = {}
    shared: dict[str, Requests] = {}
    for flavor in sorted(to_place):
        topology = queue.topologies[flavor]
        # Several flavors may select the same node.
        assumed = shared if topology.has_nodes else {}
        placements = _place_flavor(topology, to_place[flavor], assumed, flavor, is_empty=is_empty)
        found |= {each.pod_set: each for each in placements}
    return found


def _place_flavor(
    topology: FlavorTopology,
    to_place: list[TopologyRequests],
    assumed: dict[str, Requests],
    flavor: str,
    *,
    is_empty: bool,
) -> list[Placement]:
    groups: dict[str, list[TopologyRequests]] = {}
    for index, each in enumerate(to_place):
        name = each.pod_set.topology_request.pod_set_group_name if each.pod_set.topology_request else None
        groups.setdefault(str(index) if name is None else name, []).append(each)
    found: list[Placement] = []
    for members in groups.values():
        # Pod sets of one group are placed with the largest of them.
        workers = max(members, key=lambda each: each.count)
        placed, reason = _Search(topology, workers, assumed, is_empty=is_empty).run()
        found += [Placement(each.pod_set.name, flavor, placed, reason) for each in members]
        if reason:
            break
        for member in members:
            for values, count in placed or ():
                identity = domain_id(values)
                add_requests(assumed.setdefault(identity, {}), member.pod_requests, count)
                add_requests(assumed[identity], {PODS: 1}, count)
    return found


def failure_of(placements: dict[str, Placement]) -> Placement | None:
    """Return a pod set that cannot be placed. Which of several the real scheduler reports is random."""
    return next((each for each in placements.values() if each.reason), None)


def place_assignment(assignment: Assignment, info: Info, queue: Queue, *, observes: bool) -> None:
    """Place the pod sets of an assignment that has quota, or check whether preemption could help."""
    to_place = requests_for(assignment, info, queue)
    if assignment.mode is Mode.FIT:
        placements = place_all(to_place, queue)
        failure = failure_of(placements)
        if failure is None:
            take_placements(assignment, info, queue, placements)
        else:
            given = assignment.pod_set(failure.pod_set)
            if given is not None:
                given.reasons.append(failure.reason)
            assignment.set_mode_of(failure.pod_set, Mode.PREEMPT)
    if assignment.mode is not Mode.PREEMPT:
        return
    failure = failure_of(place_all(to_place, queue, is_empty=True))
    if failure is None:
        for requests in to_place.values():
            for each in requests:
                assignment.set_mode_of(each.pod_set.name, Mode.PREEMPT)
        return
    given = assignment.pod_set(failure.pod_set)
    for attempt in given.attempts if given is not None and observes else ():
        if attempt.flavor == failure.flavor:
            attempt.mode, attempt.no_fit_reason = Mode.NO_FIT, TOPOLOGY_PLACEMENT_FAILED
            break
    assignment.set_mode_of(failure.pod_set, Mode.NO_FIT)


def take_placements(assignment: Assignment, info: Info, queue: Queue, placements: dict[str, Placement]) -> None:
    """Store the domains in an assignment."""
    for name, each in placements.items():
        given = assignment.pod_set(name)
        if given is not None:
            levels = queue.topologies[each.flavor].levels
            given.levels = [HOSTNAME] if levels[-1] == HOSTNAME else levels
            given.placed = each.placed
    usage: dict[str, list[DomainPods]] = {}
    specs = {each.name: each for each in info.pod_sets}
    for given in assignment.pod_sets:
        if given.placed is None:
            continue
        flavor, error = _only_flavor(given, queue)
        if error:
            continue
        pod_requests = pod_requests_of(specs[given.name].template.spec)
        usage.setdefault(flavor, []).extend(DomainPods(values, pod_requests, count) for values, count in given.placed)
    assignment.topology_usage = usage


_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


class Placement(NamedTuple):
    """The domains of a pod set with their pods, or why it cannot be placed."""

    pod_set: str
    flavor: str
    placed: Placed | None = None
    reason: str = ""


class _Search:
    def __init__(
        self, topology: FlavorTopology, to_place: TopologyRequests, assumed: dict[str, Requests], *, is_empty: bool
    ) -> None:
        self._topology, self._request, self._assumed = topology, to_place, assumed
        self._is_empty = is_empty
        # Why nodes were excluded, with the number of nodes.
        self._excluded: Counter[str] = Counter()
        request = to_place.pod_set.topology_request
        self._is_required = request is not None and request.required is not None
        only_slices = (
            request is not None
            and request.pod_set_slice_required_topology is not None
            and request.required is None
            and request.preferred is None
        )
        # Use the fullest domains first, otherwise the emptiest, with the smallest possible last domain.
        self._fullest_first = to_place.is_implied or only_slices or bool(request is not None and request.unconstrained)
        self._slice = (request.pod_set_slice_size or 0) if request and request.pod_set_slice_required_topology else 1
        self._slice_key = (request.pod_set_slice_required_topology if request else None) or topology.levels[-1]

    def run(self) -> tuple[Placed | None, str]:
        """Return the domains with their pods, or the reason."""
        topology, to_place = self._topology, self._request
        if self._slice <= 0:
            return None, "slice topology requested, but slice size not provided"
        request = to_place.pod_set.topology_request
        key = level_key(topology, request) if request is not None else None
        if key is None and to_place.is_implied:
            key = topology.levels[-1]
        if key is None:
            return None, "topology level not specified"
        level = topology.level_of(key)
        if level is None:
            return None, f"no requested topology level: {key}"
        slice_level = topology.level_of(self._slice_key)
        if slice_level is None:
            return None, f"no requested topology level for slices: {self._slice_key}"
        if level > slice_level:
            return None, f"podset slice topology {self._slice_key} is above the podset topology {key}"
        self._count(slice_level)
        found, level, reason = self._fitting(level)
        if reason:
            return None, reason
        return self._descend(found, level, slice_level), ""

    def _count(self, slice_level: int) -> None:
        """Count how many pods and slices fit in each domain."""
        topology = self._topology
        for level in topology.domains:
            for domain in level.values():
                domain.pods = domain.slices = 0
        requests = dict(self._request.pod_requests)
        add_requests(requests, {PODS: 1})
        tolerations = [*self._request.pod_set.template.spec.tolerations, *topology.flavor.spec.tolerations]
        for leaf in topology.leaves.values():
            if topology.has_nodes and (what := self._why_not_node(leaf, tolerations)):
                self._excluded[what] += 1
                continue
            available = remaining_of(leaf, is_empty=self._is_empty)
            if leaf.id in self._assumed:
                available = dict(available)
                add_requests(available, self._assumed[leaf.id], -1)
            leaf.pods, limiting = copies_that_fit(requests, available)
            if leaf.pods == 0 and limiting:
                self._excluded[f'resource "{limiting}"'] += 1
        for depth in range(len(topology.levels) - 1, -1, -1):
            for domain in topology.domains[depth].values():
                if domain.children:
                    domain.pods = sum(each.pods for each in domain.children)
                    domain.slices = sum(each.slices for each in domain.children)
                if depth == slice_level:
                    domain.slices = domain.pods // self._slice

    def _why_not_node(self, leaf: Leaf, tolerations: list[Toleration]) -> str:
        node, spec = leaf.node, self._request.pod_set.template.spec
        if node is None:
            return ""
        taint = find_untolerated_taint(node.spec.taints, tolerations, _EFFECTS, compares_numbers=True)
        if taint is not None:
            return f'taint "{taint}"'
        if any(node.labels.get(key) != value for key, value in spec.node_selector.items()):
            return "nodeSelector"
        required = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
        return "" if required is None or required.matches(node.name, node.labels) else "affinity"

    def _sorted(self, domains: Iterable[Domain]) -> list[Domain]:
        sign = 1 if self._fullest_first else -1
        return sorted(domains, key=lambda each: (sign * each.slices, each.pods, each.values))

    def _fitting(self, level: int) -> tuple[list[Domain], int, str]:
        """Return the domains that can hold all pods, and their level."""
        topology = self._topology
        if not topology.domains[level]:
            return [], level, f"no topology domains at level: {topology.levels[level]}"
        domains = self._sorted(topology.domains[level].values())
        requested = self._request.count // self._slice
        if self._fullest_first:
            for each in domains:
                if each.slices >= requested:
                    return [each], level, ""
        elif domains[0].slices >= requested:
            return [_smallest_that_holds(domains, requested, by_slices=True)], level, ""
        if self._is_required:
            return [], level, self._reason(domains[0].slices, requested)
        if level > 0 and not self._fullest_first:
            return self._fitting(level - 1)
        found: list[Domain] = []
        rest = requested
        for index, each in enumerate(domains):
            if rest <= 0:
                break
            if not self._fullest_first and each.slices >= rest:
                found.append(_smallest_that_holds(domains[index:], rest, by_slices=True))
                rest = 0
            else:
                found.append(each)
                rest -= each.slices
        return (found, level, "") if rest <= 0 else ([], level, self._reason(requested - rest, requested))

    def _reason(self, fit: int, requested: int) -> str:
        unit = "pod" if self._slice == 1 else "slice"
        allows = "doesn't allow to fit any" if fit == 0 else f"allows to fit only {fit} out"
        excluded_text = ", ".join(sorted(f"{what}: {count}" for what, count in self._excluded.items()))
        excluded = f". Total nodes: {len(self._topology.leaves)}; excluded: {excluded_text}" if excluded_text else ""
        return f'topology "{self._topology.name}" {allows} of {requested} {unit}(s){excluded}'

    def _descend(self, domains: list[Domain], level: int, slice_level: int) -> Placed:
        lowest = len(self._topology.levels) - 1
        domains = self._fill(domains, self._request.count, self._slice, by_slices=True)
        while level < min(lowest, slice_level):
            below = self._sorted(child for each in domains for child in each.children)
            domains = self._fill(below, self._request.count, self._slice, by_slices=True)
            level += 1
        while level < lowest:
            # Below slices, pods stay within the domain of their slice.
            domains = [
                child
                for each in domains
                for child in self._fill(self._sorted(each.children), each.pods, 1, by_slices=False)
            ]
            level += 1
        placed = sorted(((each.values, each.pods) for each in domains if each.pods), key=lambda each: each[0])
        return [(values[-1:], count) for values, count in placed] if self._topology.has_nodes else placed

    def _fill(self, domains: list[Domain], count: int, size: int, *, by_slices: bool) -> list[Domain]:
        """Fill the domains in order until all pods are placed."""
        found: list[Domain] = []
        rest = count // size
        for index, each in enumerate(domains):
            available = each.slices if by_slices else each.pods
            if available >= rest:
                last = each if self._fullest_first else _smallest_that_holds(domains[index:], rest, by_slices=by_slices)
                last.pods = rest * size
                return [*found, last]
            each.pods = available * size
            found.append(each)
            rest -= available
        return []


def _smallest_that_holds(domains: list[Domain], requested: int, *, by_slices: bool) -> Domain:
    """Return the first of the smallest domains that hold all pods, or the first domain if none does."""
    found, least = domains[0], None
    for each in domains:
        available = each.slices if by_slices else each.pods
        if available >= requested and (least is None or available < least):
            found, least = each, available
    return found
