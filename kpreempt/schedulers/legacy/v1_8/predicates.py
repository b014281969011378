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
    refusal,
    selector_mismatch,
)
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.conditions import (
    DISK_PRESSURE,
    NETWORK_UNAVAILABLE,
    OUT_OF_DISK,
    READY,
)
from kpreempt.schedulers.legacy.base.filtering import Filter
from kpreempt.schedulers.legacy.base.node_info import Accounting, NodeInfo, PodInfo, PortKey
from kpreempt.schedulers.legacy.base.predicates import (
    Metadata,
    general_predicates,
    host_name,
    match_inter_pod_affinity,
    memory_pressure,
    no_disk_conflict,
    no_pressure,
    node_condition,
    pod_fits_resources,
    tolerates_taints,
)
from kpreempt.schedulers.legacy.base.resources import (
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    is_native,
    largest_request,
    sum_of_containers,
)
from kpreempt.schedulers.legacy.v1_8.affinity import Affinity
from kpreempt.schedulers.legacy.v1_8.volumes import VOLUME_PREDICATES
from kpreempt.verdict import Status
from kpreempt.verdict.details import PortConflict

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


def metadata(cluster: Cluster, pod: PodInfo) -> Metadata:
    """What the predicates know of a pod beforehand."""
    return Metadata(cluster, pod, largest_request(pod.pod, is_counted), Affinity(pod, cluster))


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


FITS_RESOURCES = pod_fits_resources((NVIDIA_GPU,))
FITS_HOST_NAME = host_name(HOST_NOT_MATCHED)
# All that may be named.
PREDICATES = (
    # No toleration helps against a cordoned node.
    Filter("CheckNodeCondition", node_condition(_REASONS_OF_CONDITIONS, NODE_UNSCHEDULABLE)),
    Filter(
        "GeneralPredicates",
        general_predicates(FITS_RESOURCES, FITS_HOST_NAME, pod_fits_host_ports, match_node_selector),
    ),
    Filter("PodFitsResources", FITS_RESOURCES),
    Filter("HostName", FITS_HOST_NAME),
    Filter("PodFitsHostPorts", pod_fits_host_ports),
    Filter("MatchNodeSelector", match_node_selector),
    Filter("PodToleratesNodeTaints", tolerates_taints(TAINTS_NOT_TOLERATED)),
    Filter("CheckNodeMemoryPressure", memory_pressure(UNDER_MEMORY_PRESSURE)),
    Filter("CheckNodeDiskPressure", no_pressure(DISK_PRESSURE, UNDER_DISK_PRESSURE)),
    Filter("NoDiskConflict", no_disk_conflict(DISK_CONFLICT)),
    *VOLUME_PREDICATES,
    Filter("MatchInterPodAffinity", match_inter_pod_affinity),
)
_IN_GENERAL_PREDICATES = frozenset(("HostName", "PodFitsHostPorts", "MatchNodeSelector", "PodFitsResources"))
DEFAULT_PREDICATES = tuple(each for each in PREDICATES if each.name not in _IN_GENERAL_PREDICATES)
