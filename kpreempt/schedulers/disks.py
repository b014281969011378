"""Cloud disks: which volumes are the same disk, and how many a node can attach.

Follows ``plugins/nodevolumelimits`` up to v1.31. The rules have not changed since 1.8, except for the names of limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from kpreempt.model.pod import Volume
from kpreempt.model.storage import PersistentVolumeSpec

LIMIT_PREFIX = "attachable-volumes-"
CSI_LIMIT_PREFIX = f"{LIMIT_PREFIX}csi-"
# Resource names have a maximum length.
_LONGEST_NAME = 63
INSTANCE_TYPE_LABELS = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")


class DiskType(NamedTuple):
    """A kind of disk with a limit per node: its name, its plugin's name, and its identity in a volume source."""

    name: str
    plugin: str
    of: Callable[[Volume | PersistentVolumeSpec], str | None]


EBS = DiskType(
    "EBS", "aws-ebs", lambda source: None if (disk := source.aws_elastic_block_store) is None else disk.volume_id
)
GCE_PD = DiskType(
    "GCE", "gce-pd", lambda source: None if (disk := source.gce_persistent_disk) is None else disk.pd_name
)
AZURE_DISK = DiskType(
    "AzureDisk", "azure-disk", lambda source: None if (disk := source.azure_disk) is None else disk.disk_name
)
CINDER = DiskType("Cinder", "cinder", lambda source: None if (disk := source.cinder) is None else disk.volume_id)
_NITRO = re.compile("^[cmr]5.*|t3|z1d")


def default_disk_limit(disk_type: DiskType, instance_type: str = "") -> int:
    """Return how many disks a node can attach if it does not declare a limit."""
    if disk_type is EBS and _NITRO.search(instance_type):
        return 25
    return {EBS: 39, CINDER: 256}.get(disk_type, 16)


def excludes(volume: Volume, other: Volume) -> bool:
    """Return whether both are a disk that two pods cannot share: always for EBS, otherwise unless both only read it."""
    block, used_block = volume.aws_elastic_block_store, other.aws_elastic_block_store
    if block and used_block and block.volume_id == used_block.volume_id:
        return True
    disk, used_disk = volume.gce_persistent_disk, other.gce_persistent_disk
    if disk and used_disk and disk.pd_name == used_disk.pd_name and not (disk.read_only and used_disk.read_only):
        return True
    target, used_target = volume.iscsi, other.iscsi
    if target and used_target and target.iqn == used_target.iqn and not (target.read_only and used_target.read_only):
        return True
    image, used = volume.rbd, other.rbd
    if image is None or used is None or (image.pool, image.image) != (used.pool, used.image):
        return False
    return not set(image.monitors).isdisjoint(used.monitors) and not (image.read_only and used.read_only)


def csi_limit_key(driver: str) -> str:
    """Return the resource that limits a CSI driver's volumes (``GetCSIAttachLimitKey``); long names are hashed."""
    key = f"{CSI_LIMIT_PREFIX}{driver}"
    if len(key.encode()) < _LONGEST_NAME:
        return key
    import hashlib  # noqa: PLC0415 - only old versions need it

    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{CSI_LIMIT_PREFIX}{driver[:23]}{digest[:16]}"
