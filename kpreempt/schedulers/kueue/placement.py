"""Placing the pods of a pod set on the domains of a topology.

Follows ``pkg/cache/scheduler/tas_flavor_snapshot.go`` of Kueue v0.19.2: how many pods fit into each domain from the
nodes upward, the lowest level at which all fit, and from there down with as few domains as may be. Leaders, and more
than one layer of slices, are not modelled: who asks for them is told that nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kpreempt.model.taints import Toleration, find_untolerated_taint
from kpreempt.schedulers.kueue.amounts import Requests
from kpreempt.schedulers.kueue.flavor_checks import level_key
from kpreempt.schedulers.kueue.topology import (
    PODS,
    Domain,
    FlavorTopology,
    Leaf,
    Placed,
    add_requests,
    how_many,
    left_of,
)

if TYPE_CHECKING:
    from kpreempt.schedulers.kueue.topology_requests import TopologyRequests

_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


class Placement(NamedTuple):
    """The domains of a pod set with their pods, or why there are none."""

    pod_set: str
    flavor: str
    placed: Placed | None = None
    reason: str = ""


class Excluded:
    """What kept nodes from being used."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._counts: dict[str, int] = {}

    def count(self, what: str) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1

    def __str__(self) -> str:
        if not self._counts:
            return ""
        told = ", ".join(sorted(f"{what}: {count}" for what, count in self._counts.items()))
        return f". Total nodes: {self.total}; excluded: {told}"


def place(
    topology: FlavorTopology,
    asked: list[TopologyRequests],
    assumed: dict[str, Requests],
    flavor: str,
    *,
    is_empty: bool,
) -> list[Placement]:
    """Place pod sets that go together; ``assumed`` is what pod sets before them use."""
    workers = max(asked, key=lambda each: each.count)
    search = _Search(topology, workers, assumed, is_empty=is_empty)
    placed, reason = search.run()
    return [Placement(each.pod_set.name, flavor, placed, reason) for each in asked]


