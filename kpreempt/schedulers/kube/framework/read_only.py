"""Nodes and pods as an out-of-tree plugin gets them: everything can be read, and nothing changed.

A dry run works on copies, but the nodes of the cluster itself are shared by all questions. So a plugin that is not
ours looks at them through these views, which are ``NodeInfo`` and ``PodInfo`` to it, and at frozen copies of the
records. ``NodeInfo.snapshot`` gives a copy of its own that it may change.

The cluster as a whole is there the same way: nodes, pods, and every other object (``SnapshotView``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, NoReturn, cast

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.label_selectors import AffinityTerm
from kpreempt.schedulers.kube.framework.node_info import HostPorts, ImageState, NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.resources import Resource

_REFUSAL = "is read-only; change a copy: node_info.snapshot()"


class _ReadOnlyNode(NodeInfo):
    """A view; the slots of ``NodeInfo`` stay unset, so that every look goes to the node behind."""

    __slots__ = ("_behind",)
    _behind: NodeInfo

    def __init__(self, behind: NodeInfo) -> None:
        object.__setattr__(self, "_behind", behind)

    def __getattr__(self, name: str) -> object:
        behind = object.__getattribute__(self, "_behind")
        return behind.frozen_node if name == "node" else _seen(getattr(behind, name))

    def _reject(self, *_: Any, **__: Any) -> NoReturn:
        raise AttributeError(f"node {self._behind.name} {_REFUSAL}")

    __setattr__ = __delattr__ = add_pod = remove_pod = _reject

    def snapshot(self) -> NodeInfo:
        """A copy that may be changed, with pods that may not."""
        own = self._behind.snapshot()
        own.node = self._behind.frozen_node
        own.pods = list(map(read_only_pod, own.pods))
        own.pods_with_affinity = list(map(read_only_pod, own.pods_with_affinity))
        own.pods_with_required_anti_affinity = list(map(read_only_pod, own.pods_with_required_anti_affinity))
        own.allocatable = own.allocatable.clone()
        own.image_states = {name: copy(image) for name, image in own.image_states.items()}
        return own


class _ReadOnlyPod(PodInfo):
    """A view of a pod, as ``_ReadOnlyNode`` is one of a node."""

    __slots__ = ("_behind",)
    _behind: PodInfo

    def __init__(self, behind: PodInfo) -> None:
        object.__setattr__(self, "_behind", behind)

    def __getattr__(self, name: str) -> object:
        behind = object.__getattribute__(self, "_behind")
        return behind.frozen_pod if name == "pod" else _seen(getattr(behind, name))

    def _reject(self, *_: object) -> NoReturn:
        raise AttributeError(f"pod {self._behind.key} is read-only")

    __setattr__ = __delattr__ = _reject

    def __eq__(self, other: object) -> bool:
        """Whether both are the same pod on the same node, seen through a view or not."""
        return self._behind is (other._behind if isinstance(other, _ReadOnlyPod) else other)

    def __hash__(self) -> int:
        return hash(self._behind)

    @property
    def resource(self) -> Resource:
        """What the running pod occupies; a copy."""
        return self._behind.resource.clone()


def read_only_node(node_info: NodeInfo) -> NodeInfo:
    """The node, to look at only."""
    return node_info if isinstance(node_info, _ReadOnlyNode) else _ReadOnlyNode(node_info)


def read_only_nodes(node_infos: Iterable[NodeInfo]) -> tuple[NodeInfo, ...]:
    """The nodes, to look at only."""
    return tuple(map(read_only_node, node_infos))


def read_only_pod(pod_info: PodInfo) -> PodInfo:
    """The pod, to look at only."""
    return pod_info if isinstance(pod_info, _ReadOnlyPod) else _ReadOnlyPod(pod_info)


def _seen(value: object) -> object:
    """A value that the one who gets it cannot change the node with."""
    if isinstance(value, list):
        return tuple(map(_read_only_item, value))
    if isinstance(value, dict):
        return MappingProxyType({key: _read_only_item(item) for key, item in value.items()})
    return value.clone() if isinstance(value, Resource | HostPorts) else value


def _read_only_item(item: object) -> object:
    if isinstance(item, PodInfo):
        return read_only_pod(item)
    return copy(item) if isinstance(item, AffinityTerm | ImageState) else item


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
