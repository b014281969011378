"""The order in which the scheduling queue would try pending pods, as far as the cluster shows.

Follows ``pkg/scheduler/framework/plugins/queuesort/priority_sort.go`` and ``backend/queue/scheduling_queue.go`` of
v1.36.3: higher priority first, then earlier time. That is the time when the pod entered the queue or, after a failed
attempt, when it failed (``AddUnschedulableIfNotPresent``). The scheduler keeps it in memory only: here it is taken from
the last event about a failed attempt, or else from the pod's condition, which has the time of the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cmp_to_key
from typing import NamedTuple

from kpreempt.model.event import FAILED_SCHEDULING, Event, autoscaler_of
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.schedulers.interface import Less, WaitingPod
from kpreempt.verdict.pending import QueueTimeSource

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)
_POD_SCHEDULED = "PodScheduled"


class QueueTime(NamedTuple):
    """The time that orders pods of equal priority, and its source."""

    time: datetime | None
    source: QueueTimeSource


class FailedAttempts:
    """The last failed scheduling attempts of pods, from the events of the scheduler in their spec.

    Autoscalers report events with the same reason about pods that they cannot help.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        # By pod and scheduler, which is empty if the event does not say who reported it.
        self._last: dict[tuple[str, str], datetime] = {}
        # Those with a repeated event: not every repetition is recorded when it happens.
        self._repeated: set[tuple[str, str]] = set()
        # Those with a series, which is updated every 30 minutes, or 6 minutes after its end (``tools/events`` of
        # client-go v0.36.3).
        self._series: set[tuple[str, str]] = set()
        for event in events:
            time = event.last_time
            if event.reason != FAILED_SCHEDULING or time is None or autoscaler_of(event) is not None:
                continue
            # An earlier pod with the same name had another UID.
            key = event.subject.uid or event.subject.key, event.reporter
            self._last[key] = max(self._last.get(key, time), time)
            if event.series is not None or event.event_time is None:
                self._repeated.add(key)
            if event.series is not None:
                self._series.add(key)

    def last_of(self, pod: Pod) -> datetime | None:
        """The pod's last failed attempt according to events."""
        return max((self._last[key] for key in self._keys_of(pod)), default=None)

    def is_exact(self, pod: Pod) -> bool:
        """Whether events show when the pod was last tried: there are some, and none was repeated."""
        keys = self._keys_of(pod)
        return bool(keys) and self._repeated.isdisjoint(keys)

    def may_be_later(self, pod: Pod) -> bool:
        """Whether the last attempt may be later than the events show."""
        return not self._series.isdisjoint(self._keys_of(pod))

    def _keys_of(self, pod: Pod) -> list[tuple[str, str]]:
        names = (pod.metadata.uid, pod.key) if pod.metadata.uid else (pod.key,)
        keys = [(name, scheduler) for name in names for scheduler in (pod.spec.scheduler_name, "")]
        return [key for key in keys if key in self._last]


def rejection_of(pod: Pod) -> PodCondition | None:
    """The condition that says that the scheduler could not place the pod."""
    return next(
        (
            each
            for each in pod.status.conditions
            if each.type == _POD_SCHEDULED and each.status == "False" and each.reason != "SchedulingGated"
        ),
        None,
    )


def queue_time(pod: Pod, attempts: FailedAttempts) -> QueueTime:
    """The time by which the queue orders the pod, as far as it is known."""
    last = attempts.last_of(pod)
    if last is not None:
        return QueueTime(last, QueueTimeSource.EVENT)
    rejection = rejection_of(pod)
    if rejection is not None and rejection.last_transition_time is not None:
        return QueueTime(rejection.last_transition_time, QueueTimeSource.CONDITION)
    created = pod.metadata.creation_timestamp
    return QueueTime(created, QueueTimeSource.CREATION if created else QueueTimeSource.NONE)


def in_queue_order(pods: Sequence[Pod], attempts: FailedAttempts, is_before: Less | None = None) -> list[Pod]:
    """The pods in queue order; equal ones keep the order of the snapshot.

    ``is_before`` replaces PrioritySort, and may raise ``PluginFailedError``. If it is inconsistent, the order is
    arbitrary.
    """
    if is_before is None:
        return sorted(pods, key=lambda pod: (-pod.priority, _time_of(pod, attempts)))

    def compared(one: WaitingPod, other: WaitingPod) -> int:
        return -1 if is_before(one, other) else 0

    waiting = [WaitingPod(pod, _time_of(pod, attempts)) for pod in pods]
    return [each.pod for each in sorted(waiting, key=cmp_to_key(compared))]


def _time_of(pod: Pod, attempts: FailedAttempts) -> datetime:
    return queue_time(pod, attempts).time or _END_OF_TIME
