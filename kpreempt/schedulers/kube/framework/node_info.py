"""A node with its pods, as in the scheduler's cache (``pkg/scheduler/framework/types.go``, v1.36.3).

Host ports in use are upstream's ``HostPortInfo`` (``k8s.io/kube-scheduler`` v0.36.3 ``framework/types.go``). It is a
set, not a count: when one of two pods with the same port is removed, the port counts as free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, overload

from kpreempt.model.frozen import frozen
from kpreempt.model.node import ContainerImage, Node
from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.schedulers.kube import versions
from kpreempt.schedulers.kube.framework.label_selectors import (
    AffinityTerm,
    WeightedAffinityTerm,
    affinity_terms,
    weighted_affinity_terms,
)
from kpreempt.schedulers.kube.framework.resources import PodResource, Resource, resource_calculator
from kpreempt.schedulers.kube.versions import Behavior

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_AFFINITY_LISTS = frozenset({"pods_with_affinity", "pods_with_required_anti_affinity"})
_AMOUNTS = frozenset({"requested", "non_zero_milli_cpu", "non_zero_memory"})


class PodInfo:
    """A pod with values derived from it, each computed once on first use: requests, ports, affinity terms."""

    __slots__ = (
        "_behavior",
        "_pod_resource",
        "frozen_pod",
        "host_ports",
        "key",
        "pod",
        "preferred_affinity_terms",
        "preferred_anti_affinity_terms",
        "priority",
        "required_affinity_terms",
        "required_anti_affinity_terms",
        "start",
    )
    # ``namespace/name``.
    key: str
    # The host ports that the pod uses.
    host_ports: list[ContainerPort]
    # Terms that each require a matching pod, and terms that each forbid one.
    required_affinity_terms: list[AffinityTerm]
    required_anti_affinity_terms: list[AffinityTerm]
    # Terms that add, or subtract, their weight per matching pod.
    preferred_affinity_terms: list[WeightedAffinityTerm]
    preferred_anti_affinity_terms: list[WeightedAffinityTerm]
    # The pod with immutable lists and maps, for out-of-tree plugins.
    frozen_pod: Pod
    _pod_resource: PodResource

    def __init__(self, pod: Pod, behavior: Behavior) -> None:
        self.pod = pod
        self.priority = pod.spec.priority or 0
        self.start = pod.start
        self._behavior = behavior

    def __getattr__(self, name: str) -> object:
        # Called only for slots that are not set yet.
        compute = _COMPUTED.get(name)
        if compute is None:
            raise AttributeError(name)
        value = compute(self)
        setattr(self, name, value)
        return value

    @property
    def resource(self) -> Resource:
        """The resources that the running pod uses."""
        return self._pod_resource.resource

    @property
    def has_affinity(self) -> bool:
        """Whether the pod has any pod affinity or anti-affinity."""
        affinity = self.pod.spec.affinity
        return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)

    @property
    def has_required_anti_affinity(self) -> bool:
        """Whether the pod has required anti-affinity."""
        affinity = self.pod.spec.affinity
        rules = affinity.pod_anti_affinity if affinity is not None else None
        return rules is not None and bool(rules.required)

    @property
    def claim_keys(self) -> list[str]:
        """``namespace/name`` of the persistent volume claims that the pod itself names."""
        return [
            f"{self.pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
            for volume in self.pod.spec.volumes
            if volume.persistent_volume_claim is not None
        ]


def _stated(info: PodInfo, kind: str, strength: str) -> list[Any]:
    """Return the terms of one kind of affinity that a pod has."""
    rules = getattr(info.pod.spec.affinity, kind, None)
    return [] if rules is None else getattr(rules, strength)


_COMPUTED: dict[str, Callable[[PodInfo], object]] = {
    "frozen_pod": lambda info: frozen(info.pod),
    "key": lambda info: info.pod.key,
    "host_ports": lambda info: host_ports_of(info.pod, counts_sidecars=info._behavior.counts_ports_of_sidecars),
    "required_affinity_terms": lambda info: affinity_terms(info.pod, _stated(info, "pod_affinity", "required")),
    "required_anti_affinity_terms": lambda info: affinity_terms(
        info.pod, _stated(info, "pod_anti_affinity", "required")
    ),
    "preferred_affinity_terms": lambda info: weighted_affinity_terms(
        info.pod, _stated(info, "pod_affinity", "preferred")
    ),
    "preferred_anti_affinity_terms": lambda info: weighted_affinity_terms(
        info.pod, _stated(info, "pod_anti_affinity", "preferred")
    ),
    "_pod_resource": lambda info: resource_calculator(info._behavior).of(info.pod),
}


class ImageState:
    """An image on a node: its size in bytes and the number of nodes with it. ``most`` is larger if it is rounded."""

    __slots__ = ("most", "num_nodes", "size")

    def __init__(self, image: ContainerImage, num_nodes: int) -> None:
        self.size = image.size_bytes
        self.most = image.most_bytes
        self.num_nodes = num_nodes


def is_same_pod(one: Pod, other: Pod) -> bool:
    """Return whether two records are of the same pod: by UID, or by name if a manifest has none."""
    if one.metadata.uid and other.metadata.uid:
        return one.metadata.uid == other.metadata.uid
    return one.key == other.key


class NodeInfo:
    """A node, its pods in the order in which the cache saw them, and running totals.

    ``assigned`` are its pods. They become ``PodInfo`` records on first use, because most queries need the details of
    only a few nodes in a big cluster; ``num_pods`` and ``requested`` may be known earlier.
    """

    __slots__ = (
        "_assigned",
        "_behavior",
        "allocatable",
        "frozen_node",
        "image_states",
        "labels_by_namespace",
        "name",
        "node",
        "non_zero_memory",
        "non_zero_milli_cpu",
        "num_pods",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "pvc_ref_counts",
        "requested",
        "used_ports",
    )
    pods: list[PodInfo]
    pods_with_affinity: list[PodInfo]
    pods_with_required_anti_affinity: list[PodInfo]
    requested: Resource
    non_zero_milli_cpu: int
    non_zero_memory: int
    used_ports: HostPorts
    pvc_ref_counts: dict[str, int]
    # The labels of its pods that are not terminating.
    labels_by_namespace: dict[str, list[dict[str, str]]]
    # The node with immutable lists and maps, for out-of-tree plugins.
    frozen_node: Node

    def __init__(
        self,
        node: Node,
        assigned: Sequence[Pod] = (),
        behavior: Behavior | None = None,
        allocatable: Resource | None = None,
    ) -> None:
        """``allocatable`` is the node's allocatable, if it is already known."""
        self.node = node
        self.name = node.metadata.name
        self.allocatable = Resource.from_quantities(node.status.allocatable) if allocatable is None else allocatable
        self.image_states: dict[str, ImageState] = {}
        self.num_pods = len(assigned)
        self._assigned = assigned
        self._behavior = behavior or versions.behavior()

    def __getattr__(self, name: str) -> object:
        # Called only for slots that are not set yet.
        if name in _AFFINITY_LISTS:
            if (pods := self._known("pods")) is not None:
                infos = [info for info in pods if info.pod.spec.affinity is not None]
            else:
                infos = [PodInfo(pod, self._behavior) for pod in self._assigned if pod.spec.affinity is not None]
            self.pods_with_affinity = [info for info in infos if info.has_affinity]
            self.pods_with_required_anti_affinity = [
                info for info in self.pods_with_affinity if info.has_required_anti_affinity
            ]
        elif name == "pods":
            self._list_pods()
        elif name in _AMOUNTS:
            self.requested = Resource()
            self.non_zero_milli_cpu = self.non_zero_memory = 0
            for info in self.pods:
                self._add_amounts(info, 1)
        elif name == "labels_by_namespace":
            labels: dict[str, list[dict[str, str]]] = {}
            for info in self.pods:
                metadata = info.pod.metadata
                if metadata.deletion_timestamp is None:
                    labels.setdefault(metadata.namespace, []).append(metadata.labels)
            self.labels_by_namespace = labels
        elif name == "used_ports":
            self.used_ports = HostPorts()
            for info in self.pods:
                self._take_ports(info)
        elif name == "pvc_ref_counts":
            self.pvc_ref_counts = {}
            for info in self.pods:
                self._count_claims(info, 1)
        elif name == "frozen_node":
            self.frozen_node = frozen(self.node)
        else:
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def _list_pods(self) -> None:
        known = {id(info.pod): info for info in self.pods_with_affinity}
        self.pods = [known.get(id(pod)) or PodInfo(pod, self._behavior) for pod in self._assigned]

    def with_pods(self, assigned: Sequence[Pod]) -> NodeInfo:
        """Return the node with other pods; known totals are updated by the pods that differ."""
        changed = NodeInfo(self.node, assigned, self._behavior, self.allocatable)
        changed.image_states = self.image_states
        if (pods := self._known("pods")) is None:
            return changed
        gone = {id(info.pod): info for info in pods}
        changed.pods = [gone.pop(id(pod), None) or PodInfo(pod, self._behavior) for pod in assigned]
        if self._known("requested") is None:
            return changed
        there = set(pods)
        come = [info for info in changed.pods if info not in there]
        # Subtraction leaves resources with an amount of 0, and would free a port that two pods use.
        if not any(info.resource.scalar for info in gone.values()):
            changed.requested = self.requested.clone()
            changed.non_zero_milli_cpu, changed.non_zero_memory = self.non_zero_milli_cpu, self.non_zero_memory
            for infos, sign in ((gone.values(), -1), (come, 1)):
                for info in infos:
                    changed._add_amounts(info, sign)
        ports = self._known("used_ports")
        if ports is not None and not any(info.host_ports for info in (*gone.values(), *come)):
            changed.used_ports = ports
        claims = self._known("pvc_ref_counts")
        if claims is not None and not any(info.pod.spec.volumes for info in (*gone.values(), *come)):
            changed.pvc_ref_counts = claims
        return changed

    def _known(self, name: str) -> Any:
        """Return what has already been computed under that name, if anything."""
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            return None

    def snapshot(self) -> NodeInfo:
        """Return a copy whose pods can be changed independently."""
        copy = NodeInfo.__new__(NodeInfo)
        copy.node = self.node
        copy.name = self.name
        copy._assigned = self._assigned
        copy._behavior = self._behavior
        copy.num_pods = self.num_pods
        copy.pods = list(self.pods)
        copy.pods_with_affinity = list(self.pods_with_affinity)
        copy.pods_with_required_anti_affinity = list(self.pods_with_required_anti_affinity)
        copy.requested = self.requested.clone()
        copy.non_zero_milli_cpu = self.non_zero_milli_cpu
        copy.non_zero_memory = self.non_zero_memory
        copy.allocatable = self.allocatable
        copy.used_ports = self.used_ports.clone()
        copy.image_states = self.image_states
        copy.pvc_ref_counts = dict(self.pvc_ref_counts)
        return copy

    def add_pod(self, pod_info: PodInfo) -> None:
        """Add a pod to the node."""
        self._forget_labels()
        self.pods.append(pod_info)
        self.num_pods += 1
        if pod_info.has_affinity:
            self.pods_with_affinity.append(pod_info)
        if pod_info.has_required_anti_affinity:
            self.pods_with_required_anti_affinity.append(pod_info)
        self._add_amounts(pod_info, 1)
        self._take_ports(pod_info)
        self._count_claims(pod_info, 1)

    def remove_pod(self, pod_info: PodInfo) -> None:
        """Remove a pod from the node; raises ``ValueError`` if it is not there."""
        self._forget_labels()
        self.pods.remove(pod_info)
        self.num_pods -= 1
        if pod_info.has_affinity:
            self.pods_with_affinity.remove(pod_info)
        if pod_info.has_required_anti_affinity:
            self.pods_with_required_anti_affinity.remove(pod_info)
        self._add_amounts(pod_info, -1)
        for port in pod_info.host_ports:
            self.used_ports.remove(port.host_ip, port.protocol, port.host_port)
        self._count_claims(pod_info, -1)

    def _forget_labels(self) -> None:
        with suppress(AttributeError):
            del self.labels_by_namespace

    def _add_amounts(self, pod_info: PodInfo, sign: int) -> None:
        takes = pod_info._pod_resource
        self.requested.add(takes.resource, sign)
        self.non_zero_milli_cpu += sign * takes.non_zero_milli_cpu
        self.non_zero_memory += sign * takes.non_zero_memory

    def _take_ports(self, pod_info: PodInfo) -> None:
        for port in pod_info.host_ports:
            self.used_ports.add(port.host_ip, port.protocol, port.host_port)

    def _count_claims(self, pod_info: PodInfo, sign: int) -> None:
        if not pod_info.pod.spec.volumes:
            return
        for key in pod_info.claim_keys:
            count = self.pvc_ref_counts.get(key, 0) + sign
            if count > 0:
                self.pvc_ref_counts[key] = count
            else:
                self.pvc_ref_counts.pop(key, None)


ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (an address in pod specs, not one to bind to)
DEFAULT_PROTOCOL = "TCP"


