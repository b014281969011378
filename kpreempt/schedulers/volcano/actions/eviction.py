"""The actions that evict: preempt and reclaim of Volcano v1.8.0.

Starving jobs preempt other jobs of their queue, then their own tasks (``actions/preempt/preempt.go``); queues reclaim
what they deserve from other queues (``actions/reclaim/reclaim.go``).
"""

from __future__ import annotations

from collections.abc import Callable

from kpreempt.schedulers.volcano.actions.common import (
    PredicateHelper,
    Rejections,
    Statement,
    Trial,
    Turn,
    each_turn,
    fits,
    is_skipped,
    job_queues,
    lacking,
    rejection,
)
from kpreempt.schedulers.volcano.cache import Job, Node, Queue, Task, TaskStatus
from kpreempt.schedulers.volcano.resources import Resource
from kpreempt.schedulers.volcano.session import PredicateError, PriorityQueue, Session, Vote
from kpreempt.verdict.volcano import AttemptOutcome, NodeAttempt, NodeOutcome, Purpose

CandidateFilter = Callable[[Task], bool]


def preempt(session: Session) -> None:
    """Preempt between the jobs of each queue, and after each queue within every job that was starving at first."""
    Preemption(session).run()


class Preemption:
    """The starving jobs of all queues, with their tasks that still wait for a turn."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._helper = PredicateHelper()
        self._tasks: dict[str, PriorityQueue[Task]] = {}
        self._starving: list[Job] = []
        self._queues: set[str] = set()
        for job in session.walk_jobs():
            if is_skipped(session, job):
                continue
            self._queues.add(job.queue)
            if session.is_starving(job):
                self._starving.append(job)
                self._tasks[job.uid] = PriorityQueue(session.task_is_before, session.walk_pending(job))
            else:
                session.recorder.skipped(job.uid, "it is not starving")
        _, self._preemptors = job_queues(session, self._starving)

    def run(self) -> None:
        session = self._session
        for name in session.order.walk(sorted(self._queues)):
            preemptors = self._preemptors.get(name)
            while preemptors:
                job = preemptors.pop()
                if self._between_jobs(job):
                    preemptors.push(job)
            # Upstream does this after each queue, for the jobs of all queues: tasks evict lower-priority tasks of the
            # same job until one finds no victim.
            for job in self._starving:
                tasks = self._tasks[job.uid] = PriorityQueue(session.task_is_before, session.walk_pending(job))
                while tasks and self._within_job(job, tasks.pop()):
                    pass

    def _between_jobs(self, job: Job) -> bool:
        """Preempt for a job's tasks until it is not starving; return whether it gets another turn."""
        session = self._session
        statement = Statement(session, job, Purpose.PREEMPT_BETWEEN_JOBS)
        is_assigned = False
        tasks = self._tasks[job.uid]
        while session.is_starving(job) and tasks:
            task = tasks.pop()

            def is_candidate(other: Task, task: Task = task) -> bool:
                if other.status is not TaskStatus.RUNNING or other.is_best_effort or not other.is_preemptable:
                    return False
                other_job = session.jobs.get(other.job_id)
                return other_job is not None and other_job.queue == job.queue and other.job_id != task.job_id

            if self._preempt(statement, Turn(session, Purpose.PREEMPT_BETWEEN_JOBS, job, task), is_candidate):
                is_assigned = True
        if not session.is_pipelined(job):
            statement.discard()
            return False
        statement.commit()
        return is_assigned

    def _within_job(self, job: Job, task: Task) -> bool:
        def is_candidate(other: Task) -> bool:
            is_evictable = other.status is TaskStatus.RUNNING and not other.is_best_effort
            return is_evictable and other.job_id == task.job_id

        purpose = Purpose.PREEMPT_WITHIN_JOB
        statement = Statement(self._session, job, purpose)
        is_assigned = self._preempt(statement, Turn(self._session, purpose, job, task), is_candidate)
        statement.commit()
        return is_assigned

    def _preempt(self, statement: Statement, turn: Turn, is_candidate: CandidateFilter) -> bool:
        """Evict for a task on the first node where that suffices; return whether there was one."""
        session, task = self._session, turn.task
        try:
            session.pre_predicate(task)
        except PredicateError as error:
            turn.ended(AttemptOutcome.PRE_PREDICATE_FAILED, reason=str(error))
            return False
        nodes = list(session.nodes.values())
        fitting, refused = self._helper.fitting(
            task, nodes, lambda task, node: rejection(session, task, node, "preempt")
        )
        scores = session.scores(task, fitting)
        tried: list[NodeAttempt] = []
        scored = [node for node in fitting if node.name in scores]
        for node in sorted(scored, key=lambda node: -scores[node.name]):
            candidates = [other.clone() for other in session.order.walk(node.tasks_in_order()) if is_candidate(other)]
            victims = session.evictable(Vote.PREEMPTABLE, task, candidates)
            attempt = self._try_node(statement, turn, Trial(node, candidates, victims, scores[node.name]))
            tried.append(attempt)
            if attempt.outcome is NodeOutcome.PIPELINED:
                turn.ended(AttemptOutcome.PIPELINED, refused=refused, tried=tried)
                return True
        turn.ended(AttemptOutcome.NO_NODE, refused=refused, tried=tried)
        return False

    def _try_node(self, statement: Statement, turn: Turn, trial: Trial) -> NodeAttempt:
        session, task, node = self._session, turn.task, trial.node
        available = trial.freed()
        if not fits(task, available):
            outcome = NodeOutcome.NOT_ENOUGH if trial.candidates else NodeOutcome.NO_CANDIDATES
            return trial.ended(outcome, missing=lacking(task, available))
        queue = session.queues[turn.job.queue]

        def is_before(left: Task, right: Task) -> bool:
            if left.job_id != right.job_id:
                return not session.job_is_before(session.jobs[left.job_id], session.jobs[right.job_id])
            return not session.task_is_before(left, right)

        waiting = PriorityQueue(is_before, trial.victims.tasks)
        evicted: list[str] = []
        while waiting and (session.is_overused(queue) or not fits(task, node.future_idle())):
            victim = waiting.pop()
            statement.evict(victim, "preempt")
            evicted.append(victim.key)
        if session.is_overused(queue):
            return trial.ended(NodeOutcome.STILL_OVERUSED, evicted=evicted)
        if not fits(task, node.future_idle()):
            return trial.ended(NodeOutcome.WASTED, evicted=evicted)
        statement.pipeline(task, node)
        return trial.ended(NodeOutcome.PIPELINED, evicted=evicted)


