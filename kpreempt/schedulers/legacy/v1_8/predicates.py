"""The predicates of 1.8 (``algorithm/predicates/predicates.go``, v1.8.15).

They run in the order of a Go map, which is any, and all of them: the reasons of all that fail are known.
"""

from __future__ import annotations

from kpreempt.model.affinity import is_valid_node_requirement
from kpreempt.model.labels import matches_requirement
from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.checks import (
    PASSES,
    host_ports,
    insufficient_resources,
    refusal,
    selector_mismatch,
    untolerated_taint,
)
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.conditions import (
    DISK_PRESSURE,
    MEMORY_PRESSURE,
    NETWORK_UNAVAILABLE,
    OUT_OF_DISK,
    READY,
    bad_conditions,
    is_best_effort,
    is_true,
)
from kpreempt.schedulers.legacy.base.filtering import Filter
from kpreempt.schedulers.legacy.base.node_info import Accounting, NodeInfo, PodInfo, PortKey
from kpreempt.schedulers.legacy.base.resources import (
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    is_native,
    largest_request,
    sum_of_containers,
)
from kpreempt.schedulers.legacy.base.volumes import disk_conflict
from kpreempt.schedulers.legacy.v1_8.affinity import Affinity
from kpreempt.schedulers.legacy.v1_8.volumes import VOLUME_PREDICATES
from kpreempt.verdict import Status
from kpreempt.verdict.details import NodeNameMismatch, PortConflict

NODE_NOT_READY = "NodeNotReady"
NODE_OUT_OF_DISK = "NodeOutOfDisk"
NODE_NETWORK_UNAVAILABLE = "NodeNetworkUnavailable"
NODE_UNSCHEDULABLE = "NodeUnschedulable"
HOST_NOT_MATCHED = "HostName"
PORTS_TAKEN = "PodFitsHostPorts"
SELECTOR_NOT_MATCHED = "MatchNodeSelector"
TAINTS_NOT_TOLERATED = "PodToleratesNodeTaints"
DISK_CONFLICT = "NoDiskConflict"
UNDER_MEMORY_PRESSURE = "NodeUnderMemoryPressure"
UNDER_DISK_PRESSURE = "NodeUnderDiskPressure"
# Of a predicate that only a Policy file asks for.
LABELS_NOT_PRESENT = "CheckNodeLabelPresence"

NVIDIA_GPU = "alpha.kubernetes.io/nvidia-gpu"
_OPAQUE_PREFIX = "pod.alpha.kubernetes.io/opaque-int-resource-"
_REASONS_OF_CONDITIONS = {
    READY: NODE_NOT_READY,
    OUT_OF_DISK: NODE_OUT_OF_DISK,
    NETWORK_UNAVAILABLE: NODE_NETWORK_UNAVAILABLE,
}


def is_counted(name: str) -> bool:
    """Whether a resource counts besides CPU and memory: GPUs, extended and opaque ones, huge pages."""
    return name == NVIDIA_GPU or not is_native(name) or name.startswith((_OPAQUE_PREFIX, HUGE_PAGES_PREFIX))


def numbered_ports(pod: Pod) -> list[PortKey]:
    """The pod's host ports by number alone: protocol and address do not count."""
    return [("", "", port.host_port) for port in host_ports(pod)]


# RemovePod of that version forgets to give ephemeral storage back.
ACCOUNTING = Accounting(
    is_counted,
    lambda pod: sum_of_containers(pod, is_counted),
    numbered_ports,
    never_returned=frozenset((EPHEMERAL_STORAGE,)),
)


