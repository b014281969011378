"""Which pod sets are placed by topology, and what placing them does to an assignment.

Follows ``pkg/scheduler/flavorassigner/tas_flavorassigner.go`` of Kueue v0.19.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpreempt.model.kueue import PodSet
from kpreempt.schedulers.kueue.amounts import Requests, pod_requests_of
from kpreempt.schedulers.kueue.assignment import TOPOLOGY_PLACEMENT_FAILED, Assignment, Mode, PodSetAssignment
from kpreempt.schedulers.kueue.cluster_queues import Queue
from kpreempt.schedulers.kueue.flavor_checks import is_implied, is_topology_asked
from kpreempt.schedulers.kueue.placement import Placement, place
from kpreempt.schedulers.kueue.topology import HOSTNAME, PODS, DomainPods, FlavorTopology, add_requests, domain_id
from kpreempt.schedulers.kueue.workloads import Info


@dataclass(slots=True, frozen=True)
class TopologyRequests:
    """A pod set that is to be placed on a flavor's domains."""

    pod_set: PodSet
    count: int
    one: Requests
    is_implied: bool


ByFlavor = dict[str, list[TopologyRequests]]


def requests_for(assignment: Assignment, info: Info, queue: Queue) -> ByFlavor:
    """The pod sets to place, by flavor. What cannot be placed at all is an error of the assignment."""
    found: ByFlavor = {}
    for pod_set in info.pod_sets:
        given = assignment.pod_set(pod_set.name)
        if given is None or not is_topology_asked(pod_set, queue):
            continue
        if given.error or given.count == 0 or given.placed is not None:
            continue
        flavor, error = _only_flavor(given, queue)
        if error:
            given.error, assignment.overall = error, None
        elif queue.has_multikueue or (not info.has_quota and flavor in queue.provisioned_flavors):
            given.is_delayed = True
        else:
            one = pod_requests_of(pod_set.template.spec)
            asked = TopologyRequests(pod_set, given.count, one, is_implied(pod_set, queue))
            found.setdefault(flavor, []).append(asked)
    return found


def _only_flavor(given: PodSetAssignment, queue: Queue) -> tuple[str, str]:
    """The one flavor with a topology, or the error."""
    if not queue.topologies:
        return "", "workload requires Topology, but there is no TAS cache information"
    flavors = sorted({each.name for each in given.flavors.values() if each.name in queue.topologies})
    if not flavors:
        return "", "no TAS flavor assigned"
    return (flavors[0], "") if len(flavors) == 1 else ("", f"more than one TAS flavor assigned: {', '.join(flavors)}")


def place_all(asked: ByFlavor, queue: Queue, *, is_empty: bool = False) -> dict[str, Placement]:
    """Where the pods of each pod set go, or why they cannot; with ``is_empty``, if no topology had placed a pod.

    Flavors by name, pod sets in their order, each of which sees those before it.
    """
    found: dict[str, Placement] = {}
    shared: dict[str, Requests] = {}
    for flavor in sorted(asked):
        topology = queue.topologies[flavor]
        # The same node may belong to several flavors.
        assumed = shared if topology.has_nodes else {}
        for each in _place_flavor(topology, asked[flavor], assumed, flavor, is_empty=is_empty):
            found[each.pod_set] = each
    return found


def _place_flavor(
    topology: FlavorTopology,
    asked: list[TopologyRequests],
    assumed: dict[str, Requests],
    flavor: str,
    *,
    is_empty: bool,
) -> list[Placement]:
    groups: dict[str, list[TopologyRequests]] = {}
    for index, each in enumerate(asked):
        name = each.pod_set.topology_request.pod_set_group_name if each.pod_set.topology_request else None
        groups.setdefault(str(index) if name is None else name, []).append(each)
    found: list[Placement] = []
    for members in groups.values():
        placed = place(topology, members, assumed, flavor, is_empty=is_empty)
        found += placed
        if any(each.reason for each in placed):
            break
        for placement, member in zip(placed, members, strict=True):
            for values, count in placement.placed or ():
                identity = domain_id(values)
                add_requests(assumed.setdefault(identity, {}), member.one, count)
                add_requests(assumed[identity], {PODS: 1}, count)
    return found


def failure_of(placements: dict[str, Placement]) -> Placement | None:
    """The pod set that cannot be placed. Which of several the genuine scheduler names is chance."""
    return next((each for each in placements.values() if each.reason), None)


def place_assignment(assignment: Assignment, info: Info, queue: Queue, *, observes: bool) -> None:
    """Place the pod sets of an assignment that has quota, or find out whether preemption could help."""
    asked = requests_for(assignment, info, queue)
    if assignment.mode is Mode.FIT:
        placements = place_all(asked, queue)
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
    failure = failure_of(place_all(asked, queue, is_empty=True))
    if failure is None:
        for requests in asked.values():
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
    """Let an assignment have these domains."""
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
        one = pod_requests_of(specs[given.name].template.spec)
        usage.setdefault(flavor, []).extend(DomainPods(values, one, count) for values, count in given.placed)
    assignment.topology_usage = usage
