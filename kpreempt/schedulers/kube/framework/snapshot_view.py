"""The cluster as a plugin may look at it: nodes, pods, and every other object, read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.read_only import read_only_node, read_only_nodes, read_only_pod


class SnapshotView:
    """The cluster when the pod's turn comes. ``state`` is what the scheduler itself works with."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    @property
    def now(self) -> datetime:
        """The time of the snapshot, or what ``--now`` says; a plugin reads no clock."""
        return self._state.now

    @property
    def objects(self) -> ClusterSnapshot:
        """The records of every kind that a snapshot keeps: budgets, priority classes, claims and so on."""
        return cast(ClusterSnapshot, self._state.frozen_objects)

    @cached_property
    def nodes(self) -> Sequence[NodeInfo]:
        """All nodes with the pods on them, in the scheduler's order."""
        return read_only_nodes(self._state.node_infos)

    def node(self, name: str) -> NodeInfo | None:
        """The node of that name, or ``None``."""
        found = self._state.by_name.get(name)
        return None if found is None else read_only_node(found)

    def pods(self) -> Iterator[PodInfo]:
        """All pods that are on nodes and have not finished, node by node."""
        return (pod_info for node_info in self.nodes for pod_info in node_info.pods)

    def nominated_pods(self, node_name: str) -> Sequence[PodInfo]:
        """The pending pods for which room is kept on the node."""
        return tuple(map(read_only_pod, self._state.nominated_pods.get(node_name, ())))

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; none where it is not known."""
        return MappingProxyType(dict(self._state.namespace_labels(namespace)))

    def documents(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """The plain objects of a kind that the plugin ``wants``: ``ElasticQuota.scheduling.x-k8s.io``, ``Namespace``.

        In the order of the input; none where there are none.
        """
        return tuple(self.objects.documents.get(kind, ()))
