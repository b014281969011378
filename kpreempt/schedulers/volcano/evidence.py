"""The state of a session, as evidence."""

from __future__ import annotations

import msgspec

from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.plugins.drf import Drf
from kpreempt.schedulers.volcano.plugins.proportion import Proportion, QueueShare
from kpreempt.schedulers.volcano.resources import CPU, MEMORY, UNLIMITED, Resource
from kpreempt.schedulers.volcano.session import Session
from kpreempt.verdict.volcano import Amounts, JobState, QueueState


class State:
    """A session with the plugins whose shares are told."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.proportion: Proportion | None = None
        self.drf: Drf | None = None
        self.has_gang = False

    def add(self, name: str, plugin: object) -> None:
        """A plugin that was opened."""
        if isinstance(plugin, Proportion):
            self.proportion = plugin
        elif isinstance(plugin, Drf):
            self.drf = plugin
        self.has_gang |= name == "gang"


def state_of(state: State) -> tuple[dict[str, JobState], dict[str, QueueState]]:
    """All jobs, and the queues that have any where proportion counts, at this moment."""
    jobs = {job.uid: _job(state, job) for job in state.session.jobs.values()}
    if state.proportion is None:
        return jobs, {}
    return jobs, {name: _queue(share) for name, share in state.proportion.shares.items()}


def amounts(resource: Resource) -> Amounts:
    """The amounts by resource, whole ones as whole numbers."""
    named = {CPU: resource.cpu, MEMORY: resource.memory, **dict(sorted((resource.scalars or {}).items()))}
    return {name: _number(amount) for name, amount in named.items()}


def _number(amount: float) -> float:
    if amount >= UNLIMITED:
        return -1
    return int(amount) if amount.is_integer() else amount


def _job(state: State, job: Job) -> JobState:
    session = state.session
    return JobState(
        queue=job.queue,
        priority=job.priority,
        min_available=job.min_available,
        phase=job.phase,
        tasks=job.counts(),
        ready_num=job.ready_count,
        waiting_num=job.waiting_count,
        valid=session.invalid_reason(job) is None,
        ready=session.is_ready(job),
        pipelined=session.is_pipelined(job),
        starving=session.is_starving(job),
        allocated=amounts(job.allocated),
        share=state.drf.holdings[job.uid].share if state.drf else msgspec.UNSET,
    )


def _queue(share: QueueShare) -> QueueState:
    return QueueState(
        weight=share.weight,
        share=share.share,
        deserved=amounts(share.deserved),
        allocated=amounts(share.allocated),
        request=amounts(share.request),
        overused=share.is_overused,
        capability=amounts(share.capability),
        inqueue=amounts(share.inqueue),
        elastic=amounts(share.elastic),
    )
