"""Nodes with the tasks on them, and what is idle, used, leaving and promised (``pkg/scheduler/api/node_info.go``)."""

from __future__ import annotations

from kpreempt.model.node import Node as ClusterNode
from kpreempt.model.volcano import OVERSUBSCRIPTION_CPU, OVERSUBSCRIPTION_MEMORY
from kpreempt.schedulers.volcano.configuration import parse_float
from kpreempt.schedulers.volcano.resources import Resource
from kpreempt.schedulers.volcano.task import Task, TaskStatus


class Node:
    """A node in a session. It holds copies of its tasks."""

    __slots__ = ("allocatable", "cached_idle", "idle", "name", "node", "pipelined", "releasing", "tasks", "used")

    def __init__(self, node: ClusterNode) -> None:
        self.node = node
        self.name = node.metadata.name
        # What an agent says that the node can give beyond its allocatable.
        annotations = node.metadata.annotations
        cpu, memory = annotations.get(OVERSUBSCRIPTION_CPU, ""), annotations.get(OVERSUBSCRIPTION_MEMORY, "")
        self.allocatable = Resource.from_quantities(node.status.allocatable).add(
            Resource(parse_float(cpu), parse_float(memory))
        )
        self.idle = self.allocatable.clone()
        self.used = Resource()
        # What its leaving tasks hold still, and what is promised to tasks that wait for it.
        self.releasing = Resource()
        self.pipelined = Resource()
        self.tasks: dict[str, Task] = {}
        # What is idle by the scheduler's cache, which knows of this session what was sent to the cluster only.
        self.cached_idle = self.idle

    @property
    def _on(self) -> str:
        return f"node {self.name}"

    @property
    def is_ready(self) -> bool:
        """Whether no condition says that the node is not ready."""
        return all(c.status == "True" for c in self.node.status.conditions if c.type == "Ready")

    def future_idle(self) -> Resource:
        """What will be idle once leaving tasks are gone and promises are kept.

        Raises ``SchedulerPanicError`` where more is promised than that.
        """
        return self.idle.clone().add(self.releasing).sub(self.pipelined, self._on)

    def add(self, task: Task) -> bool:
        """Put a copy of the task on the node; False where it is there already."""
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
        """Take the task off the node, if it is there."""
        task = self.tasks.get(key)
        if task is None:
            return
        if task.status is TaskStatus.PIPELINED:
            self.pipelined.sub(task.request, self._on)
        else:
            if task.status is TaskStatus.RELEASING:
                self.releasing.sub(task.request, self._on)
            self.idle.add(task.request)
            self.used.sub(task.request, self._on)
        del self.tasks[key]

    def update(self, task: Task) -> None:
        """Put a new copy in the place of the one there is."""
        self.remove(task.key)
        self.add(task)

    def begin_session(self) -> None:
        """From here on the session's state parts from the cache's."""
        self.cached_idle = self.idle.clone()

    def refusal_to_bind(self, task: Task) -> str:
        """Why the cache does not take a task that is to be bound: it has too little idle; else an empty text."""
        lacking = task.request.exceeding(self.cached_idle)
        if not lacking:
            return ""
        return (
            f"node {self.name} resources [{' '.join(lacking)}] are not enough to put task <{task.key}>, "
            f"idle: {self.cached_idle}, req: {task.request}"
        )

    def tasks_in_order(self) -> list[Task]:
        """The tasks by ``namespace/name``."""
        return [self.tasks[key] for key in sorted(self.tasks)]