class _Search:
    def __init__(
        self, topology: FlavorTopology, asked: TopologyRequests, assumed: dict[str, Requests], *, is_empty: bool
    ) -> None:
        self._topology = topology
        self._asked = asked
        self._assumed = assumed
        self._is_empty = is_empty
        self._excluded = Excluded(len(topology.leaves))
        request = asked.pod_set.topology_request
        self._is_required = request is not None and request.required is not None
        only_slices = (
            request is not None
            and request.pod_set_slice_required_topology is not None
            and request.required is None
            and request.preferred is None
        )
        # Domains are used up from the fullest on, else from the emptiest with the last one as small as may be.
        self._fullest_first = asked.is_implied or only_slices or bool(request is not None and request.unconstrained)
        self._slice = (request.pod_set_slice_size or 0) if request and request.pod_set_slice_required_topology else 1
        self._slice_key = (request.pod_set_slice_required_topology if request else None) or topology.levels[-1]

    def run(self) -> tuple[Placed | None, str]:
        """The domains with their pods, or the reason."""
        topology, asked = self._topology, self._asked
        if self._slice <= 0:
            return None, "slice topology requested, but slice size not provided"
        request = asked.pod_set.topology_request
        key = level_key(topology, request) if request is not None else None
        if key is None and asked.is_implied:
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
        """How many pods and slices fit into each domain."""
        topology = self._topology
        for level in topology.domains:
            for domain in level.values():
                domain.pods = domain.slices = 0
        requests = dict(self._asked.one)
        add_requests(requests, {PODS: 1})
        spec = self._asked.pod_set.template.spec
        tolerations = [*spec.tolerations, *topology.flavor.spec.tolerations]
        for leaf in topology.leaves.values():
            if topology.has_nodes and (what := self._why_not_node(leaf, tolerations)):
                self._excluded.count(what)
                continue
            room = left_of(leaf, is_empty=self._is_empty)
            if leaf.id in self._assumed:
                room = dict(room)
                add_requests(room, self._assumed[leaf.id], -1)
            leaf.pods, limiting = how_many(requests, room)
            if leaf.pods == 0 and limiting:
                self._excluded.count(f'resource "{limiting}"')
        for depth in range(len(topology.levels) - 1, -1, -1):
            for domain in topology.domains[depth].values():
                if domain.children:
                    domain.pods = sum(each.pods for each in domain.children)
                    domain.slices = sum(each.slices for each in domain.children)
                if depth == slice_level:
                    domain.slices = domain.pods // self._slice

    def _why_not_node(self, leaf: Leaf, tolerations: list[Toleration]) -> str:
        node, spec = leaf.node, self._asked.pod_set.template.spec
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
        """The domains that have room for all, and their level."""
        topology = self._topology
        if not topology.domains[level]:
            return [], level, f"no topology domains at level: {topology.levels[level]}"
        domains = self._sorted(topology.domains[level].values())
        wanted = self._asked.count // self._slice
        if self._fullest_first:
            for each in domains:
                if each.slices >= wanted:
                    return [each], level, ""
        elif domains[0].slices >= wanted:
            return [_smallest_that_holds(domains, wanted, by_slices=True)], level, ""
        if self._is_required:
            return [], level, self._reason(domains[0].slices, wanted)
        if level > 0 and not self._fullest_first:
            return self._fitting(level - 1)
        found: list[Domain] = []
        rest = wanted
        for index, each in enumerate(domains):
            if rest <= 0:
                break
            if not self._fullest_first and each.slices >= rest:
                found.append(_smallest_that_holds(domains[index:], rest, by_slices=True))
                rest = 0
            else:
                found.append(each)
                rest -= each.slices
        return (found, level, "") if rest <= 0 else ([], level, self._reason(wanted - rest, wanted))

    def _reason(self, fit: int, wanted: int) -> str:
        unit = "pod" if self._slice == 1 else "slice"
        name = self._topology.name
        if fit == 0:
            return f'topology "{name}" doesn\'t allow to fit any of {wanted} {unit}(s){self._excluded}'
        return f'topology "{name}" allows to fit only {fit} out of {wanted} {unit}(s){self._excluded}'

    def _descend(self, domains: list[Domain], level: int, slice_level: int) -> Placed:
        lowest = len(self._topology.levels) - 1
        domains = self._fill(domains, self._asked.count, self._slice, by_slices=True)
        while level < min(lowest, slice_level):
            below = self._sorted(child for each in domains for child in each.children)
            domains = self._fill(below, self._asked.count, self._slice, by_slices=True)
            level += 1
        while level < lowest:
            # Below slices, pods stay within the domain that holds their slice.
            domains = [
                child
                for each in domains
                for child in self._fill(self._sorted(each.children), each.pods, 1, by_slices=False)
            ]
            level += 1
        placed = sorted(((each.values, each.pods) for each in domains if each.pods), key=lambda each: each[0])
        return [(values[-1:], count) for values, count in placed] if self._topology.has_nodes else placed

    def _fill(self, domains: list[Domain], count: int, size: int, *, by_slices: bool) -> list[Domain]:
        """Use up domains in their order until all pods are placed."""
        found: list[Domain] = []
        rest = count // size
        for index, each in enumerate(domains):
            room = each.slices if by_slices else each.pods
            if room >= rest:
                last = each if self._fullest_first else _smallest_that_holds(domains[index:], rest, by_slices=by_slices)
                last.pods = rest * size
                return [*found, last]
            each.pods = room * size
            found.append(each)
            rest -= room
        return []


def _smallest_that_holds(domains: list[Domain], wanted: int, *, by_slices: bool) -> Domain:
    """The first of the smallest that hold all; the first of all if none does."""
    found, least = domains[0], None
    for each in domains:
        room = each.slices if by_slices else each.pods
        if room >= wanted and (least is None or room < least):
            found, least = each, room
    return found