def host_ports_of(pod: Pod, *, counts_sidecars: bool = True) -> list[ContainerPort]:
    """Return the host ports that the pod uses: those of its containers and sidecars."""
    inits = pod.spec.init_containers if counts_sidecars else []
    sidecars = [container for container in inits if container.restart_policy == "Always"]
    return [port for container in (*sidecars, *pod.spec.containers) for port in container.ports if port.host_port > 0]


class HostPorts:
    """Ports in use, by address."""

    __slots__ = ("_ports",)

    def __init__(self) -> None:
        self._ports: dict[str, set[tuple[str, int]]] = {}

    def add(self, address: str, protocol: str, port: int) -> None:
        """Mark a port as used; 0 and negative ports are ignored."""
        if port > 0:
            self._ports.setdefault(address or ANY_ADDRESS, set()).add((protocol or DEFAULT_PROTOCOL, port))

    def remove(self, address: str, protocol: str, port: int) -> None:
        used = self._ports.get(address or ANY_ADDRESS)
        if used is not None:
            used.discard((protocol or DEFAULT_PROTOCOL, port))
            if not used:
                del self._ports[address or ANY_ADDRESS]

    def conflicts(self, address: str, protocol: str, port: int) -> bool:
        """Return whether the port is in use: on any address for 0.0.0.0, otherwise on that address and on 0.0.0.0."""
        if port <= 0:
            return False
        requested = (protocol or DEFAULT_PROTOCOL, port)
        address = address or ANY_ADDRESS
        if address == ANY_ADDRESS:
            return any(requested in used for used in self._ports.values())
        return any(requested in self._ports.get(candidate, ()) for candidate in (ANY_ADDRESS, address))

    def clone(self) -> HostPorts:
        copy = HostPorts()
        copy._ports = {address: set(used) for address, used in self._ports.items()}
        return copy


