"""What the queue records about a pod, the backoff before a retry, and the queue of pods that are backing off.

Follows ``pkg/scheduler/framework/types.go`` (``QueuedPodInfo``) and ``backend/queue/backoff_queue.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from kpreempt.model.pod import Pod
from kpreempt.schedulers.queues.heap import Heap

DEFAULT_INITIAL_BACKOFF = timedelta(seconds=1)
DEFAULT_MAX_BACKOFF = timedelta(seconds=10)
NO_BACKOFF = datetime.min.replace(tzinfo=UTC)


class QueuedPodInfo:
    """A pod with its attempts.

    ``timestamp`` is when it was queued or last returned; ``cycle`` is the cycle of its last attempt.
    ``unschedulable_count`` counts attempts in which plugins rejected it, ``consecutive_errors_count`` the later ones
    that ended with an error. ``gating_plugin`` keeps it out of the active queue. ``backoff_expiration`` is computed on
    first use, and reset by an attempt.
    """

    def __init__(self, pod: Pod, timestamp: datetime) -> None:
        self.pod = pod
        self.timestamp = timestamp
        self.attempts = 0
        self.cycle = 0
        self.unschedulable_count = 0
        self.consecutive_errors_count = 0
        self.backoff_expiration: datetime | None = None
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.gating_plugin = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.pod.key

    @property
    def rejector_plugins(self) -> set[str]:
        """The plugins that rejected the pod in its last attempt, or that gate it."""
        return self.unschedulable_plugins | self.pending_plugins


def is_before(left: QueuedPodInfo, right: QueuedPodInfo) -> bool:
    """Return whether ``left`` is tried first, as in PrioritySort: the higher priority, then the earlier timestamp."""
    return (-left.pod.priority, left.timestamp) < (-right.pod.priority, right.timestamp)


class BackoffQueue:
    """Two heaps by backoff expiration: pods that plugins rejected, and pods whose attempt ended with an error.

    With ``pops`` (gate SchedulerPopFromBackoffQ), times are truncated to whole seconds, pods with the same second are
    in the order of the active queue, and an idle scheduler takes a pod from the first heap.
    """

    def __init__(
        self,
        initial_backoff: timedelta,
        max_backoff: timedelta,
        *,
        pops: bool,
        is_before: Callable[[QueuedPodInfo, QueuedPodInfo], bool] = is_before,
        counts_attempts: bool = False,
    ) -> None:
        """``is_before`` is the order of the active queue.

        If it ``counts_attempts``, every attempt lengthens the backoff, whatever its result.
        """
        self._counts_attempts = counts_attempts
        self.initial_backoff = initial_backoff
        self.max_backoff = max_backoff
        self._pops = pops
        self._is_before = is_before
        self.pods: Heap[QueuedPodInfo] = Heap(lambda info: info.key, self._ends_first_or_is_prior)
        self.error_pods: Heap[QueuedPodInfo] = Heap(
            lambda info: info.key, lambda left, right: self.backoff_time(left) < self.backoff_time(right)
        )

    def is_backing_off(self, info: QueuedPodInfo, now: datetime) -> bool:
        """Return whether the pod still waits; a pod whose backoff ends in the current second does."""
        return self.backoff_time(info) >= self._aligned(now)

    def backoff_time(self, info: QueuedPodInfo) -> datetime:
        """Return when the pod's backoff ends; ``NO_BACKOFF`` for a pod that never failed, or without backoff."""
        failures = info.consecutive_errors_count or info.unschedulable_count
        count = info.attempts if self._counts_attempts else failures
        if not self.max_backoff or not count:
            return NO_BACKOFF
        if info.backoff_expiration is None:
            info.backoff_expiration = self._aligned(info.timestamp + self.duration(count))
        return info.backoff_expiration

    def duration(self, count: int) -> timedelta:
        """Return the backoff after this many failures: doubled each time, up to the limit."""
        if count == 0:
            return timedelta(0)
        if self.initial_backoff < timedelta(0):
            # Too many seconds for a duration, which has wrapped around.
            return self.initial_backoff
        # More than 60 doublings exceed any limit, and the range of a duration.
        factor = 1 << min(count - 1, 60)
        return self.max_backoff if self.initial_backoff > self.max_backoff / factor else self.initial_backoff * factor

    def pop_all_completed(self, now: datetime) -> list[QueuedPodInfo]:
        """Remove and return the pods whose backoff has ended, those that plugins rejected first."""
        completed: list[QueuedPodInfo] = []
        for heap in (self.pods, self.error_pods):
            while (info := heap.peek()) is not None and not self.is_backing_off(info, now):
                heap.pop()
                completed.append(info)
        return completed

    def next_completion(self) -> datetime | None:
        """Return when the first backoff ends."""
        heads = (heap.peek() for heap in (self.pods, self.error_pods))
        return min((self.backoff_time(info) for info in heads if info is not None), default=None)

    def add(self, info: QueuedPodInfo) -> None:
        """Add a pod to the appropriate heap."""
        home, other = (self.pods, self.error_pods) if info.rejector_plugins else (self.error_pods, self.pods)
        home.add(info)
        other.delete(info.key)

    def delete(self, key: str) -> bool:
        """Remove a pod; return False if it is not here."""
        return self.pods.delete(key) or self.error_pods.delete(key)

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the pod with that name, if it is here."""
        return self.pods.get(key) or self.error_pods.get(key)

    def _aligned(self, time: datetime) -> datetime:
        return time.replace(microsecond=0) if self._pops else time

    def _ends_first_or_is_prior(self, left: QueuedPodInfo, right: QueuedPodInfo) -> bool:
        left_end, right_end = self.backoff_time(left), self.backoff_time(right)
        return self._is_before(left, right) if self._pops and left_end == right_end else left_end < right_end
