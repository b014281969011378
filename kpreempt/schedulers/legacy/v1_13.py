"""Kubernetes 1.13 (v1.13.12): its predicates in the order in which they run, and its preemption.

Preemption follows ``core/generic_scheduler.go`` and ``scheduler.go``, the predicates ``predicates.go``, ``metadata.go``
(``predicateMetadata``) and ``csi_volume_predicate.go`` in ``algorithm/predicates``. GeneralPredicates combines four
predicates: it reports all problems with resources, host name, ports and selector. Topology pairs with relevant pods for
affinity are precomputed, and updated as pods are added and removed. Of CheckVolumeBinding only bound claims are
modeled; a claim that waits for its first consumer is assumed to find a volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import ClassVar

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolumeClaim, class_of_claim, is_fully_bound
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.choice import FEWEST_VICTIMS, FEWEST_VIOLATIONS, LOWEST_FIRST_VICTIM, SMALLEST_SUM
from kpreempt.schedulers.disks import (
    AZURE_DISK,
    CSI_LIMIT_PREFIX,
    EBS,
    GCE_PD,
    LIMIT_PREFIX,
    DiskType,
    csi_limit_key,
    default_disk_limit,
)
from kpreempt.schedulers.extender_protocol import V1_13
from kpreempt.schedulers.legacy.base.configuration import CONFIGURATION_GROUP, PRIORITIES, SERVICE_AFFINITY, Dialect
from kpreempt.schedulers.legacy.base.node_info import (
    DISK_PRESSURE,
    HUGE_PAGES_PREFIX,
    MEMORY_PRESSURE,
    NATIVE_PREFIX,
    NETWORK_UNAVAILABLE,
    OUT_OF_DISK,
    PID_PRESSURE,
    READY,
    Accounting,
    Amounts,
    Cluster,
    NodeInfo,
    Pair,
    PodInfo,
    TopologyPairs,
    is_native,
    sum_of_containers,
)
from kpreempt.schedulers.legacy.base.predicates import (
    PASSES,
    Check,
    Filter,
    LegacyError,
    Metadata,
    PodWithBudgets,
    addressed_ports,
    check_claims,
    claim_names,
    claim_of,
    disk_conflict,
    general_predicates,
    is_reachable,
    name_mismatch,
    no_pressure,
    node_condition,
    not_cordoned,
    pod_fits_resources,
    port_conflict,
    rejection,
    rejects_on,
    selector_mismatch,
    term_selects,
    too_many_disks,
    untolerated_taint,
    zone_conflict,
)
from kpreempt.schedulers.legacy.base.version import BY_TAINTS, PredicateVersion, Words
from kpreempt.verdict import Assumption, AssumptionKind, BudgetUse, Status
from kpreempt.verdict.details import AffinityConflict, VolumeConflict, VolumeLimitExceeded

MAX_VOLUMES_EXCEEDED = "node(s) exceed max volume count"
ZONE_CONFLICT = "node(s) had no available volume zone"
NODE_AFFINITY_CONFLICT = "node(s) had volume node affinity conflict"


_INSTANCE_TYPE = "beta.kubernetes.io/instance-type"


def _max_volume_count(disk_type: DiskType) -> Check:
    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        disks_of = partial(_disks, meta.cluster, disk_type)
        default = default_disk_limit(disk_type, node_info.labels.get(_INSTANCE_TYPE, ""))
        limit = node_info.allocatable.get(f"{LIMIT_PREFIX}{disk_type.plugin}", default)
        detail = too_many_disks(disk_type.name, disks_of, meta.pod.pod, node_info, limit)
        return rejection(MAX_VOLUMES_EXCEEDED, detail=detail) if detail else PASSES

    return check


def _disks(cluster: Cluster, disk_type: DiskType, pod: Pod) -> set[str]:
    """Return the pod's disks of the type. A claim with an unknown volume counts as a separate disk."""
    disks = set()
    for volume in pod.spec.volumes:
        disk = disk_type.of(volume)
        if disk is not None:
            disks.add(disk)
        elif volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            if not name:
                raise LegacyError("PersistentVolumeClaim had no name")
            claim = claim_of(cluster, pod, name)
            bound = cluster.persistent_volumes.get(claim.spec.volume_name) if claim else None
            disk = disk_type.of(bound.spec) if bound else f"\0{pod.metadata.namespace}/{name}"
            if disk is not None:
                disks.add(disk)
    return disks


