"""Code shared by several actions, and the recording of placement attempts.

Statements are changes to a session that are committed or discarded together (``framework/statement.go``, v1.8.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kpreempt.schedulers.volcano.cache import Job, Node, Queue, Task, Transaction
from kpreempt.schedulers.volcano.resources import Missing, Resource
from kpreempt.schedulers.volcano.session import PredicateError, PriorityQueue, Session, Victims
from kpreempt.verdict.status import Code
from kpreempt.verdict.volcano import (
    Amounts,
    Attempt,
    AttemptOutcome,
    NodeAttempt,
    NodeOutcome,
    Operation,
    OperationKind,
    Purpose,
    StatementEnd,
    StatementOutcome,
)


def is_skipped(session: Session, job: Job) -> bool:
    """Return whether an action skips a job, because it is not enqueued or is invalid."""
    if job.is_pending:
        session.recorder.skipped(job.uid, "it is not enqueued yet")
        return True
    if (invalid := session.invalid_reason(job)) is not None:
        session.recorder.skipped(job.uid, ": ".join(invalid))
        return True
    return False


def job_queues(
    session: Session, jobs: Iterable[Job], waits: Callable[[Job], bool] = lambda _: True
) -> tuple[PriorityQueue[Queue], dict[str, PriorityQueue[Job]]]:
    """Return the queues of all these jobs, and for each queue name its waiting jobs."""
    queues = PriorityQueue(session.queue_is_before)
    waiting: dict[str, PriorityQueue[Job]] = {}
    for job in jobs:
        if job.queue not in waiting:
            waiting[job.queue] = PriorityQueue(session.job_is_before)
            queues.push(session.queues[job.queue])
        if waits(job):
            waiting[job.queue].push(job)
    return queues, waiting


def each_turn(
    session: Session, queues: PriorityQueue[Queue], waiting: Mapping[str, PriorityQueue[Job]]
) -> Iterator[tuple[Queue, Job]]:
    """Yield the first queue with its first waiting job repeatedly. Push a queue to give it another turn."""
    while queues:
        queue = queues.pop()
        if session.is_overused(queue):
            session.recorder.skipped(queue.name, "the queue is overused")
        elif waiting[queue.name]:
            yield queue, waiting[queue.name].pop()


# Messages of actions for nodes on which a predicate returns an error; those that evict share one.
_ERRORS = {"allocate": "predicates failed in allocate for {subject}: {error}", "backfill": "{error}"}
_EVICTION_ERROR = "{action} predicates failed for {subject}: {error}"


def rejection(session: Session, task: Task, node: Node, action: str) -> NodeRejection | None:
    """Return why the predicates reject the node, or ``None``. Actions that evict accept Unschedulable."""
    is_strict, subject = action in _ERRORS, f"task <{task.key}> on node <{node.name}>"
    try:
        statuses = session.predicate(task, node)
    except PredicateError as error:
        return NodeRejection(_ERRORS.get(action, _EVICTION_ERROR).format(action=action, subject=subject, error=error))
    against = [each for each in statuses if not each.is_success and (is_strict or each.code != Code.UNSCHEDULABLE)]
    if not against:
        return None
    requested = "success" if is_strict else "success or unschedulable"
    return NodeRejection(
        f"predicates failed in {action} for {subject}, status is not {requested}",
        "; ".join(f"{status.plugin}: {status.message}" for status in against),
    )


class PredicateHelper:
    """Checks nodes, and caches results for tasks of the same job and spec (``util/predicate_helper.go``)."""

    def __init__(self) -> None:
        self._failed: dict[tuple[str, str], dict[str, NodeRejection]] = {}

    def fitting(self, task: Task, nodes: Sequence[Node], check: NodeCheck) -> tuple[list[Node], Rejections]:
        """Return the nodes that pass, and the reasons of the others by name.

        A node that rejected a task of the same job and spec before keeps the reason it gave then.
        """
        group = (task.job_id, task.spec_name)
        # Results of earlier tasks. The first task of a group does not use them, even if it rejects a node itself.
        known = dict(self._failed.get(group, {}))
        fitting: list[Node] = []
        refused: Rejections = {}
        for node in nodes:
            reason = known.get(node.name) or check(task, node)
            if reason is None:
                fitting.append(node)
            else:
                refused[node.name] = reason
        if refused:
            self._failed.setdefault(group, {}).update(refused)
        return fitting, refused


def fits(task: Task, free: Resource) -> bool:
    """Return whether ``free`` covers what a task requests."""
    return task.request.less_equal(free, Missing.ZERO)


def lacking(task: Task, free: Resource) -> Amounts:
    """Return the missing amount of each resource."""
    return {name: task.request.get(name) - max(free.get(name), 0.0) for name in task.request.exceeding(free)}


def nearest(task: Task, nodes: Sequence[Node]) -> NodeAttempt | None:
    """Return the node closest to fitting: the fewest resources missing, then the smallest missing fraction."""
    short = [(node, lacks) for node in nodes if (lacks := lacking(task, node.future_idle()))]
    if not short:
        return None

    node, lacks = min(
        short, key=lambda item: (len(item[1]), sum(amount / task.request.get(name) for name, amount in item[1].items()))
    )
    return NodeAttempt(node=node.name, outcome=NodeOutcome.NOT_ENOUGH, missing=lacks)


class NodeRejection(NamedTuple):
    """Why a node is rejected, in upstream's words, and what the predicates reported."""

    message: str
    because: str = ""


