"""Jobs: a pod group with its tasks, what is counted over them, and why its tasks fit on no node.

Follows ``pkg/scheduler/api/job_info.go``, ``unschedule_info.go`` and ``plugins/util/util.go`` of Volcano v1.8.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from kpreempt.model.volcano import PodGroup
from kpreempt.schedulers.volcano.resources import CPU, DEVICES, EPHEMERAL_STORAGE, MEMORY, Missing, Resource, is_counted
from kpreempt.schedulers.volcano.task import ALLOCATED_STATUSES, Task, TaskStatus
from kpreempt.verdict.volcano import PodGroupCondition

_HOLDING = (*ALLOCATED_STATUSES, TaskStatus.SUCCEEDED)
_VALID = (*_HOLDING, TaskStatus.PIPELINED, TaskStatus.PENDING)
_UNSCHEDULABLE = "Unschedulable"
_SCHEDULABLE = "Schedulable"


class Job:
    """A pod group in a session. ``phase`` and ``conditions`` are the group's, which the session changes."""

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
        # The types of the conditions that this session has set.
        self.own_conditions: set[str] = set()
        self.fit_error = ""
        self.nodes_fit_errors: dict[str, FitErrors] = {}
        self.tasks: dict[str, Task] = {}
        self._by_status: dict[TaskStatus, dict[str, Task]] = {}
        self.allocated = Resource()
        self.total_request = Resource()

    @property
    def is_pending(self) -> bool:
        """Whether the group has not been let into its queue."""
        return self.phase in ("", "Pending")

    @property
    def min_resources(self) -> Resource:
        """What the group states as its least; nothing where it states none."""
        return Resource.from_quantities(self.group.spec.min_resources or {})

    @property
    def states_min_resources(self) -> bool:
        """Whether the group states its least resources at all."""
        return self.group.spec.min_resources is not None

    @property
    def elastic_resources(self) -> Resource:
        """What the job holds beyond its least, where it holds more of everything; else nothing."""
        least = self.min_resources
        if self.allocated.less_equal_partly(least, Missing.ZERO):
            return Resource()
        return self.allocated.clone().sub(least, f"job {self.uid}")

    def add(self, task: Task) -> None:
        """Take a task in, in place of one with its uid."""
        self.tasks[task.uid] = task
        self._by_status.setdefault(task.status, {})[task.uid] = task
        self.total_request.add(task.request)
        if task.status in ALLOCATED_STATUSES:
            self.allocated.add(task.request)

    def move(self, task: Task, status: TaskStatus) -> None:
        """Give the task another status; ``task`` itself takes the place of the copy that the job had."""
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
        """The tasks with one of these statuses, by ``namespace/name``."""
        found = [task for status in statuses for task in self._by_status.get(status, {}).values()]
        return sorted(found, key=lambda task: task.key)

    def count(self, *statuses: TaskStatus) -> int:
        """How many tasks have one of these statuses."""
        return sum(len(self._by_status.get(status, ())) for status in statuses)

    def counts(self) -> dict[str, int]:
        """How many tasks have each status, by its name, statuses by name."""
        return {status.value: len(tasks) for status, tasks in sorted(self._by_status.items(), key=lambda i: i[0].value)}

    @property
    def ready_count(self) -> int:
        """Tasks that hold their resources or have succeeded, and pending ones that ask for none."""
        pending = self._by_status.get(TaskStatus.PENDING, {}).values()
        return self.count(*_HOLDING) + sum(task.is_best_effort for task in pending)

    @property
    def waiting_count(self) -> int:
        """Tasks that wait for room that is being made for them."""
        return self.count(TaskStatus.PIPELINED)

    @property
    def valid_count(self) -> int:
        """Tasks that hold, wait or ask for resources, or have succeeded."""
        return self.count(*_VALID)

    @property
    def is_ready(self) -> bool:
        """Whether the job has its least number of ready tasks."""
        return self.ready_count >= self.min_available

    @property
    def allocated_count(self) -> int:
        """Tasks that hold their resources."""
        return self.count(*ALLOCATED_STATUSES)

    def has_valid_specs(self) -> bool:
        """Whether each task spec has its least number of valid tasks."""
        if self._ignores_specs():
            return True
        counted = _by_spec(self.with_status(*_VALID))
        return all(counted[name] >= least for name, least in self.task_min_available.items() if least != 0)

    def has_ready_specs(self) -> bool:
        """Whether each task spec has its least number of ready tasks."""
        return self._specs_reach(_HOLDING)

    def has_pipelined_specs(self) -> bool:
        """Whether each task spec has its least number of tasks that are ready or wait for room."""
        return self._specs_reach((*_HOLDING, TaskStatus.PIPELINED))

    def _specs_reach(self, statuses: tuple[TaskStatus, ...]) -> bool:
        if self._ignores_specs():
            return True
        counted = _by_spec(self.with_status(*statuses))
        counted.update(_by_spec(task for task in self.with_status(TaskStatus.PENDING) if task.is_best_effort))
        return all(counted[name] >= least for name, least in self.task_min_available.items())

    def _ignores_specs(self) -> bool:
        """Task specs do not count where they ask for more than the job as a whole."""
        return self.min_available < sum(self.task_min_available.values())

    def fit_message(self) -> str:
        """Why the job is not ready: its tasks by status, and its pending ones by reason (``FitError``)."""
        statuses = {**self.counts(), "minAvailable": self.min_available}
        message = f"pod group is not ready, {', '.join(histogram(statuses))}"
        pending = Counter(self.reason_of(task)[0] for task in self.with_status(TaskStatus.PENDING))
        return f"{message}; Pending: {', '.join(histogram(pending))}" if pending else message

    def reason_of(self, task: Task) -> tuple[str, str]:
        """Reason and message for a task that does not run (``TaskSchedulingReason``)."""
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
        """Set a condition of the group, in the place of the one of its type."""
        self.own_conditions.add(condition.type)
        for index, existing in enumerate(self.conditions):
            if existing.type == condition.type:
                self.conditions[index] = condition
                return
        self.conditions.append(condition)


