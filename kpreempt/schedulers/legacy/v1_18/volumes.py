"""The volume plugins of 1.18 (v1.18.19): binding of claims, volume limits of nodes, and zones.

VolumeBinding follows ``FindPodVolumes`` (``pkg/controller/volume/scheduling/scheduler_binder.go``). Volumes of the same
size are taken in input order, while upstream takes them in the random order of an index that it reads again for each
claim and node, also in the dry run; if the order matters, an assumption reports it.

The limits follow ``plugins/nodevolumelimits``, for a cloud's disks and for CSI drivers. The gates that migrate in-tree
volumes to CSI drivers are off by default and not modeled, nor is ``KUBE_MAX_PD_VOLS``. ``plugins/volumezone``: bound
volumes must be in the zone and region of the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.storage import (
    NO_PROVISIONER,
    SELECTED_NODE_ANNOTATION,
    PersistentVolume,
    PersistentVolumeClaim,
    class_of_claim,
    class_of_volume,
    is_bound_to,
    is_fully_bound,
    requested_storage,
    storage_capacity,
)
from kpreempt.schedulers.disks import (
    AZURE_DISK,
    CINDER,
    EBS,
    GCE_PD,
    INSTANCE_TYPE_LABELS,
    LIMIT_PREFIX,
    DiskType,
    csi_limit_key,
    default_disk_limit,
)
from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from kpreempt.schedulers.legacy.base.node_info import Cluster, NodeInfo
from kpreempt.schedulers.legacy.base.predicates import (
    ZONE_LABELS,
    LegacyError,
    claim_names,
    claim_of,
    is_reachable,
    rejection,
    too_many_disks,
    zone_conflict,
)
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, selector_error
from kpreempt.schedulers.volume_orders import Wishes, results_of_orders
from kpreempt.verdict import SUCCESS, Assumption, AssumptionKind, Code, Status
from kpreempt.verdict.details import VolumeConflict, VolumeLimitExceeded

REASON = "node(s) exceed max volume count"


# Provisioners whose claims count toward the in-tree plugin, not a CSI driver (``csi-translation-lib`` v0.18).
MIGRATABLE = frozenset(f"kubernetes.io/{name}" for name in ("aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd"))


class InTreeLimits(FilterPlugin):
    """Counts the distinct disks of one cloud on the node, plus those that the pod would add."""

    def __init__(self, name: str, disk_type: DiskType) -> None:
        self.name = name
        self._disk_type = disk_type
        self._provisioner = f"kubernetes.io/{disk_type.plugin}"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Reject the node if the total exceeds its limit; evictions may help."""
        disk_type, labels = self._disk_type, node_info.labels
        instance_type = next((labels[label] for label in INSTANCE_TYPE_LABELS if label in labels), "")
        limit = node_info.allocatable.get(
            f"{LIMIT_PREFIX}{disk_type.plugin}", default_disk_limit(disk_type, instance_type)
        )
        disks_of = partial(self._disks, state.cluster)
        detail = too_many_disks(self._provisioner, disks_of, state.pod.pod, node_info, limit)
        return rejection(REASON, detail=detail, code=Code.UNSCHEDULABLE) if detail else SUCCESS

    def _disks(self, cluster: Cluster, pod: Pod) -> set[str]:
        disks = {self._disk_type.of(volume) for volume in pod.spec.volumes}
        for _, claim in _claims_of(pod, cluster):
            if claim is None:
                continue
            volume = cluster.persistent_volumes.get(claim.spec.volume_name)
            storage_class = cluster.storage_classes.get(claim.spec.storage_class_name or "")
            if volume is not None:
                disks.add(self._disk_type.of(volume.spec))
            elif storage_class is not None and storage_class.provisioner == self._provisioner:
                # Upstream prefixes the key with a random string, which no real disk has.
                disks.add(f"claim {claim.key}")
        return {disk for disk in disks if disk is not None}


EBS_LIMITS = InTreeLimits("EBSLimits", EBS)
GCE_PD_LIMITS = InTreeLimits("GCEPDLimits", GCE_PD)
AZURE_DISK_LIMITS = InTreeLimits("AzureDiskLimits", AZURE_DISK)
# Only runs if a Policy file names it, and its limit is too high to matter.
CINDER_LIMITS = InTreeLimits("CinderLimits", CINDER)


