"""Topologies: their domains with free capacity, and assignments of pods to domains.

Follows ``pkg/cache/scheduler/tas_topology_tree.go``, ``tas_nodes_cache.go`` and ``pkg/util/tas`` of Kueue v0.19.2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ResourceFlavor, TopologyAssignment
from kpreempt.model.node import Node
from kpreempt.schedulers.kueue.quota import Requests, pod_requests_of, requests_of

HOSTNAME = "kubernetes.io/hostname"
PODS = "pods"
_SUFFICIENT = 2**31 - 1

Values = tuple[str, ...]


class DomainPods(NamedTuple):
    """Pods in a domain, and the requests of one of them."""

    values: Values
    requests: Requests
    pods: int


TopologyUsage = dict[str, list[DomainPods]]
Placed = list[tuple[Values, int]]


def domains_of(assignment: TopologyAssignment) -> Iterator[tuple[Values, int]]:
    """Yield the domains of an assignment with their pod counts, in either format."""
    for each in assignment.domains:
        yield tuple(each.values), each.count
    for piece in assignment.slices:
        for index in range(piece.domain_count):
            yield tuple(level.at(index) for level in piece.values_per_level), piece.pod_counts.at(index)


def domain_id(values: Values) -> str:
    """Return the ID of a domain; nodes are identified by hostname alone."""
    return ",".join(values)


@dataclass(slots=True, eq=False)
class Domain:
    """A domain with its children. The counts belong to one search for a placement."""

    id: str
    values: Values
    level: int
    parent: Domain | None = None
    children: list[Domain] = field(default_factory=list)
    # First the number of pods that fit, then the number placed here.
    pods: int = 0
    slices: int = 0


@dataclass(slots=True, eq=False)
class Leaf(Domain):
    """A domain of the lowest level: the node capacity that is not used by pods placed without a topology."""

    capacity: Requests = field(default_factory=dict)
    usage: Requests = field(default_factory=dict)
    node: Node | None = None


class FlavorTopology:
    """The domains of a flavor with a topology, built from the nodes that match it."""

    def __init__(self, name: str, levels: list[str], flavor: ResourceFlavor, nodes: Iterable[Node]) -> None:
        self.name = name
        self.flavor = flavor
        self.levels = levels
        self.has_nodes = bool(levels) and levels[-1] == HOSTNAME
        self.leaves: dict[str, Leaf] = {}
        self.domains: list[dict[str, Domain]] = [{} for _ in levels]
        self.leaf_of_node: dict[str, Leaf] = {}
        for node in nodes:
            own, conditions = node.labels, node.status.conditions
            is_open = not node.spec.unschedulable and any(e.type == "Ready" and e.status == "True" for e in conditions)
            is_ours = all(own.get(key) == value for key, value in flavor.spec.node_labels.items())
            if not is_open or not is_ours or not all(level in own for level in levels):
                continue
            values = tuple(own[level] for level in levels)
            identity = values[-1] if self.has_nodes else domain_id(values)
            leaf = self.leaves.get(identity)
            if leaf is None:
                leaf = self.leaves[identity] = Leaf(identity, values, len(levels) - 1)
                leaf.node = node if self.has_nodes else None
                self._connect(leaf)
            self.leaf_of_node[node.name] = leaf
            add_requests(leaf.capacity, requests_of(node.status.allocatable))

    def _connect(self, domain: Domain) -> None:
        self.domains[domain.level][domain.id] = domain
        if domain.level == 0:
            return
        above = domain.values[:-1]
        parent = self.domains[domain.level - 1].get(domain_id(above))
        if parent is None:
            parent = Domain(domain_id(above), above, domain.level - 1)
            self._connect(parent)
        domain.parent = parent
        parent.children.append(domain)

    def level_of(self, key: str) -> int | None:
        """Return the level of a label, from 0 at the top."""
        return self.levels.index(key) if key in self.levels else None

    def use(self, pods: DomainPods, sign: int = 1) -> None:
        """Add pods to a domain, or remove them if ``sign`` is -1. Unknown domains are ignored."""
        leaf = self.leaves.get(domain_id(pods.values))
        if leaf is not None:
            add_requests(leaf.usage, pods.requests, sign * pods.pods)
            add_requests(leaf.usage, {PODS: 1}, sign * pods.pods)

    def fits(self, usage: Iterable[DomainPods]) -> bool:
        """Return whether each domain has capacity for its pods. Pod slots are not counted here."""
        for each in usage:
            leaf = self.leaves.get(domain_id(each.values))
            if leaf is None or copies_that_fit(each.requests, remaining_of(leaf))[0] < each.pods:
                return False
        return True


def subtract_other_pods(topologies: Iterable[FlavorTopology], cluster: ClusterSnapshot) -> None:
    """Subtract the requests of pods that are bound to nodes but were not placed by a topology."""
    for pod in cluster.pods:
        if not pod.spec.node_name or pod.is_terminal or ("kueue.x-k8s.io/tas" in pod.metadata.labels):
            continue
        requests = pod_requests_of(pod.spec)
        for topology in topologies:
            leaf = topology.leaf_of_node.get(pod.spec.node_name)
            if leaf is not None:
                add_requests(leaf.capacity, requests, -1)
                add_requests(leaf.capacity, {PODS: 1}, -1)


def add_requests(to: Requests, amounts: Requests, times: int = 1) -> None:
    """Add amounts ``times`` times."""
    for name, amount in amounts.items():
        to[name] = to.get(name, 0) + amount * times


def remaining_of(leaf: Leaf, *, is_empty: bool = False) -> Requests:
    """Return the free capacity; with ``is_empty``, as if no topology had placed a pod."""
    if is_empty or not leaf.usage:
        return leaf.capacity
    found = dict(leaf.capacity)
    add_requests(found, leaf.usage, -1)
    return found


def copies_that_fit(requests: Requests, available: Requests) -> tuple[int, str]:
    """Return how many times requests fit, and the resource that limits this most."""
    found: tuple[int, str] | None = None
    for name, amount in requests.items():
        count = _SUFFICIENT
        if amount != 0:
            remaining = available.get(name, 0)
            # Go truncates toward 0; a number of pods is never negative.
            count = min(abs(remaining) // abs(amount), _SUFFICIENT) if (remaining < 0) == (amount < 0) else 0
        if found is None or (count, name) < found:
            found = count, name
    return found or (0, "")


def written(levels: list[str], placed: Placed) -> dict[str, Any]:
    """Write an assignment as Kueue does (``V1Beta2From``): values common to many domains are written once."""
    if not placed:
        return {"levels": levels, "slices": []}
    single = {"levels": levels, "slices": [_slice(levels, placed)]}
    runs = _prefix_runs(levels, placed)
    if len(runs) <= 1:
        return single
    by_prefix = {"levels": levels, "slices": [_slice(levels, run) for run in runs]}
    return single if _size(single) < _size(by_prefix) else by_prefix


def _size(assignment: dict[str, Any]) -> int:
    return len(json.dumps(assignment, separators=(",", ":"), ensure_ascii=False).encode())


def _prefix_runs(levels: list[str], placed: Placed) -> list[Placed]:
    if levels[-1] != HOSTNAME:
        return [placed]
    counts: dict[str, int] = {}
    prefixes: list[list[str]] = []
    for values, _ in placed:
        name = values[-1]
        own = [name[: end + 1] for end in range(len(name) - 1) if name[end] == "-"]
        prefixes.append(own)
        for prefix in own:
            counts[prefix] = counts.get(prefix, 0) + 1
    keys = [next((prefix for prefix in reversed(own) if counts[prefix] > 1), "") for own in prefixes]
    runs: list[Placed] = []
    for index, each in enumerate(placed):
        if index and keys[index] == keys[index - 1]:
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def _slice(levels: list[str], placed: Placed) -> dict[str, Any]:
    counts = [count for _, count in placed]
    same = len(set(counts)) == 1
    return {
        "domainCount": len(placed),
        "valuesPerLevel": [_level([values[index] for values, _ in placed]) for index in range(len(levels))],
        "podCounts": {"universal": counts[0]} if same else {"individual": counts},
    }


def _level(values: list[str]) -> dict[str, Any]:
    if len(set(values)) == 1:
        return {"universal": values[0]}
    shortest = min(map(len, values))
    first = values[0]
    prefix = next((n for n in range(shortest) if any(each[n] != first[n] for each in values)), shortest)
    suffix = next((n for n in range(shortest) if any(each[-1 - n] != first[-1 - n] for each in values)), shortest)
    prefix = min(prefix, shortest - suffix)
    found: dict[str, Any] = {}
    if prefix:
        found["prefix"] = first[:prefix]
    if suffix:
        found["suffix"] = first[len(first) - suffix :]
    found["roots"] = [each[prefix : len(each) - suffix] for each in values]
    return {"individual": found}