class Metadata:
    """The pod, and what the predicates know of it beforehand (``predicateMetadata``)."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self.cluster = cluster
        self.pod = pod
        self.request = largest_request(pod.pod, is_counted)
        self.affinity = Affinity(pod, cluster)

    def clone(self) -> Metadata:
        """A copy that can be changed without touching this one."""
        copy = Metadata.__new__(Metadata)
        copy.cluster, copy.pod, copy.request = self.cluster, self.pod, self.request
        copy.affinity = self.affinity.clone()
        return copy

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was put on the node."""
        self.affinity.add_pod(info, node_info)

    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was taken off the node."""
        self.affinity.remove_pod(info)


def check_node_condition(_: Metadata, node_info: NodeInfo) -> Status:
    """The node is ready, has disk and network, and is not cordoned, which no toleration helps against."""
    reasons = [_REASONS_OF_CONDITIONS[condition] for condition in bad_conditions(node_info.node)]
    if node_info.node.spec.unschedulable:
        reasons.append(NODE_UNSCHEDULABLE)
    return refusal(*reasons) if reasons else PASSES


def pod_fits_resources(meta: Metadata, node_info: NodeInfo) -> Status:
    """There is room for one more pod, and enough of everything."""
    short = insufficient_resources(meta.request, node_info, (NVIDIA_GPU,))
    if short is None:
        return PASSES
    return refusal(*(f"Insufficient {each.resource}" for each in short.shortfalls), detail=short)


def host_name(meta: Metadata, node_info: NodeInfo) -> Status:
    """The node is the one that the pod names, if it names one."""
    wanted = meta.pod.pod.spec.node_name
    return refusal(HOST_NOT_MATCHED, detail=NodeNameMismatch(wanted)) if wanted not in ("", node_info.name) else PASSES


def pod_fits_host_ports(meta: Metadata, node_info: NodeInfo) -> Status:
    """No other pod has a host port of that number."""
    for port in host_ports(meta.pod.pod):
        key = ("", "", port.host_port)
        if key in node_info.used_ports:
            holders = [info.key for info in node_info.pods if key in info.ports]
            return refusal(PORTS_TAKEN, detail=PortConflict(port.host_port, port.protocol, port.host_ip, holders))
    return PASSES


def match_node_selector(meta: Metadata, node_info: NodeInfo) -> Status:
    """The node selector and the required node affinity match."""
    if _selects(meta.pod.pod, node_info):
        return PASSES
    return refusal(SELECTOR_NOT_MATCHED, detail=selector_mismatch(meta.pod.pod, node_info))


def _selects(pod: Pod, node_info: NodeInfo) -> bool:
    """Terms know labels only, and one that cannot be parsed keeps those after it from being read."""
    labels = node_info.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    if required is None:
        return True
    for term in required.node_selector_terms:
        expressions = term.match_expressions
        if not all(map(is_valid_node_requirement, expressions)):
            return False
        if expressions and all(
            matches_requirement(each.key, each.operator, each.values, labels) for each in expressions
        ):
            return True
    return False


def general_predicates(meta: Metadata, node_info: NodeInfo) -> Status:
    """Resources, host name, ports and selector: the reasons of all that fail."""
    checks = (pod_fits_resources, host_name, pod_fits_host_ports, match_node_selector)
    failed = [status for check in checks if not (status := check(meta, node_info)).is_success]
    if not failed:
        return PASSES
    return refusal(*(reason for status in failed for reason in status.reasons), detail=failed[0].detail)


def no_disk_conflict(meta: Metadata, node_info: NodeInfo) -> Status:
    """No other pod uses a disk in a way that excludes this one."""
    conflict = disk_conflict(meta.pod.pod, node_info)
    return refusal(DISK_CONFLICT, detail=conflict) if conflict else PASSES


def pod_tolerates_node_taints(meta: Metadata, node_info: NodeInfo) -> Status:
    """All taints that keep pods off are tolerated."""
    taint = untolerated_taint(meta.pod.pod, node_info)
    return refusal(TAINTS_NOT_TOLERATED, detail=taint) if taint else PASSES


def check_node_memory_pressure(meta: Metadata, node_info: NodeInfo) -> Status:
    """The node has memory to spare, or the pod is not best-effort."""
    is_refused = is_true(node_info.node, MEMORY_PRESSURE) and is_best_effort(meta.pod.pod)
    return refusal(UNDER_MEMORY_PRESSURE) if is_refused else PASSES


def check_node_disk_pressure(_: Metadata, node_info: NodeInfo) -> Status:
    """The node has disk to spare."""
    return refusal(UNDER_DISK_PRESSURE) if is_true(node_info.node, DISK_PRESSURE) else PASSES


def match_inter_pod_affinity(meta: Metadata, node_info: NodeInfo) -> Status:
    """The pod's terms hold, and those of the pods that are there."""
    return meta.affinity.check(node_info)


# All that may be named.
PREDICATES = (
    Filter("CheckNodeCondition", check_node_condition),
    Filter("GeneralPredicates", general_predicates),
    Filter("PodFitsResources", pod_fits_resources),
    Filter("HostName", host_name),
    Filter("PodFitsHostPorts", pod_fits_host_ports),
    Filter("MatchNodeSelector", match_node_selector),
    Filter("PodToleratesNodeTaints", pod_tolerates_node_taints),
    Filter("CheckNodeMemoryPressure", check_node_memory_pressure),
    Filter("CheckNodeDiskPressure", check_node_disk_pressure),
    Filter("NoDiskConflict", no_disk_conflict),
    *VOLUME_PREDICATES,
    Filter("MatchInterPodAffinity", match_inter_pod_affinity),
)
_IN_GENERAL_PREDICATES = frozenset(("HostName", "PodFitsHostPorts", "MatchNodeSelector", "PodFitsResources"))
DEFAULT_PREDICATES = tuple(each for each in PREDICATES if each.name not in _IN_GENERAL_PREDICATES)
