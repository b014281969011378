"""The cluster as Volcano's cache holds it when a session opens: tasks, jobs, nodes and queues.

Follows ``pkg/scheduler/cache/cache.go`` (``Snapshot``) and ``event_handlers.go`` of Volcano v1.8.0: pods of other
schedulers count once they are on a node, jobs need a pod group and an existing queue, and nodes must be ready. Totals
over jobs and nodes, and the reasons why tasks fit on no node, follow ``job_info.go``, ``node_info.go``,
``unschedule_info.go`` and ``helpers.go`` in ``pkg/scheduler/api``, and ``plugins/util/util.go``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.node import Node as ClusterNode
from kpreempt.model.pod import Pod
from kpreempt.model.volcano import (
    DEFAULT_QUEUE,
    HIERARCHY,
    HIERARCHY_WEIGHTS,
    OVERSUBSCRIPTION_CPU,
    OVERSUBSCRIPTION_MEMORY,
    VOLCANO_SCHEDULER_NAME,
    PodGroup,
    QueueSpec,
)
from kpreempt.model.volcano import Queue as ClusterQueue
from kpreempt.schedulers.kube.framework.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from kpreempt.schedulers.volcano.configuration import TRUE_TEXTS, parse_float, parse_int
from kpreempt.schedulers.volcano.resources import (
    DEVICES,
    Missing,
    Resource,
    is_counted,
    request_of,
)
from kpreempt.verdict.volcano import PodGroupCondition

_PREEMPTABLE = "volcano.sh/preemptable"


class TaskStatus(Enum):
    """The status of a task in the session."""

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
    """Where a discarded statement had placed a task."""

    node_name: str
    status: TaskStatus


class Task:
    """A pod in a session. Job and node each hold a separate copy, so that one can change before the other."""

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
        text = annotations.task_priority if annotations else None
        given = parse_int(text, bits=32) if text is not None else None
        # A pod without a priority has priority 1.
        self.priority = given if given is not None else 1 if pod.spec.priority is None else pod.spec.priority
        # The annotation takes precedence over the label; a text that is not a boolean counts as false.
        text = annotations.preemptable if annotations else None
        text = text if text is not None else pod.metadata.labels.get(_PREEMPTABLE)
        self.is_preemptable = text is None or text in TRUE_TEXTS
        self.last_transaction: Transaction | None = None

    def clone(self) -> Task:
        """Return a copy with another status and node."""
        copy = Task.__new__(Task)
        for slot in Task.__slots__:
            setattr(copy, slot, getattr(self, slot))
        return copy


def job_id_of(pod: Pod) -> str:
    """Return ``namespace/name`` of the pod's group, or an empty string for a pod without a group."""
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


HOLDING = (*ALLOCATED_STATUSES, TaskStatus.SUCCEEDED)
VALID = (*HOLDING, TaskStatus.PIPELINED, TaskStatus.PENDING)
_UNSCHEDULABLE = "Unschedulable"
_SCHEDULABLE = "Schedulable"