def _by_spec(tasks: Iterable[Task]) -> Counter[str]:
    return Counter(task.spec_name for task in tasks)


def histogram(counts: Mapping[str, int]) -> list[str]:
    """``3 Insufficient cpu`` for each, sorted as texts."""
    return sorted(f"{count} {text}" for text, count in counts.items())


class FitErrors:
    """The reason that each node gave, or one message for all."""

    def __init__(self, message: str = "") -> None:
        self._message = message
        self.by_node: dict[str, str] = {}

    def __str__(self) -> str:
        message = self._message or f"0/{len(self.by_node)} nodes are unavailable"
        if not self.by_node:
            return message
        return f"{message}: {', '.join(histogram(Counter(self.by_node.values())))}."


def still_reserved(job: Job) -> Resource:
    """What a running job with enough tasks states as its least, beyond what they hold; nothing for other jobs.

    Scalars of the least count in units, those that are held in thousandths, as in the genuine code.
    """
    reserved = Resource()
    least = job.group.spec.min_resources
    if job.phase != "Running" or least is None or job.allocated_count < job.group.spec.min_member:
        return reserved
    held = Resource()
    for task in job.with_status(*ALLOCATED_STATUSES):
        held.add(task.request)
    for name, amount in least.items():
        if name == CPU:
            reserved.cpu = max(float(amount.milli_value) - held.cpu, 0.0)
        elif name == MEMORY:
            reserved.memory = max(float(amount.value) - held.memory, 0.0)
        elif _is_counted(name):
            if reserved.scalars is None:
                reserved.scalars = {}
            if name not in (held.scalars or {}):
                reserved.scalars[name] = float(amount.value)
            elif float(amount.value) > held.get(name):
                reserved.scalars[name] = float(amount.value) - held.get(name)
    return reserved


def _is_counted(name: str) -> bool:
    """Ephemeral storage does not count here, nor does a name that holds that of a shared device."""
    return is_counted(name) and name != EPHEMERAL_STORAGE and not any(device in name for device in DEVICES)
