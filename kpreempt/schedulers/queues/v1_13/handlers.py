"""What reaches the scheduling queue of Kubernetes 1.13, and what would move its pods.

Follows the event handlers in ``pkg/scheduler/factory/factory.go`` and ``preempt`` in ``pkg/scheduler/scheduler.go`` of
v1.13.12. Almost any change moves all unschedulable pods; no pod backs off.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.queues.interface import Attempt
from kpreempt.schedulers.queues.v1_13.queue import PriorityQueue, pod_timestamp, terms_of, with_probe_time
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
