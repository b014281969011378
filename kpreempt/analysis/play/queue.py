"""The scheduling queue of a play: highest priority first, then who came first; who failed backs off.

Follows ``pkg/scheduler/backend/queue`` of kube-scheduler v1.36.3 in what decides the order: a pod that found no node is
tried again when something changed, and not before its backoff is over, which doubles from one second to ten.
"""

from __future__ import annotations

from kpreempt.model.pod import Pod

_FIRST_BACKOFF = 1.0
_LONGEST_BACKOFF = 10.0


class Entry:
    """A pod in the queue. Times are in seconds from the start."""

    __slots__ = ("attempts", "came", "is_active", "key", "looks_at_pods", "may_try", "number", "priority")

    def __init__(self, pod: Pod, came: float, number: int, *, is_active: bool) -> None:
        self.key = pod.key
        self.priority = pod.priority
        self.came = came
        self.number = number
        self.is_active = is_active
        self.attempts = 0
        affinity = pod.spec.affinity
        has_affinity = affinity is not None and affinity.pod_affinity is not None
        # Whether a pod that comes to a node can be what this one waits for.
        self.looks_at_pods = has_affinity or bool(pod.spec.topology_spread_constraints)
        self.may_try = came


class Queue:
    """Pods without a node, by key."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._count = 0

    def add(self, pod: Pod, at: float, *, is_active: bool = True) -> None:
        """A pod comes; one that is not active waits for a change."""
        self._entries[pod.key] = Entry(pod, at, self._count, is_active=is_active)
        self._count += 1

    def remove(self, key: str) -> None:
        """A pod was bound, or is gone."""
        self._entries.pop(key, None)

    def pop(self, at: float) -> Entry | None:
        """The next pod to try at this time; it stays, inactive."""
        ready = [entry for entry in self._entries.values() if entry.is_active and entry.may_try <= at]
        if not ready:
            return None
        first = min(ready, key=lambda entry: (-entry.priority, entry.came, entry.number))
        first.is_active = False
        first.attempts += 1
        first.may_try = at + min(_FIRST_BACKOFF * 2 ** (first.attempts - 1), _LONGEST_BACKOFF)
        return first

    def wake(self, *, for_a_new_pod: bool = False) -> None:
        """Something changed, or a pod came to a node: those whom that can help may try again, after their backoff."""
        for entry in self._entries.values():
            entry.is_active |= entry.looks_at_pods or not for_a_new_pod

    def next_try(self) -> float | None:
        """The earliest time at which an active pod may try."""
        return min((entry.may_try for entry in self._entries.values() if entry.is_active), default=None)

    def waiting(self) -> list[str]:
        """All pods that wait, in the order in which they came."""
        return list(self._entries)
