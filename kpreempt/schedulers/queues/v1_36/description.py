"""Where each pod of today's scheduling queue waits, and what would move it."""

from __future__ import annotations

from kpreempt.schedulers.queues.v1_36.backoff import NO_BACKOFF
from kpreempt.schedulers.queues.v1_36.cluster_events import ASSIGNED_POD, NODE, POD, Action, ClusterEvent
from kpreempt.schedulers.queues.v1_36.hints import SCHEDULING_GATES, registrations_of
from kpreempt.schedulers.queues.v1_36.pod_info import QueuedPodInfo
from kpreempt.schedulers.queues.v1_36.queue import PriorityQueue
from kpreempt.verdict import Mover, MoverKind, Place, QueuedPod

# Of a pod's updates only those that it makes itself count for the plugins that wait for these.
_OWN = (
    Action.UPDATE_POD_TOLERATION,
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
)


def queued_pods(queue: PriorityQueue) -> list[QueuedPod]:
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


def awaited_events(plugins: set[str]) -> dict[str, list[str]]:
    """The events that plugins wait for, by name, each with its plugins; the pod's own updates are left out."""
    awaited: dict[str, list[str]] = {}
    for plugin in sorted(plugins):
        for registration in registrations_of(plugin):
            for name in _names(registration.event):
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
        held_by=info.gating_plugin if place == Place.GATED and info.gating_plugin != SCHEDULING_GATES else "",
        moved_by=movers,
    )


def _movers_of_gated(info: QueuedPodInfo) -> list[Mover]:
    """What may change the mind of the plugin that holds the pod back; no timer does."""
    if info.gating_plugin == SCHEDULING_GATES:
        return [Mover(MoverKind.GATES_REMOVED)]
    return [Mover(MoverKind.CLUSTER_EVENT), Mover(MoverKind.OWN_UPDATE)]


def _movers_of_backoff(queue: PriorityQueue, info: QueuedPodInfo) -> list[Mover]:
    is_popped = queue.pops_from_backoff and info.key in queue.backoff.pods
    return [Mover(MoverKind.BACKOFF, queue.backoff_flush_time(info)), *([Mover(MoverKind.POP)] if is_popped else [])]


def _movers(queue: PriorityQueue, info: QueuedPodInfo) -> list[Mover]:
    awaited = awaited_events(info.rejector_plugins)
    own = any(
        registration.event.resource == POD and registration.event.action & Action.UPDATE
        for plugin in info.rejector_plugins
        for registration in registrations_of(plugin)
    )
    return [
        Mover(MoverKind.FLUSH, queue.leftover_flush_time(info)),
        *([Mover(MoverKind.CLUSTER_EVENT, events=awaited)] if awaited else []),
        *([Mover(MoverKind.OWN_UPDATE)] if own else []),
    ]
