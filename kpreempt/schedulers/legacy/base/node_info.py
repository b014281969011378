"""Pods, nodes and the cluster as the old caches and queues hold them at the start of an attempt.

Follows ``schedulercache/node_info.go`` of v1.8.15. Resources are milli-CPU, bytes, and whole units of everything else:
each container's request is rounded up, then added (``Resource.Add``, ``pkg/scheduler/cache/node_info.go`` of v1.13.12;
the same in v1.8.15 and v1.18.19). Used ports are a set: when one of two pods with the same port is removed, the port
counts as free. Finished pods are ignored, as are pods on missing nodes. Unassigned pods count only if they are
nominated to a node and belong to this scheduler; unlike the current scheduler, it knows their complete spec.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, ResourceList
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.equal_pods import update_of

# Address, protocol and number; parts that a version ignores are empty.
PortKey = tuple[str, str, int]


class Accounting(NamedTuple):
    """How a version adds up the resources that pods use.

    ``occupied`` is the usage of a running pod, ``ports`` its host ports. ``never_returned`` names resources that stay
    in the node's total after a pod is removed.
    """

    is_counted: IsCounted
    occupied: Callable[[Pod], Amounts]
    ports: Callable[[Pod], Iterable[PortKey]]
    never_returned: frozenset[str] = frozenset()


class PodInfo:
    """A pod, with values computed on first use."""

    def __init__(self, pod: Pod, accounting: Accounting) -> None:
        self.pod = pod
        self.key = pod.key
        self.priority = pod.priority
        self.start: datetime | None = pod.status.start_time
        affinity = pod.spec.affinity
        near, apart = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)
        # Whether it has any pod affinity or anti-affinity, and its required terms.
        self.has_affinity = near is not None or apart is not None
        self.affinity_terms: list[PodAffinityTerm] = near.required if near else []
        self.anti_affinity_terms: list[PodAffinityTerm] = apart.required if apart else []
        self._accounting = accounting

    @cached_property
    def occupied(self) -> Amounts:
        """The resources that the running pod uses."""
        return self._accounting.occupied(self.pod)

    @cached_property
    def ports(self) -> list[PortKey]:
        """The host ports that the pod uses."""
        return list(self._accounting.ports(self.pod))


class NodeInfo:
    """A node, its pods in the order in which the cache saw them, and running totals over them."""

    def __init__(self, node: Node, assigned: Sequence[Pod], accounting: Accounting) -> None:
        self.node = node
        self.name = node.metadata.name
        self.labels = node.metadata.labels
        self.allocatable = amounts_of(node.status.allocatable, accounting.is_counted)
        pods = node.status.allocatable.get(PODS)
        self.allowed_pods = pods.value if pods else 0
        self._accounting = accounting
        self.pods: list[PodInfo] = []
        self.requested: Amounts = {}
        self.used_ports: set[PortKey] = set()
        for pod in assigned:
            self.add_pod(PodInfo(pod, accounting))

    def clone(self) -> NodeInfo:
        """Return a copy whose pods can be changed independently."""
        made = copy(self)
        made.pods, made.requested, made.used_ports = list(self.pods), dict(self.requested), set(self.used_ports)
        return made

    def add_pod(self, info: PodInfo) -> None:
        """Add a pod to the node."""
        self.pods.append(info)
        add(self.requested, info.occupied)
        self.used_ports.update(info.ports)

    def remove_pod(self, info: PodInfo) -> None:
        """Remove a pod from the node; raise ``ValueError`` if it is not there."""
        self.pods.remove(info)
        kept = self._accounting.never_returned
        add(self.requested, {name: amount for name, amount in info.occupied.items() if name not in kept}, -1)
        self.used_ports.difference_update(info.ports)


CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"
NATIVE_PREFIX = "kubernetes.io/"

# By resource name. A missing name counts as 0.
Amounts = dict[str, int]
# Whether a scheduler counts a resource of that name, in addition to CPU, memory, ephemeral storage and pods.
IsCounted = Callable[[str], bool]

ALWAYS_COUNTED = (CPU, MEMORY, EPHEMERAL_STORAGE)


def amounts_of(quantities: ResourceList, is_counted: IsCounted) -> Amounts:
    """Convert a resource list; ``pods`` and resources that are not counted are omitted."""
    return {
        name: amount.milli_value if name == CPU else amount.value
        for name, amount in quantities.items()
        if name in ALWAYS_COUNTED or (name != PODS and is_counted(name))
    }


def sum_of_containers(pod: Pod, is_counted: IsCounted) -> Amounts:
    """Return the total requests of all containers, without init containers."""
    total: Amounts = {}
    for container in pod.spec.containers:
        add(total, amounts_of(container.resources.requests, is_counted))
    return total


def largest_request(pod: Pod, is_counted: IsCounted) -> Amounts:
    """Return a pod's effective request: all containers, or an init container if larger (``GetResourceRequest``)."""
    total = sum_of_containers(pod, is_counted)
    for container in pod.spec.init_containers:
        for name, amount in amounts_of(container.resources.requests, is_counted).items():
            if amount > total.get(name, 0):
                total[name] = amount
    return total


