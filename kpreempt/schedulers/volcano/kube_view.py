"""Nodes and pods as the Kubernetes plugins inside Volcano see them (``framework/util.go`` of Volcano v1.8.0).

They see the state in which the session opened, and what the predicates plugin tells of changes since: tasks that are
promised room count as there, evicted ones as gone. Without that plugin nothing changes for them.

The plugins of Kubernetes 1.25 that Volcano calls, where they are more than ``schedulers/kube`` under ``BEHAVIOUR``,
follow ``pkg/scheduler/framework/plugins`` of ``k8s.io/kubernetes`` v1.25.0, and Volcano v1.8.0 around it.
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
from kpreempt.schedulers.kube.versions import behaviour
from kpreempt.schedulers.volcano.cache import Node, Task
from kpreempt.schedulers.volcano.resources import NIL, SchedulerPanicError
from kpreempt.verdict import SUCCESS, Assumption, Status
from kpreempt.verdict.status import SKIP

# Kubernetes' plugins come from 1.25, with its gates as they are by default.
BEHAVIOUR = behaviour("1.25")


class KubeView:
    """The nodes of a session as ``kube_scheduler`` plugins want them."""

    def __init__(self, cluster: ClusterSnapshot, nodes: Iterable[Node], now: datetime) -> None:
        nodes = list(nodes)
        pods = [without_sidecars(task.pod) for node in nodes for task in node.tasks_in_order()]
        seen = msgspec.structs.replace(cluster, nodes=[node.node for node in nodes], pods=pods)
        self.state = ClusterState(seen, BEHAVIOUR, now=now, scheduler_names=frozenset())
        self.handle = Handle(self.state, BEHAVIOUR)
        # What is assumed of scores.
        self.assumptions: dict[Assumption, None] = {}
        self._spread_images(cluster.nodes)

    def add(self, task: Task) -> None:
        """A task was given room on its node."""
        node_info = self.state.by_name.get(task.node_name)
        if node_info is not None:
            node_info.add_pod(PodInfo(without_sidecars(task.pod), BEHAVIOUR))

    def remove(self, task: Task) -> None:
        """A task gave its room up."""
        node_info = self.state.by_name.get(task.node_name)
        if node_info is None:
            return
        for pod_info in node_info.pods:
            if pod_info.key == task.key:
                node_info.remove_pod(pod_info)
                return

    def _spread_images(self, nodes: Iterable[ClusterNode]) -> None:
        """Count on how many nodes images are; those that are not ready count, though the session lacks them.

        So it is in a scheduler that runs for a while: it counts anew for each node that changes. One that has just
        started counts for each node only those that it read before.
        """
        images: dict[str, ImageState] = {}
        for node in nodes:
            for image in node.status.images:
                for name in image.names:
                    # The first node that has it tells the size.
                    images.setdefault(name, ImageState(image, 0))
            for name in {name for image in node.status.images for name in image.names}:
                images[name].num_nodes += 1
        if not images:
            return
        for node_info in self.state.node_infos:
            names = (name for image in node_info.node.status.images for name in image.names)
            node_info.image_states = {name: images[name] for name in names}


def without_sidecars(pod: Pod) -> Pod:
    """The pod as 1.25 reads it: an init container that never ends is none in particular."""
    if not any(container.restart_policy for container in pod.spec.init_containers):
        return pod
    plain = [msgspec.structs.replace(container, restart_policy="") for container in pod.spec.init_containers]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, init_containers=plain))


# How much of the score is the zone's, where the node is in one.
_ZONE_PART = 2.0 / 3.0


class PodAffinity(InterPodAffinity):
    """Made when the session opens; a requirement of an existing pod adds no weight.

    ``plugins/util/k8s/snapshot.go`` of Volcano lists the nodes that have pods with affinity once, when the session
    opens. A pod that comes later to a node that had none refuses nobody there for the rest of the session, and nobody
    gains from what it prefers. What the incoming pod itself wants is looked for on all nodes as they are.
    """

    def __init__(self, handle: Handle) -> None:
        super().__init__({"hardPodAffinityWeight": 0}, handle)
        nodes = handle.cluster.node_infos
        self._with_affinity = [node_info for node_info in nodes if node_info.pods_with_affinity]
        self._with_anti_affinity = [node_info for node_info in nodes if node_info.pods_with_required_anti_affinity]

    def nodes_with_anti_affinity(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Those that had pods with required anti-affinity when the session opened."""
        return self._with_anti_affinity

    def nodes_with_affinity(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Those that had pods with any affinity when the session opened."""
        return self._with_affinity


class VolumeLimits(NodeVolumeLimits):
    """Panics where a node without a CSINode is asked about an in-tree volume of the pod."""

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip pods of whose volumes none can count."""
        volumes = pod.spec.volumes
        return None, SUCCESS if any(
            _is_in_tree(each) or claim_name_of(pod, each) is not None for each in volumes
        ) else SKIP

    def inline_handle(self, volume: Volume, csi_node: CSINode | None) -> CSIHandle | None:
        """An in-line disk as a CSI volume, on nodes that take it for one.

        Raises ``SchedulerPanicError`` on a node without a CSINode: upstream logs the name of that which is not there.
        """
        if csi_node is None and _is_in_tree(volume):
            raise SchedulerPanicError(f"{NIL} (no CSINode)")
        return super().inline_handle(volume, csi_node)


class SelectorSpread(PreScorePlugin, ScorePlugin):
    """Fewer pods of the same services and controller on a node, and in its zone (``plugins/selectorspread``, v1.25.0).

    1.36 has it no more. Pods with spread constraints of their own are left to these, and score 0.
    """

    name = "SelectorSpread"

    def __init__(self, handle: Handle) -> None:
        self._cluster = handle.cluster

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Find what selects the pod; Skip where it spreads by constraints."""
        if pod.spec.topology_spread_constraints:
            return SKIP
        state.write(self.name, default_selector(pod, self._cluster.cluster))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """The pods on the node that the same services and controller select."""
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
        """Fewer pods are better; in floats as upstream."""
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
    """Whether there is a CSI driver for this kind of in-line volume, used or not."""
    return in_tree_plugin(volume) is not None or volume.rbd is not None or volume.vsphere_volume is not None


def _rated(count: int, most: int) -> float:
    return MAX_NODE_SCORE * ((most - count) / most) if most > 0 else float(MAX_NODE_SCORE)
