"""The actions that place tasks: enqueue, allocate and backfill of Volcano v1.8.0.

enqueue admits waiting jobs to their queues (``actions/enqueue/enqueue.go``), allocate places the tasks of enqueued jobs
(``actions/allocate/allocate.go``), and backfill places tasks that request nothing (``actions/backfill/backfill.go``).
"""

from __future__ import annotations

from kpreempt.schedulers.volcano.actions.common import (
    NodeRejection,
    PredicateHelper,
    Rejections,
    Statement,
    Turn,
    each_turn,
    fits,
    is_skipped,
    job_queues,
    nearest,
    rejection,
)
from kpreempt.schedulers.volcano.cache import FitErrors, Job, Node, Queue, Task, TaskStatus
from kpreempt.schedulers.volcano.resources import NIL, SchedulerPanicError
from kpreempt.schedulers.volcano.session import PredicateError, PriorityQueue, Session, Vote
from kpreempt.schedulers.volcano.volumes import VolumeError
from kpreempt.verdict.volcano import Attempt, AttemptOutcome, NodeAttempt, NodeOutcome, OperationKind, Purpose


def enqueue(session: Session) -> None:
    """Take queues in turn, and try to enqueue the first waiting job of each."""
    queues, waiting = job_queues(session, session.walk_jobs(), lambda job: job.is_pending)
    record = session.recorder.record
    while queues:
        queue = queues.pop()
        jobs = waiting[queue.name]
        if not jobs:
            continue
        job = jobs.pop()
        vetoes = session.rejecting(Vote.JOB_ENQUEUEABLE, job) if job.states_min_resources else []
        if not vetoes:
            for _, note_enqueued in session.functions(Vote.JOB_ENQUEUED):
                note_enqueued(job)
            job.phase = "Inqueue"
            record.enqueued.append(job.uid)
        record.attempts.append(
            Attempt(
                purpose=Purpose.ENQUEUE,
                queue=queue.name,
                job=job.uid,
                outcome=AttemptOutcome.NOT_ENQUEUED if vetoes else AttemptOutcome.ENQUEUED,
                vetoes=vetoes,
            )
        )
        queues.push(queue)


def allocate(session: Session) -> None:
    """Take queues in turn: for each the first job, and as many of its tasks as make it ready, or one more."""
    jobs_in_order = session.walk_jobs()
    for job in jobs_in_order:
        if job.is_pending and "enqueue" not in session.configuration.actions:
            job.phase = "Inqueue"
            session.recorder.record.enqueued.append(job.uid)
    queues, waiting = job_queues(session, (job for job in jobs_in_order if not is_skipped(session, job)))
    pending: dict[str, PriorityQueue[Task]] = {}
    for queue, job in each_turn(session, queues, waiting):
        if job.uid not in pending:
            tasks = [task for task in session.walk_pending(job) if not task.is_best_effort]
            pending[job.uid] = PriorityQueue(session.task_is_before, tasks)
        queues.push(queue)
        if pending[job.uid]:
            _allocate_job(session, queue, job, pending[job.uid], waiting[queue.name])


def _allocate_job(
    session: Session, queue: Queue, job: Job, tasks: PriorityQueue[Task], jobs: PriorityQueue[Job]
) -> None:
    statement = Statement(session, job, Purpose.ALLOCATE)
    helper = PredicateHelper()
    while tasks:
        outcome = _allocate_task(session, queue, job, tasks.pop(), statement, helper)
        if outcome in (AttemptOutcome.PRE_PREDICATE_FAILED, AttemptOutcome.NO_NODE):
            break
        if outcome is not AttemptOutcome.NOT_ALLOCATABLE and session.is_ready(job) and tasks:
            jobs.push(job)
            break
    if session.is_ready(job):
        statement.commit()
    elif session.is_pipelined(job):
        statement.hold()
    else:
        statement.discard()


