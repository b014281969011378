"""Nodes and pods as the Kubernetes plugins inside Volcano see them (``framework/util.go`` of Volcano v1.8.0).

The plugins see the state in which the session opened, and the changes that the predicates plugin forwards: pipelined
tasks count as present, evicted ones as gone. Without that plugin they see no changes.

The plugins of Kubernetes 1.25 that Volcano calls follow ``pkg/scheduler/framework/plugins`` of ``k8s.io/kubernetes``
v1.25.0 if they differ from ``schedulers/kube`` under ``BEHAVIOR``, and Volcano v1.8.0 around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.node import Node as ClusterNode
from kpreempt.model.pod import Pod, Volume
from kpreempt.model.storage import CSINode
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState, zone_of
from kpreempt.schedulers.kube.framework.csi_translation import CSIHandle, claim_name_of, in_tree_plugin
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import (
    MAX_NODE_SCORE,
    Handle,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from kpreempt.schedulers.kube.framework.label_selectors import default_selector
from kpreempt.schedulers.kube.framework.node_info import ImageState, NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kpreempt.schedulers.kube.plugins.node_volume_limits import NodeVolumeLimits
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.schedulers.volcano.cache import Node, Task
from kpreempt.schedulers.volcano.resources import NIL, SchedulerPanicError
from kpreempt.verdict import SUCCESS, Assumption, Status
from kpreempt.verdict.status import SKIP

# Volcano embeds the plugins of Kubernetes 1.25, with default feature gates.
BEHAVIOR = behavior("1.25")


class KubeView:
    """The nodes of a session in the form that ``schedulers/kube`` plugins expect."""

    def __init__(self, cluster: ClusterSnapshot, nodes: Iterable[Node], now: datetime) -> None:
        nodes = list(nodes)
        pods = [without_sidecars(task.pod) for node in nodes for task in node.tasks_in_order()]
        seen = msgspec.structs.replace(cluster, nodes=[node.node for node in nodes], pods=pods)
        self.state = ClusterState(seen, BEHAVIOR, now=now, scheduler_names=frozenset())
        self.handle = Handle(self.state, BEHAVIOR)
        # Assumptions made by scores.
        self.assumptions: dict[Assumption, None] = {}
        self._spread_images(cluster.nodes)

    def add(self, task: Task) -> None:
        """Add a task that was placed on its node."""
        node_info = self.state.by_name.get(task.node_name)
        if node_info is not None:
            node_info.add_pod(PodInfo(without_sidecars(task.pod), BEHAVIOR))

    def remove(self, task: Task) -> None:
        """Remove a task from its node."""
        node_info = self.state.by_name.get(task.node_name)
        if node_info is None:
            return
        for pod_info in node_info.pods:
            if pod_info.key == task.key:
                node_info.remove_pod(pod_info)
                return

    def _spread_images(self, nodes: Iterable[ClusterNode]) -> None:
        """Count the nodes that have each image, including nodes that are not ready.

        This is the state of a scheduler that has been running for a while: it recounts whenever a node changes. After a
        restart it counts for each node only the nodes read before it.
        """
        images: dict[str, ImageState] = {}
        for node in nodes:
            for image in node.status.images:
                for name in image.names:
                    # The size is taken from the first node that has the image.
                    images.setdefault(name, ImageState(image, 0))
            for name in {name for image in node.status.images for name in image.names}:
                images[name].num_nodes += 1
        if not images:
            return
        for node_info in self.state.node_infos:
            names = (name for image in node_info.node.status.images for name in image.names)
            node_info.image_states = {name: images[name] for name in names}


def without_sidecars(pod: Pod) -> Pod:
    """Return the pod as 1.25 reads it, with sidecars as ordinary init containers."""
    if not any(container.restart_policy for container in pod.spec.init_containers):
        return pod
    plain = [msgspec.structs.replace(container, restart_policy="") for container in pod.spec.init_containers]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, init_containers=plain))


# The weight of the zone in the score, if the node is in a zone.
_ZONE_PART = 2.0 / 3.0


class PodAffinity(InterPodAffinity):
    """Created when the session opens; required affinity terms of existing pods add no score.

    ``plugins/util/k8s/snapshot.go`` of Volcano lists the nodes with affinity pods once, when the session opens. A pod
    placed later on a node that had none rejects no other pod for the rest of the session, and its preferences do not
    count. The terms of the incoming pod itself are matched against the current state of all nodes.
    """

    def __init__(self, handle: Handle) -> None:
        super().__init__({"hardPodAffinityWeight": 0}, handle)
        nodes = handle.cluster.node_infos
        self._with_affinity = [node_info for node_info in nodes if node_info.pods_with_affinity]
        self._with_anti_affinity = [node_info for node_info in nodes if node_info.pods_with_required_anti_affinity]

    def nodes_with_anti_affinity(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Return the nodes that had pods with required anti-affinity when the session opened."""
        return self._with_anti_affinity

    def nodes_with_affinity(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Return the nodes that had pods with any affinity when the session opened."""
        return self._with_affinity


class VolumeLimits(NodeVolumeLimits):
    """Panics if a pod has an in-tree volume and the node has no CSINode."""

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip pods without volumes that could count."""
        volumes = pod.spec.volumes
        return None, SUCCESS if any(
            _is_in_tree(each) or claim_name_of(pod, each) is not None for each in volumes
        ) else SKIP

    def inline_handle(self, volume: Volume, csi_node: CSINode | None) -> CSIHandle | None:
        """Return an in-line disk as a CSI volume, on nodes that migrate it.

        Raises ``SchedulerPanicError`` on a node without a CSINode: upstream logs the name of the missing object.
        """
        if csi_node is None and _is_in_tree(volume):
            raise SchedulerPanicError(f"{NIL} (no CSINode)")
        return super().inline_handle(volume, csi_node)


class SelectorSpread(PreScorePlugin, ScorePlugin):
    """Prefer nodes and zones with fewer pods of the same services and controller (``plugins/selectorspread``, v1.25.0).

    1.36 no longer has this plugin. Pods with spread constraints are left to PodTopologySpread, and score 0.
    """

    name = "SelectorSpread"

    def __init__(self, handle: Handle) -> None:
        self._cluster = handle.cluster

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Find the selectors that match the pod; skip if it has spread constraints."""
        if pod.spec.topology_spread_constraints:
            return SKIP
        state.write(self.name, default_selector(pod, self._cluster.cluster))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the number of pods on the node that the same services and controller select."""
        selector = state.read(self.name)
        assert isinstance(selector, LabelSelector)
        if selector.is_empty():
            return 0
        return sum(
            selector.matches(other.pod.metadata.labels)
            for other in node_info.pods
            if other.pod.metadata.namespace == pod.metadata.namespace and other.pod.metadata.deletion_timestamp is None
        )

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Invert the scores so that fewer pods are better; in floats as upstream."""
        zones = [zone_of(node_info.node) for node_info in nodes]
        by_zone: dict[tuple[str, str], int] = {}
        for zone, count in zip(zones, scores, strict=True):
            if any(zone):
                by_zone[zone] = by_zone.get(zone, 0) + count
        most, most_in_zone = max(scores, default=0), max(by_zone.values(), default=0)
        normalized = []
        for zone, count in zip(zones, scores, strict=True):
            score = _rated(count, most)
            if zone in by_zone:
                score = score * (1.0 - _ZONE_PART) + _ZONE_PART * _rated(by_zone[zone], most_in_zone)
            normalized.append(int(score))
        return normalized


def _is_in_tree(volume: Volume) -> bool:
    """Return whether this kind of in-line volume has a CSI driver, whether or not it is used."""
    return in_tree_plugin(volume) is not None or volume.rbd is not None or volume.vsphere_volume is not None


def _rated(count: int, most: int) -> float:
    return MAX_NODE_SCORE * ((most - count) / most) if most > 0 else float(MAX_NODE_SCORE)
