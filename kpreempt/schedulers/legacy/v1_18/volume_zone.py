"""VolumeZone: bound volumes must be in the zone and region of the node (``plugins/volumezone``, v1.18.19)."""

from __future__ import annotations

from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.filtering import LegacyError
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.schedulers.legacy.base.volumes import ZONE_LABELS, class_of_claim, zone_conflict
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, refused
from kpreempt.schedulers.legacy.v1_18.storage import WAITS_FOR_CONSUMER, claim_keys
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.details import VolumeConflict

REASON = "node(s) had no available volume zone"


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
                return refused(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON, detail=detail)
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