def _allocate_task(
    session: Session, queue: Queue, job: Job, task: Task, statement: Statement, helper: PredicateHelper
) -> AttemptOutcome:
    """Find a node for a task."""

    def check(task: Task, node: Node) -> NodeRejection | None:
        missing = task.request.exceeding(node.future_idle())
        return NodeRejection(f"Insufficient {missing[0]}") if missing else rejection(session, task, node, "allocate")

    turn = Turn(session, Purpose.ALLOCATE, job, task)
    if not session.is_allocatable(queue, task):
        return turn.ended(AttemptOutcome.NOT_ALLOCATABLE)
    nodes = list(session.nodes.values())
    try:
        session.pre_predicate(task)
    except PredicateError as error:
        job.nodes_fit_errors[task.uid] = FitErrors(by_node={node.name: str(error) for node in nodes})
        return turn.ended(AttemptOutcome.PRE_PREDICATE_FAILED, reason=str(error))
    fitting, refused = helper.fitting(task, nodes, check)
    if not fitting:
        by_node = {name: reason.message for name, reason in refused.items()}
        errors = job.nodes_fit_errors[task.uid] = FitErrors(by_node=by_node)
        return turn.ended(AttemptOutcome.NO_NODE, reason=str(errors), refused=refused, nearest=nearest(task, nodes))
    idle = [node for node in fitting if fits(task, node.idle)]
    others = [node for node in fitting if not fits(task, node.idle) and fits(task, node.future_idle())]
    node, score, tied = _best_of(session, task, idle, others)

    def chosen(outcome: AttemptOutcome, on_node: NodeOutcome, reason: str = "") -> AttemptOutcome:
        tried = NodeAttempt(node=node.name, outcome=on_node, score=score)
        return turn.ended(outcome, reason=reason, refused=refused, tried=[tried], tied=tied)

    if not fits(task, node.idle):
        statement.pipeline(task, node)
        return chosen(AttemptOutcome.PIPELINED, NodeOutcome.PIPELINED)
    try:
        statement.allocate(task, node)
    except VolumeError as error:
        # Upstream only logs the error: no other node is tried for the task, and the next task has its turn.
        return chosen(AttemptOutcome.NO_VOLUMES, NodeOutcome.NO_VOLUMES, str(error))
    return chosen(AttemptOutcome.ALLOCATED, NodeOutcome.ALLOCATED)


def _best_of(
    session: Session, task: Task, idle: list[Node], others: list[Node]
) -> tuple[Node, float | None, list[str]]:
    """Choose a node, preferring idle ones; return it, its score if computed, and all nodes with that score.

    Raises ``SchedulerPanicError`` if there is none: upstream then continues without a node.
    """
    for nodes in (idle, others):
        scores = session.scores(task, nodes) if len(nodes) > 1 else {}
        # The nodes with the best score, or the only node, which is not scored. Upstream ignores scores of -1 and below.
        if len(nodes) == 1:
            tied = nodes
        else:
            best = max(scores.values(), default=-1.0)
            tied = [node for node in nodes if scores[node.name] == best] if best > -1.0 else []
        if tied:
            node = session.order.pick(tied)
            return node, scores.get(node.name), [each.name for each in tied]
    raise SchedulerPanicError(NIL, "the best node, as no score is above -1")


def backfill(session: Session) -> None:
    """Place each task that requests nothing on any node that passes; tasks are bound when their job is ready."""
    for job in session.walk_jobs():
        if is_skipped(session, job):
            continue
        for task in session.walk_pending(job):
            if task.is_best_effort and not _place(session, job, task):
                break


def _place(session: Session, job: Job, task: Task) -> bool:
    """Place a task if a node is found; return False if the job's turn is over."""
    turn = Turn(session, Purpose.BACKFILL, job, task)
    try:
        session.pre_predicate(task)
    except PredicateError as error:
        job.nodes_fit_errors[task.uid] = FitErrors(by_node=dict.fromkeys(session.nodes, str(error)))
        turn.ended(AttemptOutcome.PRE_PREDICATE_FAILED, reason=str(error))
        return False
    refused: Rejections = {}
    for node in session.order.walk(session.nodes.values()):
        if reason := rejection(session, task, node, "backfill"):
            refused[node.name] = reason
            continue
        try:
            session.allocate(task, node)
        except VolumeError as error:
            refused[node.name] = NodeRejection(str(error))
            continue
        if failure := _bind_all(session, job, task):
            # Upstream tries the next node, and leaves the task on this one, too.
            refused[node.name] = NodeRejection(failure)
            continue
        session.recorder.operation(OperationKind.ALLOCATE, task)
        tried = NodeAttempt(node=node.name, outcome=NodeOutcome.ALLOCATED)
        turn.ended(AttemptOutcome.ALLOCATED, refused=refused, tried=[tried])
        return True
    errors = FitErrors(by_node={name: reason.message for name, reason in refused.items()})
    job.nodes_fit_errors[task.uid] = errors
    turn.ended(AttemptOutcome.NO_NODE, reason=str(errors), refused=refused)
    return True


def _bind_all(session: Session, job: Job, task: Task) -> str:
    """Bind all allocated tasks of a ready job; return why that fails, or an empty string."""
    failure = ""
    if session.is_ready(job):
        for allocated in session.order.walk(job.with_status(TaskStatus.ALLOCATED)):
            if failure := session.bind(allocated):
                break
        else:
            return ""
    # If the task is not bound, upstream keeps its resources, but releases its volumes.
    session.volumes.give_back(task)
    return failure
