"""Tasks: pods as a session sees them (``pkg/scheduler/api/job_info.go`` and ``helpers.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.volcano.configuration import parse_bool, parse_int32
from kpreempt.schedulers.volcano.resources import Resource, request_of

_PREEMPTABLE = "volcano.sh/preemptable"
# The priority of a pod that has none.
_DEFAULT_PRIORITY = 1


class TaskStatus(Enum):
    """Where a task stands in the session."""

    PENDING = "Pending"
    ALLOCATED = "Allocated"
    PIPELINED = "Pipelined"
    BINDING = "Binding"
    BOUND = "Bound"
    RUNNING = "Running"
    RELEASING = "Releasing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


# Statuses in which a task holds its resources.
ALLOCATED_STATUSES = (TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.ALLOCATED)


class Transaction(NamedTuple):
    """Where a statement that was thrown away had put a task."""

    node_name: str
    status: TaskStatus


class Task:
    """A pod in a session. Job and node each hold a copy of their own, so that one can change before the other."""

    __slots__ = (
        "is_best_effort",
        "is_preemptable",
        "job_id",
        "key",
        "last_transaction",
        "node_name",
        "pod",
        "priority",
        "request",
        "spec_name",
        "status",
        "uid",
    )

    def __init__(self, pod: Pod) -> None:
        annotations = pod.metadata.annotations
        self.pod = pod
        # ``namespace/name``.
        self.key = pod.key
        self.uid = pod.metadata.uid or pod.key
        self.job_id = job_id_of(pod)
        self.spec_name = annotations.task_spec if annotations else ""
        self.request: Resource = request_of(pod)
        self.is_best_effort = self.request.is_empty()
        self.node_name = pod.spec.node_name
        self.status = _status_of(pod)
        self.priority = _priority_of(pod)
        self.is_preemptable = _is_preemptable(pod)
        self.last_transaction: Transaction | None = None

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def namespace(self) -> str:
        return self.pod.metadata.namespace

    def clone(self) -> Task:
        """A copy with a status and a node of its own."""
        copy = Task.__new__(Task)
        for slot in Task.__slots__:
            setattr(copy, slot, getattr(self, slot))
        return copy


def job_id_of(pod: Pod) -> str:
    """``namespace/name`` of the pod's group, or an empty text for a pod without."""
    group = pod.metadata.annotations.group_name if pod.metadata.annotations else ""
    return f"{pod.metadata.namespace}/{group}" if group else ""


def _status_of(pod: Pod) -> TaskStatus:
    phase, is_leaving = pod.status.phase, pod.metadata.deletion_timestamp is not None
    if phase == "Running":
        return TaskStatus.RELEASING if is_leaving else TaskStatus.RUNNING
    if phase == "Pending":
        if is_leaving:
            return TaskStatus.RELEASING
        return TaskStatus.BOUND if pod.spec.node_name else TaskStatus.PENDING
    return {"Succeeded": TaskStatus.SUCCEEDED, "Failed": TaskStatus.FAILED}.get(phase, TaskStatus.UNKNOWN)


def _priority_of(pod: Pod) -> int:
    text = pod.metadata.annotations.task_priority if pod.metadata.annotations else None
    given = parse_int32(text) if text is not None else None
    if given is not None:
        return given
    return _DEFAULT_PRIORITY if pod.spec.priority is None else pod.spec.priority


def _is_preemptable(pod: Pod) -> bool:
    """The annotation decides, then the label; a text that is no truth value counts as false."""
    text = pod.metadata.annotations.preemptable if pod.metadata.annotations else None
    if text is None:
        text = pod.metadata.labels.get(_PREEMPTABLE)
    return True if text is None else parse_bool(text) is True