def reclaim(session: Session) -> None:
    """Take queues in turn: for each the first job, and one task of that job.

    A queue is done for the rest of the action once its job has no task left or its task may not be placed, whatever
    else waits in the queue.
    """
    jobs_in_order = [job for job in session.walk_jobs() if not is_skipped(session, job)]
    queues, waiting = job_queues(session, jobs_in_order, lambda job: bool(job.count(TaskStatus.PENDING)))
    tasks = {
        job.uid: PriorityQueue(session.task_is_before, session.walk_pending(job))
        for job in jobs_in_order
        if job.count(TaskStatus.PENDING)
    }
    for queue, job in each_turn(session, queues, waiting):
        if not tasks[job.uid]:
            session.recorder.skipped(queue.name, f"job {job.uid} has no task left, which ends the queue's turns")
            continue
        outcome = _reclaim(session, queue, job, tasks[job.uid].pop())
        if outcome in (AttemptOutcome.NOT_ALLOCATABLE, AttemptOutcome.PRE_PREDICATE_FAILED):
            continue
        if outcome is AttemptOutcome.PIPELINED:
            waiting[queue.name].push(job)
        queues.push(queue)


def _reclaim(session: Session, queue: Queue, job: Job, task: Task) -> AttemptOutcome:
    turn = Turn(session, Purpose.RECLAIM, job, task)
    if not session.is_allocatable(queue, task):
        return turn.ended(AttemptOutcome.NOT_ALLOCATABLE)
    try:
        session.pre_predicate(task)
    except PredicateError as error:
        return turn.ended(AttemptOutcome.PRE_PREDICATE_FAILED, reason=str(error))
    refused: Rejections = {}
    tried: list[NodeAttempt] = []
    for node in session.order.walk(session.nodes.values()):
        if reason := rejection(session, task, node, "reclaim"):
            refused[node.name] = reason
            continue
        attempt = _reclaim_on(session, job, task, node)
        tried.append(attempt)
        if attempt.outcome is NodeOutcome.PIPELINED:
            return turn.ended(AttemptOutcome.PIPELINED, refused=refused, tried=tried)
    return turn.ended(AttemptOutcome.NO_NODE, refused=refused, tried=tried)


def _reclaim_on(session: Session, job: Job, task: Task, node: Node) -> NodeAttempt:
    """Evict on a node until the victims alone request as much as the task; idle resources do not count."""
    candidates = []
    for other in session.order.walk(node.tasks_in_order()):
        other_job = session.jobs.get(other.job_id)
        if other.status is not TaskStatus.RUNNING or not other.is_preemptable or other_job is None:
            continue
        if other_job.queue != job.queue and session.queues[other_job.queue].is_reclaimable:
            candidates.append(other.clone())
    if not candidates:
        return NodeAttempt(node=node.name, outcome=NodeOutcome.NO_CANDIDATES)
    trial = Trial(node, candidates, session.evictable(Vote.RECLAIMABLE, task, candidates))
    available = trial.freed()
    if not fits(task, available):
        return trial.ended(NodeOutcome.NOT_ENOUGH, missing=lacking(task, available))
    reclaimed = Resource()
    evicted: list[str] = []
    for victim in trial.victims.tasks:
        session.evict(victim)
        session.recorder.evicted(victim, "reclaim", task.key)
        reclaimed.add(victim.request)
        evicted.append(victim.key)
        if fits(task, reclaimed):
            break
    if not fits(task, reclaimed):
        return trial.ended(NodeOutcome.WASTED, evicted=evicted, missing=lacking(task, reclaimed))
    session.pipeline(task, node)
    return trial.ended(NodeOutcome.PIPELINED, evicted=evicted)
