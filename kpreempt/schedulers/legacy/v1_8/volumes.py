"""The volume predicates of 1.8 (``algorithm/predicates/predicates.go``, v1.8.15).

NoVolumeNodeConflict does nothing while the gate PersistentLocalVolumes is off, and is not modelled otherwise.
"""

from __future__ import annotations

from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolume
from kpreempt.schedulers.legacy.base.checks import PASSES, refusal
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.filtering import Filter, LegacyError
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.schedulers.legacy.base.predicates import Check, Metadata
from kpreempt.schedulers.legacy.base.volumes import (
    AZURE_DISK,
    EBS,
    GCE_PD,
    ZONE_LABELS,
    DiskType,
    claim_names,
    claim_of,
    zone_conflict,
)
from kpreempt.verdict import Status
from kpreempt.verdict.details import VolumeConflict, VolumeLimitExceeded

MAX_VOLUMES_EXCEEDED = "MaxVolumeCount"
ZONE_CONFLICT = "NoVolumeZoneConflict"


def _max_volume_count(disk_type: DiskType, limit: int) -> Check:
    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        wanted = _disks(meta.cluster, meta.pod.pod, disk_type)
        if not wanted:
            return PASSES
        there = {disk for info in node_info.pods for disk in _disks(meta.cluster, info.pod, disk_type)}
        if len(there | wanted) <= limit:
            return PASSES
        detail = VolumeLimitExceeded(disk_type.name, len(there), len(wanted - there), limit)
        return refusal(MAX_VOLUMES_EXCEEDED, detail=detail)

    return check


def _disks(cluster: Cluster, pod: Pod, disk_type: DiskType) -> set[str]:
    """The pod's disks of the type. What is not found counts as a disk of its own, and those after it not at all."""
    disks: set[str] = set()
    for volume in pod.spec.volumes:
        disk = disk_type.of_volume(volume)
        if disk is None and volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            bound = _bound_volume(cluster, pod, name)
            if bound is None:
                return {*disks, f"\0{pod.key}/{name}"}
            disk = disk_type.of_persistent_volume(bound)
        if disk is not None:
            disks.add(disk)
    return disks


def _bound_volume(cluster: Cluster, pod: Pod, name: str) -> PersistentVolume | None:
    """The claim's volume, ``None`` where the claim or the volume is not there; raises where it is not bound."""
    if not name:
        raise LegacyError("PersistentVolumeClaim had no name")
    claim = claim_of(cluster, pod, name)
    if claim is None:
        return None
    if not claim.spec.volume_name:
        raise LegacyError(f'PersistentVolumeClaim is not bound: "{name}"')
    return cluster.persistent_volumes.get(claim.spec.volume_name)


def no_volume_zone_conflict(meta: Metadata, node_info: NodeInfo) -> Status:
    """The bound volumes are in the node's zone; a node without zones takes all."""
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
            return refusal(ZONE_CONFLICT, detail=detail)
    return PASSES


VOLUME_PREDICATES = (
    Filter("NoVolumeZoneConflict", no_volume_zone_conflict),
    Filter("MaxEBSVolumeCount", _max_volume_count(EBS, 39)),
    Filter("MaxGCEPDVolumeCount", _max_volume_count(GCE_PD, 16)),
    Filter("MaxAzureDiskVolumeCount", _max_volume_count(AZURE_DISK, 16)),
)
