"""Nodes and pods as an out-of-tree plugin gets them: readable but immutable.

A dry run works on copies, but all queries share the nodes of the cluster itself. So an out-of-tree plugin gets these
views, which look like ``NodeInfo`` and ``PodInfo``, and frozen copies of the records. ``NodeInfo.snapshot`` returns a
copy that the plugin may change.

The rest of the cluster is available in the same way: nodes, pods, and every other object (``SnapshotView``).
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

_READ_ONLY = "is read-only; change a copy: node_info.snapshot()"


class _ReadOnlyNode(NodeInfo):
    """A view; the slots of ``NodeInfo`` stay unset, so that every access goes to the underlying node."""

    __slots__ = ("_behind",)
    _behind: NodeInfo

    def __init__(self, behind: NodeInfo) -> None:
        object.__setattr__(self, "_behind", behind)

    def __getattr__(self, name: str) -> object:
        behind = object.__getattribute__(self, "_behind")
        return behind.frozen_node if name == "node" else _seen(getattr(behind, name))

    def _reject(self, *_: Any, **__: Any) -> NoReturn:
        raise AttributeError(f"node {self._behind.name} {_READ_ONLY}")

    __setattr__ = __delattr__ = add_pod = remove_pod = _reject

    def snapshot(self) -> NodeInfo:
        """Return a copy that may be changed, with pods that may not."""
        own = self._behind.snapshot()
        own.node = self._behind.frozen_node
        own.pods = list(map(read_only_pod, own.pods))
        own.pods_with_affinity = list(map(read_only_pod, own.pods_with_affinity))
        own.pods_with_required_anti_affinity = list(map(read_only_pod, own.pods_with_required_anti_affinity))
        own.allocatable = own.allocatable.clone()
        own.image_states = {name: copy(image) for name, image in own.image_states.items()}
        return own


class _ReadOnlyPod(PodInfo):
    """A view of a pod, like ``_ReadOnlyNode`` for a node."""

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
        """Return whether both are the same pod on the same node, through a view or not."""
        return self._behind is (other._behind if isinstance(other, _ReadOnlyPod) else other)

    def __hash__(self) -> int:
        return hash(self._behind)

    @property
    def resource(self) -> Resource:
        """A copy of the resources that the running pod uses."""
        return self._behind.resource.clone()


def read_only_node(node_info: NodeInfo) -> NodeInfo:
    """Return a read-only view of the node."""
    return node_info if isinstance(node_info, _ReadOnlyNode) else _ReadOnlyNode(node_info)


def read_only_nodes(node_infos: Iterable[NodeInfo]) -> tuple[NodeInfo, ...]:
    """Return read-only views of the nodes."""
    return tuple(map(read_only_node, node_infos))


def read_only_pod(pod_info: PodInfo) -> PodInfo:
    """Return a read-only view of the pod."""
    return pod_info if isinstance(pod_info, _ReadOnlyPod) else _ReadOnlyPod(pod_info)


def _seen(value: object) -> object:
    """Return a value through which the node cannot be changed."""
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
    """The cluster when the pod is scheduled. ``state`` is the scheduler's own state."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    @property
    def now(self) -> datetime:
        """The time of the snapshot, or of ``--now``; plugins must not read the clock."""
        return self._state.now

    @property
    def objects(self) -> ClusterSnapshot:
        """The records of every kind in the snapshot: budgets, priority classes, claims and so on."""
        return cast(ClusterSnapshot, self._state.frozen_objects)

    @cached_property
    def nodes(self) -> Sequence[NodeInfo]:
        """All nodes with their pods, in the scheduler's order."""
        return read_only_nodes(self._state.node_infos)

    def node(self, name: str) -> NodeInfo | None:
        """Return the node with that name, or ``None``."""
        found = self._state.by_name.get(name)
        return None if found is None else read_only_node(found)

    def pods(self) -> Iterator[PodInfo]:
        """Yield all unfinished pods on nodes, node by node."""
        return (pod_info for node_info in self.nodes for pod_info in node_info.pods)

    def nominated_pods(self, node_name: str) -> Sequence[PodInfo]:
        """Return the pending pods for which the node reserves resources."""
        return tuple(map(read_only_pod, self._state.nominated_pods.get(node_name, ())))

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace; empty if it is unknown."""
        return MappingProxyType(dict(self._state.namespace_labels(namespace)))

    def documents(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """Return the plain objects of a kind in ``extra_fields``, in input order; empty if there are none.

        Kinds are written like ``ElasticQuota.scheduling.x-k8s.io`` or ``Namespace``.
        """
        return tuple(self.objects.documents.get(kind, ()))
