"""Run a complete session: open, every action, close (``pkg/scheduler/scheduler.go`` of Volcano v1.8.0).

The state of the session is recorded as evidence. Closing (phases, conditions and events) follows
``framework/session.go`` and ``cache/cache.go`` of Volcano v1.8.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.framework.resources import CPU, MEMORY
from kpreempt.schedulers.unread import unread_in_session
from kpreempt.schedulers.volcano.actions.eviction import preempt, reclaim
from kpreempt.schedulers.volcano.actions.placement import allocate, backfill, enqueue
from kpreempt.schedulers.volcano.cache import ALLOCATED_STATUSES, Job, TaskStatus, cache_of
from kpreempt.schedulers.volcano.configuration import PluginOption, VolcanoConfiguration
from kpreempt.schedulers.volcano.plugins.drf import open_drf
from kpreempt.schedulers.volcano.plugins.jobs import close_gang, open_conformance, open_gang, open_priority
from kpreempt.schedulers.volcano.plugins.predicates import open_predicates
from kpreempt.schedulers.volcano.plugins.queues import open_overcommit, open_proportion
from kpreempt.schedulers.volcano.plugins.scores import open_binpack, open_nodeorder
from kpreempt.schedulers.volcano.resources import UNLIMITED, Resource, SchedulerPanicError
from kpreempt.schedulers.volcano.session import ActionRecord, Chance, Order, Recorder, Session
from kpreempt.verdict.volcano import (
    ActionEvidence,
    Amounts,
    Closing,
    JobState,
    Opening,
    OperationKind,
    Panic,
    Placement,
    PodGroupEnd,
    PodMessage,
    QueueState,
    SessionEvent,
    SessionVerdict,
)

_ACTIONS: Mapping[str, Callable[[Session], None]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
}
_PLUGINS: Mapping[str, Callable[[Session, PluginOption], object]] = {
    "gang": open_gang,
    "priority": open_priority,
    "conformance": open_conformance,
    "drf": open_drf,
    "proportion": open_proportion,
    "predicates": open_predicates,
    "nodeorder": open_nodeorder,
    "binpack": open_binpack,
    "overcommit": open_overcommit,
}


def run_session(
    cluster: ClusterSnapshot,
    configuration: VolcanoConfiguration,
    *,
    now: datetime,
    chance: Chance | None = None,
    with_scores: bool = True,
) -> SessionVerdict:
    """Predict what Volcano does with the cluster in one session.

    ``chance`` makes the random choices of the real scheduler; by default items are taken by name. ``with_scores``
    records the score of every node for every pending task when the session opens.
    """
    cache, recorder = cache_of(cluster, now=now), Recorder()
    pending = [pod for pod in cluster.pods if not pod.spec.node_name and not pod.is_terminal]
    opening, final, panic, session = None, None, None, None
    actions: list[ActionEvidence] = []
    try:
        session = Session(cache, configuration, Order(chance), recorder)
        plugins: dict[str, Any] = {}
        for tier in configuration.tiers:
            for option in tier:
                if option.name in _PLUGINS:
                    plugins[option.name] = _PLUGINS[option.name](session, option)
        jobs, queues = _state(session, plugins)
        scores = {
            task.key: session.scores(task, list(session.nodes.values()))
            for job in session.jobs.values()
            for task in job.with_status(TaskStatus.PENDING)
            if with_scores
        }
        opening = Opening(jobs, queues, {key: found for key, found in sorted(scores.items()) if found})
        for name in configuration.actions:
            record = recorder.begin(name)
            _ACTIONS[name](session)
            actions.append(_evidence(record, *_state(session, plugins)))
        recorder.begin("")
        final = _close(session, closes_gang="gang" in plugins)
    except SchedulerPanicError as error:
        # The real scheduler panics here.
        record = recorder.record
        panic = Panic(record.action, recorder.current_task, str(error), error.on)
        if record.action:
            actions.append(_evidence(record, {}, {}))
    return SessionVerdict(
        configured_actions=list(configuration.actions),
        panics=panic is not None,
        panic=panic,
        opening=opening,
        actions=actions,
        final=final,
        ignored=dict(sorted(cache.ignored.items())),
        assumptions=[
            *configuration.assumptions,
            *unread_in_session(cluster, pending),
            *((*session.volumes.assumptions, *session.view.assumptions) if session else ()),
        ],
    )


def _evidence(record: ActionRecord, jobs: dict[str, JobState], queues: dict[str, QueueState]) -> ActionEvidence:
    # Tasks that the action pipelined, and those it allocated without binding. They keep their first position, even if
    # an operation was undone and repeated.
    placed: dict[tuple[OperationKind, str], str] = {}
    for kind, task, node, _ in record.trace:
        if kind in (OperationKind.PIPELINE, OperationKind.ALLOCATE):
            placed[kind, task] = node
        elif kind is OperationKind.UNPIPELINE:
            placed[OperationKind.PIPELINE, task] = ""
        elif kind is OperationKind.UNALLOCATE:
            placed[OperationKind.ALLOCATE, task] = ""
    for bind in record.binds:
        placed[OperationKind.ALLOCATE, bind.task] = ""
    still = {
        kind: [Placement(task, node) for (each, task), node in placed.items() if node and each is kind]
        for kind in (OperationKind.PIPELINE, OperationKind.ALLOCATE)
    }
    return ActionEvidence(
        action=record.action,
        evictions=record.evictions,
        pipelined=still[OperationKind.PIPELINE],
        binds=record.binds,
        allocated=still[OperationKind.ALLOCATE],
        enqueued=sorted(record.enqueued) or None,
        trace=record.trace,
        skipped=record.skipped,
        attempts=record.attempts,
        statements=record.statements,
        jobs=jobs,
        queues=queues,
    )


_UNFINISHED_PHASES = ("Unknown", "Pending", "Inqueue")
_WAITING = (TaskStatus.ALLOCATED, TaskStatus.PENDING, TaskStatus.PIPELINED)
_ALL_UNAVAILABLE = "all nodes are unavailable"
_UNSCHEDULABLE = "Unschedulable"


def _state(session: Session, plugins: Mapping[str, Any]) -> tuple[dict[str, JobState], dict[str, QueueState]]:
    """Return the current state of all jobs, and of the queues with jobs if proportion is enabled."""
    drf, proportion = plugins.get("drf"), plugins.get("proportion")
    jobs = {
        job.uid: JobState(
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
            allocated=_amounts(job.allocated),
            share=drf.holdings[job.uid].share if drf else msgspec.UNSET,
        )
        for job in session.jobs.values()
    }
    queues = {
        name: QueueState(
            weight=share.weight,
            share=share.share,
            deserved=_amounts(share.deserved),
            allocated=_amounts(share.allocated),
            request=_amounts(share.request),
            overused=share.is_overused,
            capability=_amounts(share.capability),
            inqueue=_amounts(share.inqueue),
            elastic=_amounts(share.elastic),
        )
        for name, share in (proportion.shares.items() if proportion else ())
    }
    return jobs, queues


def _amounts(resource: Resource) -> Amounts:
    """Return the amounts by resource, integral values as int, and -1 for no limit."""
    named = {CPU: resource.cpu, MEMORY: resource.memory, **dict(sorted((resource.scalars or {}).items()))}
    return {
        name: -1 if amount >= UNLIMITED else int(amount) if amount.is_integer() else amount
        for name, amount in named.items()
    }


def _close(session: Session, *, closes_gang: bool) -> Closing:
    """Return what users see of the session after it closes."""
    fit_errors = {}
    for job in session.jobs.values():
        if job.nodes_fit_errors:
            errors = job.nodes_fit_errors.items()
            found = {job.tasks[uid].key: str(each) for uid, each in errors if uid in job.tasks}
            fit_errors[job.uid] = dict(sorted(found.items()))
    if closes_gang:
        close_gang(session)
    events = session.recorder.events
    pods: dict[str, PodMessage] = {}
    for job in session.jobs.values():
        job.phase = _phase(job)
        if job.phase in _UNFINISHED_PHASES:
            tasks = f"{job.count(TaskStatus.PENDING)}/{len(job.tasks)} tasks"
            message = f"{tasks} in gang unschedulable: {job.fit_message()}"
            events.append(SessionEvent("PodGroup", job.uid, "Warning", _UNSCHEDULABLE, message))
        else:
            events.append(SessionEvent("PodGroup", job.uid, "Normal", "Scheduled", "pod group is ready"))
        for status in _WAITING:
            for task in job.with_status(status):
                reason, message = job.reason_of(task)
                message = message or job.fit_error or _ALL_UNAVAILABLE
                pods[task.key] = PodMessage(reason, message)
                events.append(SessionEvent("Pod", task.key, "Warning", "FailedScheduling", message))
    groups = {job.uid: PodGroupEnd(job.phase, list(job.conditions)) for job in session.jobs.values()}
    return Closing(groups, fit_errors, pods, list(events))


def _phase(job: Job) -> str:
    is_unschedulable = _UNSCHEDULABLE in job.own_conditions
    if job.count(TaskStatus.RUNNING) and is_unschedulable:
        return "Unknown"
    succeeded = job.count(TaskStatus.SUCCEEDED)
    holding = job.count(*ALLOCATED_STATUSES) + succeeded
    if holding >= job.min_available:
        return "Completed" if succeeded == holding else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"
