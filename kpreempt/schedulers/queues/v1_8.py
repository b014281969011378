"""The scheduling queue of Kubernetes 1.8: first in, first out; priorities do not count.

Follows ``staging/src/k8s.io/client-go/tools/cache/fifo.go`` (``FIFO``), ``plugin/pkg/scheduler/util/backoff_utils.go``
(``PodBackoff``) and ``plugin/pkg/scheduler/factory/factory.go`` (event handlers, ``MakeDefaultErrorFunc``) of v1.8.15.
1.13 has the same queue where its gate PodPriority is off.

A pod that failed waits outside of the queue: 1 s, twice as long each time, up to 60 s; then it is added at the end. No
change of the cluster shortens that, but an update of the pod itself, even of its status alone, adds it at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kpreempt.model.pod import Pod
from kpreempt.schedulers.queues.interface import Attempt, SchedulingQueue
from kpreempt.verdict.queue import Mover, MoverKind, Place, QueuedPod

INITIAL_BACKOFF = timedelta(seconds=1)
MAX_BACKOFF = timedelta(seconds=60)


class Queue18(SchedulingQueue):
    """The FIFO, and the pods that wait outside of it until their backoff ends; most events change nothing.

    Only its own update moves a pod; a nomination is the pod's annotation, of which the queue does not know. Adding a
    pod again keeps its place. Deleting forgets the pod, and not its place: one that comes again before the queue got
    there takes the old place.
    """

    def __init__(self) -> None:
        # Pods by ``namespace/name``, and the order in which they were added.
        self._items: dict[str, Pod] = {}
        self._keys: list[str] = []
        # How long each pod waits after its next failure, and when it last failed.
        self._backoff: dict[str, timedelta] = {}
        self._failed: dict[str, datetime] = {}
        # When each pod that failed is added again, and the pods as the API server has them then.
        self._waiting: dict[str, datetime] = {}
        self._unassigned: dict[str, Pod] = {}

    def next_timer(self) -> datetime | None:
        """When the next backoff ends."""
        return min(self._waiting.values(), default=None)

    def advance(self, now: datetime) -> None:
        """Add the pods whose backoff ended, if they still exist and have no node."""
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

    def restore(self, pod: Pod, attempt: Attempt, time: datetime) -> None:
        """Add the pod at the end: how long it still backs off is not known."""
        self.add(pod, time)

    def update(self, old: Pod, new: Pod, now: datetime) -> None:
        """Add a changed pod at the end, whatever changed, unless it is in the queue."""
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
        """Let the pod wait. One that waits already, because it was added in between, does not wait longer."""
        self._unassigned[pod.key] = pod
        # One that did not fail for long starts from the beginning.
        for key in [key for key, last in self._failed.items() if now - last > MAX_BACKOFF]:
            del self._backoff[key], self._failed[key]
        duration = self._backoff.setdefault(pod.key, INITIAL_BACKOFF)
        self._failed[pod.key] = now
        if pod.key not in self._waiting:
            self._waiting[pod.key] = now + duration
            self._backoff[pod.key] = min(2 * duration, MAX_BACKOFF)

    def pods(self) -> list[QueuedPod]:
        """The queue, then the pods that back off, the first to end first."""
        in_order = [self._items[key] for key in dict.fromkeys(self._keys) if key in self._items]
        queued = [
            QueuedPod(
                pod=pod.key,
                priority=pod.priority,
                place=Place.ACTIVE,
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
                place=Place.BACKOFF,
                position=position,
                backoff_until=until,
                moved_by=[Mover(MoverKind.BACKOFF, until), Mover(MoverKind.OWN_UPDATE)],
            )
            for position, (until, pod) in enumerate(sorted(waiting, key=lambda each: each[0]), start=1)
        ]
