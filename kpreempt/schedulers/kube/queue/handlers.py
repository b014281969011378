"""What reaches the scheduling queue, where each pod of it waits, and what would move it.

Follows ``pkg/scheduler/eventhandlers.go`` and ``handleSchedulingFailure`` in ``schedule_one.go`` of v1.36.3. Pods that
are assumed on a node are not told from others in flight.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import chain

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.interface import NO_RULES, QueueRules
from kpreempt.schedulers.kube.framework.events import ASSIGNED_POD, NODE, POD, Action, ClusterEvent
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.hints import wants
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kpreempt.schedulers.kube.plugins.pod_topology_spread.plugin import PodTopologySpread
from kpreempt.schedulers.kube.plugins.scheduling_gates import SchedulingGates
from kpreempt.schedulers.kube.queue.backoff import (
    DEFAULT_INITIAL_BACKOFF,
    DEFAULT_MAX_BACKOFF,
    NO_BACKOFF,
    QueuedPodInfo,
)
from kpreempt.schedulers.kube.queue.queue import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    MOVE_ALL,
    NODE_ADD,
    NODE_DELETE,
    Asked,
    Happening,
    PriorityQueue,
    every_pod,
    node_changes,
    pod_changes,
)
from kpreempt.schedulers.kube.versions import Behaviour
from kpreempt.schedulers.queues.interface import Attempt, SchedulingQueue
from kpreempt.verdict.queue import Mover, MoverKind, Place, QueuedPod

# Of a pod's updates only those that it makes itself count for the plugins that wait for these.
_OWN = (
    Action.UPDATE_POD_TOLERATION,
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
)
_ACTIONS = {"Add": Action.ADD, "Update": Action.UPDATE, "Delete": Action.DELETE}


class KubeQueue(SchedulingQueue):
    """The priority queue with its event handlers."""

    def __init__(
        self,
        started: datetime,
        behaviour: Behaviour,
        initial_backoff: timedelta | None = None,
        max_backoff: timedelta | None = None,
        *,
        rules: QueueRules = NO_RULES,
    ) -> None:
        """As for ``PriorityQueue``; without backoffs those that are usual."""
        self.queue = PriorityQueue(
            started,
            behaviour,
            initial_backoff=DEFAULT_INITIAL_BACKOFF if initial_backoff is None else initial_backoff,
            max_backoff=DEFAULT_MAX_BACKOFF if max_backoff is None else max_backoff,
            rules=rules,
        )
        self._behaviour = behaviour
        self._fits_on = None if behaviour.scheduler_queueing_hints else rules.fits_on
        self._popped: dict[str, QueuedPodInfo] = {}

    @property
    def scheduling_cycle(self) -> int:  # type: ignore[override]
        """How many pods were popped."""
        return self.queue.scheduling_cycle

    @property
    def move_request_cycle(self) -> int:  # type: ignore[override]
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
        self.queue.move_all(Happening(ASSIGNED_POD_ADD, None, pod), now, self._may_be_helped_by(pod))

    def assigned_pod_updated(self, old: Pod, new: Pod, now: datetime) -> None:
        """``updateAssignedPodInCache``."""
        for event in pod_changes(old, new):
            frees_room = event.action == Action.UPDATE_POD_SCALE_DOWN
            is_asked = every_pod if frees_room else self._may_be_helped_by(new)
            self.queue.move_all(Happening(event, old, new), now, is_asked)

    def assigned_pod_deleted(self, pod: Pod, now: datetime) -> None:
        """``deleteAssignedPodFromCache``."""
        self.queue.move_all(Happening(ASSIGNED_POD_DELETE, pod, None), now)

    def node_added(self, node: Node, now: datetime) -> None:
        """``addNodeToCache``."""
        self.queue.move_all(Happening(NODE_ADD, None, node), now, self._may_fit_on(node))

    def node_updated(self, old: Node, new: Node, now: datetime) -> None:
        """``updateNodeInCache``."""
        changes = node_changes(old, new)
        if not self._behaviour.tells_all_changes_of_nodes:
            changes = [each for each in changes if each.action != Action.UPDATE_NODE_ANNOTATION][:1]
        for event in changes:
            self.queue.move_all(Happening(event, old, new), now, self._may_fit_on(new))

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

    def names(self) -> Iterable[str]:
        """Every pod that waits and is not gated, in any order."""
        queue = self.queue
        aside = (key for key, info in queue.unschedulable.items() if not info.gating_plugin)
        return chain(queue.active, queue.backoff.pods, queue.backoff.error_pods, aside)

    def pods(self) -> list[QueuedPod]:
        """The three queues: those with an order in it, then the unschedulable and the gated pods."""
        return _queued_pods(self.queue)

    def _may_fit_on(self, node: Node) -> Asked:
        """``preCheckForNode``: without hints those pods are left aside that do not fit on the node anyway."""
        fits_on = self._fits_on
        return every_pod if fits_on is None else lambda info: fits_on(info.pod, node)

    def _may_be_helped_by(self, pod: Pod) -> Asked:
        """Without hints a pod that came helps those whose affinity wants it, and later those that spread, too."""
        if self._behaviour.scheduler_queueing_hints:
            return every_pod

        def is_helped(info: QueuedPodInfo) -> bool:
            is_beside = info.pod.metadata.namespace == pod.metadata.namespace
            spreads = self._behaviour.tries_spread_pods_after_others and PodTopologySpread.name in info.rejector_plugins
            if spreads and is_beside:
                return True
            is_wanted = wants(info.pod, pod)
            if is_wanted is None:
                self.queue.unmodelled_hints.add((InterPodAffinity.name, str(ASSIGNED_POD_ADD)))
            return is_wanted is not False

        return is_helped

    def _leaves_nominated_node(self, pod: Pod, now: datetime) -> None:
        """The room that was kept for the pod is free for those that had to respect it (``getLEPriorityPreCheck``)."""
        left = Happening(ASSIGNED_POD_DELETE, pod, None)
        self.queue.move_all(left, now, lambda other: other.pod.priority <= pod.priority)


def _queued_pods(queue: PriorityQueue) -> list[QueuedPod]:
    """All pods of the queue: active, backing off (those after an error last), unschedulable, gated."""
    active = [
        _queued(queue, info, Place.ACTIVE, [Mover(MoverKind.POP)], position)
        for position, info in enumerate(queue.active.in_order(), start=1)
    ]
    waiting = [*queue.backoff.pods.in_order(), *queue.backoff.error_pods.in_order()]
    backoff = [
        _queued(queue, info, Place.BACKOFF, _movers_of_backoff(queue, info), position)
        for position, info in enumerate(waiting, start=1)
    ]
    aside = list(queue.unschedulable.values())
    unschedulable = [
        _queued(queue, info, Place.UNSCHEDULABLE, _movers(queue, info)) for info in aside if not info.gating_plugin
    ]
    gated = [_queued(queue, info, Place.GATED, _movers_of_gated(info)) for info in aside if info.gating_plugin]
    return [*active, *backoff, *unschedulable, *gated]


def _awaited_events(queue: PriorityQueue, plugins: set[str]) -> dict[str, list[str]]:
    """The events that plugins wait for, by name, each with its plugins; the pod's own updates are left out."""
    awaited: dict[str, list[str]] = {}
    for plugin in sorted(plugins):
        for each in queue.awaited_by(plugin):
            for name in _names(each.event):
                waiting = awaited.setdefault(name, [])
                if plugin not in waiting:
                    waiting.append(plugin)
    return awaited