def _claims_of(pod: Pod, cluster: Cluster) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
    """Yield the names of the pod's claims, each with the claim; raise ``LegacyError`` for an empty name."""
    for name in claim_names(pod):
        if not name:
            raise LegacyError("PersistentVolumeClaim had no name")
        yield name, claim_of(cluster, pod, name)


class CSILimits(FilterPlugin):
    """Counts the volumes of each CSI driver against the limit that the driver or the node reports."""

    name = "NodeVolumeLimits"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Reject the node if a driver's total exceeds its limit; evictions may help."""
        wanted = _csi_volumes(state.pod.pod, state.cluster)
        limits = {name: limit for name, limit in node_info.allocatable.items() if name.startswith(LIMIT_PREFIX)}
        csi_node = state.cluster.csi_nodes.get(node_info.name)
        for stated in csi_node.spec.drivers if csi_node else ():
            if stated.allocatable is not None and stated.allocatable.count is not None:
                limits[csi_limit_key(stated.name)] = stated.allocatable.count
        if not wanted or not limits:
            return SUCCESS
        used = {volume for other in node_info.pods for volume in _csi_volumes(other.pod, state.cluster)}
        new = wanted - used
        for driver in dict.fromkeys(driver for driver, _ in sorted(new)):
            limit = limits.get(csi_limit_key(driver))
            there = sum(each == driver for each, _ in used)
            added = sum(each == driver for each, _ in new)
            if limit is not None and there + added > limit:
                detail = VolumeLimitExceeded(driver, there, added, limit)
                return rejection(REASON, detail=detail, code=Code.UNSCHEDULABLE)
        return SUCCESS


def _csi_volumes(pod: Pod, cluster: Cluster) -> set[tuple[str, str]]:
    """Return driver and handle of the CSI volumes of the pod's claims."""
    volumes = set()
    for _, claim in _claims_of(pod, cluster):
        if claim is None:
            continue
        if (volume := cluster.persistent_volumes.get(claim.spec.volume_name)) is not None:
            csi = volume.spec.csi
            if csi and csi.driver and csi.volume_handle:
                volumes.add((csi.driver, csi.volume_handle))
            continue
        storage_class = cluster.storage_classes.get(class_of_claim(claim))
        if storage_class is not None and storage_class.provisioner not in ("", *MIGRATABLE):
            volumes.add((storage_class.provisioner, f"claim {claim.key}"))
    return volumes


REASON_ZONE = "node(s) had no available volume zone"