class Job:
    """A pod group in a session. ``phase`` and ``conditions`` belong to the group; the session changes them."""

    def __init__(self, group: PodGroup, queue: str, priority: int) -> None:
        self.group = group
        # ``namespace/name``.
        self.uid = f"{group.metadata.namespace}/{group.metadata.name}"
        self.queue = queue
        self.priority = priority
        self.min_available = group.spec.min_member
        self.task_min_available = group.spec.min_task_member
        self.created: datetime | None = group.metadata.creation_timestamp
        self.phase = group.status.phase
        self.conditions = [PodGroupCondition(c.type, c.status, c.reason, c.message) for c in group.status.conditions]
        # The types of the conditions set in this session.
        self.own_conditions: set[str] = set()
        self.fit_error = ""
        self.nodes_fit_errors: dict[str, FitErrors] = {}
        self.tasks: dict[str, Task] = {}
        self._by_status: dict[TaskStatus, dict[str, Task]] = {}
        self.allocated = Resource()
        self.total_request = Resource()

    @property
    def is_pending(self) -> bool:
        """Return whether the group has not been enqueued yet."""
        return self.phase in ("", "Pending")

    @property
    def min_resources(self) -> Resource:
        """The minimum resources in the group's spec; empty if it has none."""
        return Resource.from_quantities(self.group.spec.min_resources or {})

    @property
    def states_min_resources(self) -> bool:
        """Return whether the group's spec has minimum resources."""
        return self.group.spec.min_resources is not None

    @property
    def elastic_resources(self) -> Resource:
        """What the job holds beyond its minimum, if it exceeds the minimum in every resource; otherwise nothing."""
        least = self.min_resources
        if self.allocated.less_equal_partly(least, Missing.ZERO):
            return Resource()
        return self.allocated.clone().sub(least, f"job {self.uid}")

    def add(self, task: Task) -> None:
        """Add a task, replacing one with the same uid."""
        self.tasks[task.uid] = task
        self._by_status.setdefault(task.status, {})[task.uid] = task
        self.total_request.add(task.request)
        if task.status in ALLOCATED_STATUSES:
            self.allocated.add(task.request)

    def move(self, task: Task, status: TaskStatus) -> None:
        """Change the status of a task; ``task`` itself replaces the job's copy."""
        old = self.tasks.pop(task.uid, None)
        if old is not None:
            self.total_request.sub(old.request, f"job {self.uid}")
            if old.status in ALLOCATED_STATUSES:
                self.allocated.sub(old.request, f"job {self.uid}")
            same = self._by_status[old.status]
            del same[old.uid]
            if not same:
                del self._by_status[old.status]
        task.status = status
        self.add(task)

    def with_status(self, *statuses: TaskStatus) -> list[Task]:
        """Return the tasks with one of these statuses, by ``namespace/name``."""
        found = [task for status in statuses for task in self._by_status.get(status, {}).values()]
        return sorted(found, key=lambda task: task.key)

    def count(self, *statuses: TaskStatus) -> int:
        """Return the number of tasks with one of these statuses."""
        return sum(len(self._by_status.get(status, ())) for status in statuses)

    def counts(self) -> dict[str, int]:
        """Return the number of tasks per status, by status name."""
        return {status.value: len(tasks) for status, tasks in sorted(self._by_status.items(), key=lambda i: i[0].value)}

    @property
    def ready_count(self) -> int:
        """Count tasks that hold their resources or have succeeded, and pending tasks that request nothing."""
        pending = self._by_status.get(TaskStatus.PENDING, {}).values()
        return self.count(*HOLDING) + sum(task.is_best_effort for task in pending)

    @property
    def waiting_count(self) -> int:
        """Count tasks that wait for resources that are being released."""
        return self.count(TaskStatus.PIPELINED)

    @property
    def is_ready(self) -> bool:
        """Return whether the job has its minimum number of ready tasks."""
        return self.ready_count >= self.min_available

    def has_specs(self, *statuses: TaskStatus) -> bool:
        """Return whether each task spec has its minimum number of tasks with these statuses.

        Pending tasks that request nothing count too. Task specs are ignored if their minimums add up to more than the
        job's.
        """
        if self.min_available < sum(self.task_min_available.values()):
            return True
        pending = self.with_status(TaskStatus.PENDING) if TaskStatus.PENDING not in statuses else ()
        counted = Counter(task.spec_name for task in self.with_status(*statuses))
        counted.update(task.spec_name for task in pending if task.is_best_effort)
        return all(counted[name] >= least for name, least in self.task_min_available.items())

    def fit_message(self) -> str:
        """Explain why the job is not ready: its tasks by status, and its pending tasks by reason (``FitError``)."""
        statuses = {**self.counts(), "minAvailable": self.min_available}
        message = f"pod group is not ready, {', '.join(histogram(statuses))}"
        pending = Counter(self.reason_of(task)[0] for task in self.with_status(TaskStatus.PENDING))
        return f"{message}; Pending: {', '.join(histogram(pending))}" if pending else message

    def reason_of(self, task: Task) -> tuple[str, str]:
        """Return reason and message for a task that does not run (``TaskSchedulingReason``)."""
        node_name, status = task.last_transaction or (task.node_name, task.status)
        if status is TaskStatus.ALLOCATED:
            return _SCHEDULABLE, f"Pod {task.key} can possibly be assigned to {node_name}"
        if status is TaskStatus.PIPELINED:
            text = f"Pod {task.key} can possibly be assigned to {node_name}, once resource is released"
            return _UNSCHEDULABLE, text
        if status is TaskStatus.PENDING:
            errors = self.nodes_fit_errors.get(task.uid)
            return _UNSCHEDULABLE, str(errors) if errors is not None else self.fit_error
        return status.value, self.fit_error

    def set_condition(self, condition: PodGroupCondition) -> None:
        """Set a condition of the group, replacing one of the same type."""
        self.own_conditions.add(condition.type)
        for index, existing in enumerate(self.conditions):
            if existing.type == condition.type:
                self.conditions[index] = condition
                return
        self.conditions.append(condition)


