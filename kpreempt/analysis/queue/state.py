"""A scheduling queue as it may look in a cluster, and what events make of it.

The queue is in the scheduler's memory. From a snapshot its order is known as well as ``queue_order`` knows it; where a
pod waits is told from whether, and when, it was tried. What cannot be told is an assumption of the answer. An event
moves pods of the queue; what each moves is told, and the queue afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import is_
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler, Spread, decide_pending, is_kube_algorithm, one_by_one, pending_pods
from kpreempt.analysis.queue.cluster import Decode, EventKind, QueueCluster, TimedEvent, refused
from kpreempt.analysis.queue.order import FailedAttempts, queue_time, rejection_of
from kpreempt.analysis.unread import unread_events
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.interface import NO_RULES, QueueRules
from kpreempt.schedulers.queues import Attempt, SchedulingQueue
from kpreempt.verdict import Assumption, Verdict
from kpreempt.verdict.queue import PodMove, QueuedPod, QueueName, QueueStep, SchedulingQueueState

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
    # Which plugins refuse each pod that was tried; that is assumed to be as it was then.
    if question.scheduler is None or not tried:
        plugins_of = {}
    else:
        with phases.phase("prepare"):
            prepared = question.scheduler.prepare(cluster, now=question.at)
        verdicts = decide_pending(tried, question.scheduler, prepared, spread=spread, phases=phases)
        plugins_of = {
            pod.key: frozenset((UNKNOWN_PLUGIN,)) if verdict.feasible_nodes else rejecting_plugins(verdict)
            for pod, verdict in verdicts
        }
    filling.fill(ours, plugins_of)
    rejectors = partial(_rejected_by, question.scheduler, question.at) if question.scheduler else None
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
        return rejection_of(pod) is not None or self.attempts.last_of(pod) is not None

    def time_of(self, pod: Pod) -> datetime:
        """When the pod came into the queue or was last tried; never after the start."""
        rejection = rejection_of(pod)
        times = [queue_time(pod, self.attempts).time, rejection.last_probe_time if rejection else None]
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
    refusing = {status.plugin for status in statuses if status.plugin and status.is_rejected}
    refusing -= {call.extender for call in verdict.extender_calls}
    if any(call.rejected for call in verdict.extender_calls if call.verb == "filter"):
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


def _rejected_by(scheduler: Scheduler, now: datetime, cluster: ClusterSnapshot, pod: Pod) -> frozenset[str]:
    return rejecting_plugins(scheduler.decide(scheduler.prepare(cluster, now=now), pod, records_steps=False))


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
    if any(
        filling.attempts.last_of(pod) is None
        and ((rejection := rejection_of(pod)) is None or rejection.last_probe_time is None)
        for pod in tried
    ):
        yield Assumption(
            subject, "time", "no event tells when some pods were last tried: they may have been tried later than told"
        )


TIMER = "timer"
# Each step shows the whole queue, so that many events on many pods would come to more than anyone can read or hold.
MAX_PODS_SHOWN = 300_000

_OF_NODES = (EventKind.ADD_NODE, EventKind.UPDATE_NODE, EventKind.DELETE_NODE)
# The plugins that refuse a pod in a cluster, where an event does not say which.
Rejectors = Callable[[ClusterSnapshot, Pod], frozenset[str]]


class QueueSimulation:
    """A queue and the cluster around it. Only pods of ``scheduler_names`` are put into the queue.

    ``rejectors`` is ``None`` for queues that do not ask which plugins refused a pod.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        cluster: QueueCluster,
        scheduler_names: frozenset[str],
        rejectors: Rejectors | None,
    ) -> None:
        self.queue = queue
        self._cluster, self._scheduler_names, self._rejectors = cluster, scheduler_names, rejectors
        # The pods that were popped, with the scheduling cycle of each.
        self._in_flight: dict[str, int] = {}
        self._number = 0
        self._pods_shown = 0

    def apply(self, events: Iterable[TimedEvent]) -> Iterator[QueueStep]:
        """A step for each event, and one before it for each time that the queue's timers moved something.

        Raises ``InputError`` for an event that cannot happen.
        """
        places = self._places()
        for event in events:
            event.check()
            for timer in self._advance(event.time, places):
                places = {each.pod: each.queue for each in timer.pods}
                yield timer
            subject = self._change_node(event) if event.event.event in _OF_NODES else self._happen(event)
            step = self._step(event.event.event, event.time, subject, places)
            places = {each.pod: each.queue for each in step.pods}
            yield step
            if self._pods_shown > MAX_PODS_SHOWN:
                problem = f"the queue of {len(places):,} pods after each of so many events is too much to show"
                raise event.error(problem, hint="fewer events, or fewer pods")

    def pods(self) -> list[QueuedPod]:
        """The pods of the queue, and those that were popped."""
        waiting = self.queue.pods()
        known = {each.pod for each in waiting}
        popped = [
            QueuedPod(pod=key, priority=self._cluster.pods[key].priority, queue=QueueName.IN_FLIGHT)
            for key in self._in_flight
            if key in self._cluster.pods and key not in known
        ]
        return [*waiting, *popped]

    def _advance(self, time: datetime, places: dict[str, QueueName]) -> Iterator[QueueStep]:
        """The time moves on; ``places`` are those of the pods before."""
        while (due := self.queue.next_timer()) is not None and due <= time:
            self.queue.advance(due)
            after = self._places()
            if after != places:
                yield self._step(TIMER, due, "", places)
                places = after
        self.queue.advance(time)

    def _places(self) -> dict[str, QueueName]:
        return {each.pod: each.queue for each in self.pods()}

    def _step(self, event: str, time: datetime, subject: str, before: dict[str, QueueName]) -> QueueStep:
        self._number += 1
        pods = self.pods()
        self._pods_shown += len(pods)
        after = {each.pod: each.queue for each in pods}
        moves = [
            PodMove(key, before.get(key, QueueName.NOT_QUEUED), after.get(key, QueueName.NOT_QUEUED))
            for key in dict.fromkeys([*before, *after])
            if before.get(key) != after.get(key)
        ]
        return QueueStep(
            number=self._number,
            time=time,
            event=event,
            subject="" if event == EventKind.POP else subject,
            popped=subject if event == EventKind.POP else "",
            moves=moves,
            pods=pods,
            nominated=self.queue.nominated(),
            scheduling_cycle=self.queue.scheduling_cycle,
            move_request_cycle=self.queue.move_request_cycle,
        )

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._scheduler_names

    def _happen(self, at: TimedEvent) -> str:
        """Let an event happen that is not of nodes; what it is about, or the pod that was popped."""
        event, cluster, queue = at.event, self._cluster, self.queue
        match event.event:
            case EventKind.WAIT:
                return ""
            case EventKind.MOVE_ALL:
                queue.move_all(at.time)
                return ""
            case EventKind.POP:
                popped = queue.pop(at.time)
                if popped is None:
                    return ""
                self._in_flight[popped.key] = queue.scheduling_cycle or 0
                return popped.key
            case EventKind.UNSCHEDULABLE:
                return self._unschedulable(at)
            case EventKind.ADD_POD:
                return self._add_pod(at)
            case EventKind.CHANGE_OBJECT:
                if event.resource in ("Pod", "Node"):
                    problem = f"a {event.resource} is changed by events of its own"
                    raise at.error(problem, path="resource", hint="addPod, updateNode")
                queue.object_changed(event.resource, event.action, at.time)
                return f"{event.resource} {event.action}"
        pod = cluster.pod(at)
        match event.event:
            case EventKind.UPDATE_POD:
                return self._replace(pod, cluster.changed_pod(at), at)
            case EventKind.DELETE_POD:
                return self._remove(pod, at)
            case EventKind.CLEAR_NOMINATION:
                queue.clear_nomination(pod, at.time)
                return pod.key
            case EventKind.ACTIVATE:
                queue.activate(pod, at.time)
                return pod.key
        node = cluster.node(at)
        if event.event is EventKind.NOMINATE:
            queue.nominate(pod, node.name, at.time)
            return f"{pod.key} to {node.name}"
        if pod.spec.node_name:
            raise at.error(f"pod {pod.key} is on node {pod.spec.node_name} already", path="pod")
        bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node.name))
        return f"{self._replace(pod, bound, at)} to {node.name}"

    def _change_node(self, at: TimedEvent) -> str:
        kind, cluster = at.event.event, self._cluster
        old = None if kind is EventKind.ADD_NODE else cluster.node(at)
        if old is not None and kind is EventKind.DELETE_NODE:
            del cluster.nodes[old.name]
            self.queue.node_changed(old, None, at.time)
            return old.name
        new = cluster.new_node(at) if old is None else cluster.changed_node(at)
        cluster.nodes[new.name] = new
        self.queue.node_changed(old, new, at.time)
        return new.name

    def _add_pod(self, at: TimedEvent) -> str:
        pod = self._cluster.new_pod(at)
        if not pod.is_terminal:
            self._cluster.pods[pod.key] = pod
            if pod.spec.node_name:
                self.queue.assigned_pod_changed(None, pod, at.time)
            elif self._is_ours(pod):
                self.queue.add(pod, at.time)
        return pod.key

    def _replace(self, old: Pod, new: Pod, at: TimedEvent) -> str:
        """The pod changes. One that finishes leaves its node, as the scheduler sees it."""
        if new.is_terminal:
            return self._remove(old, at)
        self._cluster.pods[new.key] = new
        if old.spec.node_name:
            self.queue.assigned_pod_changed(old, new, at.time)
        elif new.spec.node_name:
            self.queue.assigned_pod_changed(None, new, at.time)
            if self._is_ours(old):
                self.queue.delete(old, at.time, is_bound=True)
            self._end(old, at)
        elif self._is_ours(old):
            self.queue.update(old, new, at.time)
        return new.key

    def _remove(self, pod: Pod, at: TimedEvent) -> str:
        del self._cluster.pods[pod.key]
        if pod.spec.node_name:
            self.queue.assigned_pod_changed(pod, None, at.time)
        elif self._is_ours(pod):
            self.queue.delete(pod, at.time)
            self._end(pod, at)
        return pod.key

    def _end(self, pod: Pod, at: TimedEvent) -> None:
        if self._in_flight.pop(pod.key, None) is not None:
            self.queue.done(pod, at.time)

    def _unschedulable(self, at: TimedEvent) -> str:
        pod = self._tried(at)
        cycle = self._in_flight.pop(pod.key) if at.event.cycle is None else at.event.cycle
        self._in_flight.pop(pod.key, None)
        plugins = frozenset(at.event.plugins)
        if not plugins and not at.event.pending_plugins and not at.event.is_error and self._rejectors is not None:
            plugins = self._rejectors(self._cluster.cluster, pod)
            if not plugins:
                problem = f"no plugin refuses pod {pod.key} in this cluster"
                raise at.error(problem, path="plugins", hint='"plugins": ["NodeResourcesFit"] names those that did')
        pod = self._cluster.pods[pod.key] = refused(pod, at.time, is_error=at.event.is_error)
        self.queue.add_unschedulable(pod, Attempt(cycle, plugins, frozenset(at.event.pending_plugins)), at.time)
        return pod.key

    def _tried(self, at: TimedEvent) -> Pod:
        """The pod that could not be placed: the one that is named, or the only one in flight."""
        flying = [key for key in self._in_flight if key in self._cluster.pods]
        if at.event.pod is None:
            if len(flying) != 1:
                number = "no pod was popped" if not flying else f"{len(flying)} pods were popped"
                raise at.error(number, path="pod", hint='"pod": "namespace/name" says which is meant')
            return self._cluster.pods[flying[0]]
        pod = self._cluster.pod(at)
        if pod.key not in self._in_flight:
            raise at.error(f"pod {pod.key} was not popped", path="pod", hint="an event pop comes first")
        return pod