class VolumeZone(FilterPlugin):
    """Compares the zone labels of the pod's volumes with those of nodes that have any."""

    name = "VolumeZone"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Reject a node in another zone as unresolvable; an unbound claim must wait for its first consumer."""
        if not any(label in node_info.labels for label in ZONE_LABELS):
            return SUCCESS
        for name, claim in _claims_of(state.pod.pod, state.cluster):
            if claim is None:
                raise LegacyError(f'persistentvolumeclaim "{name}" not found')
            volume = _volume_of(claim, state.cluster)
            label = zone_conflict(volume, node_info.node) if volume is not None else None
            if volume is not None and label is not None:
                problem = f"{label}={volume.metadata.labels[label]}"
                detail = VolumeConflict(claim=claim.key, volume=volume.metadata.name, problem=problem)
                return rejection(REASON_ZONE, detail=detail, code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        return SUCCESS


def _volume_of(claim: PersistentVolumeClaim, cluster: Cluster) -> PersistentVolume | None:
    """Return the claim's volume; ``None`` if it is bound with its first consumer."""
    bound = claim.spec.volume_name
    if bound:
        volume = cluster.persistent_volumes.get(bound)
        if volume is None:
            raise LegacyError(f'persistentvolume "{bound}" not found')
        return volume
    class_name = class_of_claim(claim)
    if not class_name:
        raise LegacyError("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = cluster.storage_classes.get(class_name)
    if storage_class is None:
        name = claim.metadata.name
        raise LegacyError(f'StorageClass "{class_name}" claimed by PersistentVolumeClaim "{name}" not found')
    if storage_class.volume_binding_mode is None:
        raise LegacyError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    if storage_class.volume_binding_mode == WAITS_FOR_CONSUMER:
        return None
    raise LegacyError("PersistentVolume had no name")


REASON_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
REASON_NODE_CONFLICT = "node(s) had volume node affinity conflict"
REASON_BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
REASON_NO_VOLUME = "pvc(s) bound to non-existent pv(s)"

_FILESYSTEM = "Filesystem"


class VolumeBinding(FilterPlugin):
    """Rejects nodes, as unresolvable, on which the pod's claims cannot be bound."""

    name = "VolumeBinding"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Check bound claims first, then those that wait for their first consumer."""
        binder = _Binder(state.cluster)
        claims = [binder.claim(state.pod.pod, name) for name in claim_names(state.pod.pod)]
        reasons = binder.reasons_against(claims, node_info.node)
        if not reasons:
            return SUCCESS
        detail = VolumeConflict(claim=", ".join(claim.key for claim in claims))
        return rejection(*reasons, detail=detail, code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


def order_assumptions(cluster: Cluster, pod: Pod) -> list[Assumption]:
    """Return an assumption if the random order of interchangeable volumes decides whether the claims can be bound."""
    binder = _Binder(cluster)
    try:
        claims = [claim for name in claim_names(pod) if not is_fully_bound(claim := binder.claim(pod, name))]
        nodes = [info.name for info in cluster.node_infos if binder.depends_on_order(claims, info.node)]
    except LegacyError:
        # The cycle fails with this error in every order.
        return []
    if not nodes:
        return []
    place = f"{len(nodes)} nodes, including {nodes[0]}" if len(nodes) > 1 else f"node {nodes[0]}"
    message = (
        f"on {place}, the order of tied volumes decides whether claims"
        f" {', '.join(dict.fromkeys(claim.key for claim in claims))} can be bound; 1.18 tries them in random order"
        " (here: input order)"
    )
    return [Assumption(f"Pod {pod.key}", "spec.volumes", message, AssumptionKind.UNCERTAIN)]


class _Binder:
    """Finds volumes for claims."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def reasons_against(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> list[str]:
        """Return why the claims cannot be bound on the node; empty if they can."""
        bound = [claim for claim in claims if is_fully_bound(claim)]
        unbound = [claim for claim in claims if not is_fully_bound(claim)]
        if not all(map(self._waits_for_consumer, unbound)):
            return [REASON_UNBOUND_IMMEDIATE]
        # The conflict of the first bound volume that the node cannot use.
        conflict = ""
        for claim in bound:
            volume = self._cluster.persistent_volumes.get(claim.spec.volume_name)
            if volume is None or not is_reachable(volume, node.labels):
                conflict = REASON_NO_VOLUME if volume is None else REASON_NODE_CONFLICT
                break
        reasons = [conflict] if conflict == REASON_NODE_CONFLICT else []
        if unbound and not self._can_bind(unbound, node):
            reasons.append(REASON_BIND_CONFLICT)
        if conflict == REASON_NO_VOLUME:
            reasons.append(conflict)
        return reasons

    def claim(self, pod: Pod, name: str) -> PersistentVolumeClaim:
        """Return the pod's claim of that name; raise ``LegacyError`` if it is missing."""
        claim = claim_of(self._cluster, pod, name)
        if claim is None:
            key = f"{pod.metadata.namespace}/{name}"
            raise LegacyError(f'error getting PVC "{key}": could not find v1.PersistentVolumeClaim "{key}"')
        return claim

    def _waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether the scheduler should bind the claim; one with an unfinished volume is left to others."""
        class_name = class_of_claim(claim)
        storage_class = self._cluster.storage_classes.get(class_name) if class_name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            raise LegacyError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        return storage_class.volume_binding_mode == WAITS_FOR_CONSUMER and not claim.spec.volume_name

    def _can_bind(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> bool:
        """Return whether each claim finds a volume or can be provisioned; a selected node must be this one."""
        to_provision, to_match = [], []
        for claim in claims:
            selected = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
            if selected is None:
                to_match.append(claim)
            elif selected == node.name:
                to_provision.append(claim)
            else:
                return False
        taken: list[str] = []
        for claim in _smallest_first(to_match):
            volume = self._match(claim, node, taken)
            if volume is None:
                to_provision.append(claim)
            else:
                taken.append(volume.metadata.name)
        return all(self._can_provision(claim, node) for claim in to_provision)

    def depends_on_order(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> bool:
        """Return whether the order of tied volumes decides if the claims can be bound, or may do so."""
        to_match = _smallest_first(
            [each for each in claims if SELECTED_NODE_ANNOTATION not in each.metadata.annotations]
        )
        if not to_match or not all(map(self._waits_for_consumer, claims)):
            return False
        numbers: dict[str, int] = {}
        lost: set[int] = set()
        tiers = []
        for claim in to_match:
            serving = [each for each in self._cluster.persistent_volumes.values() if self._serves(claim, each)]
            reserved = [each for each in serving if each.spec.claim_ref is not None]
            by_size: dict[int, list[PersistentVolume]] = {}
            for volume in serving:
                is_free = volume.spec.claim_ref is None and _is_available(volume, claim)
                if is_free and is_reachable(volume, node.labels):
                    by_size.setdefault(storage_capacity(volume).nano, []).append(volume)
            ranked = [reserved, *(by_size[size] for size in sorted(by_size))]
            tiers.append(
                tuple(tuple(numbers.setdefault(each.metadata.name, len(numbers)) for each in tier) for tier in ranked)
            )
            lost |= {numbers[each.metadata.name] for each in reserved if not is_reachable(each, node.labels)}
        if len(to_match) == 1 and all(len(tier) < 2 for tier in tiers[0][:1]):
            return False
        found = results_of_orders([Wishes(tuple(tiers), frozenset(lost))], [0] * len(numbers))
        if found is None:
            return True
        ends = {
            all(
                pick is not None or self._can_provision(claim, node)
                for claim, pick in zip(to_match, result.picks[0], strict=True)
            )
            for result in found.results
        }
        return len(ends) > 1

    def _serves(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
        """Return whether the volume matches the claim's class and size, and is not reserved for another claim."""
        return (
            (volume.spec.claim_ref is None or is_bound_to(volume, claim))
            # The index uses only the field, not the annotation.
            and volume.spec.storage_class_name == class_of_claim(claim)
            and storage_capacity(volume).nano >= requested_storage(claim).nano
            and (claim.spec.volume_mode or _FILESYSTEM) == (volume.spec.volume_mode or _FILESYSTEM)
            and volume.metadata.deletion_timestamp is None
        )

    def _match(self, claim: PersistentVolumeClaim, node: Node, taken: Sequence[str]) -> PersistentVolume | None:
        """``FindMatchingVolume``: the volume reserved for the claim, otherwise the smallest one that matches."""
        error = selector_error(claim.spec.selector)
        if error:
            raise LegacyError(f"error creating internal label selector for claim: {claim.key}: {error}")
        suitable = []
        for volume in self._cluster.persistent_volumes.values():
            if volume.metadata.name in taken or not self._serves(claim, volume):
                continue
            if volume.spec.claim_ref is not None:
                return volume if is_reachable(volume, node.labels) else None
            if _is_available(volume, claim) and is_reachable(volume, node.labels):
                suitable.append(volume)
        return min(suitable, key=lambda volume: storage_capacity(volume).nano, default=None)

    def _can_provision(self, claim: PersistentVolumeClaim, node: Node) -> bool:
        class_name = class_of_claim(claim)
        storage_class = self._cluster.storage_classes.get(class_name)
        if storage_class is None:
            what = f'failed to find storage class "{class_name}"' if class_name else f'no class for claim "{claim.key}"'
            raise LegacyError(what)
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return False
        topologies = [term.match_label_expressions for term in storage_class.allowed_topologies]
        return not topologies or any(
            bool(terms) and all(node.labels.get(each.key) in each.values for each in terms) for terms in topologies
        )


def _smallest_first(claims: Sequence[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    return sorted_as_before_go_1_19(claims, lambda one, two: requested_storage(one).nano < requested_storage(two).nano)


def _is_available(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.status.phase == "Available"
        and (claim.spec.selector is None or claim.spec.selector.matches(volume.metadata.labels))
        and class_of_volume(volume) == class_of_claim(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


WAITS_FOR_CONSUMER = "WaitForFirstConsumer"
