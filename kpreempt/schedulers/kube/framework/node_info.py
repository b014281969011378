"""A node with the pods on it, as the scheduler's cache keeps it (``pkg/scheduler/framework/types.go``, v1.36.3)."""

from __future__ import annotations

from datetime import UTC, datetime

from kpreempt.model.node import Node
from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.model.quantity import ceil_milli, ceil_units
from kpreempt.schedulers.kube.framework.affinity_terms import (
    AffinityTerm,
    WeightedAffinityTerm,
    affinity_terms,
    weighted_affinity_terms,
)
from kpreempt.schedulers.kube.framework.features import FeatureGates
from kpreempt.schedulers.kube.framework.host_ports import HostPorts, host_ports_of
from kpreempt.schedulers.kube.framework.resources import (
    CPU,
    MEMORY,
    Resource,
    non_zero_requests,
    pod_requests,
)


class PodInfo:
    """A pod with what is computed from it once: requests, host ports, affinity terms, claims."""

    __slots__ = (
        "_features",
        "_non_zero",
        "_preferred_affinity_terms",
        "_preferred_anti_affinity_terms",
        "_required_affinity_terms",
        "_required_anti_affinity_terms",
        "_resource",
        "host_ports",
        "key",
        "pod",
        "priority",
        "start",
    )

    def __init__(self, pod: Pod, features: FeatureGates) -> None:
        self.pod = pod
        self.key = pod.key
        self.priority = pod.priority
        self.start: datetime | None = pod.status.start_time
        if self.start is not None and self.start.tzinfo is None:
            self.start = self.start.replace(tzinfo=UTC)
        self.host_ports: list[ContainerPort] = host_ports_of(pod)
        self._features = features
        self._resource: Resource | None = None
        self._non_zero = (0, 0)
        self._required_affinity_terms: list[AffinityTerm] | None = None
        self._required_anti_affinity_terms: list[AffinityTerm] | None = None
        self._preferred_affinity_terms: list[WeightedAffinityTerm] | None = None
        self._preferred_anti_affinity_terms: list[WeightedAffinityTerm] | None = None

    @property
    def resource(self) -> Resource:
        """What the running pod occupies."""
        if self._resource is None:
            self._compute_resource()
        assert self._resource is not None
        return self._resource

    @property
    def non_zero(self) -> tuple[int, int]:
        """Milli-CPU and bytes of memory with which the pod counts in scores: containers ask for a minimum."""
        if self._resource is None:
            self._compute_resource()
        return self._non_zero

    def _compute_resource(self) -> None:
        use_status = self._features.in_place_pod_vertical_scaling
        pod_level = self._features.pod_level_resources
        requests = pod_requests(
            self.pod,
            use_status=use_status,
            pod_level=pod_level,
            pod_level_status=self._features.in_place_pod_level_resources_vertical_scaling,
        )
        non_zero = non_zero_requests(self.pod, requests, use_status=use_status, pod_level=pod_level)
        self._resource = Resource.from_nano(requests)
        self._non_zero = (ceil_milli(non_zero.get(CPU, 0)), ceil_units(non_zero.get(MEMORY, 0)))

    @property
    def has_affinity(self) -> bool:
        """Whether the pod states any pod affinity or anti-affinity."""
        affinity = self.pod.spec.affinity
        return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)

    @property
    def has_required_anti_affinity(self) -> bool:
        """Whether the pod requires that others stay away."""
        affinity = self.pod.spec.affinity
        return (
            affinity is not None
            and affinity.pod_anti_affinity is not None
            and bool(affinity.pod_anti_affinity.required)
        )

    @property
    def required_affinity_terms(self) -> list[AffinityTerm]:
        """Terms of which each needs a matching pod."""
        if self._required_affinity_terms is None:
            affinity = self.pod.spec.affinity
            terms = affinity.pod_affinity.required if affinity and affinity.pod_affinity else []
            self._required_affinity_terms = affinity_terms(self.pod, terms)
        return self._required_affinity_terms

    @property
    def required_anti_affinity_terms(self) -> list[AffinityTerm]:
        """Terms of which none may have a matching pod."""
        if self._required_anti_affinity_terms is None:
            affinity = self.pod.spec.affinity
            terms = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else []
            self._required_anti_affinity_terms = affinity_terms(self.pod, terms)
        return self._required_anti_affinity_terms

    @property
    def preferred_affinity_terms(self) -> list[WeightedAffinityTerm]:
        """Terms that add their weight per matching pod."""
        if self._preferred_affinity_terms is None:
            affinity = self.pod.spec.affinity
            terms = affinity.pod_affinity.preferred if affinity and affinity.pod_affinity else []
            self._preferred_affinity_terms = weighted_affinity_terms(self.pod, terms)
        return self._preferred_affinity_terms

    @property
    def preferred_anti_affinity_terms(self) -> list[WeightedAffinityTerm]:
        """Terms that take their weight away per matching pod."""
        if self._preferred_anti_affinity_terms is None:
            affinity = self.pod.spec.affinity
            terms = affinity.pod_anti_affinity.preferred if affinity and affinity.pod_anti_affinity else []
            self._preferred_anti_affinity_terms = weighted_affinity_terms(self.pod, terms)
        return self._preferred_anti_affinity_terms

    @property
    def claim_keys(self) -> list[str]:
        """``namespace/name`` of the persistent volume claims that the pod names itself."""
        return [
            f"{self.pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
            for volume in self.pod.spec.volumes
            if volume.persistent_volume_claim is not None
        ]


