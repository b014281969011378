"""A scheduling queue as it may look in a cluster, and what events make of it.

The queue is in the scheduler's memory. From a snapshot its order is known as well as ``queue_order`` knows it; where a
pod waits is told from whether, and when, it was tried. What cannot be told is an assumption of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import is_
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler, is_kube_algorithm
from kpreempt.analysis.pending.verdicts import Spread, decide_pending, one_by_one, pending_pods
from kpreempt.analysis.queue.cluster import Decode, QueueCluster, TimedEvent
from kpreempt.analysis.queue.events import QueueSimulation, Rejectors
from kpreempt.analysis.queue.order import FailedAttempts, queue_time, refusal_of
from kpreempt.analysis.unread import unread_events
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.interface import NO_RULES, QueueRules
from kpreempt.schedulers.queues import Attempt, SchedulingQueue
from kpreempt.verdict import Assumption, Verdict
from kpreempt.verdict.queue import SchedulingQueueState

# Stands for the plugins that refused a pod which none refuses now: it is taken to wait for everything.
UNKNOWN_PLUGIN = "unknown"
# Stands for all extenders, as upstream's queue calls them.
EXTENDER = "Extender"
_MAX_BACKOFF_OF_FIFO = timedelta(seconds=60)


class QueueQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Which queue is asked about.

    ``make`` makes an empty one that started at a time, with what out-of-tree plugins make of it. ``scheduler`` says
    that, and which plugins refuse a pod; it is ``None`` for queues that do not ask. ``at`` is the time of the snapshot,
    and stands for missing start times.
    """

    algorithm: str
    make: Callable[[datetime, QueueRules], SchedulingQueue]
    scheduler_names: frozenset[str]
    scheduler: Scheduler | None
    at: datetime


def scheduling_queue(
    cluster: ClusterSnapshot,
    question: QueueQuestion,
    events: Sequence[TimedEvent],
    decode: Decode,
    *,
    assumptions: Iterable[Assumption] = (),
    spread: Spread = one_by_one,
    phases: Phases = NO_PHASES,
) -> SchedulingQueueState:
    """The queue of the cluster, after the events if there are any.

    Raises ``InputError`` for an event that cannot happen, and ``PluginFailedError`` where a plugin cannot order the
    queue. ``spread`` does the work for several pods.
    """
    start = min([question.at, *(event.time for event in events[:1])])
    queue_cluster = QueueCluster(cluster, decode)
    rules = _rules(question.scheduler, queue_cluster, question.at, phases) if question.scheduler else NO_RULES
    filling = _Filling(question.make(start, rules), FailedAttempts(cluster.events), start)
    queue = filling.queue
    pending = pending_pods(cluster)
    ours = [
        pod
        for pod in pending
        if pod.spec.scheduler_name in question.scheduler_names and not (pod.metadata.deletion_timestamp is not None)
    ]
    tried = list(filter(filling.was_tried, ours))
    filling.fill(ours, _plugins_of(tried, cluster, question, spread, phases))
    rejectors = _rejectors(question.scheduler, question.at) if question.scheduler else None
    simulation = QueueSimulation(queue, queue_cluster, question.scheduler_names, rejectors)
    with phases.phase("events"):
        steps = list(simulation.apply(events))
    return SchedulingQueueState(
        algorithm=question.algorithm,
        at=steps[-1].time if steps else question.at,
        items=simulation.pods(),
        nominated=queue.nominated(),
        scheduling_cycle=queue.scheduling_cycle,
        move_request_cycle=queue.move_request_cycle,
        others=len(pending) - len(ours),
        steps=steps,
        assumptions=[*assumptions, *unread_events(cluster), *_assumptions(question, filling, tried)],
    )


class _Filling(msgspec.Struct, frozen=True):
    """What a queue is filled from."""

    queue: SchedulingQueue
    attempts: FailedAttempts
    start: datetime

    def was_tried(self, pod: Pod) -> bool:
        """Whether the scheduler tried the pod, as far as anybody tells."""
        return refusal_of(pod) is not None or self.attempts.last_of(pod) is not None

    def time_of(self, pod: Pod) -> datetime:
        """When the pod came into the queue or was last tried; never after the start."""
        refusal = refusal_of(pod)
        times = [queue_time(pod, self.attempts).time, refusal.last_probe_time if refusal else None]
        return min(max((time for time in times if time is not None), default=self.start), self.start)

    def fill(self, pods: Sequence[Pod], plugins: Mapping[str, frozenset[str]]) -> None:
        """Put the pods into the queue in the order of their times; those that were tried, where they wait."""
        for pod in sorted(pods, key=self.time_of):
            if self.was_tried(pod):
                self.queue.restore(pod, Attempt(plugins=plugins.get(pod.key, frozenset())), self.time_of(pod))
            else:
                self.queue.add(pod, self.time_of(pod))


