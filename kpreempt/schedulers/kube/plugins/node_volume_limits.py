"""NodeVolumeLimits rejects nodes on which a CSI driver cannot attach the pod's volumes.

Follows ``plugins/nodevolumelimits/csi.go`` of v1.36.3. Volumes count once per node, by driver and handle; a claim that
is not bound yet counts as a volume of its storage class's provisioner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from kpreempt.model.pod import Pod, Volume
from kpreempt.model.storage import CSINode, PersistentVolumeClaim, class_of_claim
from kpreempt.schedulers.disks import csi_limit_key
from kpreempt.schedulers.kube.framework.csi_translation import (
    CINDER,
    DRIVERS,
    IN_TREE_PLUGINS,
    MIGRATED_PLUGINS_ANNOTATION,
    PORTWORX,
    CSIHandle,
    TranslationError,
    claim_name_of,
    in_tree_plugin,
    is_ephemeral,
    not_found,
    ownership_error,
    translate_inline,
    translate_volume,
)
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import Action, on, on_pod
from kpreempt.schedulers.kube.framework.in_tree import LimitedFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import (
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

if TYPE_CHECKING:
    # These need NumPy, which is loaded only for big clusters.
    from kpreempt.schedulers.kube.bulk.limits import PluginLimits
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable

REASON_LIMIT = "node(s) exceed max volume count"

# Prefix of the handle of a volume that does not exist yet; upstream uses 32 random letters.
_UNBOUND = "unbound:"

# A volume's unique name for its driver.
AttachedVolumes = dict[str, str]


_STATE_KEY = TreeKey("NodeVolumeLimits")


class ClaimNotFoundError(Exception):
    """The incoming pod names a claim that does not exist."""

    def __init__(self, message: str, claim: str) -> None:
        super().__init__(message)
        self.claim = claim


class NodeVolumeLimits(PreFilterPlugin, LimitedFilterPlugin):
    """Compares the CSI volumes of the node's pods and attachments with the limits of its CSINode."""

    name = "NodeVolumeLimits"
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._behavior = handle.behavior

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip pods without claims and without inline disks that count as CSI volumes."""
        if not _may_have_volumes(pod):
            return None, SKIP
        state.write(_STATE_KEY, pod)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject the node if a driver's volumes, including the pod's new ones, exceed its limit."""
        csi_node = self._cluster.csi_nodes.get(node_info.name)
        try:
            new = self._volumes_of(pod, csi_node, is_incoming=True)
            if not new:
                return SUCCESS
            missing = self._missing_driver(new, csi_node)
            if missing is not None:
                return Status(Code.UNSCHEDULABLE, [f"{missing} CSI driver is not installed on the node"])
            limits = self._limits_of(node_info, csi_node, new)
            if not limits:
                return SUCCESS
            used: AttachedVolumes = {}
            for pod_info in node_info.pods:
                if pod_info.pod.spec.volumes:
                    used |= self._volumes_of(pod_info.pod, csi_node, is_incoming=False)
        except ClaimNotFoundError as error:
            conflict = details.VolumeConflict(claim=error.claim, problem="does not exist")
            is_rejected = self._behavior.rejects_pods_for_missing_limited_claims
            code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if is_rejected else Code.ERROR
            return Status(code, [str(error)], detail=conflict)
        except PluginError as error:
            return Status(Code.ERROR, [str(error)])
        return self._compare(limits, new, used, node_info.name)

    def _limits_of(self, node_info: NodeInfo, csi_node: CSINode | None, new: AttachedVolumes) -> dict[str, int]:
        """Return each driver's volume limit on the node, at least for the pod's ``new`` volumes.

        If the node's allocatable counts, the CSINode takes precedence, and limits of other kinds of volumes are
        included under their own names.
        """
        # Each driver's volume limit on the node; drivers without a limit are omitted.
        limits = {
            driver.name: driver.allocatable.count
            for driver in (csi_node.spec.drivers if csi_node else [])
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        if not self._behavior.reads_volume_limits_of_allocatable:
            return limits
        of_node = {
            name: amount
            for name, amount in node_info.allocatable.scalar.items()
            if name.startswith(ATTACHABLE_VOLUMES_PREFIX)
        }
        of_drivers = {driver: of_node[key] for driver in new.values() if (key := csi_limit_key(driver)) in of_node}
        return {**of_node, **of_drivers, **limits}

    def _is_migrated(self, plugin: str, csi_node: CSINode | None) -> bool:
        """Return whether an in-tree plugin's volumes count as CSI volumes on the node."""
        if csi_node is None or (plugin == PORTWORX and not self._behavior.csi_migration_portworx):
            return False
        if plugin == PORTWORX:
            is_announced = self._behavior.migrates_portworx_by_annotation
        else:
            is_announced = plugin != CINDER and self._behavior.migrates_disks_by_annotation
        if not is_announced:
            return True
        return plugin in csi_node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "").split(",")

    def _compare(self, limits: dict[str, int], new: AttachedVolumes, used: AttachedVolumes, node_name: str) -> Status:
        """Compare volumes with limits; like upstream, include volumes attached without a pod."""
        counts = Counter(used.values())
        attached = self._attachments.get(node_name, {})
        counts.update(driver for name, driver in attached.items() if name not in used)
        requested = Counter(driver for name, driver in new.items() if name not in used)
        for driver, count in requested.items():
            if driver in limits and counts[driver] + count > limits[driver]:
                return _exceeded(details.VolumeLimitExceeded(driver, counts[driver], count, limits[driver]))
        return SUCCESS

    def limits(self, state: CycleState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
        """Return one limit per driver."""
        from kpreempt.schedulers.kube.bulk.limits import VolumeCapacity, volume_limits  # noqa: PLC0415

        pod = state.read(_STATE_KEY)
        if not isinstance(pod, Pod):
            return None

        def free_volumes_on(node_info: NodeInfo) -> VolumeCapacity | None:
            csi_node = self._cluster.csi_nodes.get(node_info.name)
            try:
                new = self._volumes_of(pod, csi_node, is_incoming=True)
            except (ClaimNotFoundError, PluginError):
                return None
            if self._missing_driver(new, csi_node) is not None:
                return None
            limits = self._limits_of(node_info, csi_node, new)
            return VolumeCapacity(new, self._attachments.get(node_info.name, {}), limits)

        def volumes_of(there: Pod, node_info: NodeInfo) -> AttachedVolumes | None:
            try:
                return self._volumes_of(there, self._cluster.csi_nodes.get(node_info.name), is_incoming=False)
            except PluginError:
                return None

        capacities = [free_volumes_on(node_info) for node_info in nodes]
        return volume_limits(self.name, capacities, volumes_of, _may_have_volumes, _exceeded, table, nodes)

    def _volumes_of(self, pod: Pod, csi_node: CSINode | None, *, is_incoming: bool) -> AttachedVolumes:
        """Return the pod's CSI volumes. Claims that do not exist are an error for the incoming pod only."""
        found: AttachedVolumes = {}
        for volume in pod.spec.volumes:
            name = claim_name_of(pod, volume)
            if name is None:
                handle = self.inline_handle(volume, csi_node)
            elif not name:
                raise PluginError("PersistentVolumeClaim had no name")
            else:
                key = f"{pod.metadata.namespace}/{name}"
                claim = self._cluster.persistent_volume_claims.get(key)
                if claim is None:
                    if is_incoming:
                        reason = not_found("persistentvolumeclaim", name)
                        raise ClaimNotFoundError(f"looking up PVC {key}: {reason}", key)
                    continue
                problem = ownership_error(pod, claim) if is_ephemeral(volume) else None
                if problem is not None:
                    raise PluginError(problem)
                handle = self._handle_of_claim(claim, csi_node)
            if handle is not None and handle.driver and (handle.volume_handle or name is None):
                found[f"{handle.driver}/{handle.volume_handle}"] = handle.driver
        return found

    def _handle_of_claim(self, claim: PersistentVolumeClaim, csi_node: CSINode | None) -> CSIHandle | None:
        """Return the volume behind the claim; if there is none yet, one that only this claim has."""
        volume = self._cluster.persistent_volumes.get(claim.spec.volume_name)
        if not claim.spec.volume_name or volume is None:
            storage_class = self._cluster.storage_classes.get(class_of_claim(claim))
            if storage_class is None:
                return None
            driver = storage_class.provisioner
            if driver in IN_TREE_PLUGINS:
                if driver not in DRIVERS or not self._is_migrated(driver, csi_node):
                    return None
                driver = DRIVERS[driver]
            return CSIHandle(driver, f"{_UNBOUND}{claim.key}")
        if volume.spec.csi is not None:
            return CSIHandle(volume.spec.csi.driver, volume.spec.csi.volume_handle)
        plugin = in_tree_plugin(volume.spec)
        if plugin is None or not self._is_migrated(plugin, csi_node):
            return None
        try:
            return translate_volume(volume)
        except TranslationError:
            return None

    def inline_handle(self, volume: Volume, csi_node: CSINode | None) -> CSIHandle | None:
        """Return an inline disk as a CSI volume, on nodes where it counts as one."""
        plugin = in_tree_plugin(volume)
        if plugin is None or not self._is_migrated(plugin, csi_node):
            return None
        try:
            return translate_inline(volume)
        except TranslationError as error:
            raise PluginError(f"converting volume({volume.name}) from inline to csi: {error}") from error

    def _missing_driver(self, new: AttachedVolumes, csi_node: CSINode | None) -> str | None:
        """Return a missing driver that the node must have because the VolumeLimitScaling gate requires it."""
        if not self._behavior.volume_limit_scaling:
            return None
        installed = {driver.name for driver in csi_node.spec.drivers} if csi_node else set()
        for name in new.values():
            driver = self._cluster.csi_drivers.get(name)
            if driver is None or name in installed:
                continue
            if driver.spec.prevent_pod_scheduling_if_missing or self._behavior.needs_no_consent_of_csi_drivers:
                return name
        return None

    @cached_property
    def _attachments(self) -> dict[str, AttachedVolumes]:
        """The volumes attached, or being attached, to each node, whether or not a pod there uses them."""
        by_node: dict[str, AttachedVolumes] = {}
        if not self._behavior.counts_volume_attachments:
            return by_node
        for attachment in self._cluster.cluster.volume_attachments:
            attacher = attachment.spec.attacher
            volume = self._cluster.persistent_volumes.get(attachment.spec.source.persistent_volume_name or "")
            if attacher and volume is not None and volume.spec.csi is not None:
                name = f"{attacher}/{volume.spec.csi.volume_handle}"
                by_node.setdefault(attachment.spec.node_name, {})[name] = attacher
        return by_node


def _exceeded(detail: details.VolumeLimitExceeded) -> Status:
    return Status(Code.UNSCHEDULABLE, [REASON_LIMIT], detail=detail)


def _may_have_volumes(pod: Pod) -> bool:
    return bool(pod.spec.volumes) and any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or bool(in_tree_plugin(volume))
        for volume in pod.spec.volumes
    )


PLUGIN = in_tree(
    NodeVolumeLimits,
    awaits=lambda: [
        on("CSINode", Action.ADD, is_modeled=True),
        on("CSINode", Action.UPDATE),
        on_pod(Action.DELETE, is_modeled=False),
        on("PersistentVolumeClaim", Action.ADD),
        on("VolumeAttachment", Action.DELETE),
    ],
)
