"""The scheduling queue of Kubernetes 1.13: the highest priority first, and unschedulable pods set aside.

Follows ``pkg/scheduler/internal/queue/scheduling_queue.go`` of v1.13.12, method by method. Unschedulable pods are in a
map there, whose order is random; here they keep the order in which they came, which matters for equal pods only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.pod import Pod, PodCondition, PodStatus
from kpreempt.schedulers.queues.heap import Heap
from kpreempt.schedulers.queues.nominated import NominatedPods
from kpreempt.schedulers.queues.ticks import Ticker

UNSCHEDULABLE_INTERVAL = timedelta(seconds=60)
FLUSH_PERIOD = timedelta(seconds=30)
SCHEDULED = "PodScheduled"
_ZERO_TIME = datetime.min.replace(tzinfo=UTC)


class PriorityQueue:
    """Two queues: the active one, a heap, and the pods that were tried and found unschedulable."""

    def __init__(self, started: datetime) -> None:
        """``started`` is when the scheduler started: leftovers are looked for then and every 30 s."""
        self.active: Heap[Pod] = Heap(lambda pod: pod.key, comes_first)
        self.unschedulable: dict[str, Pod] = {}
        self.nominated_pods = NominatedPods()
        self.scheduling_cycle = 0
        self.move_request_cycle = -1
        self._ticker = Ticker(started, FLUSH_PERIOD)
        self._now = started

    def advance(self, now: datetime) -> None:
        """Look for leftovers as often as the timer would have done up to ``now``."""
        while (due := self.next_flush()) is not None and due <= now:
            self.flush_unschedulable_leftover(due)
            self._now = due
        self._now = max(self._now, now)

    def next_flush(self) -> datetime | None:
        """When the timer next finds a leftover."""
        return min((time for pod in self.unschedulable.values() if (time := self.flush_time(pod))), default=None)

    def flush_time(self, pod: Pod) -> datetime | None:
        """When the timer finds that this pod is left over; never for one without a time."""
        time = pod_timestamp(pod)
        if time == _ZERO_TIME:
            return None
        return self._ticker.first_after(max(self._now, time + UNSCHEDULABLE_INTERVAL))

    def add(self, pod: Pod) -> None:
        """Add a new pod to the active queue."""
        self.active.add(pod)
        self.unschedulable.pop(pod.key, None)
        self.nominated_pods.add(pod)

    def add_if_not_present(self, pod: Pod) -> None:
        """Add a pod to the active queue, unless it is in either queue."""
        if pod.key in self.unschedulable or pod.key in self.active:
            return
        self.active.add(pod)
        self.nominated_pods.add(pod)

    def add_unschedulable_if_not_present(self, pod: Pod, pod_scheduling_cycle: int) -> bool:
        """Set aside a pod that was tried in that cycle, and whose condition says that it is unschedulable.

        Where pods were asked to move in that cycle or later, the change may help this one, too: it is active at once.
        False for a pod that is in either queue, which stays as it is.
        """
        if pod.key in self.unschedulable or pod.key in self.active:
            return False
        if pod_scheduling_cycle > self.move_request_cycle and is_unschedulable(pod):
            self.unschedulable[pod.key] = pod
        else:
            self.active.add(pod)
        self.nominated_pods.add(pod)
        return True

    def flush_unschedulable_leftover(self, now: datetime) -> None:
        """Move the pods that were last tried more than 60 s ago. Counts as a move request if there are any."""
        leftover = [
            pod
            for pod in self.unschedulable.values()
            if (time := pod_timestamp(pod)) != _ZERO_TIME and now - time > UNSCHEDULABLE_INTERVAL
        ]
        if leftover:
            self.move_pods_to_active_queue(leftover)

    def pop(self) -> Pod | None:
        """Take the head of the active queue, which begins a scheduling cycle; ``None`` where it is empty."""
        pod = self.active.pop()
        if pod is not None:
            self.scheduling_cycle += 1
        return pod

    def update(self, old: Pod, new: Pod) -> None:
        """Take a pod's new version. More than another status makes an unschedulable one active."""
        if new.key in self.active:
            self.nominated_pods.update(old, new)
            self.active.add(new)
        elif new.key in self.unschedulable:
            self.nominated_pods.update(old, new)
            if is_updated(old, new):
                del self.unschedulable[new.key]
                self.active.add(new)
            else:
                self.unschedulable[new.key] = new
        else:
            self.active.add(new)
            self.nominated_pods.add(new)

    def delete(self, pod: Pod) -> None:
        """Take the pod out of the queue that it is in, and forget its nomination."""
        self.nominated_pods.delete(pod)
        if not self.active.delete(pod.key):
            self.unschedulable.pop(pod.key, None)

    def assigned_pod_added(self, pod: Pod) -> None:
        """Move the pods whose affinity wants a pod that now has a node. Is a move request even if there are none."""
        self.move_pods_to_active_queue(self.pods_with_matching_affinity_term(pod))

    def assigned_pod_updated(self, pod: Pod) -> None:
        """Move the pods whose affinity wants a pod that was changed."""
        self.move_pods_to_active_queue(self.pods_with_matching_affinity_term(pod))

    def move_all_to_active_queue(self) -> None:
        """Move all unschedulable pods."""
        self.move_pods_to_active_queue(list(self.unschedulable.values()))

    def move_pods_to_active_queue(self, pods: Iterable[Pod]) -> None:
        """Move some unschedulable pods, and remember in which cycle that was asked for."""
        for pod in pods:
            self.active.add(pod)
            self.unschedulable.pop(pod.key, None)
        self.move_request_cycle = self.scheduling_cycle

    def pods_with_matching_affinity_term(self, pod: Pod) -> list[Pod]:
        """The unschedulable pods with a required affinity term that wants the pod."""
        return [each for each in self.unschedulable.values() if any(wants(each, term, pod) for term in terms_of(each))]


