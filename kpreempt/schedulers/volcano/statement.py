"""Statements: changes to a session that are kept together or undone together (``framework/statement.go``, v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.session import Session
from kpreempt.schedulers.volcano.task import Task, Transaction
from kpreempt.verdict.volcano import Operation, OperationKind, Purpose, StatementEnd, StatementOutcome

_UNDONE_BY = {
    OperationKind.PIPELINE: OperationKind.UNPIPELINE,
    OperationKind.ALLOCATE: OperationKind.UNALLOCATE,
}


class Statement:
    """Evictions, promises and placements of a job, until they are committed or discarded."""

    def __init__(self, session: Session, job: Job, purpose: Purpose) -> None:
        self._session = session
        self._job = job
        self._purpose = purpose
        self._operations: list[tuple[OperationKind, Task, str, str]] = []

    def evict(self, task: Task, reason: str) -> None:
        """Mark a task as leaving."""
        self._session.evict(task)
        self._note(OperationKind.EVICT, task, reason)

    def pipeline(self, task: Task, node: Node) -> None:
        """Promise a task room."""
        self._session.pipeline(task, node)
        self._note(OperationKind.PIPELINE, task)

    def allocate(self, task: Task, node: Node) -> None:
        """Give a task room; raises ``VolumeError``, and then has done nothing."""
        self._session.allocate(task, node)
        self._session.recorder.operation(OperationKind.ALLOCATE, task)
        self._note(OperationKind.ALLOCATE, task)

    def commit(self) -> None:
        """Send evictions and bindings to the cluster. Promises are kept for this session only."""
        self._end(StatementOutcome.COMMITTED)
        recorder = self._session.recorder
        for kind, task, reason, by in self._operations:
            task.last_transaction = None
            if kind is OperationKind.EVICT:
                recorder.evicted(task, reason, by)
            elif kind is OperationKind.ALLOCATE:
                self._session.bind(task)

    def discard(self) -> None:
        """Undo everything, last first; tasks remember where they had been put."""
        self._end(StatementOutcome.DISCARDED)
        for kind, task, _, _ in reversed(self._operations):
            task.last_transaction = Transaction(task.node_name, task.status)
            if kind is OperationKind.EVICT:
                self._session.unevict(task)
            else:
                self._session.unplace(task, _UNDONE_BY[kind])

    def hold(self) -> None:
        """Neither: what was taken stays taken in this session."""
        self._end(StatementOutcome.HELD)

    def _note(self, kind: OperationKind, task: Task, reason: str = "") -> None:
        self._operations.append((kind, task, reason, self._session.recorder.current_task))

    def _end(self, outcome: StatementOutcome) -> None:
        job = self._job
        if not self._operations and outcome is StatementOutcome.HELD:
            return
        operations: list[Operation] = [(kind, task.key, task.node_name, by) for kind, task, _, by in self._operations]
        self._session.recorder.record.statements.append(
            StatementEnd(
                purpose=self._purpose,
                job=job.uid,
                outcome=outcome,
                ready=job.ready_count,
                waiting=job.waiting_count,
                min_available=job.min_available,
                operations=operations,
            )
        )
