"""Nodes and pods as a plugin from outside gets them: everything can be read, and nothing changed.

A dry run works on copies, but the nodes of the cluster itself are shared by all questions. So a plugin that is not
ours looks at them through these views, which are ``NodeInfo`` and ``PodInfo`` to it. ``NodeInfo.snapshot`` gives a copy
of its own that it may change.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import NoReturn

from kpreempt.schedulers.kube.framework.host_ports import HostPorts
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.resources import Resource

_REFUSAL = "is read-only; change a copy: node_info.snapshot()"


class _ReadOnlyNode(NodeInfo):
    """A view; the slots of ``NodeInfo`` stay unset, so that every look goes to the node behind."""

    __slots__ = ("_behind",)
    _behind: NodeInfo

    def __init__(self, behind: NodeInfo) -> None:
        object.__setattr__(self, "_behind", behind)

    def __getattr__(self, name: str) -> object:
        return _seen(getattr(self._behind, name))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"node {self._behind.name} {_REFUSAL}")

    def snapshot(self) -> NodeInfo:
        """A copy that may be changed, with the pods as they are in the scheduler."""
        return self._behind.snapshot()

    def add_pod(self, pod_info: PodInfo) -> NoReturn:
        """Refuse."""
        raise AttributeError(f"node {self._behind.name} {_REFUSAL}")

    def remove_pod(self, pod_info: PodInfo) -> NoReturn:
        """Refuse."""
        raise AttributeError(f"node {self._behind.name} {_REFUSAL}")


class _ReadOnlyPod(PodInfo):
    """A view of a pod, as ``_ReadOnlyNode`` is one of a node."""

    __slots__ = ("_behind",)
    _behind: PodInfo

    def __init__(self, behind: PodInfo) -> None:
        object.__setattr__(self, "_behind", behind)

    def __getattr__(self, name: str) -> object:
        return _seen(getattr(self._behind, name))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"pod {self._behind.key} is read-only")

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
        return tuple(read_only_pod(each) if isinstance(each, PodInfo) else each for each in value)
    if isinstance(value, dict):
        return MappingProxyType(value)
    return value.clone() if isinstance(value, Resource | HostPorts) else value
