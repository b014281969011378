"""Queues of Workloads that wait: who is next, who is parked, and what brings the parked ones back.

Follows ``pkg/cache/queue/cluster_queue.go`` and ``inadmissible_workloads.go`` of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Callable

from kpreempt.schedulers.kueue.workloads import REQUEUED, Info, milliseconds

FAILED_AFTER_NOMINATION = "FailedAfterNomination"
NAMESPACE_MISMATCH = "NamespaceMismatch"
PENDING_PREEMPTION = "PendingPreemption"
NO_FIT = "NoFit"
PREEMPTION_NO_CANDIDATES = "PreemptionNoCandidates"

_AT_ONCE = frozenset({FAILED_AFTER_NOMINATION, PENDING_PREEMPTION})
_ALIKE = frozenset({NO_FIT, PREEMPTION_NO_CANDIDATES})


class PendingQueue:
    """The Workloads that wait for a ClusterQueue."""

    def __init__(self, name: str, *, is_strict: bool) -> None:
        self.name = name
        self.is_strict = is_strict
        self.heap: dict[str, Info] = {}
        self.parked: dict[str, Info] = {}
        self.in_flight: Info | None = None
        # Who preempts at present; in BestEffortFIFO it stays first.
        self.preemptor = ""
        self._parked_shapes: set[str] = set()

    def order_of(self, info: Info) -> tuple[bool, int, int, str]:
        """By which Workloads are next."""
        is_sticky = not self.is_strict and info.key == self.preemptor
        return not is_sticky, -info.effective_priority, info.queued_since, info.uid

    def enter(self, info: Info, now: int) -> None:
        """Let a Workload in that is new or came back."""
        self.parked.pop(info.key, None)
        is_known = not self.is_strict and info.shape is not None and info.shape in self._parked_shapes
        if info.key not in self.heap and (is_known or not _is_due(info, now)):
            self.parked[info.key] = info
        else:
            self.heap[info.key] = info

    def pop(self) -> Info | None:
        """The head, which is decided about now."""
        self.in_flight = None
        if self.heap:
            self.in_flight = min(self.heap.values(), key=self.order_of)
            del self.heap[self.in_flight.key]
        return self.in_flight

    def forget(self, key: str) -> None:
        """Let a Workload go that waits no longer."""
        self.heap.pop(key, None)
        self.parked.pop(key, None)
        if self.in_flight is not None and self.in_flight.key == key:
            self.in_flight = None
        if self.preemptor == key:
            self.preemptor = ""

    def requeue(self, info: Info, reason: str, now: int) -> None:
        """Take the head back, which was not admitted."""
        if reason == PENDING_PREEMPTION:
            self.preemptor = info.key
        self.in_flight = None
        at_once = reason != NAMESPACE_MISMATCH if self.is_strict else reason in _AT_ONCE
        has_pending = info.memory is not None and info.memory.has_pending
        if _is_due(info, now) and (at_once or has_pending):
            self.heap[info.key] = info
            return
        self.parked[info.key] = info
        shape = info.shape
        if reason in _ALIKE and shape is not None and not self.is_strict:
            self._parked_shapes.add(shape)
            for key in [key for key, each in self.heap.items() if each.shape == shape]:
                self.parked[key] = self.heap.pop(key)

    def retry(self, may_return: Callable[[Info], bool], now: int) -> None:
        """Bring the parked ones back, but those that wait for their time or whose namespace does not match."""
        self._parked_shapes.clear()
        for key in [key for key, each in self.parked.items() if may_return(each) and _is_due(each, now)]:
            self.heap[key] = self.parked.pop(key)

    def in_order(self) -> list[Info]:
        """All that wait, with the one in flight."""
        flying = [] if self.in_flight is None else [self.in_flight]
        return sorted([*self.heap.values(), *self.parked.values(), *flying], key=self.order_of)


def _is_due(info: Info, now: int) -> bool:
    """Whether a Workload's backoff is over."""
    requeued = info.conditions.get(REQUEUED)
    if requeued is not None and requeued.status == "False":
        return False
    state = info.workload.status.requeue_state
    return state is None or state.requeue_at is None or now >= milliseconds(state.requeue_at)
