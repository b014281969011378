"""EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits refuse nodes that take no more disks of a cloud.

Follows ``plugins/nodevolumelimits/non_csi.go`` of v1.31.14; later versions have none of them. They look at nodes
without a CSINode only: on all others these disks are CSI volumes. The scheduler's environment (``KUBE_MAX_PD_VOLS``)
may set another limit for all nodes, which is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, Volume
from kpreempt.model.storage import CSINode, PersistentVolumeClaim, PersistentVolumeSpec
from kpreempt.schedulers.kube.framework.csi_translation import (
    AWS_EBS,
    MIGRATED_PLUGINS_ANNOTATION,
    claim_name_of,
    is_ephemeral,
    not_found,
    ownership_error,
)
from kpreempt.schedulers.kube.framework.csi_translation import AZURE_DISK as AZURE_DISK_PLUGIN
from kpreempt.schedulers.kube.framework.csi_translation import CINDER as CINDER_PLUGIN
from kpreempt.schedulers.kube.framework.csi_translation import GCE_PD as GCE_PD_PLUGIN
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.events import Action, Awaited, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import in_tree
from kpreempt.schedulers.kube.framework.interface import (
    FilterPlugin,
    Handle,
    PluginArgs,
    PluginError,
    PreFilterPlugin,
    PreFilterResult,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resources import ATTACHABLE_VOLUMES_PREFIX
from kpreempt.verdict import SUCCESS, Code, Status, details
from kpreempt.verdict.status import SKIP

REASON_LIMIT = "node(s) exceed max volume count"

# Machines of these kinds take fewer EBS volumes.
_NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
_INSTANCE_TYPES = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
_Source = Volume | PersistentVolumeSpec


class Cloud(NamedTuple):
    """One cloud's disks: who makes them, and how a node's own limit is called.

    ``disk`` names the disk of a volume, ``None`` where it is another's. ``limit`` is that of a node without its own.
    """

    provisioner: str
    key: str
    disk: Callable[[_Source], str | None]
    limit: Callable[[Node], int]


def _ebs_limit(node: Node) -> int:
    kind = next((node.labels[label] for label in _INSTANCE_TYPES if label in node.labels), "")
    return 25 if _NITRO.search(kind) else 39


class InTreeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Counts the disks of one cloud on the node, each once, and those that the pod would add."""

    is_local = True
    cloud: ClassVar[Cloud]

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._is_announced = handle.behaviour.migrates_disks_by_annotation and self.cloud.provisioner != CINDER_PLUGIN

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip pods without claims and without disks of the cloud."""
        volumes = pod.spec.volumes
        may_count = any(self.cloud.disk(each) is not None or claim_name_of(pod, each) is not None for each in volumes)
        return None, SUCCESS if may_count else SKIP

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Refuse the node where the sum is above its limit."""
        try:
            new = self._disks(pod, is_incoming=True)
            if not new or self._is_migrated(self._cluster.csi_nodes.get(node_info.name)):
                return SUCCESS
            used: set[str] = set()
            for pod_info in node_info.pods:
                if pod_info.pod.spec.volumes:
                    used |= self._disks(pod_info.pod, is_incoming=False)
        except PluginError as error:
            return Status(Code.ERROR, [str(error)])
        added = len(new - used)
        limit = node_info.allocatable.scalar.get(f"{ATTACHABLE_VOLUMES_PREFIX}{self.cloud.key}")
        if limit is None:
            limit = self.cloud.limit(node_info.node)
        if len(used) + added <= limit:
            return SUCCESS
        detail = details.VolumeLimitExceeded(self.cloud.provisioner, len(used), added, limit)
        return Status(Code.UNSCHEDULABLE, [REASON_LIMIT], detail=detail)

    def _is_migrated(self, csi_node: CSINode | None) -> bool:
        if csi_node is None or not self._is_announced:
            return csi_node is not None
        announced = csi_node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "").split(",")
        return self.cloud.provisioner in announced

    def _disks(self, pod: Pod, *, is_incoming: bool) -> set[str]:
        """The pod's disks of the cloud. Claims that do not exist are an error of the incoming pod only."""
        found: set[str] = set()
        for volume in pod.spec.volumes:
            disk = self.cloud.disk(volume)
            if disk is not None:
                found.add(disk)
                continue
            name = claim_name_of(pod, volume)
            if name is None:
                continue
            if not name:
                raise PluginError("PersistentVolumeClaim had no name")
            key = f"{pod.metadata.namespace}/{name}"
            claim = self._cluster.persistent_volume_claims.get(key)
            if claim is None:
                if is_incoming:
                    raise PluginError(f"looking up PVC {key}: {not_found('persistentvolumeclaim', name)}")
                continue
            problem = ownership_error(pod, claim) if is_ephemeral(volume) else None
            if problem is not None:
                raise PluginError(problem)
            disk = self._disk_of_claim(claim)
            if disk is not None:
                found.add(disk)
        return found

    def _disk_of_claim(self, claim: PersistentVolumeClaim) -> str | None:
        """The disk behind the claim; where there is none yet, one of the claim's own."""
        volume = self._cluster.persistent_volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            return self.cloud.disk(volume.spec)
        storage_class = self._cluster.storage_classes.get(claim.spec.storage_class_name or "")
        is_ours = storage_class is not None and storage_class.provisioner == self.cloud.provisioner
        # Upstream puts a random prefix before the key, so that no disk has that name.
        return f"claim {claim.key}" if is_ours else None


class EBSLimits(InTreeVolumeLimits):
    """AWS disks."""

    name = "EBSLimits"
    cloud = Cloud(
        AWS_EBS,
        "aws-ebs",
        lambda source: source.aws_elastic_block_store.volume_id if source.aws_elastic_block_store else None,
        _ebs_limit,
    )


class GCEPDLimits(InTreeVolumeLimits):
    """Google's disks."""

    name = "GCEPDLimits"
    cloud = Cloud(
        GCE_PD_PLUGIN,
        "gce-pd",
        lambda source: source.gce_persistent_disk.pd_name if source.gce_persistent_disk else None,
        lambda _: 16,
    )


class AzureDiskLimits(InTreeVolumeLimits):
    """Azure's disks."""

    name = "AzureDiskLimits"
    cloud = Cloud(
        AZURE_DISK_PLUGIN,
        "azure-disk",
        lambda source: source.azure_disk.disk_name if source.azure_disk else None,
        lambda _: 16,
    )


class CinderLimits(InTreeVolumeLimits):
    """OpenStack's disks."""

    name = "CinderLimits"
    cloud = Cloud(
        CINDER_PLUGIN, "cinder", lambda source: source.cinder.volume_id if source.cinder else None, lambda _: 256
    )


def _awaits() -> list[Awaited]:
    return [on_node(Action.ADD), on_pod(Action.DELETE)]


EBS = in_tree(EBSLimits, awaits=_awaits)
GCE_PD = in_tree(GCEPDLimits, awaits=_awaits)
AZURE_DISK = in_tree(AzureDiskLimits, awaits=_awaits)
CINDER = in_tree(CinderLimits, awaits=_awaits)
