"""The events that reach the scheduling queue, where each pod in it waits, and what would move it.

Follows ``pkg/scheduler/eventhandlers.go`` and ``handleSchedulingFailure`` in ``schedule_one.go`` of v1.36.3. Pods that
are assumed on a node are treated like others in flight.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import chain

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.events import ASSIGNED_POD, NODE, POD, Action, ClusterEvent
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.plugin import InterPodAffinity, matches_term
from kpreempt.schedulers.kube.plugins.pod_topology_spread.plugin import PodTopologySpread
from kpreempt.schedulers.kube.plugins.scheduling_gates import SchedulingGates
from kpreempt.schedulers.kube.queue.backoff import (
    NO_BACKOFF,
    QueuedPodInfo,
)
from kpreempt.schedulers.kube.queue.queue import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    MOVE_ALL,
    NODE_ADD,
    NODE_DELETE,
    PriorityQueue,
    QueueEvent,
    Selector,
    node_changes,
    pod_changes,
)
from kpreempt.verdict.queue import Mover, MoverKind, QueuedPod, QueueName

# Of a pod's updates, only those that the pod makes itself count for the plugins that wait for these.
_OWN = (
    Action.UPDATE_POD_TOLERATION,
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
)
_ACTIONS = {"Add": Action.ADD, "Update": Action.UPDATE, "Delete": Action.DELETE}


class KubeQueue(PriorityQueue):
    """The priority queue with its event handlers."""

    def update(self, old: Pod, new: Pod, now: datetime) -> None:
        """Handle ``updatePodInSchedulingQueue``.

        A pod that loses its nomination frees resources, as if it had left its node.
        """
        super().update(old, new, now)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._leaves_nominated_node(old, now)

    def delete(self, pod: Pod, now: datetime, *, is_bound: bool = False) -> None:
        """Handle ``deletePodFromSchedulingQueue``."""
        super().delete(pod, now, is_bound=is_bound)
        if not is_bound and pod.status.nominated_node_name:
            self._leaves_nominated_node(pod, now)

    def assigned_pod_changed(self, old: Pod | None, new: Pod | None, now: datetime) -> None:
        """Handle ``addAssignedPodToCache``, ``updateAssignedPodInCache`` and ``deleteAssignedPodFromCache``."""
        if new is None:
            self.move(QueueEvent(ASSIGNED_POD_DELETE, old, None), now)
        elif old is None:
            self.move(QueueEvent(ASSIGNED_POD_ADD, None, new), now, self._may_be_helped_by(new))
        else:
            for event in pod_changes(old, new):
                frees_resources = event.action == Action.UPDATE_POD_SCALE_DOWN
                self.move(QueueEvent(event, old, new), now, None if frees_resources else self._may_be_helped_by(new))

    def node_changed(self, old: Node | None, new: Node | None, now: datetime) -> None:
        """Handle ``addNodeToCache``, ``updateNodeInCache`` and ``deleteNodeFromCache``.

        Without hints, pods that do not fit on the node anyway are skipped (``preCheckForNode``).
        """
        if new is None:
            self.move(QueueEvent(NODE_DELETE, old, None), now)
            return
        node, fits_on = new, None if self._calls_hints else self._rules.fits_on
        may_fit: Selector | None = None if fits_on is None else lambda info: fits_on(info.pod, node)
        changes = [NODE_ADD] if old is None else node_changes(old, new)
        if old is not None and not self._behavior.reports_all_node_changes:
            changes = [each for each in changes if each.action != Action.UPDATE_NODE_ANNOTATION][:1]
        for event in changes:
            self.move(QueueEvent(event, old, new), now, may_fit)

    def object_changed(self, resource: str, action: str, now: datetime) -> None:
        """Handle events of all other kinds."""
        self.move(QueueEvent(ClusterEvent(resource, _ACTIONS[action])), now)

    def move_all(self, now: datetime) -> None:
        """Run ``MoveAllToActiveOrBackoffQueue`` with an event that concerns all pods."""
        self.move(QueueEvent(MOVE_ALL), now)

    def names(self) -> Iterable[str]:
        """Yield every pod that waits and is not gated, in any order."""
        aside = (key for key, info in self.unschedulable.items() if not info.gating_plugin)
        return chain(self.active, self.backoff.pods, self.backoff.error_pods, aside)

    def pods(self) -> list[QueuedPod]:
        """Return the active, backing-off (after an error last), unschedulable and gated pods, in that order.

        Unschedulable pods are in the order in which they would be tried if all were moved at once.
        """
        active = [
            _queued(self, info, QueueName.ACTIVE, [Mover(MoverKind.POP)], position)
            for position, info in enumerate(self.active.in_order(), start=1)
        ]
        backoff = []
        for position, info in enumerate(chain(self.backoff.pods.in_order(), self.backoff.error_pods.in_order()), 1):
            movers = [Mover(MoverKind.BACKOFF, self.backoff_flush_time(info))]
            if self.pops_from_backoff and info.key in self.backoff.pods:
                movers.append(Mover(MoverKind.POP))
            backoff.append(_queued(self, info, QueueName.BACKOFF, movers, position))
        unschedulable, gated = [], []
        # What may make the gating plugin admit the pod; no timer does.
        gates_removed = [Mover(MoverKind.GATES_REMOVED)]
        by_plugin = [Mover(MoverKind.CLUSTER_EVENT), Mover(MoverKind.OWN_UPDATE)]
        for info in self.in_order(self.unschedulable.values()):
            if info.gating_plugin:
                movers = gates_removed if info.gating_plugin == SchedulingGates.name else by_plugin
                gated.append(_queued(self, info, QueueName.GATED, movers))
            else:
                unschedulable.append(_queued(self, info, QueueName.UNSCHEDULABLE, _movers(self, info)))
        return [*active, *backoff, *unschedulable, *gated]

    def _may_be_helped_by(self, pod: Pod) -> Selector | None:
        """Return which pods an added pod may help, without hints.

        These are pods with affinity to it and, in later versions, pods with spread constraints.
        """
        if self._calls_hints:
            return None

        def is_helped(info: QueuedPodInfo) -> bool:
            has_same_namespace = info.pod.metadata.namespace == pod.metadata.namespace
            spreads = (
                self._behavior.retries_spread_pods_after_other_pods and PodTopologySpread.name in info.rejector_plugins
            )
            if spreads and has_same_namespace:
                return True
            is_wanted = matches_term(info.pod, pod)
            if is_wanted is None:
                self.unmodeled_hints.add((InterPodAffinity.name, str(ASSIGNED_POD_ADD)))
            return is_wanted is not False

        return is_helped

    def _leaves_nominated_node(self, pod: Pod, now: datetime) -> None:
        """Free the resources reserved for the pod for those that had to respect it (``getLEPriorityPreCheck``)."""
        self.move(QueueEvent(ASSIGNED_POD_DELETE, pod, None), now, lambda other: other.pod.priority <= pod.priority)


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
    queue: PriorityQueue, info: QueuedPodInfo, place: QueueName, movers: list[Mover], position: int | None = None
) -> QueuedPod:
    end = queue.backoff.backoff_time(info) if place in (QueueName.BACKOFF, QueueName.UNSCHEDULABLE) else NO_BACKOFF
    return QueuedPod(
        pod=info.key,
        priority=info.pod.priority,
        queue=place,
        position=position,
        time=info.timestamp,
        nominated_node_name=queue.nominator.node_of(info.pod),
        attempts=info.attempts,
        backoff_until=end if end > NO_BACKOFF else None,
        rejected_by=sorted(info.rejector_plugins),
        held_by=info.gating_plugin if place == QueueName.GATED and info.gating_plugin != SchedulingGates.name else "",
        moved_by=movers,
    )


def _movers(queue: PriorityQueue, info: QueuedPodInfo) -> list[Mover]:
    # The events that plugins wait for, by name, each with its plugins; the pod's own updates are omitted.
    awaited: dict[str, list[str]] = {}
    for plugin in sorted(info.rejector_plugins):
        for name in dict.fromkeys(name for each in queue.awaited_by(plugin) for name in _names(each.event)):
            awaited.setdefault(name, []).append(plugin)
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
