"""EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits reject nodes that cannot attach more cloud disks.

Follows ``plugins/nodevolumelimits/non_csi.go`` of v1.31.14; later versions have none of these plugins. They only check
nodes without a CSINode: on all others, these disks are CSI volumes. The scheduler's environment (``KUBE_MAX_PD_VOLS``)
may set another limit for all nodes, which is unknown here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kpreempt.model.pod import Pod
from kpreempt.model.storage import CSINode, PersistentVolumeClaim
from kpreempt.schedulers import disks
from kpreempt.schedulers.disks import INSTANCE_TYPE_LABELS, LIMIT_PREFIX, DiskType
from kpreempt.schedulers.kube.framework.csi_translation import (
    MIGRATED_PLUGINS_ANNOTATION,
    claim_name_of,
    is_ephemeral,
    not_found,
    ownership_error,
)
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
from kpreempt.verdict import SUCCESS, Code, Status, details
from kpreempt.verdict.status import SKIP

REASON_LIMIT = "node(s) exceed max volume count"


class InTreeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Counts the disks of one cloud on the node, each once, and those that the pod would add."""

    is_local = True
    disk_type: ClassVar[DiskType]

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._is_announced = handle.behavior.migrates_disks_by_annotation and self.disk_type is not disks.CINDER
        self._provisioner = f"kubernetes.io/{self.disk_type.plugin}"

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip pods without claims and without disks of the cloud."""
        volumes = pod.spec.volumes
        may_count = any(self.disk_type.of(each) is not None or claim_name_of(pod, each) is not None for each in volumes)
        return None, SUCCESS if may_count else SKIP

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject the node if the total exceeds its limit."""
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
        limit = node_info.allocatable.scalar.get(f"{LIMIT_PREFIX}{self.disk_type.plugin}")
        if limit is None:
            labels = node_info.node.labels
            kind = next((labels[label] for label in INSTANCE_TYPE_LABELS if label in labels), "")
            limit = disks.default_disk_limit(self.disk_type, kind)
        if len(used) + added <= limit:
            return SUCCESS
        detail = details.VolumeLimitExceeded(self._provisioner, len(used), added, limit)
        return Status(Code.UNSCHEDULABLE, [REASON_LIMIT], detail=detail)

    def _is_migrated(self, csi_node: CSINode | None) -> bool:
        if csi_node is None or not self._is_announced:
            return csi_node is not None
        announced = csi_node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "").split(",")
        return self._provisioner in announced

    def _disks(self, pod: Pod, *, is_incoming: bool) -> set[str]:
        """Return the pod's disks of the cloud. Claims that do not exist are an error for the incoming pod only."""
        found: set[str] = set()
        for volume in pod.spec.volumes:
            disk = self.disk_type.of(volume)
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
        """Return the disk behind the claim; if there is none yet, one that only this claim has."""
        volume = self._cluster.persistent_volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            return self.disk_type.of(volume.spec)
        storage_class = self._cluster.storage_classes.get(claim.spec.storage_class_name or "")
        is_ours = storage_class is not None and storage_class.provisioner == self._provisioner
        # Upstream puts a random prefix before the key, so that no disk has that name.
        return f"claim {claim.key}" if is_ours else None


class EBSLimits(InTreeVolumeLimits):
    """AWS disks."""

    name = "EBSLimits"
    disk_type = disks.EBS


class GCEPDLimits(InTreeVolumeLimits):
    """Google Cloud disks."""

    name = "GCEPDLimits"
    disk_type = disks.GCE_PD


class AzureDiskLimits(InTreeVolumeLimits):
    """Azure disks."""

    name = "AzureDiskLimits"
    disk_type = disks.AZURE_DISK


class CinderLimits(InTreeVolumeLimits):
    """OpenStack disks."""

    name = "CinderLimits"
    disk_type = disks.CINDER


def _awaits() -> list[Awaited]:
    return [on_node(Action.ADD), on_pod(Action.DELETE)]


EBS = in_tree(EBSLimits, awaits=_awaits)
GCE_PD = in_tree(GCEPDLimits, awaits=_awaits)
AZURE_DISK = in_tree(AzureDiskLimits, awaits=_awaits)
CINDER = in_tree(CinderLimits, awaits=_awaits)
