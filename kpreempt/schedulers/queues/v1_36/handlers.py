"""What reaches the scheduling queue of Kubernetes 1.36.

Follows ``pkg/scheduler/eventhandlers.go`` and ``handleSchedulingFailure`` in ``schedule_one.go`` of v1.36.3. Pods that
are assumed on a node are not told from others in flight.
"""

from __future__ import annotations

from datetime import datetime

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.queues.interface import Attempt
from kpreempt.schedulers.queues.v1_36.cluster_events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    MOVE_ALL,
    NODE_ADD,
    NODE_DELETE,
    Action,
    ClusterEvent,
    node_changes,
    pod_changes,
)
from kpreempt.schedulers.queues.v1_36.description import queued_pods
from kpreempt.schedulers.queues.v1_36.in_flight import Happening
from kpreempt.schedulers.queues.v1_36.pod_info import QueuedPodInfo
from kpreempt.schedulers.queues.v1_36.queue import PriorityQueue
from kpreempt.verdict import QueuedPod

_ACTIONS = {"Add": Action.ADD, "Update": Action.UPDATE, "Delete": Action.DELETE}


class Queue136:
    """The priority queue with its event handlers."""

    def __init__(self, queue: PriorityQueue) -> None:
        self.queue = queue
        self._popped: dict[str, QueuedPodInfo] = {}

    @property
    def scheduling_cycle(self) -> int:
        """How many pods were popped."""
        return self.queue.scheduling_cycle

    @property
    def move_request_cycle(self) -> int:
        """In which cycle pods were last asked to move; -1 before the first time. Nothing depends on it any more."""
        return self.queue.move_request_cycle

    def next_timer(self) -> datetime | None:
        """When the next backoff ends, or the next pod is found to be left over."""
        return self.queue.next_timer()

    def advance(self, now: datetime) -> None:
        """Move pods whose backoff has ended, and what is left over."""
        self.queue.advance(now)

    def add(self, pod: Pod, now: datetime) -> None:
        """``addPodToSchedulingQueue``."""
        self.queue.add(pod, now)

    def restore(self, pod: Pod, attempt: Attempt, time: datetime) -> None:
        """Set the pod aside, as one that was tried so often that its backoff is the longest."""
        info = QueuedPodInfo(pod, time)
        info.unschedulable_plugins, info.pending_plugins = set(attempt.plugins), set(attempt.pending)
        self.queue.restore(info, time)

    def update(self, old: Pod, new: Pod, now: datetime) -> None:
        """``updatePodInSchedulingQueue``; one that loses a nomination leaves room, as if it had left its node."""
        self.queue.update(old, new, now)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._leaves_nominated_node(old, now)

    def delete(self, pod: Pod, now: datetime, *, is_bound: bool = False) -> None:
        """``deletePodFromSchedulingQueue``."""
        self.queue.delete(pod)
        if not is_bound and pod.status.nominated_node_name:
            self._leaves_nominated_node(pod, now)

    def assigned_pod_added(self, pod: Pod, now: datetime) -> None:
        """``addAssignedPodToCache``."""
        self.queue.move_all(Happening(ASSIGNED_POD_ADD, None, pod), now)

    def assigned_pod_updated(self, old: Pod, new: Pod, now: datetime) -> None:
        """``updateAssignedPodInCache``."""
        for event in pod_changes(old, new):
            self.queue.move_all(Happening(event, old, new), now)

    def assigned_pod_deleted(self, pod: Pod, now: datetime) -> None:
        """``deleteAssignedPodFromCache``."""
        self.queue.move_all(Happening(ASSIGNED_POD_DELETE, pod, None), now)

    def node_added(self, node: Node, now: datetime) -> None:
        """``addNodeToCache``."""
        self.queue.move_all(Happening(NODE_ADD, None, node), now)

    def node_updated(self, old: Node, new: Node, now: datetime) -> None:
        """``updateNodeInCache``."""
        for event in node_changes(old, new):
            self.queue.move_all(Happening(event, old, new), now)

    def node_deleted(self, node: Node, now: datetime) -> None:
        """``deleteNodeFromCache``."""
        self.queue.move_all(Happening(NODE_DELETE, node, None), now)

    def object_changed(self, resource: str, action: str, now: datetime) -> None:
        """The handlers of all other kinds."""
        self.queue.move_all(Happening(ClusterEvent(resource, _ACTIONS[action])), now)

    def move_all(self, now: datetime) -> None:
        """``MoveAllToActiveOrBackoffQueue`` with an event that concerns all pods."""
        self.queue.move_all(Happening(MOVE_ALL), now)

    def pop(self, now: datetime) -> Pod | None:
        """``Pop``."""
        info = self.queue.pop()
        if info is None:
            return None
        self._popped[info.key] = info
        return info.pod

    def add_unschedulable(self, pod: Pod, attempt: Attempt, now: datetime) -> None:
        """``handleSchedulingFailure``, with the pod as the cluster has it by then."""
        info = self._popped.pop(pod.key, None) or QueuedPodInfo(pod, now)
        info.pod = pod
        info.unschedulable_plugins, info.pending_plugins = set(attempt.plugins), set(attempt.pending)
        self.queue.add_unschedulable_if_not_present(info, now)

    def done(self, pod: Pod, now: datetime) -> None:
        """``Done``."""
        self._popped.pop(pod.key, None)
        self.queue.done(pod)

    def nominate(self, pod: Pod, node_name: str, now: datetime) -> None:
        """``AddNominatedPod``; a pod that has a node by now is not nominated."""
        if not pod.spec.node_name:
            self.queue.nominator.add(pod, node_name)

    def clear_nomination(self, pod: Pod, now: datetime) -> None:
        """``DeleteNominatedPodIfExists``."""
        self.queue.nominator.delete(pod)

    def activate(self, pod: Pod, now: datetime) -> None:
        """``Activate``."""
        self.queue.activate(pod)

    def assumed_hints(self) -> list[tuple[str, str]]:
        """The plugins and events whose hint is not modelled, of those that moved a pod."""
        return sorted(self.queue.unmodelled_hints)

    def nominated(self) -> dict[str, list[str]]:
        """The nominated pods of each node."""
        return self.queue.nominator.by_node()

    def pods(self) -> list[QueuedPod]:
        """The three queues: those with an order in it, then the unschedulable and the gated pods."""
        return queued_pods(self.queue)

    def _leaves_nominated_node(self, pod: Pod, now: datetime) -> None:
        """The room that was kept for the pod is free for those that had to respect it (``getLEPriorityPreCheck``)."""
        left = Happening(ASSIGNED_POD_DELETE, pod, None)
        self.queue.move_all(left, now, lambda other: other.priority <= pod.priority)
