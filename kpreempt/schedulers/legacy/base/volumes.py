"""Volumes as the predicates of 1.8 and 1.13 look at them; the plugins of 1.18 do the same for disks and zones.

``algorithm/predicates/predicates.go``: ``isVolumeConflict``, ``MaxPDVolumeCountChecker``, ``VolumeZoneChecker``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, RBDVolume, Volume
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.verdict.details import VolumeConflict

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
CSI_LIMIT_PREFIX = "attachable-volumes-csi-"
_LONGEST_LIMIT_KEY = 63
ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
_ZONE_DELIMITER = "__"


class DiskType(NamedTuple):
    """A kind of disk whose number on a node is limited: its identity in a pod's volume and in a persistent volume."""

    name: str
    of_volume: Callable[[Volume], str | None]
    of_persistent_volume: Callable[[PersistentVolume], str | None]


EBS = DiskType(
    "EBS",
    lambda volume: None if (disk := volume.aws_elastic_block_store) is None else disk.volume_id,
    lambda volume: None if (disk := volume.spec.aws_elastic_block_store) is None else disk.volume_id,
)
GCE_PD = DiskType(
    "GCE",
    lambda volume: None if (disk := volume.gce_persistent_disk) is None else disk.pd_name,
    lambda volume: None if (disk := volume.spec.gce_persistent_disk) is None else disk.pd_name,
)
AZURE_DISK = DiskType(
    "AzureDisk",
    lambda volume: None if (disk := volume.azure_disk) is None else disk.disk_name,
    lambda volume: None if (disk := volume.spec.azure_disk) is None else disk.disk_name,
)


def disk_conflict(pod: Pod, node_info: NodeInfo) -> VolumeConflict | None:
    """A disk of the pod that another pod on the node uses in a way that excludes it, or ``None``."""
    for volume in pod.spec.volumes:
        holders = [
            info.key for info in node_info.pods if any(_excludes(volume, other) for other in info.pod.spec.volumes)
        ]
        if holders:
            return VolumeConflict(volume=volume.name, problem="the disk is in use", holders=holders)
    return None


def _excludes(volume: Volume, other: Volume) -> bool:
    """Two users of one disk: never for EBS, only where both only read for the others."""
    disk, used_disk = volume.gce_persistent_disk, other.gce_persistent_disk
    block, used_block = volume.aws_elastic_block_store, other.aws_elastic_block_store
    target, used_target = volume.iscsi, other.iscsi
    if disk and used_disk and disk.pd_name == used_disk.pd_name and not (disk.read_only and used_disk.read_only):
        return True
    if block and used_block and block.volume_id == used_block.volume_id:
        return True
    if target and used_target and target.iqn == used_target.iqn:
        return not (target.read_only and used_target.read_only)
    return _is_same_image(volume.rbd, other.rbd)


def _is_same_image(image: RBDVolume | None, used: RBDVolume | None) -> bool:
    if image is None or used is None or (image.pool, image.image) != (used.pool, used.image):
        return False
    return not set(image.monitors).isdisjoint(used.monitors) and not (image.read_only and used.read_only)


def claim_names(pod: Pod) -> Iterator[str]:
    """The names of the claims that the pod's volumes refer to."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def claim_of(cluster: Cluster, pod: Pod, name: str) -> PersistentVolumeClaim | None:
    """The pod's claim of that name, or ``None``."""
    return cluster.persistent_volume_claims.get(f"{pod.metadata.namespace}/{name}")


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The storage class that the claim asks for; empty where it names none."""
    annotated = claim.metadata.annotations.get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """The storage class of the volume."""
    return volume.metadata.annotations.get(BETA_STORAGE_CLASS, volume.spec.storage_class_name)


def zone_conflict(volume: PersistentVolume, node: Node) -> str | None:
    """The zone label of the volume whose values the node's is not among, or ``None``; nodes without zones take all."""
    zones = {key: node.metadata.labels[key] for key in ZONE_LABELS if key in node.metadata.labels}
    if not zones:
        return None
    for key in ZONE_LABELS:
        value = volume.metadata.labels.get(key)
        allowed = [] if value is None else [zone.strip() for zone in value.split(_ZONE_DELIMITER)]
        if allowed and all(allowed) and zones.get(key, "") not in allowed:
            return key
    return None


def is_reachable(volume: PersistentVolume, node_labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels reaches the volume (``CheckNodeAffinity``).

    The node's name is not handed over: a term that asks for a certain name never holds, one that forbids a name does.
    """
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    return required is None or any(
        term.matches("", node_labels) and all(field.operator == "NotIn" for field in term.match_fields)
        for term in required.node_selector_terms
    )


def csi_limit_key(driver: str) -> str:
    """The resource that limits a driver's volumes (``GetCSIAttachLimitKey``); a name that is too long is hashed."""
    if len(CSI_LIMIT_PREFIX) + len(driver) < _LONGEST_LIMIT_KEY:
        return CSI_LIMIT_PREFIX + driver
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{CSI_LIMIT_PREFIX}{driver[:23]}{digest[:16]}"
