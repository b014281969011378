"""allocate: places the tasks of jobs that are in their queues (``actions/allocate/allocate.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.actions.common import (
    PredicateHelper,
    Refused,
    because,
    fits,
    is_skipped,
    nearest,
    said_of,
)
from kpreempt.schedulers.volcano.cache import Queue
from kpreempt.schedulers.volcano.fit_errors import FitErrors
from kpreempt.schedulers.volcano.heap import PriorityQueue
from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.session import PredicateError, Session, has_refused, nil
from kpreempt.schedulers.volcano.statement import Statement
from kpreempt.schedulers.volcano.task import Task
from kpreempt.verdict.volcano import Attempt, AttemptOutcome, NodeOutcome, NodeTried, Purpose


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
            session.recorder.skipped(queue.name, "the queue has all that it deserves")
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

    def ended(outcome: AttemptOutcome, **found: object) -> AttemptOutcome:
        session.recorder.record.attempts.append(
            Attempt(purpose=Purpose.ALLOCATE, queue=queue.name, job=job.uid, task=task.key, outcome=outcome, **found)  # type: ignore[arg-type]
        )
        return outcome

    if not session.is_allocatable(queue, task):
        return ended(AttemptOutcome.NOT_ALLOCATABLE)
    nodes = list(session.nodes.values())
    try:
        session.pre_predicate(task)
    except PredicateError as error:
        errors = job.nodes_fit_errors[task.uid] = FitErrors()
        errors.by_node = {node.name: str(error) for node in nodes}
        return ended(AttemptOutcome.PRE_PREDICATE_FAILED, reason=str(error))
    fitting, refused = helper.fitting(task, nodes, lambda task, node: _refusal(session, task, node))
    if not fitting:
        errors = job.nodes_fit_errors[task.uid] = FitErrors()
        errors.by_node = {name: reason.message for name, reason in refused.items()}
        return ended(AttemptOutcome.NO_NODE, **said_of(refused), reason=str(errors), nearest=nearest(task, nodes))
    idle = [node for node in fitting if fits(task, node.idle)]
    others = [node for node in fitting if not fits(task, node.idle) and fits(task, node.future_idle())]
    candidates = idle or others
    scores = session.scores(task, candidates) if len(candidates) > 1 else {}
    node, tied = best_node(session, candidates, scores)
    goes_at_once = fits(task, node.idle)
    if goes_at_once:
        statement.allocate(task, node)
    else:
        statement.pipeline(task, node)
    tried = NodeTried(
        node=node.name,
        outcome=NodeOutcome.ALLOCATED if goes_at_once else NodeOutcome.PIPELINED,
        score=scores.get(node.name),
    )
    outcome = AttemptOutcome.ALLOCATED if goes_at_once else AttemptOutcome.PIPELINED
    return ended(outcome, **said_of(refused), nodes=[tried], tied=tied if len(tied) > 1 else [])


def best_node(session: Session, nodes: list[Node], scores: dict[str, float]) -> tuple[Node, list[str]]:
    """The node with the best score, and all that have it; without scores there is one node only.

    Raises ``SchedulerPanicError`` where no score is above -1: the genuine scheduler then goes on without a node.
    """
    if not scores:
        if len(nodes) == 1:
            return nodes[0], [nodes[0].name]
        raise nil("the best node, as no node has a score")
    best = max(scores.values())
    if not best > -1.0:
        raise nil("the best node, as no score is above -1")
    tied = [node for node in nodes if scores[node.name] == best]
    return session.order.pick(tied), [node.name for node in tied]


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
