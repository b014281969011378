"""Nodes and pods as the Kubernetes plugins inside Volcano see them (``framework/util.go`` of Volcano v1.8.0).

They see the state in which the session opened, and what the predicates plugin tells of changes since: tasks that are
promised room count as there, evicted ones as gone. Without that plugin nothing changes for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.features import FeatureGates
from kpreempt.schedulers.kube.framework.interface import Handle
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.task import Task

# Gates that 1.25 has off, or does not have, and that change what the plugins do.
FEATURES = FeatureGates()


class KubeView:
    """The nodes of a session as ``kube_scheduler`` plugins want them."""

    def __init__(self, cluster: ClusterSnapshot, nodes: Iterable[Node], now: datetime) -> None:
        nodes = list(nodes)
        pods = [task.pod for node in nodes for task in node.tasks_in_order()]
        seen = msgspec.structs.replace(cluster, nodes=[node.node for node in nodes], pods=pods)
        self.state = ClusterState(seen, FEATURES, now=now, scheduler_names=frozenset())
        self.handle = Handle(self.state, FEATURES)

    @property
    def node_infos(self) -> list[NodeInfo]:
        """All nodes."""
        return self.state.node_infos

    def node_info(self, name: str) -> NodeInfo:
        """A node; raises ``KeyError``."""
        return self.state.by_name[name]

    def add(self, task: Task) -> None:
        """A task was given room on its node."""
        node_info = self.state.by_name.get(task.node_name)
        if node_info is not None:
            node_info.add_pod(PodInfo(task.pod, FEATURES))

    def remove(self, task: Task) -> None:
        """A task gave its room up."""
        node_info = self.state.by_name.get(task.node_name)
        if node_info is None:
            return
        for pod_info in node_info.pods:
            if pod_info.key == task.key:
                node_info.remove_pod(pod_info)
                return
