"""The volume predicates of 1.13 (``algorithm/predicates``: ``predicates.go``, ``csi_volume_predicate.go``, v1.13.12).

Of CheckVolumeBinding only bound claims are modelled; a claim that waits for its first pod is taken to find a volume.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.schedulers.legacy.base.checks import PASSES, refusal
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.filtering import Filter, LegacyError
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.schedulers.legacy.base.predicates import Check, Metadata
from kpreempt.schedulers.legacy.base.volumes import (
    AZURE_DISK,
    CSI_LIMIT_PREFIX,
    EBS,
    GCE_PD,
    DiskType,
    claim_names,
    claim_of,
    class_of_claim,
    csi_limit_key,
    is_reachable,
    zone_conflict,
)
from kpreempt.verdict import Assumption, AssumptionKind, Status
from kpreempt.verdict.details import VolumeConflict, VolumeLimitExceeded

MAX_VOLUMES_EXCEEDED = "node(s) exceed max volume count"
ZONE_CONFLICT = "node(s) had no available volume zone"
NODE_AFFINITY_CONFLICT = "node(s) had volume node affinity conflict"

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
_NITRO = re.compile("^[cmr]5.*|t3|z1d")
_MAX_EBS, _MAX_EBS_NITRO, _MAX_OTHERS = 39, 25, 16
_LIMIT_KEYS = {
    EBS.name: "attachable-volumes-aws-ebs",
    GCE_PD.name: "attachable-volumes-gce-pd",
    AZURE_DISK.name: "attachable-volumes-azure-disk",
}


def _max_volume_count(disk_type: DiskType) -> Check:
    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        wanted = _disks(meta.cluster, meta.pod.pod, disk_type)
        if not wanted:
            return PASSES
        there = {disk for info in node_info.pods for disk in _disks(meta.cluster, info.pod, disk_type)}
        limit = node_info.allocatable.get(_LIMIT_KEYS[disk_type.name], _default_limit(disk_type, node_info))
        if len(there | wanted) <= limit:
            return PASSES
        detail = VolumeLimitExceeded(disk_type.name, len(there), len(wanted - there), limit)
        return refusal(MAX_VOLUMES_EXCEEDED, detail=detail)

    return check


def _disks(cluster: Cluster, pod: Pod, disk_type: DiskType) -> set[str]:
    """The pod's disks of the type. A claim whose volume is not known counts, as a disk of its own."""
    disks = set()
    for volume in pod.spec.volumes:
        disk = disk_type.of_volume(volume)
        if disk is not None:
            disks.add(disk)
        elif volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            if not name:
                raise LegacyError("PersistentVolumeClaim had no name")
            claim = claim_of(cluster, pod, name)
            bound = cluster.persistent_volumes.get(claim.spec.volume_name) if claim else None
            disk = disk_type.of_persistent_volume(bound) if bound else f"\0{pod.metadata.namespace}/{name}"
            if disk is not None:
                disks.add(disk)
    return disks


def _default_limit(disk_type: DiskType, node_info: NodeInfo) -> int:
    if disk_type is not EBS:
        return _MAX_OTHERS
    return _MAX_EBS_NITRO if _NITRO.search(node_info.labels.get(_INSTANCE_TYPE, "")) else _MAX_EBS


def max_csi_volume_count(meta: Metadata, node_info: NodeInfo) -> Status:
    """No CSI driver gets more volumes than the node's allocatable says."""
    limits = {name for name in node_info.allocatable if name.startswith("attachable-volumes-")}
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
            return refusal(MAX_VOLUMES_EXCEEDED, detail=detail)
    return PASSES


def _csi_volumes(cluster: Cluster, pod: Pod) -> Iterator[tuple[str, str]]:
    """Handles of the pod's CSI volumes, and the resource that limits them."""
    for name in claim_names(pod):
        claim = claim_of(cluster, pod, name)
        volume = cluster.persistent_volumes.get(claim.spec.volume_name) if claim else None
        if volume is not None and volume.spec.csi is not None:
            yield volume.spec.csi.volume_handle, csi_limit_key(volume.spec.csi.driver)


def check_volume_binding(meta: Metadata, node_info: NodeInfo) -> Status:
    """The volumes of bound claims can be reached from the node; claims that should be bound by now are an error."""
    bound = []
    for name in claim_names(meta.pod.pod):
        claim = claim_of(meta.cluster, meta.pod.pod, name)
        if claim is None:
            raise LegacyError(f'error getting PVC "{meta.pod.pod.metadata.namespace}/{name}": not found')
        if claim.spec.volume_name and _BIND_COMPLETED in claim.metadata.annotations:
            bound.append(claim)
        elif claim.spec.volume_name or not _waits_for_first_pod(meta.cluster, claim):
            raise LegacyError("pod has unbound immediate PersistentVolumeClaims")
    for claim in bound:
        volume = meta.cluster.persistent_volumes.get(claim.spec.volume_name)
        if volume is None:
            raise LegacyError(f'could not find v1.PersistentVolume "{claim.spec.volume_name}"')
        if not is_reachable(volume, node_info.node.metadata.labels):
            detail = VolumeConflict(claim.metadata.name, volume.metadata.name, "its node affinity excludes the node")
            return refusal(NODE_AFFINITY_CONFLICT, detail=detail)
    return PASSES


def _waits_for_first_pod(cluster: Cluster, claim: PersistentVolumeClaim) -> bool:
    storage_class = cluster.storage_classes.get(class_of_claim(claim))
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def no_volume_zone_conflict(meta: Metadata, node_info: NodeInfo) -> Status:
    """The bound volumes are in the node's zone."""
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
            return refusal(ZONE_CONFLICT, detail=detail)
    return PASSES


VOLUME_PREDICATES = (
    Filter("MaxEBSVolumeCount", _max_volume_count(EBS)),
    Filter("MaxGCEPDVolumeCount", _max_volume_count(GCE_PD)),
    Filter("MaxCSIVolumeCountPred", max_csi_volume_count),
    Filter("MaxAzureDiskVolumeCount", _max_volume_count(AZURE_DISK)),
    Filter("CheckVolumeBinding", check_volume_binding),
    Filter("NoVolumeZoneConflict", no_volume_zone_conflict),
)


def check_claims(cluster: Cluster, pod: Pod) -> None:
    """All claims are there and stay (``podPassesBasicChecks``); raises ``LegacyError``."""
    for name in claim_names(pod):
        claim = claim_of(cluster, pod, name)
        if claim is None:
            raise LegacyError(f'persistentvolumeclaim "{name}" not found')
        if claim.metadata.deletion_timestamp is not None:
            raise LegacyError(f'persistentvolumeclaim "{name}" is being deleted')


def claim_assumptions(cluster: Cluster, pod: Pod) -> list[Assumption]:
    """The claims for which a volume is assumed to be found on any node."""
    return [
        Assumption(
            f"PersistentVolumeClaim {claim.key}",
            "spec.volumeName",
            "it waits for its first pod; that a volume for it is found on any node is taken for granted",
            AssumptionKind.UNCERTAIN,
        )
        for name in claim_names(pod)
        if (claim := claim_of(cluster, pod, name)) is not None
        and not claim.spec.volume_name
        and _waits_for_first_pod(cluster, claim)
    ]
