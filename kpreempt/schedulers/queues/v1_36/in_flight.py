"""Pods that are being scheduled, and what happens meanwhile: it may help them when they come back.

Follows ``inFlightPods`` and ``inFlightEvents`` in ``pkg/scheduler/backend/queue/active_queue.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.queues.nominated import identity
from kpreempt.schedulers.queues.v1_36.cluster_events import ClusterEvent


class Happening(NamedTuple):
    """An event with the object before and after."""

    event: ClusterEvent
    old: Pod | Node | None = None
    new: Pod | Node | None = None


class InFlight:
    """One list of pods and events in the order in which they came."""

    def __init__(self) -> None:
        self._entries: list[str | Happening] = []

    def __contains__(self, pod: Pod) -> bool:
        return identity(pod) in self._entries

    def __bool__(self) -> bool:
        return any(isinstance(entry, str) for entry in self._entries)

    @property
    def last_event(self) -> ClusterEvent | None:
        """What happened last, if no pod was popped since."""
        last = self._entries[-1] if self._entries else None
        return last.event if isinstance(last, Happening) else None

    def begin(self, pod: Pod) -> None:
        """The pod was popped."""
        self._entries.append(identity(pod))

    def record(self, happenings: Iterable[Happening]) -> None:
        """Something happened; nobody needs to know where no pod is in flight."""
        if self:
            self._entries.extend(happenings)

    def since(self, pod: Pod) -> list[Happening]:
        """What happened since the pod was popped."""
        start = self._entries.index(identity(pod))
        return [entry for entry in self._entries[start:] if isinstance(entry, Happening)]

    def end(self, pod: Pod) -> None:
        """The pod is not in flight any more; what only it needed to know is forgotten."""
        if pod in self:
            self._entries.remove(identity(pod))
        first = next((index for index, entry in enumerate(self._entries) if isinstance(entry, str)), len(self._entries))
        del self._entries[:first]
