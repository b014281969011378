"""What volumes need of a node, as in 1.25 (``plugins/volumezone`` and ``plugins/nodevolumelimits/csi.go``).

There neither has a PreFilter: a claim that cannot be found is a matter between the pod and each node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.model.storage import CSINode
from kpreempt.schedulers.kube.framework.csi_translation import PORTWORX
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import Handle, PreFilterResult
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resources import ATTACHABLE_VOLUMES_PREFIX
from kpreempt.schedulers.kube.framework.volumes import MIGRATED_PLUGINS_ANNOTATION
from kpreempt.schedulers.kube.plugins.node_volume_limits import AttachedVolumes, NodeVolumeLimits, volume_limits
from kpreempt.schedulers.kube.plugins.volume_zone import VolumeTopology, VolumeZone, has_topology, out_of_zone
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.status import SKIP

_CSI_PREFIX = f"{ATTACHABLE_VOLUMES_PREFIX}csi-"
# Names of resources are shorter; what is kept of a driver's name that is not, and of its hash.
_LONGEST_NAME = 63
_DRIVER_PART = 23
_HASH_PART = 16


class VolumeZones(VolumeZone):
    """A volume's labels are compared with the same labels of the node, never with those that took their place.

    A node without any such label takes every pod, even one whose claims do not exist.
    """

    def __init__(self, handle: Handle) -> None:
        super().__init__({}, handle)

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Keep what the filter looks at: the same for all nodes."""
        if not pod.spec.volumes:
            return None, SKIP
        found = self.topologies_of(pod)
        if found == ([], None):
            return None, SKIP
        state.write(self.name, found)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Refuse nodes in a zone or region for a volume that is elsewhere, then for a claim that is not in order."""
        labels = node_info.node.labels
        if not has_topology(labels):
            return SUCCESS
        topologies, problem = _found(state.read(self.name))
        for topology in topologies:
            if labels.get(topology.key) not in topology.values:
                return out_of_zone(topology, labels)
        return problem or SUCCESS


def _found(state: object) -> tuple[list[VolumeTopology], Status | None]:
    assert isinstance(state, tuple)
    return state


class VolumeLimits(NodeVolumeLimits):
    """Limits are read from the node's allocatable too, and attachments without a pod do not count.

    A claim that does not exist is an error, and in-tree volumes are CSI volumes only where the node's CSINode says so.
    """

    code_of_missing_claim = Code.ERROR

    def __init__(self, handle: Handle) -> None:
        super().__init__({}, handle)

    def limits_of(self, node_info: NodeInfo, csi_node: CSINode | None, new: AttachedVolumes) -> dict[str, int]:
        """By driver, those of the CSINode first. Of other kinds of volumes the limit is there under its own name."""
        of_node = {
            name: amount
            for name, amount in node_info.allocatable.scalar.items()
            if name.startswith(ATTACHABLE_VOLUMES_PREFIX)
        }
        of_drivers = {driver: of_node[key] for driver in new.values() if (key := attach_limit_key(driver)) in of_node}
        return {**of_node, **of_drivers, **volume_limits(csi_node)}

    def attached_to(self, node_name: str) -> AttachedVolumes:
        """Nothing: VolumeAttachments are not looked at."""
        return {}

    def is_migrated(self, plugin: str, csi_node: CSINode | None) -> bool:
        """Whether the CSINode lists the plugin. The gate of Portworx volumes is off."""
        if csi_node is None or plugin == PORTWORX:
            return False
        return plugin in csi_node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "").split(",")


def attach_limit_key(driver: str) -> str:
    """The resource that stands for a CSI driver's volumes (``GetCSIAttachLimitKey``, ``pkg/volume/util``)."""
    key = f"{_CSI_PREFIX}{driver}"
    if len(key.encode()) < _LONGEST_NAME:
        return key
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{_CSI_PREFIX}{driver[:_DRIVER_PART]}{digest[:_HASH_PART]}"
