"""The predicates of 1.13 in the order in which they run (``algorithm/predicates/predicates.go``, v1.13.12).

GeneralPredicates is four in one: it says all that is wrong with resources, host name, ports and selector.
"""

from __future__ import annotations

from kpreempt.schedulers.legacy.base.checks import (
    PASSES,
    addressed_ports,
    port_conflict,
    refusal,
    selector_mismatch,
    tolerates_unschedulable,
)
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.conditions import (
    DISK_PRESSURE,
    NETWORK_UNAVAILABLE,
    OUT_OF_DISK,
    PID_PRESSURE,
    READY,
)
from kpreempt.schedulers.legacy.base.filtering import Filter
from kpreempt.schedulers.legacy.base.node_info import Accounting, NodeInfo, PodInfo
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
    HUGE_PAGES_PREFIX,
    NATIVE_PREFIX,
    is_native,
    largest_request,
    sum_of_containers,
)
from kpreempt.schedulers.legacy.v1_13.affinity import Affinity
from kpreempt.schedulers.legacy.v1_13.volumes import VOLUME_PREDICATES
from kpreempt.verdict import Status

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


def metadata(cluster: Cluster, pod: PodInfo, ignored: frozenset[str] = frozenset()) -> Metadata:
    """What the predicates know of a pod beforehand; resources that are ``ignored`` are left to extenders."""
    return Metadata(cluster, pod, largest_request(pod.pod, is_counted), Affinity(pod, cluster), ignored)


def check_node_unschedulable(meta: Metadata, node_info: NodeInfo) -> Status:
    """A cordoned node takes only pods that tolerate the taint that goes with it."""
    if node_info.node.spec.unschedulable and not tolerates_unschedulable(meta.pod.pod):
        return refusal(NODE_UNSCHEDULABLE)
    return PASSES


def pod_fits_host_ports(meta: Metadata, node_info: NodeInfo) -> Status:
    """No other pod has the host ports."""
    taken = port_conflict(meta.pod.pod, node_info)
    return refusal(PORTS_TAKEN, detail=taken) if taken else PASSES


def match_node_selector(meta: Metadata, node_info: NodeInfo) -> Status:
    """The node selector and the required node affinity match."""
    mismatch = selector_mismatch(meta.pod.pod, node_info)
    return refusal(SELECTOR_NOT_MATCHED, detail=mismatch) if mismatch else PASSES


UNSCHEDULABLE = "CheckNodeUnschedulable"
FITS_RESOURCES = pod_fits_resources()
FITS_HOST_NAME = host_name(HOST_NOT_MATCHED)
# All that may be named, in the order of ``predicatesOrdering``, whatever the order in which they are named.
PREDICATES = (
    Filter("CheckNodeCondition", node_condition(_REASONS_OF_CONDITIONS, NODE_UNSCHEDULABLE)),
    Filter(UNSCHEDULABLE, check_node_unschedulable),
    Filter(
        "GeneralPredicates",
        general_predicates(FITS_RESOURCES, FITS_HOST_NAME, pod_fits_host_ports, match_node_selector),
    ),
    Filter("HostName", FITS_HOST_NAME),
    Filter("PodFitsHostPorts", pod_fits_host_ports),
    Filter("MatchNodeSelector", match_node_selector),
    Filter("PodFitsResources", FITS_RESOURCES),
    Filter("NoDiskConflict", no_disk_conflict(DISK_CONFLICT)),
    Filter("PodToleratesNodeTaints", tolerates_taints(TAINTS_NOT_TOLERATED)),
    *VOLUME_PREDICATES,
    Filter("CheckNodeMemoryPressure", memory_pressure(UNDER_MEMORY_PRESSURE)),
    Filter("CheckNodePIDPressure", no_pressure(PID_PRESSURE, UNDER_PID_PRESSURE)),
    Filter("CheckNodeDiskPressure", no_pressure(DISK_PRESSURE, UNDER_DISK_PRESSURE)),
    Filter("MatchInterPodAffinity", match_inter_pod_affinity),
)
_IN_GENERAL_PREDICATES = frozenset(("HostName", "PodFitsHostPorts", "MatchNodeSelector", "PodFitsResources"))
# They run only without TaintNodesByCondition.
OF_CONDITIONS = frozenset(
    ("CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure")
)


def default_predicates(*, taint_nodes_by_condition: bool = True) -> tuple[Filter, ...]:
    """The default set. By default taints stand for conditions, which then nobody looks at."""
    left_out = OF_CONDITIONS if taint_nodes_by_condition else frozenset((UNSCHEDULABLE,))
    return tuple(each for each in PREDICATES if each.name not in _IN_GENERAL_PREDICATES | left_out)