def takes_port(held: Collection[ContainerPort], requested: ContainerPort) -> bool:
    """Return whether a port is in use if these are."""
    if not held:
        return False
    ports = HostPorts()
    for port in held:
        ports.add(port.host_ip, port.protocol, port.host_port)
    return ports.conflicts(requested.host_ip, requested.protocol, requested.host_port)


class MarkedNodes(Sequence[NodeInfo]):
    """Those of ``nodes`` whose byte in ``marks`` is 1, listed on first use: few steps need them all."""

    def __init__(self, nodes: Sequence[NodeInfo], marks: bytes | bytearray) -> None:
        self._nodes = nodes
        self._marks = marks

    @cached_property
    def places(self) -> npt.NDArray[np.int64]:
        """Their positions in ``nodes``."""
        import numpy as np  # noqa: PLC0415 - loaded in big clusters

        return np.flatnonzero(np.frombuffer(self._marks, np.bool_))

    @cached_property
    def _listed(self) -> list[NodeInfo]:
        return list(compress(self._nodes, self._marks))

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> list[NodeInfo]: ...
    def __getitem__(self, index: int | slice) -> NodeInfo | list[NodeInfo]:
        return self._listed[index]

    @cached_property
    def _count(self) -> int:
        return int.from_bytes(self._marks, "little").bit_count()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._listed)