def histogram(counts: Mapping[str, int]) -> list[str]:
    """Format each entry as ``3 Insufficient cpu``, sorted as text."""
    return sorted(f"{count} {text}" for text, count in counts.items())


class FitErrors:
    """The reason of each node, or one message for all nodes."""

    def __init__(self, message: str = "", by_node: Mapping[str, str] | None = None) -> None:
        self._message = message
        self.by_node = by_node or {}

    def __str__(self) -> str:
        message = self._message or f"0/{len(self.by_node)} nodes are unavailable"
        if not self.by_node:
            return message
        return f"{message}: {', '.join(histogram(Counter(self.by_node.values())))}."


def still_reserved(job: Job) -> Resource:
    """Return the part of a running job's minimum resources that its tasks do not hold; nothing for other jobs.

    Scalars of the minimum are in units, held scalars in thousandths, as upstream.
    """
    reserved = Resource()
    least = job.group.spec.min_resources
    if job.phase != "Running" or least is None or job.count(*ALLOCATED_STATUSES) < job.group.spec.min_member:
        return reserved
    held = Resource()
    for task in job.with_status(*ALLOCATED_STATUSES):
        held.add(task.request)
    for name, amount in least.items():
        if name == CPU:
            reserved.cpu = max(float(amount.milli_value) - held.cpu, 0.0)
        elif name == MEMORY:
            reserved.memory = max(float(amount.value) - held.memory, 0.0)
        # Upstream skips ephemeral storage and names that contain that of a shared device.
        elif is_counted(name) and name != EPHEMERAL_STORAGE and not any(device in name for device in DEVICES):
            if reserved.scalars is None:
                reserved.scalars = {}
            if name not in (held.scalars or {}):
                reserved.scalars[name] = float(amount.value)
            elif float(amount.value) > held.get(name):
                reserved.scalars[name] = float(amount.value) - held.get(name)
    return reserved


class Node:
    """A node in a session. It holds copies of its tasks."""

    __slots__ = ("allocatable", "cached_idle", "idle", "name", "node", "pipelined", "releasing", "tasks", "used")

    def __init__(self, node: ClusterNode) -> None:
        self.node = node
        self.name = node.metadata.name
        # Resources that an agent reports in addition to the node's allocatable.
        annotations = node.metadata.annotations
        cpu, memory = annotations.get(OVERSUBSCRIPTION_CPU, ""), annotations.get(OVERSUBSCRIPTION_MEMORY, "")
        self.allocatable = Resource.from_quantities(node.status.allocatable).add(
            Resource(parse_float(cpu), parse_float(memory))
        )
        self.idle = self.allocatable.clone()
        self.used = Resource()
        # What terminating tasks still hold, and what is reserved for pipelined tasks.
        self.releasing = Resource()
        self.pipelined = Resource()
        self.tasks: dict[str, Task] = {}
        # Idle resources in the scheduler's cache, which sees only what this session sent to the cluster.
        self.cached_idle = self.idle

    @property
    def is_ready(self) -> bool:
        """Return whether no condition marks the node as not ready."""
        return all(c.status == "True" for c in self.node.status.conditions if c.type == "Ready")

    def future_idle(self) -> Resource:
        """Return what will be idle once terminating tasks are gone and pipelined tasks are placed.

        Raises ``SchedulerPanicError`` if more than that is pipelined.
        """
        return self.idle.clone().add(self.releasing).sub(self.pipelined, f"node {self.name}")

    def add(self, task: Task) -> bool:
        """Add a copy of the task to the node; return False if it is already there."""
        if task.key in self.tasks:
            return False
        copy = task.clone()
        task.node_name = copy.node_name = self.name
        if copy.status is TaskStatus.PIPELINED:
            self.pipelined.add(copy.request)
        else:
            self.idle.sub_unchecked(copy.request)
            self.used.add(copy.request)
            if copy.status is TaskStatus.RELEASING:
                self.releasing.add(copy.request)
        self.tasks[copy.key] = copy
        return True

    def remove(self, key: str) -> None:
        """Remove the task from the node, if it is there."""
        task = self.tasks.get(key)
        if task is None:
            return
        if task.status is TaskStatus.PIPELINED:
            self.pipelined.sub(task.request, f"node {self.name}")
        else:
            if task.status is TaskStatus.RELEASING:
                self.releasing.sub(task.request, f"node {self.name}")
            self.idle.add(task.request)
            self.used.sub(task.request, f"node {self.name}")
        del self.tasks[key]

    def tasks_in_order(self) -> list[Task]:
        """Return the tasks by ``namespace/name``."""
        return [self.tasks[key] for key in sorted(self.tasks)]


