"""VolumeZone rejects nodes outside the zone or region in the labels of the pod's volumes.

Follows ``plugins/volumezone`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolumeClaim, class_of_claim
from kpreempt.schedulers.kube.framework.csi_translation import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    ZONE_DELIMITER,
    not_found,
)
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import WRITTEN, Action, on, on_node
from kpreempt.schedulers.kube.framework.in_tree import LimitedFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    PluginArgs,
    PreFilterPlugin,
    PreFilterResult,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict import SUCCESS, Code, Status, details
from kpreempt.verdict.status import SKIP

if TYPE_CHECKING:
    # These need NumPy, which is loaded only for big clusters.
    from kpreempt.schedulers.kube.bulk.limits import PluginLimits
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable

REASON_ZONE = "node(s) had no available volume zone"

_TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_STABLE_LABELS = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class VolumeTopology(NamedTuple):
    """One topology label of a volume, with the values of which the node must have one."""

    claim: str
    volume: str
    key: str
    values: frozenset[str]

    def admits(self, node_labels: Mapping[str, str], *, finds_stable: bool) -> bool:
        """Return whether the node has one of the values, under the label itself or the stable replacement."""
        value = node_labels.get(self.key)
        if value is None and finds_stable:
            value = node_labels.get(_STABLE_LABELS.get(self.key, self.key))
        return value is not None and value in self.values


class _RequiredZones(NamedTuple):
    """What the pod's claims require of nodes in a zone; ``problem`` is about the first claim that no node satisfies."""

    topologies: list[VolumeTopology]
    problem: Status | None


_STATE_KEY = TreeKey("VolumeZone")


class VolumeZone(PreFilterPlugin, LimitedFilterPlugin):
    """Compares the zone and region labels of bound volumes with the node's."""

    name = "VolumeZone"
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._behavior = handle.behavior

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Collect the labels of the volumes behind the pod's claims; skip if there are none."""
        topologies, problem = self._topologies_of(pod)
        if problem is not None and self._behavior.rejects_pods_for_zone_claims:
            return None, problem
        if not topologies and problem is None:
            return None, SKIP
        state.write(_STATE_KEY, _RequiredZones(topologies, problem))
        return None, SUCCESS

    def _topologies_of(self, pod: Pod) -> tuple[list[VolumeTopology], Status | None]:
        """Return the topology labels of the volumes behind the claims, up to the first claim that rejects the pod."""
        topologies: list[VolumeTopology] = []
        for each in pod.spec.volumes:
            if each.persistent_volume_claim is None:
                continue
            name = each.persistent_volume_claim.claim_name
            if not name:
                return topologies, _refused("PersistentVolumeClaim had no name")
            claim = self._cluster.persistent_volume_claims.get(f"{pod.metadata.namespace}/{name}")
            if claim is None:
                return topologies, _refused(not_found("persistentvolumeclaim", name))
            if not claim.spec.volume_name:
                problem = self._problem_of_unbound(claim)
                if problem is not None:
                    unbound = details.VolumeConflict(claim=claim.key, problem="not bound")
                    return topologies, _refused(problem, unbound)
                continue
            volume = self._cluster.persistent_volumes.get(claim.spec.volume_name)
            if volume is None:
                missing = details.VolumeConflict(claim.key, claim.spec.volume_name, "the volume does not exist")
                return topologies, _refused(not_found("persistentvolume", claim.spec.volume_name), missing)
            # As upstream, a label with an empty zone in its list is ignored.
            for label in _TOPOLOGY_LABELS:
                stated = volume.metadata.labels.get(label)
                values = [value.strip() for value in stated.split(ZONE_DELIMITER)] if stated is not None else [""]
                if all(values):
                    topologies.append(VolumeTopology(claim.key, volume.metadata.name, label, frozenset(values)))
        return topologies, None

    def _problem_of_unbound(self, claim: PersistentVolumeClaim) -> str | None:
        """Return why a claim without a volume rejects the pod; ``None`` if it waits for the pod's node."""
        class_name = class_of_claim(claim)
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        storage_class = self._cluster.storage_classes.get(class_name)
        if storage_class is None:
            return not_found("storageclass.storage.k8s.io", class_name)
        if storage_class.volume_binding_mode is None:
            return f'VolumeBindingMode not set for StorageClass "{class_name}"'
        return None if storage_class.volume_binding_mode == "WaitForFirstConsumer" else "PersistentVolume had no name"

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject nodes that lack a volume's label value; nodes without any zone or region label accept all pods."""
        return self._of_node(state, node_info)

    def _of_node(self, state: CycleState, node_info: NodeInfo) -> Status:
        labels = node_info.node.labels
        if not any(label in labels for label in _TOPOLOGY_LABELS):
            return SUCCESS
        requested = state.read(_STATE_KEY)
        assert isinstance(requested, _RequiredZones)
        for topology in requested.topologies:
            if not topology.admits(labels, finds_stable=self._behavior.finds_zones_under_stable_labels):
                key, values = topology.key, sorted(topology.values)
                needs = f"{key}={values[0]}" if len(values) == 1 else f"{key} in ({','.join(values)})"
                has = labels.get(key) or labels.get(_STABLE_LABELS.get(key, key)) or "none"
                detail = f"needs {needs}, but the node has {has}"
                return _refused(REASON_ZONE, details.VolumeConflict(topology.claim, topology.volume, detail))
        return requested.problem or SUCCESS

    def limits(self, state: CycleState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
        """Pods on the node do not matter."""
        from kpreempt.schedulers.kube.bulk.limits import node_limits  # noqa: PLC0415

        return node_limits(self.name, [self._of_node(state, node_info) for node_info in nodes], table)


def _refused(reason: str, detail: details.VolumeConflict | None = None) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason], detail=detail)


PLUGIN = in_tree(
    VolumeZone,
    awaits=lambda: [
        on("StorageClass", Action.ADD),
        on_node(Action.ADD | Action.UPDATE_NODE_LABEL),
        on("PersistentVolumeClaim", WRITTEN),
        on("PersistentVolume", WRITTEN),
    ],
)
