"""Which refusals no state of a node's pods can change."""

from __future__ import annotations

from kpreempt.verdict.details import InsufficientResources, NodeAffinityMismatch, NodeNameMismatch
from kpreempt.verdict.status import Status


def is_lasting(status: Status) -> bool:
    """Whether the node refuses the pod whatever runs there, by its size or its labels.

    Taints and cordons come and go with the state of a node, and what affinity, spread and volumes want may still come.
    """
    detail = status.detail
    if isinstance(detail, InsufficientResources):
        return any(each.requested > each.allocatable for each in detail.shortfalls)
    return isinstance(detail, NodeAffinityMismatch | NodeNameMismatch)
