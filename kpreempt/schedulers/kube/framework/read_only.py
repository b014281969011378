"""Nodes and pods as an out-of-tree plugin gets them: everything can be read, and nothing changed.

A dry run works on copies, but the nodes of the cluster itself are shared by all questions. So a plugin that is not
ours looks at them through these views, which are ``NodeInfo`` and ``PodInfo`` to it, and at frozen copies of the
records. ``NodeInfo.snapshot`` gives a copy of its own that it may change.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from types import MappingProxyType
from typing import NoReturn

from kpreempt.schedulers.kube.framework.affinity_terms import AffinityTerm
from kpreempt.schedulers.kube.framework.host_ports import HostPorts
from kpreempt.schedulers.kube.framework.node_info import ImageState, NodeInfo, PodInfo
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

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"node {self._behind.name} {_REFUSAL}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"node {self._behind.name} {_REFUSAL}")

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

    def add_pod(self, pod_info: PodInfo) -> NoReturn:
        raise AttributeError(f"node {self._behind.name} {_REFUSAL}")

    def remove_pod(self, pod_info: PodInfo) -> NoReturn:
        raise AttributeError(f"node {self._behind.name} {_REFUSAL}")


class _ReadOnlyPod(PodInfo):
    """A view of a pod, as ``_ReadOnlyNode`` is one of a node."""

    __slots__ = ("_behind",)
    _behind: PodInfo

    def __init__(self, behind: PodInfo) -> None:
        object.__setattr__(self, "_behind", behind)

    def __getattr__(self, name: str) -> object:
        behind = object.__getattribute__(self, "_behind")
        return behind.frozen_pod if name == "pod" else _seen(getattr(behind, name))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"pod {self._behind.key} is read-only")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"pod {self._behind.key} is read-only")

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
        return tuple(map(_seen_item, value))
    if isinstance(value, dict):
        return MappingProxyType({key: _seen_item(item) for key, item in value.items()})
    return value.clone() if isinstance(value, Resource | HostPorts) else value


def _seen_item(item: object) -> object:
    if isinstance(item, PodInfo):
        return read_only_pod(item)
    return copy(item) if isinstance(item, AffinityTerm | ImageState) else item
