"""Kubernetes 1.8 (v1.8.15): its predicates, and the first version of preemption.

Preemption (``core/generic_scheduler.go`` and ``scheduler.go``) knows neither PDBs nor nominated pods: the node is
nominated in an annotation, whose only effect is that the pod does not preempt again while its victims are terminating.

All predicates (``predicates.go`` and ``metadata.go`` in ``algorithm/predicates``) run, in the random order of a Go map,
so the reasons of all failures are known. Affinity terms of existing pods are precomputed; the pod's own terms are
matched against all pods every time, so each may match another pod. NoVolumeNodeConflict has no effect while the gate
PersistentLocalVolumes is off, and is not modeled otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import ClassVar

from kpreempt.model.affinity import PodAffinityTerm, is_valid_node_requirement
from kpreempt.model.labels import matches_requirement
from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolume
from kpreempt.schedulers.choice import FEWEST_VICTIMS, LOWEST_FIRST_VICTIM, SMALLEST_SUM
from kpreempt.schedulers.disks import AZURE_DISK, EBS, GCE_PD, DiskType, default_disk_limit
from kpreempt.schedulers.extender_protocol import V1_8
from kpreempt.schedulers.legacy.base.configuration import PRIORITIES, Dialect
from kpreempt.schedulers.legacy.base.node_info import (
    DISK_PRESSURE,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY_PRESSURE,
    NETWORK_UNAVAILABLE,
    OUT_OF_DISK,
    READY,
    Accounting,
    Amounts,
    Cluster,
    NodeInfo,
    PodInfo,
    TopologyPairs,
    is_native,
    sum_of_containers,
)
from kpreempt.schedulers.legacy.base.predicates import (
    PASSES,
    ZONE_LABELS,
    Check,
    Filter,
    LegacyError,
    Metadata,
    PodWithBudgets,
    claim_names,
    claim_of,
    disk_conflict,
    general_predicates,
    host_ports,
    name_mismatch,
    no_pressure,
    node_condition,
    pod_fits_resources,
    rejection,
    rejects_on,
    selector_mismatch,
    term_selects,
    too_many_disks,
    untolerated_taint,
    zone_conflict,
)
from kpreempt.schedulers.legacy.base.version import BY_TAINTS, PredicateVersion, Words
from kpreempt.verdict import Status
from kpreempt.verdict.details import AffinityConflict, PortConflict, VolumeConflict

MAX_VOLUMES_EXCEEDED = "MaxVolumeCount"
ZONE_CONFLICT = "NoVolumeZoneConflict"


def _max_volume_count(disk_type: DiskType) -> Check:
    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        disks_of = partial(_disks, meta.cluster, disk_type)
        limit = default_disk_limit(disk_type)
        detail = too_many_disks(disk_type.name, disks_of, meta.pod.pod, node_info, limit)
        return rejection(MAX_VOLUMES_EXCEEDED, detail=detail) if detail else PASSES

    return check


def _disks(cluster: Cluster, disk_type: DiskType, pod: Pod) -> set[str]:
    """Return the pod's disks of the type. A missing object counts as a separate disk, and later ones are skipped."""
    disks: set[str] = set()
    for volume in pod.spec.volumes:
        disk = disk_type.of(volume)
        if disk is None and volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            bound = _bound_volume(cluster, pod, name)
            if bound is None:
                return {*disks, f"\0{pod.key}/{name}"}
            disk = disk_type.of(bound.spec)
        if disk is not None:
            disks.add(disk)
    return disks


def _bound_volume(cluster: Cluster, pod: Pod, name: str) -> PersistentVolume | None:
    """Return the claim's volume, ``None`` if claim or volume is missing; raise an error if it is not bound."""
    if not name:
        raise LegacyError("PersistentVolumeClaim had no name")
    claim = claim_of(cluster, pod, name)
    if claim is None:
        return None
    if not claim.spec.volume_name:
        raise LegacyError(f'PersistentVolumeClaim is not bound: "{name}"')
    return cluster.persistent_volumes.get(claim.spec.volume_name)


