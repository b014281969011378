"""What is kept of a session while it runs: operations, attempts, and what was sent to the cluster."""

from __future__ import annotations

from kpreempt.schedulers.volcano.task import Task
from kpreempt.verdict.volcano import (
    Attempt,
    Eviction,
    Operation,
    OperationKind,
    Placement,
    SessionEvent,
    Skip,
    StatementEnd,
)


class ActionRecord:
    """What an action has done so far."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.evictions: list[Eviction] = []
        self.binds: list[Placement] = []
        self.enqueued: list[str] = []
        self.trace: list[Operation] = []
        self.skipped: list[Skip] = []
        self.attempts: list[Attempt] = []
        self.statements: list[StatementEnd] = []


class Recorder:
    """Takes down what happens, action by action. ``current_task`` is the one for whose sake it does."""

    def __init__(self) -> None:
        self.current_task = ""
        self.record = ActionRecord("")
        self.events: list[SessionEvent] = []

    def begin(self, action: str) -> ActionRecord:
        """Start with an action."""
        self.current_task = ""
        self.record = ActionRecord(action)
        return self.record

    def operation(self, kind: OperationKind, task: Task) -> None:
        """Something was done to a task on its node, or undone."""
        self.record.trace.append((kind, task.key, task.node_name, self.current_task))

    def evicted(self, task: Task, reason: str, by: str) -> None:
        """A task was told to go."""
        self.record.evictions.append(Eviction(task.key, task.node_name, reason, by))
        self.events.append(SessionEvent("Pod", task.key, "Warning", "Evict", f"Pod is evicted, because of {reason}"))
        self.events.append(SessionEvent("PodGroup", task.job_id, "Normal", "Evict", reason))

    def bound(self, task: Task) -> None:
        """A task was sent to its node."""
        self.record.binds.append(Placement(task.key, task.node_name))

    def skipped(self, subject: str, reason: str) -> None:
        """An action passed over a job or queue."""
        self.record.skipped.append(Skip(subject, reason))
