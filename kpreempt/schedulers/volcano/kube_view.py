"""Nodes and pods as the Kubernetes plugins inside Volcano see them (``framework/util.go`` of Volcano v1.8.0).

They see the state in which the session opened, and what the predicates plugin tells of changes since: tasks that are
promised room count as there, evicted ones as gone. Without that plugin nothing changes for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node as ClusterNode
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.interface import Handle
from kpreempt.schedulers.kube.framework.node_info import ImageState, NodeInfo, PodInfo
from kpreempt.schedulers.kube.versions import behaviour
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.task import Task
from kpreempt.verdict import Assumption

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

    @property
    def node_infos(self) -> list[NodeInfo]:
        return self.state.node_infos

    def node_info(self, name: str) -> NodeInfo:
        """A node; raises ``KeyError``."""
        return self.state.by_name[name]

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
        for node_info in self.node_infos:
            names = (name for image in node_info.node.status.images for name in image.names)
            node_info.image_states = {name: images[name] for name in names}


def without_sidecars(pod: Pod) -> Pod:
    """The pod as 1.25 reads it: an init container that never ends is none in particular."""
    if not any(container.restart_policy for container in pod.spec.init_containers):
        return pod
    plain = [msgspec.structs.replace(container, restart_policy="") for container in pod.spec.init_containers]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, init_containers=plain))
