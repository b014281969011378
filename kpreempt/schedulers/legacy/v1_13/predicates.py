"""The predicates of 1.13 in the order in which they run (``algorithm/predicates/predicates.go``, v1.13.12).

GeneralPredicates is four in one: it says all that is wrong with resources, host name, ports and selector.
"""

from __future__ import annotations

from kpreempt.schedulers.legacy.base.checks import (
    PASSES,
    addressed_ports,
    insufficient_resources,
    port_conflict,
    refusal,
    selector_mismatch,
    tolerates_unschedulable,
    untolerated_taint,
)
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.conditions import (
    DISK_PRESSURE,
    MEMORY_PRESSURE,
    NETWORK_UNAVAILABLE,
    OUT_OF_DISK,
    PID_PRESSURE,
    READY,
    bad_conditions,
    is_best_effort,
    is_true,
)
from kpreempt.schedulers.legacy.base.filtering import Filter
from kpreempt.schedulers.legacy.base.node_info import Accounting, NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.resources import (
    HUGE_PAGES_PREFIX,
    NATIVE_PREFIX,
    is_native,
    largest_request,
    sum_of_containers,
)
from kpreempt.schedulers.legacy.base.volumes import disk_conflict
from kpreempt.schedulers.legacy.v1_13.affinity import Affinity
from kpreempt.schedulers.legacy.v1_13.volumes import VOLUME_PREDICATES
from kpreempt.verdict import Status
from kpreempt.verdict.details import NodeNameMismatch

NODE_UNSCHEDULABLE = "node(s) were unschedulable"
HOST_NOT_MATCHED = "node(s) didn't match the requested hostname"
PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"
SELECTOR_NOT_MATCHED = "node(s) didn't match node selector"
TAINTS_NOT_TOLERATED = "node(s) had taints that the pod didn't tolerate"
DISK_CONFLICT = "node(s) had no available disk"
NODE_NOT_READY = "node(s) were not ready"
NODE_OUT_OF_DISK = "node(s) were out of disk space"
NODE_NETWORK_UNAVAILABLE = "node(s) had unavailable network"
UNDER_MEMORY_PRESSURE = "node(s) had memory pressure"
UNDER_DISK_PRESSURE = "node(s) had disk pressure"
UNDER_PID_PRESSURE = "node(s) had pid pressure"
# Of a predicate that only a Policy file asks for.
LABELS_NOT_PRESENT = "node(s) didn't have the requested labels"
_REASONS_OF_CONDITIONS = {
    READY: NODE_NOT_READY,
    OUT_OF_DISK: NODE_OUT_OF_DISK,
    NETWORK_UNAVAILABLE: NODE_NETWORK_UNAVAILABLE,
}


def is_counted(name: str) -> bool:
    """Whether a resource counts besides CPU and memory (``IsScalarResourceName``)."""
    is_extended = not is_native(name) and not name.startswith("requests.")
    return is_extended or name.startswith((HUGE_PAGES_PREFIX, "attachable-volumes-")) or NATIVE_PREFIX in name


ACCOUNTING = Accounting(is_counted, lambda pod: sum_of_containers(pod, is_counted), addressed_ports)


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
    """The node is ready, has disk and network, and is not cordoned (only without TaintNodesByCondition)."""
    reasons = [_REASONS_OF_CONDITIONS[condition] for condition in bad_conditions(node_info.node)]
    if node_info.node.spec.unschedulable:
        reasons.append(NODE_UNSCHEDULABLE)
    return refusal(*reasons) if reasons else PASSES


def check_node_memory_pressure(meta: Metadata, node_info: NodeInfo) -> Status:
    """The node has memory to spare, or the pod is not best-effort (only without TaintNodesByCondition)."""
    is_refused = is_true(node_info.node, MEMORY_PRESSURE) and is_best_effort(meta.pod.pod)
    return refusal(UNDER_MEMORY_PRESSURE) if is_refused else PASSES


