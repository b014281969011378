"""A possible state of the scheduling queue of a cluster, and how events change it.

The queue is in the scheduler's memory; ``waiting`` has what a snapshot shows of it. What cannot be known is reported as
an assumption. For each event, the moved pods and the resulting queue are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import is_
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import (
    AnalysisContext,
    Scheduler,
    Spread,
    is_kube_algorithm,
    one_by_one,
    pending_pods,
)
from kpreempt.analysis.queue.cluster import Decode, EventKind, QueueCluster, TimedEvent, after_failed_attempt
from kpreempt.analysis.queue.waiting import Waiting, queue_of, rejecting_plugins, waiting_pods
from kpreempt.analysis.unread import unread_events
from kpreempt.model.cluster import ClusterSnapshot, is_partial
from kpreempt.model.pod import Pod
from kpreempt.phases import Phases
from kpreempt.schedulers.interface import QueueRules
from kpreempt.schedulers.queues import Attempt, SchedulingQueue
from kpreempt.verdict import Assumption
from kpreempt.verdict.queue import PodMove, QueuedPod, QueueName, QueueStep, SchedulingQueueState
from kpreempt.verdict.unread import unread_of

_MAX_BACKOFF_OF_FIFO = timedelta(seconds=60)


def scheduling_queue(
    context: AnalysisContext,
    events: Sequence[TimedEvent],
    decode: Decode,
    *,
    spread: Spread = one_by_one,
) -> SchedulingQueueState:
    """The queue of the cluster, after the events if there are any.

    Raises ``InputError`` for an impossible event, and ``PluginFailedError`` if a plugin cannot order the queue.
    ``spread`` evaluates several pods in parallel.
    """
    cluster, scheduler, phases, at = context.cluster, context.scheduler, context.phases, context.time
    start = min([at, *(event.time for event in events[:1])])
    queue_cluster = QueueCluster(cluster, decode)

    def prepared() -> Any:
        with phases.phase("prepare"):
            return scheduler.prepare(cluster, now=at)

    waiting = waiting_pods(cluster, scheduler, prepared, start, spread=spread, phases=phases)
    queue = queue_of(scheduler, waiting, start, _rules(scheduler, queue_cluster, at, phases))
    # Only this queue needs to know which plugins rejected a pod.
    rejectors = partial(_rejected_by, scheduler, at) if is_kube_algorithm(scheduler.algorithm) else None
    simulation = QueueSimulation(queue, queue_cluster, scheduler.scheduler_names, rejectors)
    with phases.phase("events"):
        steps = list(simulation.apply(events))
    is_cut = is_partial(cluster)
    return SchedulingQueueState(
        algorithm=scheduler.algorithm,
        at=steps[-1].time if steps else at,
        # Without nodes and all pods, it is unknown which plugins rejected a pod.
        items=[msgspec.structs.replace(each, rejected_by=[]) for each in simulation.pods()]
        if is_cut
        else simulation.pods(),
        nominated=queue.nominated(),
        scheduling_cycle=queue.scheduling_cycle,
        move_request_cycle=queue.move_request_cycle,
        others=len(pending_pods(cluster)) - len(waiting),
        steps=steps,
        assumptions=[
            *context.assumptions,
            *unread_events(cluster),
            *(unread_of(cluster, ["Node", "Pod"]) if is_cut else []),
            *_assumptions(scheduler.algorithm, queue, waiting, start),
        ],
    )


def _rules(scheduler: Scheduler, queue_cluster: QueueCluster, now: datetime, phases: Phases) -> QueueRules:
    """The queue rules of plugins, which get the changing cluster prepared whenever they need it."""
    last_cluster, prepared = ClusterSnapshot(), None

    def latest() -> Any:
        nonlocal last_cluster, prepared
        cluster = queue_cluster.cluster
        if prepared is None or not (
            _is_same(cluster.pods, last_cluster.pods) and _is_same(cluster.nodes, last_cluster.nodes)
        ):
            last_cluster, prepared = cluster, scheduler.prepare(cluster, now=now)
        return prepared

    return scheduler.queue_rules(latest, phases)


def _is_same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _rejected_by(scheduler: Scheduler, now: datetime, cluster: ClusterSnapshot, pod: Pod) -> frozenset[str]:
    return rejecting_plugins(scheduler.decide(scheduler.prepare(cluster, now=now), pod, records_steps=False))


def _assumptions(
    algorithm: str, queue: SchedulingQueue, waiting: Sequence[Waiting], start: datetime
) -> Iterator[Assumption]:
    """Facts about the queue that only the scheduler knows."""
    for plugin, event in queue.assumed_hints():
        message = f"{event} is assumed to help all pods it rejected; the real plugin checks more precisely"
        yield Assumption(f"plugin {plugin}", "queueing hint", message)
    attempted = [each for each in waiting if each.plugins is not None]
    if not attempted:
        return
    subject = "scheduling queue"
    if is_kube_algorithm(algorithm):
        yield Assumption(
            subject, "attempts", "the number of attempts per pod is unknown, so backoff times are upper bounds"
        )
        yield Assumption(
            subject, "rejectedBy", "attempted pods are assumed to have been rejected for the current reasons"
        )
    if any(each.is_moved for each in attempted):
        message = "the change is assumed to move all pods that would find a node now"
        yield Assumption(subject, "moved", message)
    recent = [each for each in attempted if start - each.time < _MAX_BACKOFF_OF_FIFO]
    if queue.scheduling_cycle is None and recent:
        yield Assumption(
            subject,
            "backoff",
            f"{len(recent)} pods tried within the last minute may still be backing off, outside the queue",
        )
    if queue.scheduling_cycle is not None:
        yield Assumption(
            subject, "flush", "the time of the periodic flush is unknown, so pods may move up to 30s earlier"
        )
    if any(not each.is_time_known for each in attempted):
        yield Assumption(
            subject,
            "time",
            "no event shows when some pods were last tried, so the attempts may be more recent than shown",
        )


TIMER = "timer"
# Each step shows the whole queue, and with many pods a long list of events would be too much to read or store.
MAX_PODS_SHOWN = 300_000

_OF_NODES = (EventKind.ADD_NODE, EventKind.UPDATE_NODE, EventKind.DELETE_NODE)
# Returns the plugins that reject a pod in a cluster, if an event does not name them.
Rejectors = Callable[[ClusterSnapshot, Pod], frozenset[str]]


class QueueSimulation:
    """A queue and the cluster around it. Only pods of ``scheduler_names`` are queued.

    ``rejectors`` is ``None`` for queues that do not need the rejecting plugins.
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
        # The popped pods with the scheduling cycle of each.
        self._in_flight: dict[str, int] = {}
        self._number = 0
        self._pods_shown = 0

    def apply(self, events: Iterable[TimedEvent]) -> Iterator[QueueStep]:
        """One step for each event, preceded by one for each timer of the queue that moved pods.

        Raises ``InputError`` for an impossible event.
        """
        places = self._places()
        for event in events:
            event.check()
            for timer in self._advance(event.time, places):
                places = {each.pod: each.queue for each in timer.pods}
                yield timer
            subject = self._change_node(event) if event.event.event in _OF_NODES else self._apply_pod_event(event)
            step = self._step(event.event.event, event.time, subject, places)
            places = {each.pod: each.queue for each in step.pods}
            yield step
            if self._pods_shown > MAX_PODS_SHOWN:
                problem = f"too much output: a queue of {len(places):,} pods after each event"
                raise event.error(problem, hint="use fewer events or fewer pods")

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
        """Advance the time; ``places`` are the pods' previous places."""
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

    def _apply_pod_event(self, at: TimedEvent) -> str:
        """Apply an event that is not about nodes; returns its subject, or the popped pod."""
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
                    problem = f"a {event.resource} has its own kinds of events"
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
            raise at.error(f"pod {pod.key} is already on node {pod.spec.node_name}", path="pod")
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
        """Replace the pod. A finished pod is removed from its node, as in the scheduler."""
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
        pod = self._attempted_pod(at)
        cycle = self._in_flight.pop(pod.key) if at.event.cycle is None else at.event.cycle
        self._in_flight.pop(pod.key, None)
        plugins = frozenset(at.event.plugins)
        if not plugins and not at.event.pending_plugins and not at.event.is_error and self._rejectors is not None:
            plugins = self._rejectors(self._cluster.cluster, pod)
            if not plugins:
                problem = f"no plugin rejects pod {pod.key} in this cluster"
                raise at.error(
                    problem, path="plugins", hint='"plugins": ["NodeResourcesFit"] names the plugins that rejected it'
                )
        pod = self._cluster.pods[pod.key] = after_failed_attempt(pod, at.time, is_error=at.event.is_error)
        self.queue.add_unschedulable(pod, Attempt(cycle, plugins, frozenset(at.event.pending_plugins)), at.time)
        return pod.key

    def _attempted_pod(self, at: TimedEvent) -> Pod:
        """The pod that could not be scheduled: the named one, or the only one in flight."""
        in_flight = [key for key in self._in_flight if key in self._cluster.pods]
        if at.event.pod is None:
            if len(in_flight) != 1:
                number = "no pod was popped" if not in_flight else f"{len(in_flight)} pods were popped"
                raise at.error(number, path="pod", hint='"pod": "namespace/name" selects one')
            return self._cluster.pods[in_flight[0]]
        pod = self._cluster.pod(at)
        if pod.key not in self._in_flight:
            raise at.error(f"pod {pod.key} was not popped", path="pod", hint="add a pop event before this one")
        return pod
