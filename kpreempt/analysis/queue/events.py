"""Applying events to a scheduling queue: what each moves, and the queue afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from kpreempt.analysis.queue.cluster import EventKind, QueueCluster, TimedEvent, bound, refused
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.schedulers.queues import Attempt, SchedulingQueue
from kpreempt.verdict.queue import Place, PodMove, QueuedPod, QueueStep

TIMER = "timer"
# Each step shows the whole queue, so that many events on many pods would come to more than anyone can read or hold.
MAX_PODS_SHOWN = 300_000

# The plugins that refuse a pod in a cluster, where an event does not say which.
Rejectors = Callable[[ClusterSnapshot, Pod], frozenset[str]]


class _Said(NamedTuple):
    """What there is to say of an event that was applied."""

    subject: str = ""
    popped: str = ""


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
        self._cluster = cluster
        self._scheduler_names = scheduler_names
        self._rejectors = rejectors
        # The pods that were popped, with the scheduling cycle of each.
        self._in_flight: dict[str, int] = {}
        self._number = 0
        self._pods_shown = 0
        self._handlers: dict[EventKind, Callable[[TimedEvent], _Said]] = {
            EventKind.ADD_POD: self._add_pod,
            EventKind.UPDATE_POD: self._update_pod,
            EventKind.DELETE_POD: self._delete_pod,
            EventKind.BIND_POD: self._bind_pod,
            EventKind.ADD_NODE: self._add_node,
            EventKind.UPDATE_NODE: self._update_node,
            EventKind.DELETE_NODE: self._delete_node,
            EventKind.CHANGE_OBJECT: self._change_object,
            EventKind.WAIT: lambda _: _Said(),
            EventKind.POP: self._pop,
            EventKind.UNSCHEDULABLE: self._unschedulable,
            EventKind.NOMINATE: self._nominate,
            EventKind.CLEAR_NOMINATION: self._clear_nomination,
            EventKind.MOVE_ALL: self._move_all,
            EventKind.ACTIVATE: self._activate,
        }

    def apply(self, events: Iterable[TimedEvent]) -> Iterator[QueueStep]:
        """A step for each event, and one before it for each time that the queue's timers moved something.

        Raises ``InputError`` for an event that cannot happen.
        """
        places = self._places()
        for event in events:
            event.check()
            for timer in self._advance(event.time, places):
                places = {each.pod: each.place for each in timer.pods}
                yield timer
            said = self._handlers[event.event.event](event)
            step = self._step(event.event.event, event.time, said, places)
            places = {each.pod: each.place for each in step.pods}
            yield step
            if self._pods_shown > MAX_PODS_SHOWN:
                problem = f"the queue of {len(places):,} pods after each of so many events is too much to show"
                raise event.error(problem, hint="fewer events, or fewer pods")

    def pods(self) -> list[QueuedPod]:
        """The pods of the queue, and those that were popped."""
        waiting = self.queue.pods()
        known = {each.pod for each in waiting}
        popped = [
            QueuedPod(pod=key, priority=self._cluster.pods[key].priority, place=Place.IN_FLIGHT)
            for key in self._in_flight
            if key in self._cluster.pods and key not in known
        ]
        return [*waiting, *popped]

    def _advance(self, time: datetime, places: dict[str, Place]) -> Iterator[QueueStep]:
        """The time moves on; ``places`` are those of the pods before."""
        while (due := self.queue.next_timer()) is not None and due <= time:
            self.queue.advance(due)
            after = self._places()
            if after != places:
                yield self._step(TIMER, due, _Said(), places)
                places = after
        self.queue.advance(time)

    def _places(self) -> dict[str, Place]:
        return {each.pod: each.place for each in self.pods()}

    def _step(self, event: str, time: datetime, said: _Said, before: dict[str, Place]) -> QueueStep:
        self._number += 1
        pods = self.pods()
        self._pods_shown += len(pods)
        after = {each.pod: each.place for each in pods}
        moves = [
            PodMove(key, before.get(key, Place.GONE), after.get(key, Place.GONE))
            for key in dict.fromkeys([*before, *after])
            if before.get(key) != after.get(key)
        ]
        return QueueStep(
            number=self._number,
            time=time,
            event=event,
            subject=said.subject,
            popped=said.popped,
            moves=moves,
            pods=pods,
            nominated=self.queue.nominated(),
            scheduling_cycle=self.queue.scheduling_cycle,
            move_request_cycle=self.queue.move_request_cycle,
        )

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._scheduler_names

    def _add_pod(self, at: TimedEvent) -> _Said:
        pod = self._cluster.new_pod(at)
        if not pod.is_terminal:
            self._cluster.pods[pod.key] = pod
            if pod.spec.node_name:
                self.queue.assigned_pod_changed(None, pod, at.time)
            elif self._is_ours(pod):
                self.queue.add(pod, at.time)
        return _Said(pod.key)

    def _update_pod(self, at: TimedEvent) -> _Said:
        return self._replace(self._cluster.pod(at), self._cluster.changed_pod(at), at)

    def _bind_pod(self, at: TimedEvent) -> _Said:
        pod, node = self._cluster.pod(at), self._cluster.node(at)
        if pod.spec.node_name:
            raise at.error(f"pod {pod.key} is on node {pod.spec.node_name} already", path="pod")
        said = self._replace(pod, bound(pod, node.name), at)
        return _Said(f"{said.subject} to {node.name}")

    def _replace(self, old: Pod, new: Pod, at: TimedEvent) -> _Said:
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
        return _Said(new.key)

    def _delete_pod(self, at: TimedEvent) -> _Said:
        return self._remove(self._cluster.pod(at), at)

    def _remove(self, pod: Pod, at: TimedEvent) -> _Said:
        del self._cluster.pods[pod.key]
        if pod.spec.node_name:
            self.queue.assigned_pod_changed(pod, None, at.time)
        elif self._is_ours(pod):
            self.queue.delete(pod, at.time)
            self._end(pod, at)
        return _Said(pod.key)

    def _end(self, pod: Pod, at: TimedEvent) -> None:
        if self._in_flight.pop(pod.key, None) is not None:
            self.queue.done(pod, at.time)

    def _add_node(self, at: TimedEvent) -> _Said:
        node = self._cluster.new_node(at)
        self._cluster.nodes[node.name] = node
        self.queue.node_changed(None, node, at.time)
        return _Said(node.name)

    def _update_node(self, at: TimedEvent) -> _Said:
        old, new = self._cluster.node(at), self._cluster.changed_node(at)
        self._cluster.nodes[new.name] = new
        self.queue.node_changed(old, new, at.time)
        return _Said(new.name)

    def _delete_node(self, at: TimedEvent) -> _Said:
        node = self._cluster.node(at)
        del self._cluster.nodes[node.name]
        self.queue.node_changed(node, None, at.time)
        return _Said(node.name)

    def _change_object(self, at: TimedEvent) -> _Said:
        resource, action = at.event.resource, at.event.action
        if resource in ("Pod", "Node"):
            raise at.error(f"a {resource} is changed by events of its own", path="resource", hint="addPod, updateNode")
        self.queue.object_changed(resource, action, at.time)
        return _Said(f"{resource} {action}")

    def _pop(self, at: TimedEvent) -> _Said:
        pod = self.queue.pop(at.time)
        if pod is None:
            return _Said()
        self._in_flight[pod.key] = self.queue.scheduling_cycle or 0
        return _Said(popped=pod.key)

    def _unschedulable(self, at: TimedEvent) -> _Said:
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
        attempt = Attempt(cycle, plugins, frozenset(at.event.pending_plugins))
        self.queue.add_unschedulable(pod, attempt, at.time)
        return _Said(pod.key)

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

    def _nominate(self, at: TimedEvent) -> _Said:
        pod, node = self._cluster.pod(at), self._cluster.node(at)
        self.queue.nominate(pod, node.name, at.time)
        return _Said(f"{pod.key} to {node.name}")

    def _clear_nomination(self, at: TimedEvent) -> _Said:
        pod = self._cluster.pod(at)
        self.queue.clear_nomination(pod, at.time)
        return _Said(pod.key)

    def _move_all(self, at: TimedEvent) -> _Said:
        self.queue.move_all(at.time)
        return _Said()

    def _activate(self, at: TimedEvent) -> _Said:
        pod = self._cluster.pod(at)
        self.queue.activate(pod, at.time)
        return _Said(pod.key)