# Rejections by node.
Rejections = dict[str, NodeRejection]
NodeCheck = Callable[[Task, Node], NodeRejection | None]


class Turn(NamedTuple):
    """A task whose turn it is, and the action it is for."""

    session: Session
    purpose: Purpose
    job: Job
    task: Task

    def ended(
        self,
        outcome: AttemptOutcome,
        *,
        reason: str = "",
        refused: Mapping[str, NodeRejection] | None = None,
        tried: Sequence[NodeAttempt] = (),
        tied: Sequence[str] = (),
        nearest: NodeAttempt | None = None,
    ) -> AttemptOutcome:
        """Record the outcome of the turn, and return it."""
        rejections = refused or {}
        self.session.recorder.record.attempts.append(
            Attempt(
                purpose=self.purpose,
                queue=self.job.queue,
                job=self.job.uid,
                task=self.task.key,
                outcome=outcome,
                reason=reason,
                rejected={name: rejection.message for name, rejection in rejections.items()},
                explanations={name: rejection.because for name, rejection in rejections.items() if rejection.because},
                nodes=list(tried),
                tied=list(tied) if len(tied) > 1 else [],
                nearest=nearest,
            )
        )
        return outcome


class Trial(NamedTuple):
    """A node that is tried, with the tasks that could be evicted, and those that may be."""

    node: Node
    candidates: Sequence[Task]
    victims: Victims
    score: float | None = None

    def freed(self) -> Resource:
        """Return what would be free without the victims; raise ``SchedulerPanicError`` as ``future_idle`` does."""
        free = self.node.future_idle()
        for victim in self.victims.tasks:
            free.add(victim.request)
        return free

    def ended(
        self, outcome: NodeOutcome, *, evicted: Sequence[str] = (), missing: Amounts | None = None
    ) -> NodeAttempt:
        """Describe how the node was tried and the result."""
        return NodeAttempt(
            node=self.node.name,
            outcome=outcome,
            score=self.score,
            candidates=[candidate.key for candidate in self.candidates],
            votes=self.victims.votes,
            deciding_tier=self.victims.deciding_tier,
            victims=[victim.key for victim in self.victims.tasks],
            evicted=list(evicted),
            missing=missing or {},
        )


_UNDONE_BY = {
    OperationKind.PIPELINE: OperationKind.UNPIPELINE,
    OperationKind.ALLOCATE: OperationKind.UNALLOCATE,
}


class Statement:
    """Evictions, pipelined tasks and placements of a job, until they are committed or discarded."""

    def __init__(self, session: Session, job: Job, purpose: Purpose) -> None:
        self._session = session
        self._job = job
        self._purpose = purpose
        self._operations: list[tuple[OperationKind, Task, str, str]] = []

    def evict(self, task: Task, reason: str) -> None:
        """Mark a task as releasing."""
        self._session.evict(task)
        self._note(OperationKind.EVICT, task, reason)

    def pipeline(self, task: Task, node: Node) -> None:
        """Reserve capacity for a task."""
        self._session.pipeline(task, node)
        self._note(OperationKind.PIPELINE, task)

    def allocate(self, task: Task, node: Node) -> None:
        """Allocate a task; on ``VolumeError`` nothing has changed."""
        self._session.allocate(task, node)
        self._session.recorder.operation(OperationKind.ALLOCATE, task)
        self._note(OperationKind.ALLOCATE, task)

    def commit(self) -> None:
        """Send evictions and bindings to the cluster. Pipelined tasks last only for this session."""
        self._end(StatementOutcome.COMMITTED)
        recorder = self._session.recorder
        for kind, task, reason, by in self._operations:
            task.last_transaction = None
            if kind is OperationKind.EVICT:
                recorder.evicted(task, reason, by)
            elif kind is OperationKind.ALLOCATE:
                self._session.bind(task)

    def discard(self) -> None:
        """Undo everything in reverse order; tasks remember their placement."""
        self._end(StatementOutcome.DISCARDED)
        for kind, task, _, _ in reversed(self._operations):
            task.last_transaction = Transaction(task.node_name, task.status)
            if kind is OperationKind.EVICT:
                self._session.unevict(task)
            else:
                self._session.unplace(task, _UNDONE_BY[kind])

    def hold(self) -> None:
        """Neither commit nor discard: the session keeps the changes."""
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
