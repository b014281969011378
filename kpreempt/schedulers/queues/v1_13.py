"""The scheduling queue of Kubernetes 1.13: an active queue by priority, and a map of unschedulable pods.

Follows ``pkg/scheduler/internal/queue/scheduling_queue.go`` of v1.13.12, method by method, and the event handlers in
``pkg/scheduler/factory/factory.go`` with ``preempt`` in ``pkg/scheduler/scheduler.go``. Almost any change moves all
unschedulable pods; no pod backs off. Upstream's map of unschedulable pods has a random order; here they keep insertion
order, which only matters for equal pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, PodCondition, PodStatus
from kpreempt.schedulers.queues.heap import Heap
from kpreempt.schedulers.queues.interface import Attempt, NominatedPods, SchedulingQueue, Ticker
from kpreempt.verdict.queue import Mover, MoverKind, QueuedPod, QueueName

# Changes of other objects that move all pods. A StorageClass does only with late binding.
_MOVING_CHANGES = frozenset(
    (
        ("PersistentVolume", "Add"),
        ("PersistentVolume", "Update"),
        ("PersistentVolumeClaim", "Add"),
        ("PersistentVolumeClaim", "Update"),
        ("Service", "Add"),
        ("Service", "Update"),
        ("Service", "Delete"),
        ("StorageClass", "Add"),
    )
)
MOVING_EVENTS: dict[str, list[str]] = {
    name: []
    for name in (
        "AssignedPodDelete",
        "NodeAdd",
        "NodeUpdate",
        *(f"{resource}{action}" for resource, action in sorted(_MOVING_CHANGES)),
    )
}


UNSCHEDULABLE_INTERVAL = timedelta(seconds=60)
FLUSH_PERIOD = timedelta(seconds=30)
SCHEDULED = "PodScheduled"
_ZERO_TIME = datetime.min.replace(tzinfo=UTC)


class Queue113(SchedulingQueue):
    """The active queue, a heap, and the pods that were tried and found unschedulable."""

    scheduling_cycle: int
    move_request_cycle: int
    nominator: NominatedPods

    def __init__(self, started: datetime) -> None:
        """``started`` is when the scheduler started, which determines the 30 s period of the leftover timer."""
        self.active: Heap[Pod] = Heap(lambda pod: pod.key, is_before)
        self.unschedulable: dict[str, Pod] = {}
        self.nominator = NominatedPods()
        self.scheduling_cycle = 0
        self.move_request_cycle = -1
        self._ticker = Ticker(started, FLUSH_PERIOD)
        self._now = started

    def next_timer(self) -> datetime | None:
        """Return when the timer next finds a leftover."""
        return min((time for pod in self.unschedulable.values() if (time := self._flush_time(pod))), default=None)

    def _flush_time(self, pod: Pod) -> datetime | None:
        """Return when the timer moves this pod as a leftover; ``None`` for a pod without a time."""
        time = pod_timestamp(pod)
        if time == _ZERO_TIME:
            return None
        return self._ticker.first_after(max(self._now, time + UNSCHEDULABLE_INTERVAL))

    def advance(self, now: datetime) -> None:
        """Run the leftover timer up to ``now``.

        Leftovers are pods last tried more than 60 s ago. If there are any, this is a move request.
        """
        while (due := self.next_timer()) is not None and due <= now:
            leftover = [
                pod
                for pod in self.unschedulable.values()
                if (time := pod_timestamp(pod)) != _ZERO_TIME and due - time > UNSCHEDULABLE_INTERVAL
            ]
            if leftover:
                self._move_to_active_queue(leftover)
            self._now = due
        self._now = max(self._now, now)

    def add(self, pod: Pod, now: datetime) -> None:
        """``addPodToSchedulingQueue``: add a new pod to the active queue."""
        self.active.add(pod)
        self.unschedulable.pop(pod.key, None)
        self.nominator.add(pod)

    def restore(self, pod: Pod, attempt: Attempt, time: datetime, moved_at: datetime | None = None) -> None:
        """Add the pod as unschedulable if its condition says so, with ``time`` as its last attempt."""
        if moved_at is not None:
            self.add(pod, time)
            return
        conditions = [
            msgspec.structs.replace(each, last_probe_time=each.last_probe_time or time)
            if each.type == SCHEDULED
            else each
            for each in pod.status.conditions
        ]
        status = msgspec.structs.replace(pod.status, conditions=conditions)
        self.add_unschedulable(msgspec.structs.replace(pod, status=status), Attempt(), time)

    def add_unschedulable(self, pod: Pod, attempt: Attempt, now: datetime) -> None:
        """``MakeDefaultErrorFunc``, with the pod as in the API server at that time.

        A pod that was tried in that cycle, and whose condition says that it is unschedulable, is added as such. If a
        move was requested in that cycle or later, the change may help this pod, so it becomes active at once. A pod
        that is in either queue stays there.
        """
        if pod.key in self.unschedulable or pod.key in self.active:
            return
        condition = _scheduled_condition(pod)
        is_rejected = condition is not None and (condition.status, condition.reason) == ("False", "Unschedulable")
        if attempt.cycle > self.move_request_cycle and is_rejected:
            self.unschedulable[pod.key] = pod
        else:
            self.active.add(pod)
        self.nominator.add(pod)

    def pop(self, now: datetime) -> Pod | None:
        """Pop the head of the active queue, which starts a scheduling cycle; ``None`` if it is empty."""
        pod = self.active.pop()
        if pod is not None:
            self.scheduling_cycle += 1
        return pod

    def update(self, old: Pod, new: Pod, now: datetime) -> None:
        """``updatePodInSchedulingQueue``: a change outside of the status makes an unschedulable pod active.

        A pod in flight is added to the queue, too.
        """
        if new.key in self.active:
            self.nominator.update(old, new)
            self.active.add(new)
        elif new.key in self.unschedulable:
            self.nominator.update(old, new)
            self.unschedulable[new.key] = new
            if _stripped(old) != _stripped(new):
                del self.unschedulable[new.key]
                self.active.add(new)
        else:
            self.active.add(new)
            self.nominator.add(new)

    def delete(self, pod: Pod, now: datetime, *, is_bound: bool = False) -> None:
        """Remove the pod from its queue, and drop its nomination."""
        self.nominator.delete(pod)
        if not self.active.delete(pod.key):
            self.unschedulable.pop(pod.key, None)

    def assigned_pod_changed(self, old: Pod | None, new: Pod | None, now: datetime) -> None:
        """``addPodToCache``, ``updatePodInCache`` and ``deletePodFromCache``.

        A new or changed pod moves the pods whose affinity matches it, and is a move request even if there are none.
        """
        if new is None:
            self.move_all(now)
            return
        wanting = [
            each
            for each in self.unschedulable.values()
            if any(matches_term(each, term, new) for term in terms_of(each))
        ]
        self._move_to_active_queue(wanting)

    def node_changed(self, old: Node | None, new: Node | None, now: datetime) -> None:
        """``addNodeToCache`` and ``updateNodeInCache``; a deleted node helps no pod.

        A change is a move request, also for pods in flight, if the node may take more pods now.
        """
        if new is None:
            return
        if old is None or not self.unschedulable or scheduling_properties_changed(old, new):
            self.move_all(now)

    def object_changed(self, resource: str, action: str, now: datetime) -> None:
        """``onPvAdd`` and similar handlers."""
        if (resource, action) in _MOVING_CHANGES:
            self.move_all(now)

    def move_all(self, now: datetime) -> None:
        """Move all unschedulable pods."""
        self._move_to_active_queue(list(self.unschedulable.values()))

    def _move_to_active_queue(self, pods: Iterable[Pod]) -> None:
        """Move some unschedulable pods, and remember the cycle of the request."""
        for pod in pods:
            self.active.add(pod)
            self.unschedulable.pop(pod.key, None)
        self.move_request_cycle = self.scheduling_cycle

    def nominate(self, pod: Pod, node_name: str, now: datetime) -> None:
        """``UpdateNominatedPodForNode``."""
        self.nominator.add(pod, node_name)

    def pods(self) -> list[QueuedPod]:
        """Return the active queue in order, then the unschedulable pods, which have no order."""
        active = [
            self._queued(pod, QueueName.ACTIVE, [Mover(MoverKind.POP)], position)
            for position, pod in enumerate(self.active.in_order(), start=1)
        ]
        aside = []
        for pod in self.unschedulable.values():
            flush = self._flush_time(pod)
            movers = [
                *([Mover(MoverKind.FLUSH, flush)] if flush else []),
                Mover(MoverKind.CLUSTER_EVENT, events=MOVING_EVENTS),
                *([Mover(MoverKind.MATCHING_POD)] if terms_of(pod) else []),
                Mover(MoverKind.OWN_UPDATE),
            ]
            aside.append(self._queued(pod, QueueName.UNSCHEDULABLE, movers))
        return active + aside

    def _queued(self, pod: Pod, place: QueueName, movers: list[Mover], position: int | None = None) -> QueuedPod:
        time = pod_timestamp(pod)
        return QueuedPod(
            pod=pod.key,
            priority=pod.priority,
            queue=place,
            position=position,
            time=time if time.year > 1 else None,
            nominated_node_name=self.nominator.node_of(pod),
            moved_by=movers,
        )


def scheduling_properties_changed(old: Node, new: Node) -> bool:
    """Return whether a node may take pods that it did not take before (``nodeSchedulingPropertiesChanged``)."""
    return (
        (old.spec.unschedulable and not new.spec.unschedulable)
        or old.status.allocatable != new.status.allocatable
        or old.labels != new.labels
        or old.spec.taints != new.spec.taints
        or {each.type: each.status for each in old.status.conditions}
        != {each.type: each.status for each in new.status.conditions}
    )


def is_before(left: Pod, right: Pod) -> bool:
    """Order the active queue: higher priority first, then the earlier time (``activeQComp``).

    A pod that was just tried has a late time, so a pod that waits for its nominated node comes after others of its
    priority that were created in the meantime.
    """
    return (-left.priority, pod_timestamp(left)) < (-right.priority, pod_timestamp(right))


def pod_timestamp(pod: Pod) -> datetime:
    """Return when the pod was last tried, by its condition, or created; the zero time if neither is set."""
    condition = _scheduled_condition(pod)
    if condition is None:
        return pod.metadata.creation_timestamp or _ZERO_TIME
    return condition.last_probe_time or condition.last_transition_time or _ZERO_TIME


def terms_of(pod: Pod) -> list[PodAffinityTerm]:
    """Return the pod's required affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_affinity.required if affinity and affinity.pod_affinity else []


def matches_term(owner: Pod, term: PodAffinityTerm, pod: Pod) -> bool:
    """Return whether a term of ``owner`` matches the pod. A term without a selector matches none."""
    namespaces = term.namespaces or [owner.metadata.namespace]
    is_there = pod.metadata.namespace in namespaces
    return is_there and term.label_selector is not None and term.label_selector.matches(pod.metadata.labels)


def _scheduled_condition(pod: Pod) -> PodCondition | None:
    return next((each for each in pod.status.conditions if each.type == SCHEDULED), None)


def _stripped(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version="", generation=0)
    return msgspec.structs.replace(pod, metadata=metadata, status=PodStatus())