def rejecting_plugins(verdict: Verdict) -> frozenset[str]:
    """The plugins that refused nodes, or the pod as a whole, those that left only some nodes to look at included.

    Extenders that refuse nodes go by one name together (``schedule_one.go`` of v1.36.3).
    """
    statuses = [*verdict.filter.values(), *([verdict.pre_filter] if verdict.pre_filter else [])]
    refusing: set[str] = set()
    for status in statuses:
        if status.plugin and status.plugin not in refusing and status.is_rejected:
            refusing.add(status.plugin)
    refusing -= {call.extender for call in verdict.extender_calls}
    if any(call.refused for call in verdict.extender_calls if call.verb == "filter"):
        refusing.add(EXTENDER)
    return frozenset(refusing.union(verdict.restricted_by))


def _rules(scheduler: Scheduler, queue_cluster: QueueCluster, now: datetime, phases: Phases) -> QueueRules:
    """What plugins make of the queue in this cluster, which changes; they get it as it is by then."""
    seen, prepared = ClusterSnapshot(), None

    def latest() -> Any:
        nonlocal seen, prepared
        cluster = queue_cluster.cluster
        if prepared is None or not (_is_same(cluster.pods, seen.pods) and _is_same(cluster.nodes, seen.nodes)):
            seen, prepared = cluster, scheduler.prepare(cluster, now=now)
        return prepared

    return scheduler.queue_rules(latest, phases)


def _is_same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _rejectors(scheduler: Scheduler, now: datetime) -> Rejectors:
    def rejectors(cluster: ClusterSnapshot, pod: Pod) -> frozenset[str]:
        return rejecting_plugins(scheduler.decide(scheduler.prepare(cluster, now=now), pod, records_steps=False))

    return rejectors


def _plugins_of(
    tried: Sequence[Pod], cluster: ClusterSnapshot, question: QueueQuestion, spread: Spread, phases: Phases
) -> dict[str, frozenset[str]]:
    """Which plugins refuse each pod that was tried; that is assumed to be as it was then."""
    if question.scheduler is None or not tried:
        return {}
    with phases.phase("prepare"):
        prepared = question.scheduler.prepare(cluster, now=question.at)
    verdicts = decide_pending(tried, question.scheduler, prepared, spread=spread, phases=phases)
    return {
        pod.key: frozenset((UNKNOWN_PLUGIN,)) if verdict.feasible_nodes else rejecting_plugins(verdict)
        for pod, verdict in verdicts
    }


def _assumptions(question: QueueQuestion, filling: _Filling, tried: Sequence[Pod]) -> Iterator[Assumption]:
    """What of the queue only the scheduler knows."""
    queue = filling.queue
    for plugin, event in queue.assumed_hints():
        message = f"{event} is assumed to help the pods that it refused; the real one looks closer"
        yield Assumption(f"plugin {plugin}", "queueing hint", message)
    if not tried:
        return
    subject = "scheduling queue"
    if is_kube_algorithm(question.algorithm):
        yield Assumption(subject, "attempts", "how often a pod was tried is not known: its backoff is at most as told")
        yield Assumption(
            subject, "rejectedBy", "pods that were tried are assumed to have been refused for the same reasons as now"
        )
    recent = [pod for pod in tried if filling.start - filling.time_of(pod) < _MAX_BACKOFF_OF_FIFO]
    if queue.scheduling_cycle is None and recent:
        yield Assumption(
            subject, "backoff", f"{len(recent)} tried within the last minute may still back off, outside of the queue"
        )
    if queue.scheduling_cycle is not None:
        yield Assumption(subject, "flush", "when the periodic flush runs is unknown: pods may move up to 30 s earlier")
    if any(filling.attempts.last_of(pod) is None and not _has_probe_time(pod) for pod in tried):
        yield Assumption(
            subject, "time", "no event tells when some pods were last tried: they may have been tried later than told"
        )


def _has_probe_time(pod: Pod) -> bool:
    refusal = refusal_of(pod)
    return refusal is not None and refusal.last_probe_time is not None
