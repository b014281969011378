"""preempt: starving jobs take from others of their queue, then from themselves (``actions/preempt``, v1.8.0)."""

from __future__ import annotations

from collections.abc import Callable

from kpreempt.schedulers.volcano.actions.common import (
    PredicateHelper,
    Statement,
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
from kpreempt.schedulers.volcano.session import PredicateError, PriorityQueue, Session
from kpreempt.schedulers.volcano.task import Task, TaskStatus
from kpreempt.verdict.volcano import AttemptOutcome, NodeOutcome, NodeTried, Purpose

_ACTION = "preempt"

CandidateFilter = Callable[[Task], bool]


def execute(session: Session) -> None:
    """Queue by queue between jobs, and after each queue within every job that was starving at first."""
    Preemption(session).run()


class Preemption:
    """The starving jobs of all queues, with their tasks that still wait for a turn."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._helper = PredicateHelper()
        self._queues: dict[str, Queue] = {}
        self._preemptors: dict[str, PriorityQueue[Job]] = {}
        self._tasks: dict[str, PriorityQueue[Task]] = {}
        self._starving: list[Job] = []
        for job in session.walk_jobs():
            if is_skipped(session, job):
                continue
            self._queues.setdefault(job.queue, session.queues[job.queue])
            if session.is_starving(job):
                self._preemptors.setdefault(job.queue, PriorityQueue(session.job_goes_before)).push(job)
                self._starving.append(job)
                self._tasks[job.uid] = self._pending_of(job)
            else:
                session.recorder.skipped(job.uid, "it is not starving")

    def run(self) -> None:
        for name in self._session.order.walk(sorted(self._queues)):
            preemptors = self._preemptors.get(name)
            while preemptors:
                job = preemptors.pop()
                if self._between_jobs(job):
                    preemptors.push(job)
            # Upstream does this after each queue, for the jobs of all.
            for job in self._starving:
                self._within_job(job)

    def _pending_of(self, job: Job) -> PriorityQueue[Task]:
        tasks: PriorityQueue[Task] = PriorityQueue(self._session.task_goes_before)
        for task in self._session.walk_pending(job):
            tasks.push(task)
        return tasks

    def _between_jobs(self, job: Job) -> bool:
        """Make room for a job's tasks until it is not starving; whether it is to have another turn."""
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

            if self._preempt(statement, job, task, is_candidate, Purpose.PREEMPT_BETWEEN_JOBS):
                is_assigned = True
        if not session.is_pipelined(job):
            statement.discard()
            return False
        statement.commit()
        return is_assigned

    def _within_job(self, job: Job) -> None:
        """Let tasks of a job evict lower ones of the same job, until one finds none."""
        tasks = self._tasks[job.uid] = self._pending_of(job)
        while tasks:
            task = tasks.pop()

            def is_candidate(other: Task, task: Task = task) -> bool:
                is_evictable = other.status is TaskStatus.RUNNING and not other.is_best_effort
                return is_evictable and other.job_id == task.job_id

            statement = Statement(self._session, job, Purpose.PREEMPT_WITHIN_JOB)
            is_assigned = self._preempt(statement, job, task, is_candidate, Purpose.PREEMPT_WITHIN_JOB)
            statement.commit()
            if not is_assigned:
                break

    def _preempt(
        self, statement: Statement, job: Job, task: Task, is_candidate: CandidateFilter, purpose: Purpose
    ) -> bool:
        """Evict for a task on the first node where that makes room; whether there was one."""
        session = self._session
        turn = Turn(session, purpose, job, task)
        try:
            session.pre_predicate(task)
        except PredicateError as error:
            turn.ended(AttemptOutcome.PRE_PREDICATE_FAILED, reason=str(error))
            return False
        nodes = list(session.nodes.values())
        fitting, refused = self._helper.fitting(
            task, nodes, lambda task, node: eviction_refusal(session, task, node, _ACTION)
        )
        scores = session.scores(task, fitting)
        tried: list[NodeTried] = []
        scored = [node for node in fitting if node.name in scores]
        for node in sorted(scored, key=lambda node: -scores[node.name]):
            attempt = self._try_node(statement, job, task, node, scores[node.name], is_candidate)
            tried.append(attempt)
            if attempt.outcome is NodeOutcome.PIPELINED:
                turn.ended(AttemptOutcome.PIPELINED, refused=refused, tried=tried)
                return True
        turn.ended(AttemptOutcome.NO_NODE, refused=refused, tried=tried)
        return False

    def _try_node(
        self, statement: Statement, job: Job, task: Task, node: Node, score: float, is_candidate: CandidateFilter
    ) -> NodeTried:
        session = self._session
        candidates = [other.clone() for other in session.order.walk(node.tasks_in_order()) if is_candidate(other)]
        trial = Trial(node, candidates, session.preemptable(task, candidates), score)
        room = trial.room()
        if not fits(task, room):
            outcome = NodeOutcome.NOT_ENOUGH if candidates else NodeOutcome.NO_CANDIDATES
            return trial.ended(outcome, missing=lacking(task, room))
        queue = session.queues[job.queue]

        def goes_before(left: Task, right: Task) -> bool:
            if left.job_id != right.job_id:
                return not session.job_goes_before(session.jobs[left.job_id], session.jobs[right.job_id])
            return not session.task_goes_before(left, right)

        waiting: PriorityQueue[Task] = PriorityQueue(goes_before)
        for victim in trial.victims.tasks:
            waiting.push(victim)
        evicted: list[str] = []
        while waiting and (session.is_overused(queue) or not fits(task, node.future_idle())):
            victim = waiting.pop()
            statement.evict(victim, _ACTION)
            evicted.append(victim.key)
        if session.is_overused(queue):
            return trial.ended(NodeOutcome.STILL_OVERUSED, evicted=evicted)
        if not fits(task, node.future_idle()):
            return trial.ended(NodeOutcome.WASTED, evicted=evicted)
        statement.pipeline(task, node)
        return trial.ended(NodeOutcome.PIPELINED, evicted=evicted)
