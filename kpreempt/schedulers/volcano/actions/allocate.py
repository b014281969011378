"""allocate: places the tasks of jobs that are in their queues (``actions/allocate/allocate.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.actions.common import (
    PredicateHelper,
    Refused,
    Statement,
    Turn,
    because,
    fits,
    is_skipped,
    nearest,
)
from kpreempt.schedulers.volcano.cache import Queue
from kpreempt.schedulers.volcano.job import FitErrors, Job
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.session import PredicateError, PriorityQueue, Session, has_refused, nil
from kpreempt.schedulers.volcano.task import Task
from kpreempt.schedulers.volcano.volumes import VolumeError
from kpreempt.verdict.volcano import AttemptOutcome, NodeOutcome, NodeTried, Purpose


def execute(session: Session) -> None:
    """Take queues in turn, of each the first job, and of that as many tasks as make it ready, or one more."""
    queues: PriorityQueue[Queue] = PriorityQueue(session.queue_goes_before)
    waiting: dict[str, PriorityQueue[Job]] = {}
    for job in session.walk_jobs():
        if job.is_pending and not session.has_action("enqueue"):
            job.phase = "Inqueue"
            session.recorder.record.enqueued.append(job.uid)
        if is_skipped(session, job):
            continue
        if job.queue not in waiting:
            waiting[job.queue] = PriorityQueue(session.job_goes_before)
            queues.push(session.queues[job.queue])
        waiting[job.queue].push(job)
    pending: dict[str, PriorityQueue[Task]] = {}
    while queues:
        queue = queues.pop()
        if session.is_overused(queue):
            session.recorder.skipped(queue.name, "the queue is overused")
            continue
        jobs = waiting[queue.name]
        if not jobs:
            continue
        job = jobs.pop()
        if job.uid not in pending:
            pending[job.uid] = PriorityQueue(session.task_goes_before)
            for task in session.walk_pending(job):
                if not task.is_best_effort:
                    pending[job.uid].push(task)
        queues.push(queue)
        if pending[job.uid]:
            _allocate_job(session, queue, job, pending[job.uid], jobs)


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
    turn = Turn(session, Purpose.ALLOCATE, job, task)
    if not session.is_allocatable(queue, task):
        return turn.ended(AttemptOutcome.NOT_ALLOCATABLE)
    nodes = list(session.nodes.values())
    try:
        session.pre_predicate(task)
    except PredicateError as error:
        errors = job.nodes_fit_errors[task.uid] = FitErrors()
        errors.by_node = {node.name: str(error) for node in nodes}
        return turn.ended(AttemptOutcome.PRE_PREDICATE_FAILED, reason=str(error))
    fitting, refused = helper.fitting(task, nodes, lambda task, node: _refusal(session, task, node))
    if not fitting:
        errors = job.nodes_fit_errors[task.uid] = FitErrors()
        errors.by_node = {name: reason.message for name, reason in refused.items()}
        return turn.ended(AttemptOutcome.NO_NODE, reason=str(errors), refused=refused, nearest=nearest(task, nodes))
    idle = [node for node in fitting if fits(task, node.idle)]
    others = [node for node in fitting if not fits(task, node.idle) and fits(task, node.future_idle())]
    node, score, tied = _best_of(session, task, idle, others)

    def chosen(outcome: AttemptOutcome, on_node: NodeOutcome, reason: str = "") -> AttemptOutcome:
        tried = NodeTried(node=node.name, outcome=on_node, score=score)
        return turn.ended(outcome, reason=reason, refused=refused, tried=[tried], tied=tied)

    if not fits(task, node.idle):
        statement.pipeline(task, node)
        return chosen(AttemptOutcome.PIPELINED, NodeOutcome.PIPELINED)
    try:
        statement.allocate(task, node)
    except VolumeError as error:
        # Upstream only logs it: no other node is tried for the task, and the next one has its turn.
        return chosen(AttemptOutcome.NO_VOLUMES, NodeOutcome.NO_VOLUMES, str(error))
    return chosen(AttemptOutcome.ALLOCATED, NodeOutcome.ALLOCATED)


def _best_of(
    session: Session, task: Task, idle: list[Node], others: list[Node]
) -> tuple[Node, float | None, list[str]]:
    """The node to take, of those with idle room first, with its score, if it needed one, and all that have it.

    Raises ``SchedulerPanicError`` where there is none: the genuine scheduler then goes on without a node.
    """
    for nodes in (idle, others):
        scores = session.scores(task, nodes) if len(nodes) > 1 else {}
        # The nodes with the best score, or the only one, which needs none. A score up to -1 is as good as none.
        if len(nodes) == 1:
            tied = nodes
        else:
            best = max(scores.values(), default=-1.0)
            tied = [node for node in nodes if scores[node.name] == best] if best > -1.0 else []
        if tied:
            node = session.order.pick(tied)
            return node, scores.get(node.name), [each.name for each in tied]
    raise nil("the best node, as no score is above -1")


def _refusal(session: Session, task: Task, node: Node) -> Refused | None:
    if missing := task.request.exceeding(node.future_idle()):
        return Refused(f"Insufficient {missing[0]}")
    where = f"task <{task.key}> on node <{node.name}>"
    try:
        statuses = session.predicate(task, node)
    except PredicateError as error:
        return Refused(f"predicates failed in allocate for {where}: {error}")
    if has_refused(statuses, is_strict=True):
        return Refused(
            f"predicates failed in allocate for {where}, status is not success", because(statuses, is_strict=True)
        )
    return None
