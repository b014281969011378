"""What every scheduling queue answers to: the changes of a cluster, the scheduler's own calls, and questions.

A queue never reads a clock: every call says when it happens, and times never go back. A ``Ticker`` has the times at
which its own timer runs. What a version's event handlers make of a change (``pkg/scheduler/eventhandlers.go``, before
1.15 ``factory/factory.go``) is part of its queue here.

Pods that are nominated to nodes are kept as in ``nominatedPodMap`` of v1.13.12
(``pkg/scheduler/internal/queue/scheduling_queue.go``): by node, and the node by the pod's UID. What the scheduler
decided is there before the API server knows of it, so that the node may differ from the pod's status.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.verdict.queue import QueuedPod

# ruff: noqa: B027 (most versions have nothing to do for some events)


class Attempt(NamedTuple):
    """How an attempt failed: in which scheduling cycle the pod was popped, and which plugins refused it.

    Without any plugin the attempt ended with an error. ``pending`` are plugins that wait for something of their own.
    Queues before 1.19 know of cycles only.
    """

    cycle: int = 0
    plugins: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()


class SchedulingQueue(ABC):
    """A scheduling queue of one version, with the event handlers that feed it.

    What has no meaning in a version does nothing, and counters that it does not have are ``None``: how many pods were
    popped, and in which cycle pods were last asked to move (-1 before the first time).
    """

    scheduling_cycle: int | None = None
    move_request_cycle: int | None = None
    # The plugins and events whose hint was taken to say yes without being looked at, and the nominated pods.
    unmodelled_hints: Collection[tuple[str, str]] = ()
    nominator: NominatedPods | None = None

    @abstractmethod
    def next_timer(self) -> datetime | None:
        """When the queue's timers next move a pod, if nothing else happens."""

    @abstractmethod
    def advance(self, now: datetime) -> None:
        """Do what the queue's timers did up to ``now``. Every other call is made for a time that this has reached."""

    @abstractmethod
    def add(self, pod: Pod, now: datetime) -> None:
        """A pod without a node came into the cluster."""

    @abstractmethod
    def restore(self, pod: Pod, attempt: Attempt, time: datetime) -> None:
        """A pod without a node was last tried at ``time``, nobody knows how often; puts it where it waits since."""

    @abstractmethod
    def update(self, old: Pod, new: Pod, now: datetime) -> None:
        """A pod without a node was changed."""

    @abstractmethod
    def delete(self, pod: Pod, now: datetime, *, is_bound: bool = False) -> None:
        """A pod without a node left the cluster; ``is_bound``: it has got one."""

    def assigned_pod_changed(self, old: Pod | None, new: Pod | None, now: datetime) -> None:
        """A pod with a node came or was bound to it (without ``old``), was changed, or left (without ``new``)."""

    def node_changed(self, old: Node | None, new: Node | None, now: datetime) -> None:
        """A node came (without ``old``), was changed, or left (without ``new``)."""

    def object_changed(self, resource: str, action: str, now: datetime) -> None:
        """Another object changed: its kind (``PersistentVolume``), and ``Add``, ``Update`` or ``Delete``."""

    def move_all(self, now: datetime) -> None:
        """Something asks that all unschedulable pods be tried again."""

    @abstractmethod
    def pop(self, now: datetime) -> Pod | None:
        """Give the scheduler the next pod; ``None`` where it would have to wait for one."""

    @abstractmethod
    def add_unschedulable(self, pod: Pod, attempt: Attempt, now: datetime) -> None:
        """The scheduler could not place a pod that it had popped, and gives it back as the cluster has it now."""

    def done(self, pod: Pod, now: datetime) -> None:
        """The scheduler is done with a pod that it had popped."""

    def nominate(self, pod: Pod, node_name: str, now: datetime) -> None:
        """The scheduler nominated the pod to a node, which its status may not say yet."""

    def clear_nomination(self, pod: Pod, now: datetime) -> None:
        """The scheduler took back the pod's nomination."""
        if self.nominator is not None:
            self.nominator.delete(pod)

    def activate(self, pod: Pod, now: datetime) -> None:
        """A plugin asks that the pod be tried again at once."""

    @abstractmethod
    def pods(self) -> list[QueuedPod]:
        """Every pod that waits, in the order in which the scheduler would come to them, with what would move it."""

    def names(self) -> Iterable[str]:
        """Every pod that waits and is not gated, as ``namespace/name``, in any order."""
        return (each.pod for each in self.pods())

    def assumed_hints(self) -> list[tuple[str, str]]:
        """The plugins, each with an event that was taken to help a pod, though the plugin itself might deny it."""
        return sorted(self.unmodelled_hints)

    def nominated(self) -> dict[str, list[str]]:
        """The nominated pods of each node, as ``namespace/name``."""
        return {} if self.nominator is None else self.nominator.by_node()


class Ticker:
    """A timer that first runs at ``start`` and then every ``period``."""

    def __init__(self, start: datetime, period: timedelta) -> None:
        self._start = start
        self._period = period

    def first_after(self, time: datetime) -> datetime:
        """The first run later than ``time``."""
        if time < self._start:
            return self._start
        return self._start + ((time - self._start) // self._period + 1) * self._period


class NominatedPods:
    """Which pods are nominated to which node, each to at most one, those of a node in the order of nomination."""

    def __init__(self) -> None:
        self._pods: dict[str, list[Pod]] = {}
        self._nodes: dict[str, str] = {}

    def add(self, pod: Pod, node_name: str = "") -> None:
        """Nominate the pod, to the node of its status without a ``node_name``. Without both it is nominated no more."""
        self.delete(pod)
        node_name = node_name or pod.status.nominated_node_name
        if node_name:
            self._nodes[pod.identity] = node_name
            self._pods.setdefault(node_name, []).append(pod)

    def delete(self, pod: Pod) -> None:
        """Forget the pod's nomination, wherever it is to."""
        node_name = self._nodes.pop(pod.identity, None)
        if node_name is None:
            return
        rest = [each for each in self._pods[node_name] if each.identity != pod.identity]
        if rest:
            self._pods[node_name] = rest
        else:
            del self._pods[node_name]

    def update(self, old: Pod, new: Pod) -> None:
        """The pod has changed. Its status counts again: what was decided in memory only is lost."""
        self.delete(old)
        self.add(new)

    def node_of(self, pod: Pod) -> str:
        """The node that the pod is nominated to, or an empty text."""
        return self._nodes.get(pod.identity, "")

    def by_node(self) -> dict[str, list[str]]:
        """The pods of every node as ``namespace/name``, nodes in the order of their first nomination."""
        return {node_name: [pod.key for pod in pods] for node_name, pods in self._pods.items()}


class Nominator(NominatedPods):
    """The same today: ``pkg/scheduler/backend/queue/nominator.go`` of v1.36.3."""

    def update(self, old: Pod, new: Pod) -> None:
        """The pod has changed. What was decided in memory stays where neither status names a node."""
        kept = ""
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            kept = self.node_of(old)
        self.delete(old)
        self.add(new, kept)
