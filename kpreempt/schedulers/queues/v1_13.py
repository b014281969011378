"""The scheduling queue of Kubernetes 1.13: the highest priority first, and unschedulable pods set aside.

Follows ``pkg/scheduler/internal/queue/scheduling_queue.go`` of v1.13.12, method by method, and the event handlers in
``pkg/scheduler/factory/factory.go`` with ``preempt`` in ``pkg/scheduler/scheduler.go``. Almost any change moves all
unschedulable pods; no pod backs off. Unschedulable pods are in a map there, whose order is random; here they keep the
order in which they came, which matters for equal pods only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, PodCondition, PodStatus
from kpreempt.schedulers.queues.heap import Heap
from kpreempt.schedulers.queues.interface import Attempt, Ticker
from kpreempt.schedulers.queues.nominated import NominatedPods
from kpreempt.verdict import Mover, MoverKind, Place, QueuedPod

# Changes of other objects that move all pods. A StorageClass does only if it binds late.
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


class Queue113:
    """The priority queue with its event handlers."""

    def __init__(self, started: datetime) -> None:
        """``started`` is when the scheduler started."""
        self.queue = PriorityQueue(started)

    @property
    def scheduling_cycle(self) -> int:
        """How many pods were popped."""
        return self.queue.scheduling_cycle

    @property
    def move_request_cycle(self) -> int:
        """In which cycle pods were last asked to move; -1 before the first time."""
        return self.queue.move_request_cycle

    def next_timer(self) -> datetime | None:
        """When the next pod is found to be left over."""
        return self.queue.next_flush()

    def advance(self, now: datetime) -> None:
        """Move what is left over."""
        self.queue.advance(now)

    def add(self, pod: Pod, now: datetime) -> None:
        """``addPodToSchedulingQueue``."""
        self.queue.add(pod)

    def restore(self, pod: Pod, attempt: Attempt, time: datetime) -> None:
        """Set the pod aside where its condition says that it is unschedulable, as tried at ``time``."""
        self.queue.add_unschedulable_if_not_present(with_probe_time(pod, time), 0)

    def update(self, old: Pod, new: Pod, now: datetime) -> None:
        """``updatePodInSchedulingQueue``; a pod in flight comes into the queue by it, too."""
        self.queue.update(old, new)

    def delete(self, pod: Pod, now: datetime, *, is_bound: bool = False) -> None:
        """``deletePodFromSchedulingQueue``."""
        self.queue.delete(pod)

    def assigned_pod_added(self, pod: Pod, now: datetime) -> None:
        """``addPodToCache``."""
        self.queue.assigned_pod_added(pod)

    def assigned_pod_updated(self, old: Pod, new: Pod, now: datetime) -> None:
        """``updatePodInCache``."""
        self.queue.assigned_pod_updated(new)

    def assigned_pod_deleted(self, pod: Pod, now: datetime) -> None:
        """``deletePodFromCache``."""
        self.queue.move_all_to_active_queue()

    def node_added(self, node: Node, now: datetime) -> None:
        """``addNodeToCache``."""
        self.queue.move_all_to_active_queue()

    def node_updated(self, old: Node, new: Node, now: datetime) -> None:
        """``updateNodeInCache``: where the node may take more pods now, and as a move request for pods in flight."""
        if not self.queue.unschedulable or scheduling_properties_changed(old, new):
            self.queue.move_all_to_active_queue()

    def node_deleted(self, node: Node, now: datetime) -> None:
        """Nothing: that helps no pod."""

    def object_changed(self, resource: str, action: str, now: datetime) -> None:
        """``onPvAdd`` and the like."""
        if (resource, action) in _MOVING_CHANGES:
            self.queue.move_all_to_active_queue()

    def move_all(self, now: datetime) -> None:
        """``MoveAllToActiveQueue``."""
        self.queue.move_all_to_active_queue()

    def pop(self, now: datetime) -> Pod | None:
        """``Pop``."""
        return self.queue.pop()

    def add_unschedulable(self, pod: Pod, attempt: Attempt, now: datetime) -> None:
        """``MakeDefaultErrorFunc``, with the pod as the API server has it by then."""
        self.queue.add_unschedulable_if_not_present(pod, attempt.cycle)

    def done(self, pod: Pod, now: datetime) -> None:
        """Nothing: pods in flight are not tracked."""

    def nominate(self, pod: Pod, node_name: str, now: datetime) -> None:
        """``UpdateNominatedPodForNode``."""
        self.queue.nominated_pods.add(pod, node_name)

    def clear_nomination(self, pod: Pod, now: datetime) -> None:
        """``DeleteNominatedPodIfExists``."""
        self.queue.nominated_pods.delete(pod)

    def activate(self, pod: Pod, now: datetime) -> None:
        """Nothing: plugins cannot ask for that yet."""

    def assumed_hints(self) -> list[tuple[str, str]]:
        return []

    def nominated(self) -> dict[str, list[str]]:
        """The nominated pods of each node."""
        return self.queue.nominated_pods.by_node()

    def names(self) -> Iterable[str]:
        """Every pod that waits."""
        return (each.pod for each in self.pods())

    def pods(self) -> list[QueuedPod]:
        """The active queue in order, then the unschedulable pods, which have none."""
        active = [
            self._queued(pod, Place.ACTIVE, [Mover(MoverKind.POP)], position)
            for position, pod in enumerate(self.queue.active.in_order(), start=1)
        ]
        return active + [
            self._queued(pod, Place.UNSCHEDULABLE, self._movers(pod)) for pod in self.queue.unschedulable.values()
        ]

    def _queued(self, pod: Pod, place: Place, movers: list[Mover], position: int | None = None) -> QueuedPod:
        time = pod_timestamp(pod)
        return QueuedPod(
            pod=pod.key,
            priority=pod.priority,
            place=place,
            position=position,
            time=time if time.year > 1 else None,
            nominated_node_name=self.queue.nominated_pods.node_of(pod),
            moved_by=movers,
        )

    def _movers(self, pod: Pod) -> list[Mover]:
        flush = self.queue.flush_time(pod)
        return [
            *([Mover(MoverKind.FLUSH, flush)] if flush else []),
            Mover(MoverKind.CLUSTER_EVENT, events=MOVING_EVENTS),
            *([Mover(MoverKind.MATCHING_POD)] if terms_of(pod) else []),
            Mover(MoverKind.OWN_UPDATE),
        ]


def scheduling_properties_changed(old: Node, new: Node) -> bool:
    """Whether a node may take pods now that it did not take before (``nodeSchedulingPropertiesChanged``)."""
    return (
        (old.spec.unschedulable and not new.spec.unschedulable)
        or old.status.allocatable != new.status.allocatable
        or old.labels != new.labels
        or old.spec.taints != new.spec.taints
        or {each.type: each.status for each in old.status.conditions}
        != {each.type: each.status for each in new.status.conditions}
    )


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
