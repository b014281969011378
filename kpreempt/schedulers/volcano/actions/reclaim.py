"""reclaim: queues take from others what they deserve (``actions/reclaim/reclaim.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.actions.common import (
    Refusals,
    Trial,
    Turn,
    eviction_refusal,
    fits,
    is_skipped,
    lacking,
)
from kpreempt.schedulers.volcano.cache import Queue
from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.resources import Resource
from kpreempt.schedulers.volcano.session import PredicateError, PriorityQueue, Session
from kpreempt.schedulers.volcano.task import Task, TaskStatus
from kpreempt.verdict.volcano import AttemptOutcome, NodeOutcome, NodeTried, Purpose

_ACTION = "reclaim"


def execute(session: Session) -> None:
    """Take queues in turn, of each the first job, and of that one task.

    A queue whose job has no task left, or whose task may not be placed, is out for good, whatever else waits in it.
    """
    queues: PriorityQueue[Queue] = PriorityQueue(session.queue_goes_before)
    waiting: dict[str, PriorityQueue[Job]] = {}
    tasks: dict[str, PriorityQueue[Task]] = {}
    seen: set[str] = set()
    for job in session.walk_jobs():
        if is_skipped(session, job):
            continue
        if job.queue not in seen:
            seen.add(job.queue)
            queues.push(session.queues[job.queue])
        if job.count(TaskStatus.PENDING):
            waiting.setdefault(job.queue, PriorityQueue(session.job_goes_before)).push(job)
            tasks[job.uid] = PriorityQueue(session.task_goes_before)
            for task in session.walk_pending(job):
                tasks[job.uid].push(task)
    while queues:
        queue = queues.pop()
        if session.is_overused(queue):
            session.recorder.skipped(queue.name, "the queue is overused")
            continue
        jobs = waiting.get(queue.name)
        if not jobs:
            continue
        job = jobs.pop()
        if not tasks[job.uid]:
            session.recorder.skipped(queue.name, f"job {job.uid} has no task left, which ends the queue's turns")
            continue
        outcome = _reclaim(session, queue, job, tasks[job.uid].pop())
        if outcome in (AttemptOutcome.NOT_ALLOCATABLE, AttemptOutcome.PRE_PREDICATE_FAILED):
            continue
        if outcome is AttemptOutcome.PIPELINED:
            jobs.push(job)
        queues.push(queue)


def _reclaim(session: Session, queue: Queue, job: Job, task: Task) -> AttemptOutcome:
    turn = Turn(session, Purpose.RECLAIM, job, task)
    if not session.is_allocatable(queue, task):
        return turn.ended(AttemptOutcome.NOT_ALLOCATABLE)
    try:
        session.pre_predicate(task)
    except PredicateError as error:
        return turn.ended(AttemptOutcome.PRE_PREDICATE_FAILED, reason=str(error))
    refused: Refusals = {}
    tried: list[NodeTried] = []
    for node in session.order.walk(session.nodes.values()):
        if reason := eviction_refusal(session, task, node, _ACTION):
            refused[node.name] = reason
            continue
        attempt = _try_node(session, job, task, node)
        tried.append(attempt)
        if attempt.outcome is NodeOutcome.PIPELINED:
            return turn.ended(AttemptOutcome.PIPELINED, refused=refused, tried=tried)
    return turn.ended(AttemptOutcome.NO_NODE, refused=refused, tried=tried)


def _try_node(session: Session, job: Job, task: Task, node: Node) -> NodeTried:
    """Evict on a node until the evicted alone ask for as much as the task; what is idle does not count."""
    candidates = []
    for other in session.order.walk(node.tasks_in_order()):
        other_job = session.jobs.get(other.job_id)
        if other.status is not TaskStatus.RUNNING or not other.is_preemptable or other_job is None:
            continue
        if other_job.queue != job.queue and session.queues[other_job.queue].is_reclaimable:
            candidates.append(other.clone())
    if not candidates:
        return NodeTried(node=node.name, outcome=NodeOutcome.NO_CANDIDATES)
    victims = session.reclaimable(task, candidates)
    trial = Trial(node, candidates, victims)
    room = trial.room()
    if not fits(task, room):
        return trial.ended(NodeOutcome.NOT_ENOUGH, missing=lacking(task, room))
    reclaimed = Resource()
    evicted: list[str] = []
    for victim in victims.tasks:
        session.evict(victim)
        session.recorder.evicted(victim, _ACTION, task.key)
        reclaimed.add(victim.request)
        evicted.append(victim.key)
        if fits(task, reclaimed):
            break
    if not fits(task, reclaimed):
        return trial.ended(NodeOutcome.WASTED, evicted=evicted, missing=lacking(task, reclaimed))
    session.pipeline(task, node)
    return trial.ended(NodeOutcome.PIPELINED, evicted=evicted)
