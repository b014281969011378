"""The interface of every scheduling queue: cluster events, scheduler calls, and queries.

A queue never reads a clock: every call has a time, and times never go back. A ``Ticker`` has the times at which the
queue's timer runs. The event handlers of a version (``pkg/scheduler/eventhandlers.go``, before 1.15
``factory/factory.go``) are part of its queue here.

Nominated pods are kept as in ``nominatedPodMap`` of v1.13.12 (``pkg/scheduler/internal/queue/scheduling_queue.go``): by
node, and the node by the pod's UID. The map has the scheduler's decision before the API server does, so the node may
differ from the pod's status.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.verdict.queue import QueuedPod

# ruff: noqa: B027 (most versions ignore some events)


class Attempt(NamedTuple):
    """A failed attempt: the scheduling cycle in which the pod was popped, and the plugins that rejected it.

    Without any plugin, the attempt ended with an error. ``pending`` are plugins that wait for an external event. Queues
    before 1.19 only have cycles.
    """

    cycle: int = 0
    plugins: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()


class SchedulingQueue(ABC):
    """A scheduling queue of one version, with the event handlers that feed it.

    Methods without a meaning in a version do nothing, and counters it does not have are ``None``: the number of pods
    popped, and the cycle of the last move request (-1 before the first one).
    """

    scheduling_cycle: int | None = None
    move_request_cycle: int | None = None
    # The plugins and events whose queueing hint was assumed to be Queue, and the nominated pods.
    unmodeled_hints: Collection[tuple[str, str]] = ()
    nominator: NominatedPods | None = None

    @abstractmethod
    def next_timer(self) -> datetime | None:
        """Return when the queue's timers next move a pod if nothing else happens."""

    @abstractmethod
    def advance(self, now: datetime) -> None:
        """Run the queue's timers up to ``now``. Every other call requires that this was called for its time."""

    @abstractmethod
    def add(self, pod: Pod, now: datetime) -> None:
        """Add a new pod without a node."""

    @abstractmethod
    def restore(self, pod: Pod, attempt: Attempt, time: datetime, moved_at: datetime | None = None) -> None:
        """Add a pod without a node whose last attempt was at ``time``, with an unknown number of attempts.

        With ``moved_at``, an event has helped the pod since: it is tried again, at the earliest after its backoff.
        """

    @abstractmethod
    def update(self, old: Pod, new: Pod, now: datetime) -> None:
        """Update a pod without a node."""

    @abstractmethod
    def delete(self, pod: Pod, now: datetime, *, is_bound: bool = False) -> None:
        """Delete a pod without a node; with ``is_bound``, it was bound to one."""

    def assigned_pod_changed(self, old: Pod | None, new: Pod | None, now: datetime) -> None:
        """Handle a bound pod that was added or bound (no ``old``), changed, or deleted (no ``new``)."""

    def node_changed(self, old: Node | None, new: Node | None, now: datetime) -> None:
        """Handle a node that was added (no ``old``), changed, or deleted (no ``new``)."""

    def object_changed(self, resource: str, action: str, now: datetime) -> None:
        """Handle a change of another object: its kind (``PersistentVolume``), and ``Add``, ``Update`` or ``Delete``."""

    def move_all(self, now: datetime) -> None:
        """Request that all unschedulable pods are tried again."""

    @abstractmethod
    def pop(self, now: datetime) -> Pod | None:
        """Return the next pod for the scheduler; ``None`` if it would have to wait for one."""

    @abstractmethod
    def add_unschedulable(self, pod: Pod, attempt: Attempt, now: datetime) -> None:
        """Return a popped pod that the scheduler could not place, in its current state in the cluster."""

    def done(self, pod: Pod, now: datetime) -> None:
        """Mark a popped pod as done."""

    def nominate(self, pod: Pod, node_name: str, now: datetime) -> None:
        """Nominate the pod to a node, possibly before its status shows it."""

    def clear_nomination(self, pod: Pod, now: datetime) -> None:
        """Clear the pod's nomination."""
        if self.nominator is not None:
            self.nominator.delete(pod)

    def activate(self, pod: Pod, now: datetime) -> None:
        """Request, on behalf of a plugin, that the pod is tried again immediately."""

    @abstractmethod
    def pods(self) -> list[QueuedPod]:
        """Return every waiting pod, in the order in which it would be tried, with the events that would move it."""

    def names(self) -> Iterable[str]:
        """Return every waiting pod that is not gated, as ``namespace/name``, in any order."""
        return (each.pod for each in self.pods())

    def assumed_hints(self) -> list[tuple[str, str]]:
        """Return the plugins and events whose queueing hint was assumed to be Queue, though the plugin might say no."""
        return sorted(self.unmodeled_hints)

    def nominated(self) -> dict[str, list[str]]:
        """Return the nominated pods of each node, as ``namespace/name``."""
        return {} if self.nominator is None else self.nominator.by_node()


class Ticker:
    """A timer that first runs at ``start``, and then every ``period``."""

    def __init__(self, start: datetime, period: timedelta) -> None:
        self._start = start
        self._period = period

    def first_after(self, time: datetime) -> datetime:
        """Return the first run after ``time``."""
        if time < self._start:
            return self._start
        return self._start + ((time - self._start) // self._period + 1) * self._period


class NominatedPods:
    """The nominated pods of each node, in order of nomination; a pod has at most one node."""

    def __init__(self) -> None:
        self._pods: dict[str, list[Pod]] = {}
        self._nodes: dict[str, str] = {}

    def add(self, pod: Pod, node_name: str = "") -> None:
        """Nominate the pod to ``node_name``, by default to the node in its status; without either, clear it."""
        self.delete(pod)
        node_name = node_name or pod.status.nominated_node_name
        if node_name:
            self._nodes[pod.identity] = node_name
            self._pods.setdefault(node_name, []).append(pod)

    def delete(self, pod: Pod) -> None:
        """Drop the pod's nomination."""
        node_name = self._nodes.pop(pod.identity, None)
        if node_name is None:
            return
        rest = [each for each in self._pods[node_name] if each.identity != pod.identity]
        if rest:
            self._pods[node_name] = rest
        else:
            del self._pods[node_name]

    def update(self, old: Pod, new: Pod) -> None:
        """Update a changed pod. Its status takes precedence: a nomination only in memory is lost."""
        self.delete(old)
        self.add(new)

    def node_of(self, pod: Pod) -> str:
        """Return the node that the pod is nominated to, or an empty string."""
        return self._nodes.get(pod.identity, "")

    def by_node(self) -> dict[str, list[str]]:
        """Return the pods of every node as ``namespace/name``; nodes are in order of their first nomination."""
        return {node_name: [pod.key for pod in pods] for node_name, pods in self._pods.items()}


class Nominator(NominatedPods):
    """The current version: ``pkg/scheduler/backend/queue/nominator.go`` of v1.36.3."""

    def update(self, old: Pod, new: Pod) -> None:
        """Update a changed pod. A nomination only in memory stays if neither status names a node."""
        kept = ""
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            kept = self.node_of(old)
        self.delete(old)
        self.add(new, kept)
