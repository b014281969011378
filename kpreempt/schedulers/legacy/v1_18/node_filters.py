"""The filters that look at one node alone: its spec, its labels, what it offers and what its pods hold.

Follows ``framework/plugins`` of v1.18.19, one class per plugin. For NodeResourcesFit (``noderesources/fit.go`` and
``nodeinfo/node_info.go``) a pod requests its containers together or its largest init container, and its overhead
besides; running pods are counted in the same way (since 1.18.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpreempt.model.labels import is_label_key
from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.node_info import (
    HUGE_PAGES_PREFIX,
    NATIVE_PREFIX,
    PODS,
    Accounting,
    Amounts,
    NodeInfo,
    PodInfo,
    add,
    amounts_of,
    is_native,
    largest_request,
)
from kpreempt.schedulers.legacy.base.predicates import (
    addressed_ports,
    disk_conflict,
    insufficient_resources,
    name_mismatch,
    port_conflict,
    refuses_on,
    selector_mismatch,
    tolerates_unschedulable,
    untolerated_taint,
)
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, PodState, refused
from kpreempt.verdict import SUCCESS, Code, Detail, Status

REASON_UNSCHEDULABLE = "node(s) were unschedulable"
REASON_LABELS = "node(s) didn't have the requested labels"

_FINAL = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


class NodeUnschedulable(FilterPlugin):
    """Refuses cordoned nodes, unless the pod tolerates the taint of a cordoned node."""

    name = "NodeUnschedulable"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Look at ``spec.unschedulable``."""
        if not node_info.node.spec.unschedulable or tolerates_unschedulable(state.pod.pod):
            return SUCCESS
        return refused(_FINAL, REASON_UNSCHEDULABLE)


class NodeCheck(FilterPlugin):
    """A plugin that finds something about the pod and the node that rules the node out."""

    def __init__(self, name: str, find: Callable[[Pod, NodeInfo], Detail | None], reason: str, code: Code) -> None:
        self.name = name
        self._check = refuses_on(find, reason, code)

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Refuse the node for what is found."""
        status = self._check(state, node_info)
        return SUCCESS if status.is_success else status


NODE_NAME = NodeCheck("NodeName", name_mismatch, "node(s) didn't match the requested hostname", _FINAL)
NODE_PORTS = NodeCheck(
    "NodePorts", port_conflict, "node(s) didn't have free ports for the requested pod ports", Code.UNSCHEDULABLE
)
NODE_AFFINITY = NodeCheck("NodeAffinity", selector_mismatch, "node(s) didn't match node selector", _FINAL)
TAINT_TOLERATION = NodeCheck(
    "TaintToleration",
    untolerated_taint,
    "node(s) had taint {{{0.key}: {0.value}}}, that the pod didn't tolerate",
    _FINAL,
)
# Two pods may have the same in-line disk only if both only read it, and an EBS disk never.
VOLUME_RESTRICTIONS = NodeCheck(
    "VolumeRestrictions", disk_conflict, "node(s) had no available disk", Code.UNSCHEDULABLE
)


class NodeLabel(FilterPlugin):
    """Refuses nodes that lack one of some labels or have one of others; only a Policy file asks for it."""

    name = "NodeLabel"

    def __init__(self) -> None:
        self.present: list[str] = []
        self.absent: list[str] = []

    def require(self, labels: Sequence[str], *, present: bool) -> None:
        """Labels that a node must have, or must not have, whatever their value."""
        (self.present if present else self.absent).extend(labels)

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Look at the keys of the node's labels."""
        labels = node_info.labels
        if all(key in labels for key in self.present) and not any(key in labels for key in self.absent):
            return SUCCESS
        return refused(_FINAL, REASON_LABELS)


REASON_TOO_MANY_PODS = "Too many pods"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
_QUOTA_PREFIX = "requests."


def is_extended(name: str) -> bool:
    """Whether a resource is one of a device plugin or the like (``IsExtendedResourceName``)."""
    return not is_native(name) and not name.startswith(_QUOTA_PREFIX) and is_label_key(_QUOTA_PREFIX + name)


def is_scalar(name: str) -> bool:
    """Whether a resource is counted besides CPU, memory and ephemeral storage (``IsScalarResourceName``)."""
    return is_extended(name) or name.startswith((HUGE_PAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX)) or NATIVE_PREFIX in name


def requests_of(pod: Pod, *, counts_overhead: bool = True) -> Amounts:
    """What the pod takes of a node; the overhead counts under the gate PodOverhead, which is on by default."""
    total = largest_request(pod, is_scalar)
    if counts_overhead:
        add(total, amounts_of(pod.spec.overhead, is_scalar))
    return total


def accounting(*, counts_overhead: bool = True) -> Accounting:
    """How nodes add up their pods."""
    occupied: Callable[[Pod], Amounts] = lambda pod: requests_of(pod, counts_overhead=counts_overhead)  # noqa: E731
    return Accounting(is_scalar, occupied, addressed_ports)


class RequestState(PodState):
    """What the pod asks for; no other pod changes it."""

    __slots__ = ("requests",)

    def __init__(self, requests: Amounts) -> None:
        self.requests = requests

    def clone(self) -> RequestState:
        """The state itself, which never changes."""
        return self


class NodeResourcesFit(FilterPlugin):
    """Refuses nodes that have too little left of what the pod asks for, or no place for another pod.

    Resources that are ``ignored`` are left to extenders.
    """

    name = "NodeResourcesFit"

    def __init__(self, *, counts_overhead: bool = True, ignored: frozenset[str] = frozenset()) -> None:
        self._counts_overhead = counts_overhead
        self._ignored = ignored

    def pre_filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> RequestState:
        """Compute what the pod asks for."""
        return RequestState(requests_of(pod.pod, counts_overhead=self._counts_overhead))

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Every resource that is short is a reason; none is for good, be the node ever so small."""
        short = insufficient_resources(state.of(RequestState).requests, node_info, ignored=self._ignored)
        if short is None:
            return SUCCESS
        names = [shortfall.resource for shortfall in short.shortfalls]
        reasons = [REASON_TOO_MANY_PODS if name == PODS else f"Insufficient {name}" for name in names]
        return refused(Code.UNSCHEDULABLE, *reasons, detail=short)