def no_volume_zone_conflict(meta: Metadata, node_info: NodeInfo) -> Status:
    """Check that the bound volumes are in the node's zone; a node without zones matches all."""
    if not any(key in node_info.labels for key in ZONE_LABELS):
        return PASSES
    for name in claim_names(meta.pod.pod):
        if claim_of(meta.cluster, meta.pod.pod, name) is None:
            raise LegacyError(f'persistentvolumeclaim "{name}" not found')
        volume = _bound_volume(meta.cluster, meta.pod.pod, name)
        if volume is None:
            raise LegacyError(f'the volume of persistentvolumeclaim "{name}" was not found')
        key = zone_conflict(volume, node_info.node)
        if key is not None:
            detail = VolumeConflict(name, volume.metadata.name, f"{key} is {volume.metadata.labels[key]}")
            return rejection(ZONE_CONFLICT, detail=detail)
    return PASSES


VOLUME_PREDICATES = (
    Filter("NoVolumeZoneConflict", no_volume_zone_conflict),
    Filter("MaxEBSVolumeCount", _max_volume_count(EBS)),
    Filter("MaxGCEPDVolumeCount", _max_volume_count(GCE_PD)),
    Filter("MaxAzureDiskVolumeCount", _max_volume_count(AZURE_DISK)),
)


NODE_NOT_READY = "NodeNotReady"
NODE_OUT_OF_DISK = "NodeOutOfDisk"
NODE_NETWORK_UNAVAILABLE = "NodeNetworkUnavailable"
NODE_UNSCHEDULABLE = "NodeUnschedulable"
HOST_NOT_MATCHED = "HostName"
PORTS_IN_USE = "PodFitsHostPorts"
SELECTOR_NOT_MATCHED = "MatchNodeSelector"
TAINTS_NOT_TOLERATED = "PodToleratesNodeTaints"
DISK_CONFLICT = "NoDiskConflict"
UNDER_MEMORY_PRESSURE = "NodeUnderMemoryPressure"
UNDER_DISK_PRESSURE = "NodeUnderDiskPressure"
# The reason of a predicate that only runs if a Policy file names it.
LABELS_NOT_PRESENT = "CheckNodeLabelPresence"

NVIDIA_GPU = "alpha.kubernetes.io/nvidia-gpu"
_OPAQUE_PREFIX = "pod.alpha.kubernetes.io/opaque-int-resource-"
_REASONS_OF_CONDITIONS = {
    READY: NODE_NOT_READY,
    OUT_OF_DISK: NODE_OUT_OF_DISK,
    NETWORK_UNAVAILABLE: NODE_NETWORK_UNAVAILABLE,
}


class PodMetadata(Metadata):
    """The relevant data for one pod: its own terms, and pods whose anti-affinity selects it."""

    def __init__(self, cluster: Cluster, pod: PodInfo, request: Amounts, ignored: frozenset[str] = frozenset()) -> None:
        super().__init__(cluster, pod, request, ignored)
        self._wanted = [_OwnTerm(pod, term, cluster) for term in pod.affinity_terms]
        self._rejected = [_OwnTerm(pod, term, cluster) for term in pod.anti_affinity_terms]
        self._refusing = TopologyPairs()
        for node_info in cluster.node_infos:
            for info in node_info.pods:
                self.add_pod(info, node_info)

    def clone(self) -> PodMetadata:
        """Return a copy that can be changed independently."""
        made = copy(self)
        made._refusing = self._refusing.clone()
        return made

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Add a pod to the node.

        A quirk: if any of its terms selects the pod, the topology of its last term is used, because upstream keeps a
        pointer to the loop variable.
        """
        terms = info.anti_affinity_terms
        if any(term_selects(info.pod, term, self.pod.pod) for term in terms):
            key = terms[-1].topology_key
            if key in node_info.labels:
                self._refusing.add(info, [(key, node_info.labels[key])])

    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Remove a pod from its node."""
        self._refusing.remove(info)

    def check_affinity(self, node_info: NodeInfo) -> Status:
        """Check whether the terms of existing pods, and the pod's own, allow it on the node."""
        for pair in node_info.labels.items():
            if pair in self._refusing.counts:
                return rejection(
                    AFFINITY_NOT_MATCHED,
                    detail=AffinityConflict("existingAntiAffinity", *pair, "", self._refusing.holders(pair)),
                )
        for wanted in self._wanted:
            if not wanted.is_met(node_info, allows_first=True):
                return rejection(AFFINITY_NOT_MATCHED, detail=wanted.conflict("affinity", node_info))
        for refused in self._rejected:
            if refused.is_met(node_info):
                return rejection(AFFINITY_NOT_MATCHED, detail=refused.conflict("antiAffinity", node_info))
        return PASSES


