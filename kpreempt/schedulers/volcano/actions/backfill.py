"""backfill: places tasks that ask for nothing (``actions/backfill/backfill.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.actions.common import Refusals, Refused, Turn, because, is_skipped
from kpreempt.schedulers.volcano.job import FitErrors, Job
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.session import PredicateError, Session, has_refused
from kpreempt.schedulers.volcano.task import Task, TaskStatus
from kpreempt.schedulers.volcano.volumes import VolumeError
from kpreempt.verdict.volcano import AttemptOutcome, NodeOutcome, NodeTried, OperationKind, Purpose


def execute(session: Session) -> None:
    """Put each such task on any node that passes; they bind when their job is ready."""
    for job in session.walk_jobs():
        if is_skipped(session, job):
            continue
        for task in session.walk_pending(job):
            if task.is_best_effort and not _place(session, job, task):
                break


def _place(session: Session, job: Job, task: Task) -> bool:
    """Place a task where a node is found; False where the job's turn is over."""
    errors = FitErrors()
    refused: Refusals = {}
    turn = Turn(session, Purpose.BACKFILL, job, task)
    try:
        session.pre_predicate(task)
    except PredicateError as error:
        errors.by_node = dict.fromkeys(session.nodes, str(error))
        job.nodes_fit_errors[task.uid] = errors
        turn.ended(AttemptOutcome.PRE_PREDICATE_FAILED, reason=str(error))
        return False
    for node in session.order.walk(session.nodes.values()):
        if reason := _refusal(session, task, node):
            refused[node.name] = reason
            errors.by_node[node.name] = reason.message
            continue
        try:
            session.allocate(task, node)
        except VolumeError as error:
            refused[node.name] = Refused(str(error))
            errors.by_node[node.name] = str(error)
            continue
        if failure := _bind_all(session, job, task):
            # Upstream tries the next node, and leaves the task on this one, too.
            refused[node.name] = Refused(failure)
            errors.by_node[node.name] = failure
            continue
        session.recorder.operation(OperationKind.ALLOCATE, task)
        tried = NodeTried(node=node.name, outcome=NodeOutcome.ALLOCATED)
        turn.ended(AttemptOutcome.ALLOCATED, refused=refused, tried=[tried])
        return True
    job.nodes_fit_errors[task.uid] = errors
    turn.ended(AttemptOutcome.NO_NODE, reason=str(errors), refused=refused)
    return True


def _bind_all(session: Session, job: Job, task: Task) -> str:
    """Bind what the job has been given room for, if it is ready; why that fails, where it does."""
    failure = ""
    if session.is_ready(job):
        for allocated in session.order.walk(job.with_status(TaskStatus.ALLOCATED)):
            if failure := session.bind(allocated):
                break
        else:
            return ""
    # Where the task is not bound, upstream keeps its room, but lets go of its volumes.
    session.volumes.give_back(task)
    return failure


def _refusal(session: Session, task: Task, node: Node) -> Refused | None:
    where = f"task <{task.key}> on node <{node.name}>"
    try:
        statuses = session.predicate(task, node)
    except PredicateError as error:
        return Refused(str(error))
    if has_refused(statuses, is_strict=True):
        return Refused(
            f"predicates failed in backfill for {where}, status is not success", because(statuses, is_strict=True)
        )
    return None
