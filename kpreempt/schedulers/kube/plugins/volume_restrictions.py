"""VolumeRestrictions rejects nodes on which an inline disk is in use, and all nodes while a single-pod claim is in use.

Follows ``plugins/volumerestrictions`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod, Volume
from kpreempt.schedulers.disks import excludes
from kpreempt.schedulers.kube.framework.csi_translation import not_found
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import Action, on, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import in_tree
from kpreempt.schedulers.kube.framework.interface import (
    FilterPlugin,
    Handle,
    PluginArgs,
    PluginError,
    PreFilterPlugin,
    PreFilterResult,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.verdict import SUCCESS, Code, Status, details
from kpreempt.verdict.status import SKIP

REASON_DISK = "node(s) had no available disk"
REASON_READ_WRITE_ONCE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
REASON_READ_WRITE_ONCE_POD_OLD = (
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)
READ_WRITE_ONCE_POD = "ReadWriteOncePod"

_STATE_KEY = TreeKey("PreFilterVolumeRestrictions")


class ClaimsForOnePod:
    """The pod's claims that only one pod may use, how often others use them, and which pods these are."""

    def __init__(self, claims: frozenset[str], uses: int, holders: list[str]) -> None:
        self.claims = claims
        self.uses = uses
        self.holders = holders

    def clone(self) -> ClaimsForOnePod:
        """Return an independent copy."""
        return ClaimsForOnePod(self.claims, self.uses, list(self.holders))

    def uses_by(self, pod: Pod) -> int:
        """Return how many of the pod's volumes are such claims; upstream compares only names, not namespaces."""
        return sum(
            volume.persistent_volume_claim is not None and volume.persistent_volume_claim.claim_name in self.claims
            for volume in pod.spec.volumes
        )

    def add(self, pod_info: PodInfo) -> None:
        """Count the uses of a pod that was added to a node."""
        uses = self.uses_by(pod_info.pod)
        self.uses += uses
        if uses:
            self.holders.append(pod_info.key)

    def remove(self, pod_info: PodInfo) -> None:
        """Subtract the uses of a pod that was removed from a node."""
        self.uses -= self.uses_by(pod_info.pod)
        if pod_info.key in self.holders:
            self.holders.remove(pod_info.key)


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    """Compares the pod's inline disks with those on the node, and its ReadWriteOncePod claims with all pods'."""

    name = "VolumeRestrictions"

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        is_old = handle.behavior.reports_read_write_once_pod_by_name
        self._reason_in_use = REASON_READ_WRITE_ONCE_POD_OLD if is_old else REASON_READ_WRITE_ONCE_POD

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Count uses of the pod's ReadWriteOncePod claims; skip pods without such uses and without inline disks."""
        claims: set[str] = set()
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            key = f"{pod.metadata.namespace}/{name}"
            claim = self._cluster.persistent_volume_claims.get(key)
            if claim is None:
                detail = details.VolumeConflict(claim=key, problem="does not exist")
                reason = not_found("persistentvolumeclaim", name)
                return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason], detail=detail)
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                claims.add(name)
        # A claim counts once, however many pods on nodes use it.
        nodes = self._cluster.node_infos
        keys = {f"{pod.metadata.namespace}/{claim}" for claim in claims}
        in_use = {key for key in keys if any(key in node_info.pvc_ref_counts for node_info in nodes)}
        if not in_use and not any(map(_is_restricted, pod.spec.volumes)):
            return None, SKIP
        state.write(_STATE_KEY, ClaimsForOnePod(frozenset(claims), len(in_use), self._holders(in_use)))
        return None, SUCCESS

    def _holders(self, keys: set[str]) -> list[str]:
        return [
            pod_info.key
            for node_info in self._cluster.node_infos
            if not keys.isdisjoint(node_info.pvc_ref_counts)
            for pod_info in node_info.pods
            if not keys.isdisjoint(pod_info.claim_keys)
        ]

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Count the claims of the pod that was added to the node."""
        _claims_of(state).add(added)

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Subtract the claims of the pod that was removed from the node."""
        _claims_of(state).remove(removed)

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject the node if a disk is in use, then every node while a single-pod claim is in use."""
        for volume in pod.spec.volumes:
            if not _is_restricted(volume):
                continue
            holders = [
                info.key
                for info in node_info.pods
                if any(excludes(volume, existing) for existing in info.pod.spec.volumes)
            ]
            if holders:
                if volume.gce_persistent_disk is not None:
                    disk_name = f"GCE disk {volume.gce_persistent_disk.pd_name}"
                elif volume.aws_elastic_block_store is not None:
                    disk_name = f"EBS volume {volume.aws_elastic_block_store.volume_id}"
                elif volume.iscsi is not None:
                    disk_name = f"iSCSI target {volume.iscsi.iqn}"
                else:
                    disk_name = (
                        f"RBD image {volume.rbd.pool}/{volume.rbd.image}" if volume.rbd is not None else volume.name
                    )
                disk = details.VolumeConflict(volume=disk_name, problem="in use on the node", holders=holders)
                return Status(Code.UNSCHEDULABLE, [REASON_DISK], detail=disk)
        try:
            claims = _claims_of(state)
        except PluginError as error:
            return Status(Code.ERROR, [str(error)])
        if claims.uses > 0:
            keys = ", ".join(f"{pod.metadata.namespace}/{name}" for name in sorted(claims.claims))
            problem = f"{READ_WRITE_ONCE_POD} (one pod at a time)"
            claim = details.VolumeConflict(claim=keys, problem=problem, holders=list(claims.holders))
            return Status(Code.UNSCHEDULABLE, [self._reason_in_use], detail=claim)
        return SUCCESS


def _claims_of(state: CycleState) -> ClaimsForOnePod:
    claims = state.read(_STATE_KEY)
    if not isinstance(claims, ClaimsForOnePod):
        raise PluginError(f'cannot read "{_STATE_KEY}" from cycleState')
    return claims


def _is_restricted(volume: Volume) -> bool:
    """Return whether the volume is of a kind that pods on one node cannot freely share."""
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


PLUGIN = in_tree(
    VolumeRestrictions,
    awaits=lambda: [
        # A pod in another namespace never helps; pods in the same namespace are not checked further.
        on_pod(
            Action.DELETE,
            lambda pod, old, _new: old is not None and old.metadata.namespace == pod.metadata.namespace,
            is_modeled=False,
        ),
        on_node(Action.ADD),
        on("PersistentVolumeClaim", Action.ADD),
    ],
)