class _OwnTerm:
    """A term of the pod, with the number of pods it selects on each node and in each domain."""

    def __init__(self, pod: PodInfo, term: PodAffinityTerm, cluster: Cluster) -> None:
        self._pod = pod.pod
        self._term = term
        self._on_node: dict[str, int] = {}
        self._in_domain: dict[str, int] = {}
        for node_info in cluster.node_infos:
            count = sum(term_selects(self._pod, self._term, info.pod) for info in node_info.pods)
            if count:
                self._on_node[node_info.name] = count
                domain = node_info.labels.get(self._term.topology_key)
                if domain is not None:
                    self._in_domain[domain] = self._in_domain.get(domain, 0) + count
        self._total = sum(self._on_node.values())

    def is_met(self, node_info: NodeInfo, *, allows_first: bool = False) -> bool:
        """Return whether a selected pod is in the node's domain; on the node itself, its current pods count.

        The first pod of a group, which selects itself and no pod on any node, has no other pod to match yet.
        """
        there = sum(term_selects(self._pod, self._term, info.pod) for info in node_info.pods)
        change = there - self._on_node.get(node_info.name, 0)
        domain = node_info.labels.get(self._term.topology_key)
        if domain is not None and self._in_domain.get(domain, 0) + change > 0:
            return True
        return allows_first and self._total + change <= 0 and term_selects(self._pod, self._term, self._pod)

    def conflict(self, rule: str, node_info: NodeInfo) -> AffinityConflict:
        """Describe what the node lacks or has."""
        selector = str(self._term.label_selector) if self._term.label_selector is not None else ""
        domain = node_info.labels.get(self._term.topology_key) or ""
        holders = [info.key for info in node_info.pods if term_selects(self._pod, self._term, info.pod)]
        return AffinityConflict(rule, self._term.topology_key, domain, selector, holders)


def is_counted(name: str) -> bool:
    """Return whether a resource other than CPU and memory counts: GPUs, extended and opaque ones, huge pages."""
    return name == NVIDIA_GPU or not is_native(name) or name.startswith((_OPAQUE_PREFIX, HUGE_PAGES_PREFIX))


# In this version, RemovePod does not subtract ephemeral storage.
ACCOUNTING = Accounting(
    is_counted,
    lambda pod: sum_of_containers(pod, is_counted),
    # By number alone: protocol and address are ignored.
    lambda pod: [("", "", port.host_port) for port in host_ports(pod)],
    never_returned=frozenset((EPHEMERAL_STORAGE,)),
)


def pod_fits_host_ports(meta: Metadata, node_info: NodeInfo) -> Status:
    """Check that no other pod uses a host port of that number."""
    for port in host_ports(meta.pod.pod):
        key = ("", "", port.host_port)
        if key in node_info.used_ports:
            holders = [info.key for info in node_info.pods if key in info.ports]
            return rejection(PORTS_IN_USE, detail=PortConflict(port.host_port, port.protocol, port.host_ip, holders))
    return PASSES


def match_node_selector(meta: Metadata, node_info: NodeInfo) -> Status:
    """Check the node selector and the required node affinity."""
    if _selects(meta.pod.pod, node_info):
        return PASSES
    return rejection(SELECTOR_NOT_MATCHED, detail=selector_mismatch(meta.pod.pod, node_info))


def _selects(pod: Pod, node_info: NodeInfo) -> bool:
    """Terms only support labels, and an invalid one prevents those after it from being read."""
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