def check_node_disk_pressure(_: Metadata, node_info: NodeInfo) -> Status:
    """The node has disk to spare (only without TaintNodesByCondition)."""
    return refusal(UNDER_DISK_PRESSURE) if is_true(node_info.node, DISK_PRESSURE) else PASSES


def check_node_pid_pressure(_: Metadata, node_info: NodeInfo) -> Status:
    """The node has process numbers to spare (only without TaintNodesByCondition)."""
    return refusal(UNDER_PID_PRESSURE) if is_true(node_info.node, PID_PRESSURE) else PASSES


def check_node_unschedulable(meta: Metadata, node_info: NodeInfo) -> Status:
    """A cordoned node takes only pods that tolerate the taint that goes with it."""
    if node_info.node.spec.unschedulable and not tolerates_unschedulable(meta.pod.pod):
        return refusal(NODE_UNSCHEDULABLE)
    return PASSES


def pod_fits_resources(meta: Metadata, node_info: NodeInfo) -> Status:
    """There is room for one more pod, and enough of everything."""
    short = insufficient_resources(meta.request, node_info)
    if short is None:
        return PASSES
    return refusal(*(f"Insufficient {each.resource}" for each in short.shortfalls), detail=short)


def host_name(meta: Metadata, node_info: NodeInfo) -> Status:
    """The node is the one that the pod names, if it names one."""
    wanted = meta.pod.pod.spec.node_name
    return refusal(HOST_NOT_MATCHED, detail=NodeNameMismatch(wanted)) if wanted not in ("", node_info.name) else PASSES


def pod_fits_host_ports(meta: Metadata, node_info: NodeInfo) -> Status:
    """No other pod has the host ports."""
    taken = port_conflict(meta.pod.pod, node_info)
    return refusal(PORTS_TAKEN, detail=taken) if taken else PASSES


def match_node_selector(meta: Metadata, node_info: NodeInfo) -> Status:
    """The node selector and the required node affinity match."""
    mismatch = selector_mismatch(meta.pod.pod, node_info)
    return refusal(SELECTOR_NOT_MATCHED, detail=mismatch) if mismatch else PASSES


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


def match_inter_pod_affinity(meta: Metadata, node_info: NodeInfo) -> Status:
    """The pod's terms hold, and those of the pods that are there."""
    return meta.affinity.check(node_info)


UNSCHEDULABLE = "CheckNodeUnschedulable"
# All that may be named, in the order of ``predicatesOrdering``, whatever the order in which they are named.
PREDICATES = (
    Filter("CheckNodeCondition", check_node_condition),
    Filter(UNSCHEDULABLE, check_node_unschedulable),
    Filter("GeneralPredicates", general_predicates),
    Filter("HostName", host_name),
    Filter("PodFitsHostPorts", pod_fits_host_ports),
    Filter("MatchNodeSelector", match_node_selector),
    Filter("PodFitsResources", pod_fits_resources),
    Filter("NoDiskConflict", no_disk_conflict),
    Filter("PodToleratesNodeTaints", pod_tolerates_node_taints),
    *VOLUME_PREDICATES,
    Filter("CheckNodeMemoryPressure", check_node_memory_pressure),
    Filter("CheckNodePIDPressure", check_node_pid_pressure),
    Filter("CheckNodeDiskPressure", check_node_disk_pressure),
    Filter("MatchInterPodAffinity", match_inter_pod_affinity),
)
_IN_GENERAL_PREDICATES = frozenset(("HostName", "PodFitsHostPorts", "MatchNodeSelector", "PodFitsResources"))
OF_CONDITIONS = frozenset(
    ("CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure")
)


def default_predicates(*, taint_nodes_by_condition: bool = True) -> tuple[Filter, ...]:
    """The default set. By default taints stand for conditions, which then nobody looks at."""
    left_out = OF_CONDITIONS if taint_nodes_by_condition else frozenset((UNSCHEDULABLE,))
    return tuple(each for each in PREDICATES if each.name not in _IN_GENERAL_PREDICATES | left_out)