def add(total: Amounts, more: Amounts, sign: int = 1) -> None:
    """Add ``more``, or subtract it if ``sign`` is -1."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount


def is_native(name: str) -> bool:
    """Return whether a name belongs to Kubernetes itself: no prefix, or one in ``kubernetes.io/``."""
    return "/" not in name or NATIVE_PREFIX in name


class Cluster:
    """Nodes with their pods, nominated pods by node in input order, and indexes. Must not be changed.

    ``nominated_node`` returns the node that a pod is nominated to, or an empty string.
    """

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        accounting: Accounting,
        nominated_node: Callable[[Pod], str],
        *,
        now: datetime,
        scheduler_names: frozenset[str],
    ) -> None:
        self.snapshot = snapshot
        self.accounting = accounting
        self.now = now
        assigned: dict[str, list[Pod]] = {node.metadata.name: [] for node in snapshot.nodes}
        self.nominated_pods: dict[str, list[PodInfo]] = {}
        for pod in snapshot.pods:
            if pod.is_terminal:
                continue
            if pod.spec.node_name:
                if pod.spec.node_name in assigned:
                    assigned[pod.spec.node_name].append(pod)
            elif pod.spec.scheduler_name in scheduler_names and (node := nominated_node(pod)):
                self.nominated_pods.setdefault(node, []).append(PodInfo(pod, accounting))
        if not snapshot.has_scheduler_order:
            # The likely order: an update moves a pod to the end of its node's list.
            assigned = {node: sorted(pods, key=update_of) for node, pods in assigned.items()}
        self.node_infos = [NodeInfo(node, assigned[node.metadata.name], accounting) for node in snapshot.nodes]
        self.by_name = {node_info.name: node_info for node_info in self.node_infos}
        self.num_pods = sum(map(len, assigned.values()))
        # Claims by ``namespace/name``, all others by name; CSINodes by the node's name.
        self.persistent_volume_claims = {each.key: each for each in snapshot.persistent_volume_claims}
        self.persistent_volumes = {each.metadata.name: each for each in snapshot.persistent_volumes}
        self.storage_classes = {each.metadata.name: each for each in snapshot.storage_classes}
        self.csi_nodes = {each.metadata.name: each for each in snapshot.csi_nodes}

    @cached_property
    def budgets(self) -> SelectingBudgets:
        return SelectingBudgets(self.snapshot.pod_disruption_budgets)


# The key and the value of a node's label.
Pair = tuple[str, str]
_NO_PAIRS: frozenset[Pair] = frozenset()


class TopologyPairs:
    """The number of pods for each topology pair, and the pairs of each pod.

    Copies share the original's data, which must not change while they are in use.
    """

    def __init__(self) -> None:
        self.counts: dict[Pair, int] = {}
        self._pairs: ChainMap[PodInfo, frozenset[Pair]] = ChainMap()

    def clone(self) -> TopologyPairs:
        made = TopologyPairs()
        made.counts, made._pairs = dict(self.counts), self._pairs.new_child()
        return made

    def add(self, info: PodInfo, pairs: Collection[Pair]) -> None:
        """Add these pairs to the pod."""
        if pairs:
            before = self._pairs.get(info, _NO_PAIRS)
            self._pairs[info] = before.union(pairs)
            for pair in self._pairs[info] - before:
                self.counts[pair] = self.counts.get(pair, 0) + 1

    def remove(self, info: PodInfo) -> None:
        """Remove the pod."""
        if pairs := self._pairs.get(info):
            self._pairs[info] = _NO_PAIRS
            for pair in pairs:
                self.counts[pair] -= 1
                if not self.counts[pair]:
                    del self.counts[pair]

    def holders(self, pair: Pair) -> list[str]:
        """Return the pods of a pair."""
        return [info.key for info, pairs in self._pairs.items() if pair in pairs]


MEMORY_PRESSURE = "MemoryPressure"
DISK_PRESSURE = "DiskPressure"
PID_PRESSURE = "PIDPressure"
READY = "Ready"
OUT_OF_DISK = "OutOfDisk"
NETWORK_UNAVAILABLE = "NetworkUnavailable"


def is_true(node: Node, condition_type: str) -> bool:
    """Return whether the node's condition is true; the last of several conditions counts."""
    statuses = [condition.status for condition in node.status.conditions if condition.type == condition_type]
    return bool(statuses) and statuses[-1] == "True"


def is_best_effort(pod: Pod) -> bool:
    """Return whether no container has requests or limits of CPU, memory or huge pages (``GetPodQOS``)."""
    return not any(
        amount.nano > 0 and (name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX))
        for container in pod.spec.containers
        for amounts in (container.resources.requests, container.resources.limits)
        for name, amount in amounts.items()
    )
