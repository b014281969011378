"""How many volumes a node takes, of a cloud's disks and of CSI drivers, and in which zone (v1.18.19).

Follows ``plugins/nodevolumelimits``, and ``plugins/volumezone``: bound volumes must be in the zone and region of the
node. The gates that move in-tree volumes to CSI drivers are off by default and not modeled; nor is
``KUBE_MAX_PD_VOLS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kpreempt.model.pod import Pod, Volume
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec
from kpreempt.schedulers.legacy.base.node_info import Cluster, NodeInfo
from kpreempt.schedulers.legacy.base.predicates import (
    ZONE_LABELS,
    LegacyError,
    class_of_claim,
    csi_limit_key,
    zone_conflict,
)
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, refused
from kpreempt.schedulers.legacy.v1_18.node_filters import ATTACHABLE_VOLUMES_PREFIX
from kpreempt.schedulers.legacy.v1_18.volume_binding import WAITS_FOR_CONSUMER, claim_keys
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.details import VolumeConflict, VolumeLimitExceeded

REASON = "node(s) exceed max volume count"

INSTANCE_TYPE_LABELS = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
_NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
_MAX_EBS, _MAX_EBS_NITRO, _MAX_CINDER, _MAX_OTHERS = 39, 25, 256, 16

# Provisioners whose claims count as the in-tree plugin's and not as a CSI driver's (``csi-translation-lib`` v0.18).
MIGRATABLE = frozenset(f"kubernetes.io/{name}" for name in ("aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd"))


class InTreeLimits(FilterPlugin):
    """Counts the disks of one cloud on the node, each once, and those that the pod would add."""

    def __init__(
        self,
        name: str,
        disk: str,
        disk_of: Callable[[Volume | PersistentVolumeSpec], str | None],
        default_limit: Callable[[NodeInfo], int] = lambda _: _MAX_OTHERS,
    ) -> None:
        """``disk_of`` names the disk of a source if it is this cloud's, ``default_limit`` is for nodes without one."""
        self.name = name
        self._provisioner = f"kubernetes.io/{disk}"
        self._limit_key = f"{ATTACHABLE_VOLUMES_PREFIX}{disk}"
        self._disk_of = disk_of
        self._default_limit = default_limit

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Refuse the node where the sum is above its limit; evictions may help."""
        wanted = self._disks(state.pod.pod, state.cluster)
        if not wanted:
            return SUCCESS
        used: set[str] = set()
        for other in node_info.pods:
            used |= self._disks(other.pod, state.cluster)
        new = wanted - used
        limit = node_info.allocatable.get(self._limit_key)
        if limit is None:
            limit = self._default_limit(node_info)
        if len(used) + len(new) <= limit:
            return SUCCESS
        detail = VolumeLimitExceeded(self._provisioner, len(used), len(new), limit)
        return refused(Code.UNSCHEDULABLE, REASON, detail=detail)

    def _disks(self, pod: Pod, cluster: Cluster) -> set[str]:
        disks = {disk for volume in pod.spec.volumes if (disk := self._disk_of(volume)) is not None}
        for key, name in claim_keys(pod):
            if not name:
                raise LegacyError("PersistentVolumeClaim had no name")
            claim = cluster.persistent_volume_claims.get(key)
            if claim is not None and (disk := self._disk_of_claim(claim, cluster)) is not None:
                disks.add(disk)
        return disks

    def _disk_of_claim(self, claim: PersistentVolumeClaim, cluster: Cluster) -> str | None:
        volume = cluster.persistent_volumes.get(claim.spec.volume_name)
        if volume is not None:
            return self._disk_of(volume.spec)
        # Upstream puts a random prefix before the key, so that no real disk has that name.
        storage_class = cluster.storage_classes.get(claim.spec.storage_class_name or "")
        is_ours = storage_class is not None and storage_class.provisioner == self._provisioner
        return f"claim {claim.key}" if is_ours else None


def _ebs_limit(node_info: NodeInfo) -> int:
    """By the kind of machine."""
    kinds = [node_info.labels[label] for label in INSTANCE_TYPE_LABELS if label in node_info.labels]
    return _MAX_EBS_NITRO if kinds and _NITRO.search(kinds[0]) else _MAX_EBS


EBS_LIMITS = InTreeLimits(
    "EBSLimits",
    "aws-ebs",
    lambda source: source.aws_elastic_block_store.volume_id if source.aws_elastic_block_store else None,
    _ebs_limit,
)
GCE_PD_LIMITS = InTreeLimits(
    "GCEPDLimits",
    "gce-pd",
    lambda source: source.gce_persistent_disk.pd_name if source.gce_persistent_disk else None,
)
AZURE_DISK_LIMITS = InTreeLimits(
    "AzureDiskLimits", "azure-disk", lambda source: source.azure_disk.disk_name if source.azure_disk else None
)
# Only a Policy file asks for it, and the limit is so high that it never counts.
CINDER_LIMITS = InTreeLimits(
    "CinderLimits",
    "cinder",
    lambda source: source.cinder.volume_id if source.cinder else None,
    lambda _: _MAX_CINDER,
)


class CSILimits(FilterPlugin):
    """Counts the volumes of each CSI driver against the limit that the driver, or the node, states."""

    name = "NodeVolumeLimits"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Refuse the node where a driver's sum is above its limit; evictions may help."""
        wanted = _csi_volumes(state.pod.pod, state.cluster)
        limits = _csi_limits(node_info, state.cluster) if wanted else {}
        if not limits:
            return SUCCESS
        used: set[tuple[str, str]] = set()
        for other in node_info.pods:
            used |= _csi_volumes(other.pod, state.cluster)
        new = wanted - used
        for driver in dict.fromkeys(driver for driver, _ in sorted(new)):
            limit = limits.get(csi_limit_key(driver))
            there = sum(each == driver for each, _ in used)
            added = sum(each == driver for each, _ in new)
            if limit is not None and there + added > limit:
                detail = VolumeLimitExceeded(driver, there, added, limit)
                return refused(Code.UNSCHEDULABLE, REASON, detail=detail)
        return SUCCESS


