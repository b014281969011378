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
    port_conflict,
    selector_mismatch,
    tolerates_unschedulable,
    untolerated_taint,
)
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, PodState, refused
from kpreempt.verdict import SUCCESS, Code, Status, details

REASON_UNSCHEDULABLE = "node(s) were unschedulable"
REASON_NODE_NAME = "node(s) didn't match the requested hostname"
REASON_PORTS = "node(s) didn't have free ports for the requested pod ports"
REASON_SELECTOR = "node(s) didn't match node selector"
REASON_LABELS = "node(s) didn't have the requested labels"
REASON_DISK = "node(s) had no available disk"

_FINAL = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


class NodeUnschedulable(FilterPlugin):
    """Refuses cordoned nodes, unless the pod tolerates the taint of a cordoned node."""

    name = "NodeUnschedulable"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Look at ``spec.unschedulable``."""
        if not node_info.node.spec.unschedulable or tolerates_unschedulable(state.pod.pod):
            return SUCCESS
        return refused(_FINAL, REASON_UNSCHEDULABLE)


class NodeName(FilterPlugin):
    """Refuses all nodes but the one that the pod names."""

    name = "NodeName"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Look at ``spec.nodeName``."""
        wanted = state.pod.pod.spec.node_name
        if not wanted or wanted == node_info.name:
            return SUCCESS
        return refused(_FINAL, REASON_NODE_NAME, detail=details.NodeNameMismatch(wanted))


class NodePorts(FilterPlugin):
    """Refuses nodes on which a host port of the pod is taken."""

    name = "NodePorts"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Compare address, protocol and number with the ports in use."""
        taken = port_conflict(state.pod.pod, node_info)
        return SUCCESS if taken is None else refused(Code.UNSCHEDULABLE, REASON_PORTS, detail=taken)


class NodeAffinity(FilterPlugin):
    """Refuses nodes that the pod's node selector or required node affinity does not match."""

    name = "NodeAffinity"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Look at the node's labels and name."""
        mismatch = selector_mismatch(state.pod.pod, node_info)
        return SUCCESS if mismatch is None else refused(_FINAL, REASON_SELECTOR, detail=mismatch)


class TaintToleration(FilterPlugin):
    """Refuses nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""

    name = "TaintToleration"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Name the first such taint."""
        taint = untolerated_taint(state.pod.pod, node_info)
        if taint is None:
            return SUCCESS
        reason = f"node(s) had taint {{{taint.key}: {taint.value}}}, that the pod didn't tolerate"
        return refused(_FINAL, reason, detail=taint)


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


class VolumeRestrictions(FilterPlugin):
    """Refuses nodes on which a pod uses the same in-line disk, unless both only read it; EBS disks are never shared."""

    name = "VolumeRestrictions"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Compare the pod's in-line disks with those of the node's pods."""
        conflict = disk_conflict(state.pod.pod, node_info)
        return SUCCESS if conflict is None else refused(Code.UNSCHEDULABLE, REASON_DISK, detail=conflict)


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