def _names(event: ClusterEvent) -> list[str]:
    if event.action == Action.ALL:
        return [str(event)]
    if event.resource not in (POD, NODE) and event.action & Action.UPDATE == Action.UPDATE:
        actions = [*(event.action & ~Action.UPDATE), Action.UPDATE]
    elif event.action == Action.UPDATE:
        return []
    else:
        actions = [each for each in event.action if each not in _OWN]
    resource = ASSIGNED_POD if event.resource == POD else event.resource
    return [str(ClusterEvent(resource, action)) for action in actions]


def _queued(
    queue: PriorityQueue, info: QueuedPodInfo, place: Place, movers: list[Mover], position: int | None = None
) -> QueuedPod:
    end = queue.backoff.backoff_time(info) if place in (Place.BACKOFF, Place.UNSCHEDULABLE) else NO_BACKOFF
    return QueuedPod(
        pod=info.key,
        priority=info.pod.priority,
        place=place,
        position=position,
        time=info.timestamp,
        nominated_node_name=queue.nominator.node_of(info.pod),
        attempts=info.attempts,
        backoff_until=end if end > NO_BACKOFF else None,
        rejected_by=sorted(info.rejector_plugins),
        held_by=info.gating_plugin if place == Place.GATED and info.gating_plugin != SchedulingGates.name else "",
        moved_by=movers,
    )


def _movers_of_gated(info: QueuedPodInfo) -> list[Mover]:
    """What may change the mind of the plugin that holds the pod back; no timer does."""
    if info.gating_plugin == SchedulingGates.name:
        return [Mover(MoverKind.GATES_REMOVED)]
    return [Mover(MoverKind.CLUSTER_EVENT), Mover(MoverKind.OWN_UPDATE)]


def _movers_of_backoff(queue: PriorityQueue, info: QueuedPodInfo) -> list[Mover]:
    is_popped = queue.pops_from_backoff and info.key in queue.backoff.pods
    return [Mover(MoverKind.BACKOFF, queue.backoff_flush_time(info)), *([Mover(MoverKind.POP)] if is_popped else [])]


def _movers(queue: PriorityQueue, info: QueuedPodInfo) -> list[Mover]:
    awaited = _awaited_events(queue, info.rejector_plugins)
    own = any(
        each.event.resource == POD and each.event.action & Action.UPDATE
        for plugin in info.rejector_plugins
        for each in queue.awaited_by(plugin)
    )
    return [
        Mover(MoverKind.FLUSH, queue.leftover_flush_time(info)),
        *([Mover(MoverKind.CLUSTER_EVENT, events=awaited)] if awaited else []),
        *([Mover(MoverKind.OWN_UPDATE)] if own else []),
    ]
