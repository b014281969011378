"""NodeResourcesFit, and what pods take of a node (``noderesources/fit.go`` and ``nodeinfo/node_info.go``, v1.18.19).

A pod asks for its containers together or for its largest init container, and for its overhead besides; running pods
are counted in the same way (since 1.18.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpreempt.model.labels import is_label_key
from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.checks import addressed_ports, insufficient_resources
from kpreempt.schedulers.legacy.base.node_info import Accounting, NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.resources import (
    HUGE_PAGES_PREFIX,
    NATIVE_PREFIX,
    PODS,
    Amounts,
    add,
    amounts_of,
    is_native,
    largest_request,
)
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, PodState, refused
from kpreempt.verdict import SUCCESS, Code, Status

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
