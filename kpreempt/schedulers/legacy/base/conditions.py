"""A node's conditions, and which pods mind them (``algorithm/predicates/predicates.go``, v1.8.15 and v1.13.12)."""

from __future__ import annotations

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.resources import CPU, HUGE_PAGES_PREFIX, MEMORY

MEMORY_PRESSURE = "MemoryPressure"
DISK_PRESSURE = "DiskPressure"
PID_PRESSURE = "PIDPressure"
READY = "Ready"
OUT_OF_DISK = "OutOfDisk"
NETWORK_UNAVAILABLE = "NetworkUnavailable"
# The status that these must have for pods to come.
_WANTED = {READY: "True", OUT_OF_DISK: "False", NETWORK_UNAVAILABLE: "False"}


def bad_conditions(node: Node) -> list[str]:
    """The types of the conditions that keep all pods off, in their order. One that is not stated keeps nobody off."""
    return [
        condition.type
        for condition in node.status.conditions
        if condition.type in _WANTED and condition.status != _WANTED[condition.type]
    ]


def is_true(node: Node, condition_type: str) -> bool:
    """Whether the node says so; the last of several conditions counts."""
    statuses = [condition.status for condition in node.status.conditions if condition.type == condition_type]
    return bool(statuses) and statuses[-1] == "True"


def is_best_effort(pod: Pod) -> bool:
    """Whether no container requests CPU, memory or huge pages, or has a limit for them (``GetPodQOS``)."""
    return not any(
        amount.nano > 0 and (name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX))
        for container in pod.spec.containers
        for amounts in (container.resources.requests, container.resources.limits)
        for name, amount in amounts.items()
    )