class ImageState:
    """An image on a node: its size in bytes, and on how many nodes it is."""

    __slots__ = ("num_nodes", "size")

    def __init__(self, size: int, num_nodes: int) -> None:
        self.size = size
        self.num_nodes = num_nodes


class NodeInfo:
    """A node, its pods in the order in which the cache saw them, and running totals over them."""

    __slots__ = (
        "allocatable",
        "image_states",
        "node",
        "non_zero_memory",
        "non_zero_milli_cpu",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "pvc_ref_counts",
        "requested",
        "used_ports",
    )

    def __init__(self, node: Node) -> None:
        self.node = node
        self.pods: list[PodInfo] = []
        self.pods_with_affinity: list[PodInfo] = []
        self.pods_with_required_anti_affinity: list[PodInfo] = []
        self.requested = Resource()
        self.non_zero_milli_cpu = 0
        self.non_zero_memory = 0
        self.allocatable = Resource.from_quantities(node.status.allocatable)
        self.used_ports = HostPorts()
        self.image_states: dict[str, ImageState] = {}
        self.pvc_ref_counts: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    def snapshot(self) -> NodeInfo:
        """A copy to which pods can be added and from which they can be removed without touching this one."""
        copy = NodeInfo.__new__(NodeInfo)
        copy.node = self.node
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
        """Put a pod on the node."""
        self.pods.append(pod_info)
        if pod_info.has_affinity:
            self.pods_with_affinity.append(pod_info)
        if pod_info.has_required_anti_affinity:
            self.pods_with_required_anti_affinity.append(pod_info)
        self._update(pod_info, 1)

    def remove_pod(self, pod_info: PodInfo) -> None:
        """Take a pod off the node; raises ``ValueError`` if it is not there."""
        self.pods.remove(pod_info)
        if pod_info.has_affinity:
            self.pods_with_affinity.remove(pod_info)
        if pod_info.has_required_anti_affinity:
            self.pods_with_required_anti_affinity.remove(pod_info)
        self._update(pod_info, -1)

    def _update(self, pod_info: PodInfo, sign: int) -> None:
        self.requested.add(pod_info.resource, sign)
        milli_cpu, memory = pod_info.non_zero
        self.non_zero_milli_cpu += sign * milli_cpu
        self.non_zero_memory += sign * memory
        for port in pod_info.host_ports:
            if sign > 0:
                self.used_ports.add(port.host_ip, port.protocol, port.host_port)
            else:
                self.used_ports.remove(port.host_ip, port.protocol, port.host_port)
        if pod_info.pod.spec.volumes:
            self._count_claims(pod_info, sign)

    def _count_claims(self, pod_info: PodInfo, sign: int) -> None:
        for key in pod_info.claim_keys:
            count = self.pvc_ref_counts.get(key, 0) + sign
            if count > 0:
                self.pvc_ref_counts[key] = count
            else:
                self.pvc_ref_counts.pop(key, None)