_TERMINATED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


class Queue:
    """A queue in a session."""

    def __init__(self, queue: ClusterQueue) -> None:
        self.name = self.uid = queue.metadata.name
        self.created = queue.metadata.creation_timestamp
        self.weight = queue.spec.weight
        self.capability = queue.spec.capability
        self.guarantee = queue.spec.guarantee.resource
        self.is_reclaimable = queue.spec.reclaimable is not False
        self.hierarchy = queue.metadata.annotations.get(HIERARCHY, "")
        self.weights = queue.metadata.annotations.get(HIERARCHY_WEIGHTS, "")


class Cache(NamedTuple):
    """The input of a session, in the order of the snapshot. ``ignored`` maps skipped jobs to the reason."""

    cluster: ClusterSnapshot
    jobs: list[Job]
    nodes: list[Node]
    queues: list[Queue]
    ignored: dict[str, str]
    now: datetime


def cache_of(
    cluster: ClusterSnapshot, *, now: datetime, scheduler_names: frozenset[str] = frozenset({VOLCANO_SCHEDULER_NAME})
) -> Cache:
    """Build the jobs, nodes and queues that a session may change. The queue ``default`` always exists."""
    tasks = [Task(pod) for pod in cluster.pods if pod.spec.node_name or pod.spec.scheduler_name in scheduler_names]
    nodes = {node.metadata.name: Node(node) for node in cluster.nodes}
    for task in tasks:
        if task.node_name in nodes and task.status not in _TERMINATED:
            nodes[task.node_name].add(task)
    queues = {queue.metadata.name: Queue(queue) for queue in cluster.queues}
    if DEFAULT_QUEUE not in queues:
        spec = QueueSpec(weight=1, reclaimable=True)
        queues[DEFAULT_QUEUE] = Queue(ClusterQueue(metadata=AnnotatedMeta(name=DEFAULT_QUEUE), spec=spec))
    priorities = {item.metadata.name: item.value for item in cluster.priority_classes}
    default_priority = 0
    for item in cluster.priority_classes:
        if item.global_default:
            default_priority = item.value
    jobs: dict[str, Job] = {}
    ignored: dict[str, str] = {}
    for group in cluster.pod_groups:
        queue = group.spec.queue or DEFAULT_QUEUE
        if queue not in queues:
            ignored[group.key] = f"its queue {queue} does not exist"
            continue
        jobs[group.key] = Job(group, queue, priorities.get(group.spec.priority_class_name, default_priority))
    for task in tasks:
        if task.job_id in jobs:
            jobs[task.job_id].add(task)
        elif task.job_id and task.job_id not in ignored:
            ignored[task.job_id] = "there is no such pod group"
    return Cache(
        cluster,
        list(jobs.values()),
        [node for node in nodes.values() if node.is_ready],
        list(queues.values()),
        ignored,
        now,
    )