def max_csi_volume_count(meta: Metadata, node_info: NodeInfo) -> Status:
    """Check that no CSI driver exceeds the node's allocatable number of volumes."""
    limits = {name for name in node_info.allocatable if name.startswith(LIMIT_PREFIX)}
    wanted = dict(_csi_volumes(meta.cluster, meta.pod.pod)) if limits else {}
    if not wanted:
        return PASSES
    there = {handle: key for info in node_info.pods for handle, key in _csi_volumes(meta.cluster, info.pod)}
    new = {handle: key for handle, key in wanted.items() if handle not in there}
    for key in dict.fromkeys(new.values()):
        used, requested = list(there.values()).count(key), list(new.values()).count(key)
        limit = node_info.allocatable.get(key)
        if limit is not None and used + requested > limit:
            detail = VolumeLimitExceeded(key.removeprefix(CSI_LIMIT_PREFIX), used, requested, limit)
            return rejection(MAX_VOLUMES_EXCEEDED, detail=detail)
    return PASSES


def _csi_volumes(cluster: Cluster, pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the handles of the pod's CSI volumes, and the resource that limits them."""
    for name in claim_names(pod):
        claim = claim_of(cluster, pod, name)
        volume = cluster.persistent_volumes.get(claim.spec.volume_name) if claim else None
        if volume is not None and volume.spec.csi is not None:
            yield volume.spec.csi.volume_handle, csi_limit_key(volume.spec.csi.driver)


def check_volume_binding(meta: Metadata, node_info: NodeInfo) -> Status:
    """Check that the node can reach the volumes of bound claims; claims that should already be bound are an error."""
    bound = []
    for name in claim_names(meta.pod.pod):
        claim = claim_of(meta.cluster, meta.pod.pod, name)
        if claim is None:
            raise LegacyError(f'error getting PVC "{meta.pod.pod.metadata.namespace}/{name}": not found')
        if is_fully_bound(claim):
            bound.append(claim)
        elif claim.spec.volume_name or not _waits_for_first_pod(meta.cluster, claim):
            raise LegacyError("pod has unbound immediate PersistentVolumeClaims")
    for claim in bound:
        volume = meta.cluster.persistent_volumes.get(claim.spec.volume_name)
        if volume is None:
            raise LegacyError(f'could not find v1.PersistentVolume "{claim.spec.volume_name}"')
        if not is_reachable(volume, node_info.node.metadata.labels):
            detail = VolumeConflict(claim.metadata.name, volume.metadata.name, "its node affinity excludes the node")
            return rejection(NODE_AFFINITY_CONFLICT, detail=detail)
    return PASSES


def _waits_for_first_pod(cluster: Cluster, claim: PersistentVolumeClaim) -> bool:
    storage_class = cluster.storage_classes.get(class_of_claim(claim))
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def no_volume_zone_conflict(meta: Metadata, node_info: NodeInfo) -> Status:
    """Check that the bound volumes are in the node's zone."""
    for name in claim_names(meta.pod.pod):
        claim = claim_of(meta.cluster, meta.pod.pod, name)
        if claim is None:
            raise LegacyError(f'persistentvolumeclaim "{name}" not found')
        if not claim.spec.volume_name:
            if _waits_for_first_pod(meta.cluster, claim):
                continue
            raise LegacyError(f'PersistentVolumeClaim is not bound: "{name}"')
        volume = meta.cluster.persistent_volumes.get(claim.spec.volume_name)
        if volume is None:
            raise LegacyError(f'persistentvolume "{claim.spec.volume_name}" not found')
        key = zone_conflict(volume, node_info.node)
        if key is not None:
            detail = VolumeConflict(name, volume.metadata.name, f"{key} is {volume.metadata.labels[key]}")
            return rejection(ZONE_CONFLICT, detail=detail)
    return PASSES


VOLUME_PREDICATES = (
    Filter("MaxEBSVolumeCount", _max_volume_count(EBS)),
    Filter("MaxGCEPDVolumeCount", _max_volume_count(GCE_PD)),
    Filter("MaxCSIVolumeCountPred", max_csi_volume_count),
    Filter("MaxAzureDiskVolumeCount", _max_volume_count(AZURE_DISK)),
    Filter("CheckVolumeBinding", check_volume_binding),
    Filter("NoVolumeZoneConflict", no_volume_zone_conflict),
)


def claim_assumptions(cluster: Cluster, pod: Pod) -> list[Assumption]:
    """Return assumptions for claims for which a volume is assumed to be found on any node."""
    return [
        Assumption(
            f"PersistentVolumeClaim {claim.key}",
            "spec.volumeName",
            "waits for its first consumer; assuming that every node has a volume for it",
            AssumptionKind.UNCERTAIN,
        )
        for name in claim_names(pod)
        if (claim := claim_of(cluster, pod, name)) is not None
        and not claim.spec.volume_name
        and _waits_for_first_pod(cluster, claim)
    ]


NODE_UNSCHEDULABLE = "node(s) were unschedulable"
HOST_NOT_MATCHED = "node(s) didn't match the requested hostname"
PORTS_IN_USE = "node(s) didn't have free ports for the requested pod ports"
SELECTOR_NOT_MATCHED = "node(s) didn't match node selector"
TAINTS_NOT_TOLERATED = "node(s) had taints that the pod didn't tolerate"
DISK_CONFLICT = "node(s) had no available disk"
NODE_NOT_READY = "node(s) were not ready"
NODE_OUT_OF_DISK = "node(s) were out of disk space"
NODE_NETWORK_UNAVAILABLE = "node(s) had unavailable network"
UNDER_MEMORY_PRESSURE = "node(s) had memory pressure"
UNDER_DISK_PRESSURE = "node(s) had disk pressure"
UNDER_PID_PRESSURE = "node(s) had pid pressure"
# The reason of a predicate that only runs if a Policy file names it.
LABELS_NOT_PRESENT = "node(s) didn't have the requested labels"
_REASONS_OF_CONDITIONS = {
    READY: NODE_NOT_READY,
    OUT_OF_DISK: NODE_OUT_OF_DISK,
    NETWORK_UNAVAILABLE: NODE_NETWORK_UNAVAILABLE,
}


class PodMetadata(Metadata):
    """The relevant pods for one pod: those its terms select, and those whose anti-affinity selects it."""

    def __init__(self, cluster: Cluster, pod: PodInfo, request: Amounts, ignored: frozenset[str] = frozenset()) -> None:
        super().__init__(cluster, pod, request, ignored)
        self.wanted = TopologyPairs()
        self.rejected = TopologyPairs()
        self.refusing = TopologyPairs()
        for node_info in cluster.node_infos:
            for info in node_info.pods:
                self.refusing.add(info, self._pairs_refusing(info, node_info.labels))
                if pod.has_affinity:
                    self.wanted.add(info, self._pairs_wanted(info, node_info.labels))
                    terms = [term for term in pod.anti_affinity_terms if term_selects(pod.pod, term, info.pod)]
                    self.rejected.add(info, _pairs(terms, node_info.labels))

    def clone(self) -> PodMetadata:
        """Return a copy that can be changed independently."""
        made = copy(self)
        made.wanted, made.rejected, made.refusing = self.wanted.clone(), self.rejected.clone(), self.refusing.clone()
        return made

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Add a pod to the node.

        Two quirks: a nominated pod, which is not on a node yet, does not count for the pod's own terms; and a pod that
        any anti-affinity term selects counts for all of them.
        """
        self.refusing.add(info, self._pairs_refusing(info, node_info.labels))
        if info.pod.spec.node_name and self.pod.has_affinity:
            self.wanted.add(info, self._pairs_wanted(info, node_info.labels))
            terms = self.pod.anti_affinity_terms
            if any(term_selects(self.pod.pod, term, info.pod) for term in terms):
                self.rejected.add(info, _pairs(terms, node_info.labels))

    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Remove a pod from its node."""
        self.refusing.remove(info)
        self.wanted.remove(info)
        self.rejected.remove(info)

    def check_affinity(self, node_info: NodeInfo) -> Status:
        """Check whether the pod's terms and those of existing pods allow it on the node."""
        for pair in node_info.labels.items():
            if pair in self.refusing.counts:
                conflict = AffinityConflict("existingAntiAffinity", *pair, "", self.refusing.holders(pair))
                return rejection(NOT_MATCHED, EXISTING_ANTI_AFFINITY_NOT_MATCHED, detail=conflict)
        labels = node_info.labels
        terms = self.pod.affinity_terms
        missing = next((term for term in terms if _pair(term, labels) not in self.wanted.counts), None)
        # The first pod of a group with affinity to itself has no other pod to match yet.
        pod = self.pod.pod
        if missing is not None and (self.wanted.counts or not all(term_selects(pod, term, pod) for term in terms)):
            detail = _conflict("affinity", missing, labels, [])
            return rejection(NOT_MATCHED, AFFINITY_NOT_MATCHED, detail=detail)
        for term in self.pod.anti_affinity_terms:
            refused = _pair(term, labels)
            if refused is not None and refused in self.rejected.counts:
                detail = _conflict("antiAffinity", term, labels, self.rejected.holders(refused))
                return rejection(NOT_MATCHED, ANTI_AFFINITY_NOT_MATCHED, detail=detail)
        return PASSES

    def _pairs_refusing(self, info: PodInfo, labels: Mapping[str, str]) -> list[Pair]:
        return _pairs((term for term in info.anti_affinity_terms if term_selects(info.pod, term, self.pod.pod)), labels)

    def _pairs_wanted(self, info: PodInfo, labels: Mapping[str, str]) -> list[Pair]:
        """Return the matching pairs of a pod, which must match all terms."""
        terms = self.pod.affinity_terms
        if not all(term_selects(self.pod.pod, term, info.pod) for term in terms):
            return []
        return _pairs(terms, labels)


def _pairs(terms: Iterable[PodAffinityTerm], labels: Mapping[str, str]) -> list[Pair]:
    return [(term.topology_key, labels[term.topology_key]) for term in terms if term.topology_key in labels]


def _pair(term: PodAffinityTerm, labels: Mapping[str, str]) -> Pair | None:
    value = labels.get(term.topology_key)
    return None if value is None else (term.topology_key, value)


def _conflict(rule: str, term: PodAffinityTerm, labels: Mapping[str, str], holders: list[str]) -> AffinityConflict:
    selector = str(term.label_selector) if term.label_selector is not None else ""
    return AffinityConflict(rule, term.topology_key, labels.get(term.topology_key, ""), selector, holders)


def is_counted(name: str) -> bool:
    """Return whether a resource counts in addition to CPU and memory (``IsScalarResourceName``)."""
    is_extended = not is_native(name) and not name.startswith("requests.")
    return is_extended or name.startswith((HUGE_PAGES_PREFIX, LIMIT_PREFIX)) or NATIVE_PREFIX in name


ACCOUNTING = Accounting(is_counted, lambda pod: sum_of_containers(pod, is_counted), addressed_ports)


FITS_RESOURCES = pod_fits_resources()
FITS_HOST_PORTS = rejects_on(port_conflict, PORTS_IN_USE)
MATCHES_SELECTOR = rejects_on(selector_mismatch, SELECTOR_NOT_MATCHED)
FITS_HOST_NAME = rejects_on(name_mismatch, HOST_NOT_MATCHED)
# All predicates that may be named, in the order of ``predicatesOrdering``, regardless of the file's order.
PREDICATES = (
    Filter("CheckNodeCondition", node_condition(_REASONS_OF_CONDITIONS, NODE_UNSCHEDULABLE)),
    Filter("CheckNodeUnschedulable", not_cordoned(NODE_UNSCHEDULABLE)),
    Filter(
        "GeneralPredicates",
        general_predicates(FITS_RESOURCES, FITS_HOST_NAME, FITS_HOST_PORTS, MATCHES_SELECTOR),
    ),
    Filter("HostName", FITS_HOST_NAME),
    Filter("PodFitsHostPorts", FITS_HOST_PORTS),
    Filter("MatchNodeSelector", MATCHES_SELECTOR),
    Filter("PodFitsResources", FITS_RESOURCES),
    Filter("NoDiskConflict", rejects_on(disk_conflict, DISK_CONFLICT)),
    Filter("PodToleratesNodeTaints", rejects_on(untolerated_taint, TAINTS_NOT_TOLERATED)),
    *VOLUME_PREDICATES,
    Filter("CheckNodeMemoryPressure", no_pressure(MEMORY_PRESSURE, UNDER_MEMORY_PRESSURE, only_best_effort=True)),
    Filter("CheckNodePIDPressure", no_pressure(PID_PRESSURE, UNDER_PID_PRESSURE)),
    Filter("CheckNodeDiskPressure", no_pressure(DISK_PRESSURE, UNDER_DISK_PRESSURE)),
    Filter("MatchInterPodAffinity", PodMetadata.check_affinity),
)


NOT_MATCHED = "node(s) didn't match pod affinity/anti-affinity"
AFFINITY_NOT_MATCHED = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_NOT_MATCHED = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY_NOT_MATCHED = "node(s) didn't satisfy existing pods anti-affinity rules"


DIALECT = Dialect(
    algorithm="kube-1.13",
    gates={"PodPriority": True, BY_TAINTS: True},
    api_versions=(f"{CONFIGURATION_GROUP}/v1alpha1",),
    priorities=PRIORITIES | {"RequestedToCapacityRatioPriority"},
    priority_arguments=("serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments"),
    protocol=V1_13,
)
_TAINTS = "PodToleratesNodeTaints"
_CONDITION = "CheckNodeCondition"
_UNSCHEDULABLE = "CheckNodeUnschedulable"
_NAMES = [each.name for each in PREDICATES]
_BEHIND_TAINTS = _NAMES.index(_TAINTS) + 1


def mark_violations(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[PodWithBudgets]:
    """Mark evictions that violate a PDB (``filterPodsWithPDBViolation``): one of its budgets allows none now.

    Nothing is counted down: any number of evictions fits in a budget that allows one.
    """
    marked = []
    for info in pods:
        matching = budgets.selecting(info.pod)
        uses = [BudgetUse(budget.key, budget.allowed, budget.allowed - 1) for budget in matching]
        marked.append(PodWithBudgets(info, any(use.allowed <= 0 for use in uses), uses))
    return marked


class Version113(PredicateVersion):
    """1.13: the first failing predicate decides, PDBs count, and nominated pods reserve capacity."""

    dialect = DIALECT
    accounting = ACCOUNTING
    predicates = PREDICATES
    metadata = PodMetadata
    label_reason = LABELS_NOT_PRESENT
    unresolvable = frozenset(
        (
            SELECTOR_NOT_MATCHED,
            AFFINITY_NOT_MATCHED,
            HOST_NOT_MATCHED,
            TAINTS_NOT_TOLERATED,
            LABELS_NOT_PRESENT,
            NODE_NOT_READY,
            NODE_NETWORK_UNAVAILABLE,
            UNDER_DISK_PRESSURE,
            UNDER_PID_PRESSURE,
            UNDER_MEMORY_PRESSURE,
            NODE_OUT_OF_DISK,
            NODE_UNSCHEDULABLE,
            "node(s) had unknown conditions",
            ZONE_CONFLICT,
            NODE_AFFINITY_CONFLICT,
            "node(s) didn't find available persistent volumes to bind",
        )
    )
    # By default taints replace conditions, and no predicate checks those.
    removed: ClassVar = {
        True: frozenset((_CONDITION, "CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure")),
        False: frozenset((_UNSCHEDULABLE,)),
    }
    mandatory: ClassVar = {True: (_UNSCHEDULABLE, _TAINTS), False: (_CONDITION,)}
    # Custom label and service predicates come after the taints.
    ordering = (
        *_NAMES[:_BEHIND_TAINTS],
        "PodToleratesNodeNoExecuteTaints",
        "CheckNodeLabelPresence",
        SERVICE_AFFINITY,
        *_NAMES[_BEHIND_TAINTS:],
    )
    check_pod = staticmethod(check_claims)
    budget_rule = staticmethod(mark_violations)
    # PDB violations, the first victim's priority, the sum of priorities, the count; then any.
    criteria = staticmethod(lambda _: (FEWEST_VIOLATIONS, LOWEST_FIRST_VICTIM, SMALLEST_SUM, FEWEST_VICTIMS))
    assumptions_about = staticmethod(claim_assumptions)
    words = Words("status.nominatedNodeName", "by {pod} on node {node}", reports_failure_first=True)


VERSION = Version113
