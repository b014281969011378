"""The scheduling queue of Kubernetes 1.8: first in, first out, regardless of priority.

Follows ``staging/src/k8s.io/client-go/tools/cache/fifo.go`` (``FIFO``), ``plugin/pkg/scheduler/util/backoff_utils.go``
(``PodBackoff``) and ``plugin/pkg/scheduler/factory/factory.go`` (event handlers, ``MakeDefaultErrorFunc``) of v1.8.15.
1.13 has the same queue if its gate PodPriority is off.

A failed pod waits outside of the queue: 1 s, doubled each time, up to 60 s; then it is added at the end. Cluster
changes never shorten that, but an update of the pod itself, even of its status alone, adds it at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kpreempt.model.pod import Pod
from kpreempt.schedulers.queues.interface import Attempt, SchedulingQueue
from kpreempt.verdict.queue import Mover, MoverKind, QueuedPod, QueueName

INITIAL_BACKOFF = timedelta(seconds=1)
MAX_BACKOFF = timedelta(seconds=60)


class Queue18(SchedulingQueue):
    """The FIFO, and the pods outside of it until their backoff ends; most events change nothing.

    Only its own update moves a pod; nominations are annotations of the pod, which the queue does not see. Adding a pod
    again keeps its position. Deleting removes the pod but keeps its position: if it is added again before the queue
    gets there, it takes the old position.
    """

    def __init__(self) -> None:
        # Pods by ``namespace/name``, and the order in which they were added.
        self._items: dict[str, Pod] = {}
        self._keys: list[str] = []
        # How long each pod waits after its next failure, and when it last failed.
        self._backoff: dict[str, timedelta] = {}
        self._failed: dict[str, datetime] = {}
        # When each failed pod is added again, and the pods as the API server has them then.
        self._waiting: dict[str, datetime] = {}
        self._unassigned: dict[str, Pod] = {}

    def next_timer(self) -> datetime | None:
        """Return when the next backoff ends."""
        return min(self._waiting.values(), default=None)

    def advance(self, now: datetime) -> None:
        """Add the pods whose backoff has ended, if they still exist and have no node."""
        for key in sorted((key for key, until in self._waiting.items() if until <= now), key=self._waiting.__getitem__):
            del self._waiting[key]
            if key in self._unassigned and key not in self._items:
                self.add(self._unassigned[key], now)

    def add(self, pod: Pod, now: datetime) -> None:
        """Add a new pod at the end."""
        self._unassigned[pod.key] = pod
        if pod.key not in self._items:
            self._keys.append(pod.key)
        self._items[pod.key] = pod

    def restore(self, pod: Pod, attempt: Attempt, time: datetime, moved_at: datetime | None = None) -> None:
        """Add the pod at the end: its remaining backoff is unknown."""
        self.add(pod, time)

    def update(self, old: Pod, new: Pod, now: datetime) -> None:
        """Add a changed pod at the end, whatever changed, unless it is already queued."""
        self.add(new, now)

    def delete(self, pod: Pod, now: datetime, *, is_bound: bool = False) -> None:
        self._unassigned.pop(pod.key, None)
        self._items.pop(pod.key, None)

    def pop(self, now: datetime) -> Pod | None:
        while self._keys:
            pod = self._items.pop(self._keys.pop(0), None)
            if pod is not None:
                return pod
        return None

    def add_unschedulable(self, pod: Pod, attempt: Attempt, now: datetime) -> None:
        """Start the pod's backoff. A pod that already waits, because it was added in between, does not wait longer."""
        self._unassigned[pod.key] = pod
        # The backoff resets for a pod that has not failed for a long time.
        for key in [key for key, last in self._failed.items() if now - last > MAX_BACKOFF]:
            del self._backoff[key], self._failed[key]
        duration = self._backoff.setdefault(pod.key, INITIAL_BACKOFF)
        self._failed[pod.key] = now
        if pod.key not in self._waiting:
            self._waiting[pod.key] = now + duration
            self._backoff[pod.key] = min(2 * duration, MAX_BACKOFF)

    def pods(self) -> list[QueuedPod]:
        """Return the queue, then the pods in backoff, in order of when it ends."""
        in_order = [self._items[key] for key in dict.fromkeys(self._keys) if key in self._items]
        queued = [
            QueuedPod(
                pod=pod.key,
                priority=pod.priority,
                queue=QueueName.ACTIVE,
                position=position,
                moved_by=[Mover(MoverKind.POP)],
            )
            for position, pod in enumerate(in_order, start=1)
        ]
        waiting = [
            (until, self._unassigned[key])
            for key, until in self._waiting.items()
            if key in self._unassigned and key not in self._items
        ]
        return queued + [
            QueuedPod(
                pod=pod.key,
                priority=pod.priority,
                queue=QueueName.BACKOFF,
                position=position,
                backoff_until=until,
                moved_by=[Mover(MoverKind.BACKOFF, until), Mover(MoverKind.OWN_UPDATE)],
            )
            for position, (until, pod) in enumerate(sorted(waiting, key=lambda each: each[0]), start=1)
        ]