FITS_RESOURCES = pod_fits_resources(NVIDIA_GPU)
FITS_HOST_NAME = rejects_on(name_mismatch, HOST_NOT_MATCHED)
# All predicates that may be named.
PREDICATES = (
    # A cordoned node cannot be tolerated.
    Filter("CheckNodeCondition", node_condition(_REASONS_OF_CONDITIONS, NODE_UNSCHEDULABLE)),
    Filter(
        "GeneralPredicates",
        general_predicates(FITS_RESOURCES, FITS_HOST_NAME, pod_fits_host_ports, match_node_selector),
    ),
    Filter("PodFitsResources", FITS_RESOURCES),
    Filter("HostName", FITS_HOST_NAME),
    Filter("PodFitsHostPorts", pod_fits_host_ports),
    Filter("MatchNodeSelector", match_node_selector),
    Filter("PodToleratesNodeTaints", rejects_on(untolerated_taint, TAINTS_NOT_TOLERATED)),
    Filter("CheckNodeMemoryPressure", no_pressure(MEMORY_PRESSURE, UNDER_MEMORY_PRESSURE, only_best_effort=True)),
    Filter("CheckNodeDiskPressure", no_pressure(DISK_PRESSURE, UNDER_DISK_PRESSURE)),
    Filter("NoDiskConflict", rejects_on(disk_conflict, DISK_CONFLICT)),
    *VOLUME_PREDICATES,
    Filter("MatchInterPodAffinity", PodMetadata.check_affinity),
)


AFFINITY_NOT_MATCHED = "MatchInterPodAffinity"


DIALECT = Dialect(
    algorithm="kube-1.8",
    # PodPriority, and with it preemption, is off by default; selecting this version turns it on.
    gates={"PodPriority": True, BY_TAINTS: False},
    assumed_gates={
        "PodPriority": "assuming that feature gate PodPriority is on (off by default in 1.8, which disables preemption)"
    },
    api_versions=("componentconfig/v1alpha1",),
    priorities=PRIORITIES,
    priority_arguments=("serviceAntiAffinity", "labelPreference"),
    extender_weight_always=True,
    has_preempt_verb=False,
    folds_case=False,
    protocol=V1_8,
)
_CONDITION = "CheckNodeCondition"


def fit_error(_: int, statuses: Mapping[str, Status]) -> str:
    """Format ``No nodes are available that match all of the predicates: REASON (2), OTHER (3).``, sorted as text."""
    counts = Counter(reason for status in statuses.values() for reason in status.reasons)
    parts = sorted(f"{reason} ({count})" for reason, count in counts.items())
    return f"No nodes are available that match all of the predicates: {', '.join(parts)}."


class Version18(PredicateVersion):
    """1.8: every predicate runs, only priorities decide, and extenders are called last."""

    dialect = DIALECT
    accounting = ACCOUNTING
    predicates = PREDICATES
    metadata = PodMetadata
    label_reason = LABELS_NOT_PRESENT
    unresolvable = frozenset(
        (
            SELECTOR_NOT_MATCHED,
            HOST_NOT_MATCHED,
            TAINTS_NOT_TOLERATED,
            LABELS_NOT_PRESENT,
            NODE_NOT_READY,
            NODE_NETWORK_UNAVAILABLE,
            NODE_UNSCHEDULABLE,
            "NodeUnknownCondition",
        )
    )
    removed: ClassVar = {True: frozenset((_CONDITION,)), False: frozenset()}
    mandatory: ClassVar = {True: ("PodToleratesNodeTaints",), False: (_CONDITION,)}
    stops_at_first = False
    counts_nominated = False
    budget_rule = staticmethod(lambda pods, _: [PodWithBudgets(info, False, []) for info in pods])
    calls_extenders_after_choice = True
    clears_nominations = False
    # The highest victim's priority, the sum of priorities, the count; then any.
    criteria = staticmethod(lambda _: (LOWEST_FIRST_VICTIM, SMALLEST_SUM, FEWEST_VICTIMS))
    message = staticmethod(fit_error)
    words = Words("annotation NominatedNodeName", "by {pod} on node {node}", reports_failure_first=True)

    def nominated_node(self, pod: Pod) -> str:
        """Return the node in the annotation."""
        annotations = pod.metadata.annotations
        return annotations.nominated_node_name if annotations else ""


VERSION = Version18