def comes_first(left: Pod, right: Pod) -> bool:
    """The order of the active queue: the higher priority, then the earlier time (``activeQComp``).

    A pod that was just tried has a late time, so one that waits for its nominated node stands behind others of its
    priority that came in the meantime.
    """
    return (-left.priority, pod_timestamp(left)) < (-right.priority, pod_timestamp(right))


def pod_timestamp(pod: Pod) -> datetime:
    """When the pod was last tried, by its condition, or else when it was created; the zero time where neither says."""
    condition = _scheduled_condition(pod)
    if condition is None:
        return pod.metadata.creation_timestamp or _ZERO_TIME
    return condition.last_probe_time or condition.last_transition_time or _ZERO_TIME


def with_probe_time(pod: Pod, time: datetime) -> Pod:
    """The pod with that time in its condition, if it has one that does not say when the pod was tried."""
    conditions = [
        msgspec.structs.replace(each, last_probe_time=each.last_probe_time or time) if each.type == SCHEDULED else each
        for each in pod.status.conditions
    ]
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=conditions))


def is_unschedulable(pod: Pod) -> bool:
    """Whether the pod's condition says so."""
    condition = _scheduled_condition(pod)
    return condition is not None and condition.status == "False" and condition.reason == "Unschedulable"


def is_updated(old: Pod, new: Pod) -> bool:
    """Whether more than the status changed (of the fields that a snapshot keeps)."""
    return _stripped(old) != _stripped(new)


def terms_of(pod: Pod) -> list[PodAffinityTerm]:
    """The pod's required affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_affinity.required if affinity and affinity.pod_affinity else []


def wants(owner: Pod, term: PodAffinityTerm, pod: Pod) -> bool:
    """Whether a term of ``owner`` is about the pod. A term without a selector is about none."""
    namespaces = term.namespaces or [owner.metadata.namespace]
    if pod.metadata.namespace not in namespaces or term.label_selector is None:
        return False
    return term.label_selector.matches(pod.metadata.labels)


def _scheduled_condition(pod: Pod) -> PodCondition | None:
    return next((each for each in pod.status.conditions if each.type == SCHEDULED), None)


def _stripped(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version="", generation=0)
    return msgspec.structs.replace(pod, metadata=metadata, status=PodStatus())
