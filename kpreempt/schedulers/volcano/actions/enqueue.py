"""enqueue: lets waiting jobs into their queues (``actions/enqueue/enqueue.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from kpreempt.schedulers.volcano.cache import Queue
from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.session import PriorityQueue, Session
from kpreempt.verdict.volcano import Attempt, AttemptOutcome, Purpose


def execute(session: Session) -> None:
    """Take queues in turn, and of each the first job that waits."""
    queues: PriorityQueue[Queue] = PriorityQueue(session.queue_goes_before)
    waiting: dict[str, PriorityQueue[Job]] = {}
    seen: set[str] = set()
    for job in session.walk_jobs():
        if job.queue not in seen:
            seen.add(job.queue)
            queues.push(session.queues[job.queue])
        if job.is_pending:
            waiting.setdefault(job.queue, PriorityQueue(session.job_goes_before)).push(job)
    record = session.recorder.record
    while queues:
        queue = queues.pop()
        jobs = waiting.get(queue.name)
        if not jobs:
            continue
        job = jobs.pop()
        vetoes = session.rejecting_enqueue(job) if job.states_min_resources else []
        if not vetoes:
            session.note_enqueued(job)
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
