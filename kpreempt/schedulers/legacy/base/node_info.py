"""Pods, and nodes with their pods, as the old caches keep them (``schedulercache/node_info.go`` of v1.8.15).

Used ports are a set: when one of two pods with the same port goes, the port counts as free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.resources import PODS, Amounts, IsCounted, add, amounts_of

# Address, protocol and number; what a version does not tell apart is empty.
PortKey = tuple[str, str, int]


class Accounting(NamedTuple):
    """How a version adds up what pods take of a node.

    ``occupied`` is what a running pod takes, ``ports`` the host ports of a pod. ``never_returned`` names resources that
    a pod keeps in the node's total when it goes.
    """

    is_counted: IsCounted
    occupied: Callable[[Pod], Amounts]
    ports: Callable[[Pod], Iterable[PortKey]]
    never_returned: frozenset[str] = frozenset()


class PodInfo:
    """A pod, with what is computed from it when first asked for."""

    def __init__(self, pod: Pod, accounting: Accounting) -> None:
        self.pod = pod
        self.key = pod.key
        self.priority = pod.priority
        self.start: datetime | None = pod.status.start_time
        self._accounting = accounting

    @cached_property
    def occupied(self) -> Amounts:
        """What the running pod takes of its node."""
        return self._accounting.occupied(self.pod)

    @cached_property
    def ports(self) -> list[PortKey]:
        """The host ports that it takes."""
        return list(self._accounting.ports(self.pod))

    @property
    def has_affinity(self) -> bool:
        """Whether the pod states any pod affinity or anti-affinity."""
        affinity = self.pod.spec.affinity
        return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)

    @property
    def affinity_terms(self) -> list[PodAffinityTerm]:
        """The pod affinity that it requires."""
        affinity = self.pod.spec.affinity
        return affinity.pod_affinity.required if affinity and affinity.pod_affinity else []

    @property
    def anti_affinity_terms(self) -> list[PodAffinityTerm]:
        """The pod anti-affinity that it requires."""
        affinity = self.pod.spec.affinity
        return affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else []


class NodeInfo:
    """A node, its pods in the order in which the cache saw them, and running totals over them."""

    def __init__(self, node: Node, assigned: Sequence[Pod], accounting: Accounting) -> None:
        self.node = node
        self.name = node.metadata.name
        self.labels = node.metadata.labels
        self.allocatable = amounts_of(node.status.allocatable, accounting.is_counted)
        pods = node.status.allocatable.get(PODS)
        self.allowed_pods = pods.value if pods else 0
        self._accounting = accounting
        self.pods: list[PodInfo] = []
        self.requested: Amounts = {}
        self.used_ports: set[PortKey] = set()
        for pod in assigned:
            self.add_pod(PodInfo(pod, accounting))

    def clone(self) -> NodeInfo:
        """A copy to which pods can be added and from which they can be removed without touching this one."""
        copy = NodeInfo.__new__(NodeInfo)
        copy.node, copy.name, copy.labels = self.node, self.name, self.labels
        copy.allocatable, copy.allowed_pods = self.allocatable, self.allowed_pods
        copy._accounting = self._accounting
        copy.pods = list(self.pods)
        copy.requested = dict(self.requested)
        copy.used_ports = set(self.used_ports)
        return copy

    def add_pod(self, info: PodInfo) -> None:
        """Put a pod on the node."""
        self.pods.append(info)
        add(self.requested, info.occupied)
        self.used_ports.update(info.ports)

    def remove_pod(self, info: PodInfo) -> None:
        """Take a pod off the node; raises ``ValueError`` if it is not there."""
        self.pods.remove(info)
        kept = self._accounting.never_returned
        if kept:
            add(self.requested, {name: amount for name, amount in info.occupied.items() if name not in kept}, -1)
        else:
            add(self.requested, info.occupied, -1)
        self.used_ports.difference_update(info.ports)