def _csi_limits(node_info: NodeInfo, cluster: Cluster) -> dict[str, int]:
    limits = {
        name: limit for name, limit in node_info.allocatable.items() if name.startswith(ATTACHABLE_VOLUMES_PREFIX)
    }
    csi_node = cluster.csi_nodes.get(node_info.name)
    for driver in csi_node.spec.drivers if csi_node else ():
        if driver.allocatable is not None and driver.allocatable.count is not None:
            limits[csi_limit_key(driver.name)] = driver.allocatable.count
    return limits


def _csi_volumes(pod: Pod, cluster: Cluster) -> set[tuple[str, str]]:
    """Driver and handle of the CSI volumes behind the pod's claims."""
    volumes = set()
    for key, name in claim_keys(pod):
        if not name:
            raise LegacyError("PersistentVolumeClaim had no name")
        claim = cluster.persistent_volume_claims.get(key)
        if claim is not None and (volume := _csi_volume_of(claim, cluster)) is not None:
            volumes.add(volume)
    return volumes


def _csi_volume_of(claim: PersistentVolumeClaim, cluster: Cluster) -> tuple[str, str] | None:
    volume = cluster.persistent_volumes.get(claim.spec.volume_name)
    if volume is not None:
        csi = volume.spec.csi
        return (csi.driver, csi.volume_handle) if csi and csi.driver and csi.volume_handle else None
    storage_class = cluster.storage_classes.get(class_of_claim(claim))
    if storage_class is None or not storage_class.provisioner or storage_class.provisioner in MIGRATABLE:
        return None
    return storage_class.provisioner, f"claim {claim.key}"


REASON_ZONE = "node(s) had no available volume zone"


class VolumeZone(FilterPlugin):
    """Compares the zone labels of the pod's volumes with those of nodes that have any."""

    name = "VolumeZone"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Refuse a node in another zone for good; a claim without a volume must wait for its first consumer."""
        if not any(label in node_info.labels for label in ZONE_LABELS):
            return SUCCESS
        for key, name in claim_keys(state.pod.pod):
            if not name:
                raise LegacyError("PersistentVolumeClaim had no name")
            claim = state.cluster.persistent_volume_claims.get(key)
            if claim is None:
                raise LegacyError(f'persistentvolumeclaim "{name}" not found')
            volume = _volume_of(claim, state.cluster)
            label = zone_conflict(volume, node_info.node) if volume is not None else None
            if volume is not None and label is not None:
                problem = f"{label}={volume.metadata.labels[label]}"
                detail = VolumeConflict(claim=key, volume=volume.metadata.name, problem=problem)
                return refused(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_ZONE, detail=detail)
        return SUCCESS


def _volume_of(claim: PersistentVolumeClaim, cluster: Cluster) -> PersistentVolume | None:
    """The claim's volume; ``None`` where it will be bound when the pod comes."""
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
