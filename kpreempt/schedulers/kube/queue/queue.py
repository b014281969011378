"""The scheduling queue: active, backing off, unschedulable.

Follows ``pkg/scheduler/backend/queue/scheduling_queue.go`` and ``active_queue.go`` of v1.36.3, method by method, with
queueing hints. Without hints (gate SchedulerQueueingHints, before 1.34) it follows v1.31.14: any event that a plugin
waits for moves the pods that are considered, and events while a pod is in flight are detected by its cycle. The changes
made by an update follow ``framework/events.go``.

SchedulingGates is the only in-tree PreEnqueue plugin here: a preemption that is still deleting its victims, claims that
do not exist yet and pod groups do not gate pods. Out-of-tree ones are in the queue's rules. Upstream keeps
unschedulable pods in a map, whose order is random; here they are in insertion order.

In-tree plugins declare which events they wait for after they rejected a pod. Hints that read volumes, claims, device
classes or inferred features are not modeled: every such event is assumed to help, so a pod may be retried when the real
scheduler would not. ``Awaited.is_modeled`` marks the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cache, cmp_to_key, partial
from typing import NamedTuple

import msgspec

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.interface import NO_RULES, QueueRules
from kpreempt.schedulers.kube.framework.events import (
    ASSIGNED_POD,
    NODE,
    UNSCHEDULABLE_POD,
    WILD_CARD,
    Action,
    Awaited,
    ClusterEvent,
)
from kpreempt.schedulers.kube.framework.resources import pod_requests
from kpreempt.schedulers.kube.plugin_table import REGISTRY
from kpreempt.schedulers.kube.plugins.scheduling_gates import SchedulingGates
from kpreempt.schedulers.kube.queue.backoff import (
    DEFAULT_INITIAL_BACKOFF,
    DEFAULT_MAX_BACKOFF,
    BackoffQueue,
    QueuedPodInfo,
    is_before,
)
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.schedulers.queues.heap import Heap
from kpreempt.schedulers.queues.interface import Attempt, Nominator, SchedulingQueue, Ticker

DEFAULT_MAX_IN_UNSCHEDULABLE_PODS = timedelta(minutes=5)
FLUSH_PERIOD = timedelta(seconds=30)
# Enough attempts for any backoff to reach its limit.
MANY_ATTEMPTS = 64
BACKOFF_FLUSH_PERIOD = timedelta(seconds=1)
# Which pods are considered after an event.
Selector = Callable[[QueuedPodInfo], bool]


class Strategy(IntEnum):
    """What to do with an unschedulable pod after an event."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class UnschedulablePods(dict[str, QueuedPodInfo]):
    """The unschedulable pods, by name in insertion order.

    The plugins that rejected or gate a pod do not change while it is here.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, frozenset[str]] = {}
        self._num_of_kind: Counter[frozenset[str]] = Counter()
        self._oldest: dict[bool, QueuedPodInfo | None] = {}

    def __setitem__(self, key: str, info: QueuedPodInfo) -> None:
        super().__setitem__(key, info)
        self._forget(key)
        kind = self._kinds[key] = frozenset(info.rejector_plugins)
        self._num_of_kind[kind] += 1

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._forget(key)

    def leave(self, key: str) -> None:
        """Remove a pod, if it is here."""
        if key in self:
            del self[key]

    def rejected_by(self, is_wanted: Callable[[frozenset[str]], bool]) -> Iterable[QueuedPodInfo]:
        """Yield the pods rejected by such plugins. Usually there are only a few distinct sets of plugins."""
        requested = {kind for kind, count in self._num_of_kind.items() if count and is_wanted(kind)}
        return [info for key, info in self.items() if self._kinds[key] in requested] if requested else ()

    def oldest(self, *, with_gated: bool) -> QueuedPodInfo | None:
        """Return the pod that has been here the longest."""
        if with_gated not in self._oldest:
            infos = (info for info in self.values() if with_gated or not info.gating_plugin)
            self._oldest[with_gated] = min(infos, key=lambda info: info.timestamp, default=None)
        return self._oldest[with_gated]

    def _forget(self, key: str) -> None:
        self._oldest.clear()
        kind = self._kinds.pop(key, None)
        if kind is not None:
            self._num_of_kind[kind] -= 1


class PriorityQueue(SchedulingQueue):
    """The three queues, the pods in flight and the nominated pods; ``handlers.py`` adds the event handlers.

    ``unmodeled_hints`` collects the plugins and events whose hints were assumed to say yes.
    """

    scheduling_cycle: int
    # Nothing depends on it any more.
    move_request_cycle: int
    nominator: Nominator
    unmodeled_hints: set[tuple[str, str]]

    def __init__(
        self,
        started: datetime,
        behavior: Behavior,
        initial_backoff: timedelta | None = None,
        max_backoff: timedelta | None = None,
        *,
        rules: QueueRules = NO_RULES,
    ) -> None:
        """``started`` is when the scheduler started; ``rules`` describe how out-of-tree plugins change the queue.

        ``backoffs`` default to the scheduler's own.
        """
        self._rules = rules
        self._behavior = behavior
        self._calls_hints = behavior.scheduler_queueing_hints
        # The events that a plugin waits for in this queue, and each plugin's registrations that an event matches.
        self.awaited_by = partial(awaited_by, calls_hints=self._calls_hints)
        self._awaiting = partial(awaiting, calls_hints=self._calls_hints)
        self.pops_from_backoff = behavior.scheduler_pop_from_backoff_q
        order = self._is_before = rules.is_before or is_before
        self.active: Heap[QueuedPodInfo] = Heap(lambda info: info.key, order)
        self.backoff = BackoffQueue(
            DEFAULT_INITIAL_BACKOFF if initial_backoff is None else initial_backoff,
            DEFAULT_MAX_BACKOFF if max_backoff is None else max_backoff,
            pops=self.pops_from_backoff,
            is_before=order,
            counts_attempts=behavior.backs_off_by_attempts,
        )
        self.unschedulable = UnschedulablePods()
        # The pods being scheduled, by identity, and events that may help them when they return, in order.
        self.in_flight: list[str | QueueEvent] = []
        self.nominator = Nominator()
        self.scheduling_cycle = 0
        self.move_request_cycle = -1
        self.unmodeled_hints = set()
        # Backoff is checked at the start of every second: the period counts from any whole second.
        self._backoff_ticker = Ticker(started.replace(microsecond=0), BACKOFF_FLUSH_PERIOD)
        self._flush_ticker = Ticker(started, FLUSH_PERIOD)
        self._now = started
        self._popped: dict[str, QueuedPodInfo] = {}

    def in_order(self, infos: Iterable[QueuedPodInfo]) -> list[QueuedPodInfo]:
        """Return pods in the order in which the active queue would return them; equal ones keep their order."""

        def compared(one: QueuedPodInfo, other: QueuedPodInfo) -> int:
            return -1 if self._is_before(one, other) else 0

        return sorted(infos, key=cmp_to_key(compared))

    def advance(self, now: datetime) -> None:
        """Flush completed backoff and leftovers as often as the timers would have done up to ``now``."""
        while (due := self._next_timer()) is not None and due[0] <= now:
            due[1](due[0])
            self._now = due[0]
        self._now = max(self._now, now)

    def next_timer(self) -> datetime | None:
        """Return when a timer next has something to do."""
        due = self._next_timer()
        return due[0] if due else None

    def backoff_flush_time(self, info: QueuedPodInfo) -> datetime:
        """Return when the timer notices that a pod's backoff has ended: in the following second."""
        return self._backoff_ticker.first_after(max(self._now, self.backoff.backoff_time(info)))

    def leftover_flush_time(self, info: QueuedPodInfo) -> datetime:
        """Return when the timer notices that an unschedulable pod is left over."""
        return self._flush_ticker.first_after(max(self._now, info.timestamp + DEFAULT_MAX_IN_UNSCHEDULABLE_PODS))

    def add(self, pod: Pod, now: datetime) -> None:
        """Add a new pod, to the active queue unless it is gated."""
        self._move_to_active(QueuedPodInfo(pod, now), UNSCHEDULED_POD_ADD)

    def activate(self, pod: Pod, now: datetime) -> None:
        """Move a pod to the active queue, whether or not it backs off; for one in flight, record the request."""
        info = self.unschedulable.get(pod.key)
        from_backoff = info is None
        if info is None:
            info = self.backoff.get(pod.key)
            self.backoff.delete(pod.key)
        if info is not None and self._move_to_active(info, FORCE_ACTIVATE, from_backoff=from_backoff):
            return
        if pod.identity in self.in_flight:
            self.in_flight.append(QueueEvent(FORCE_ACTIVATE, None, pod))
        self.move_request_cycle = self.scheduling_cycle

    def pop(self, now: datetime) -> Pod | None:
        """Remove the head of the active queue or, if it is empty, the first pod that backs off; ``None`` if none."""
        info = self.active.pop()
        if info is None and self.pops_from_backoff:
            # A pod that backs off after an error is never taken.
            info = self.backoff.pods.pop()
        if info is None:
            return None
        info.attempts += 1
        self.in_flight.append(info.pod.identity)
        self.scheduling_cycle += 1
        info.cycle = self.scheduling_cycle
        self._popped[info.key] = info
        return info.pod

    def done(self, pod: Pod, now: datetime) -> None:
        """Finish a pod's attempt, and drop the events recorded only for it."""
        self._popped.pop(pod.key, None)
        flying = self.in_flight
        if pod.identity in flying:
            flying.remove(pod.identity)
        first = next((index for index, entry in enumerate(flying) if isinstance(entry, str)), len(flying))
        del flying[:first]

    def add_unschedulable(self, pod: Pod, attempt: Attempt, now: datetime) -> None:
        """Run ``handleSchedulingFailure``: return a pod, in its current version, that is in no queue.

        It becomes unschedulable until an event that its plugins wait for. If that happened while it was in flight, or
        if no plugin rejected it, it is retried after its backoff.
        """
        info = self._popped.get(pod.key) or QueuedPodInfo(pod, now)
        info.pod = pod
        info.unschedulable_plugins, info.pending_plugins = set(attempt.plugins), set(attempt.pending)
        try:
            if info.key in self.unschedulable or info.key in self.active or self.backoff.get(info.key) is not None:
                return
            if info.rejector_plugins:
                info.unschedulable_count += 1
                info.consecutive_errors_count = 0
            else:
                info.consecutive_errors_count += 1
            info.timestamp = now
            info.backoff_expiration = None
            if not info.rejector_plugins or info.pod.identity not in self.in_flight:
                strategy_for_in_flight = Strategy.AFTER_BACKOFF
            elif not self._calls_hints:
                has_moved = self.move_request_cycle >= info.cycle
                strategy_for_in_flight = Strategy.AFTER_BACKOFF if has_moved else Strategy.SKIP
            else:
                since = self.in_flight[self.in_flight.index(info.pod.identity) :]
                happenings = [entry for entry in since if isinstance(entry, QueueEvent)]
                found = (self._strategy(info, each, self._awaiting(each.event)) for each in happenings)
                strategy_for_in_flight = max(found, default=Strategy.SKIP)
            self._requeue(info, strategy_for_in_flight, None, now)
        finally:
            self.done(pod, now)

    def restore(self, pod: Pod, attempt: Attempt, time: datetime, moved_at: datetime | None = None) -> None:
        """Add an unschedulable pod with enough attempts for the longest backoff."""
        info = QueuedPodInfo(pod, time)
        info.unschedulable_plugins, info.pending_plugins = set(attempt.plugins), set(attempt.pending)
        if moved_at is not None:
            info.unschedulable_count = MANY_ATTEMPTS
            self._requeue(info, Strategy.AFTER_BACKOFF, None, moved_at)
        elif info.rejector_plugins:
            info.unschedulable_count = MANY_ATTEMPTS
            self.unschedulable[info.key] = info
        else:
            info.consecutive_errors_count = MANY_ATTEMPTS
            self._requeue(info, Strategy.AFTER_BACKOFF, None, time)
        self.nominator.add(info.pod)

    def flush_backoff_completed(self, now: datetime) -> None:
        """Move the pods whose backoff has ended."""
        for info in self.backoff.pop_all_completed(now):
            self._move_to_active(info, None, from_backoff=True)

    def flush_unschedulable_leftover(self, now: datetime) -> None:
        """Move the pods that became unschedulable more than five minutes ago, after backoff if that is not over."""
        leftover = [
            info for info in self.unschedulable.values() if now - info.timestamp > DEFAULT_MAX_IN_UNSCHEDULABLE_PODS
        ]
        if leftover:
            self._move_pods(leftover, QueueEvent(UNSCHEDULABLE_TIMEOUT), now)

    def update(self, old: Pod, new: Pod, now: datetime) -> None:
        """Update a pod. An unschedulable one moves if a plugin that rejected it decides that the update may help."""
        events = pod_changes(old, new)
        if self._calls_hints and new.identity in self.in_flight:
            self.in_flight += [QueueEvent(event, old, new) for event in events]
            return
        info = self.active.get(old.key) or self.backoff.get(old.key) or self.unschedulable.get(new.key)
        if info is None:
            self._move_to_active(QueuedPodInfo(new, now), UNSCHEDULED_POD_UPDATE)
            return
        info.pod = new
        self.nominator.update(old, new)
        if info.key in self.active:
            self.active.add(info)
        elif info.key not in self.unschedulable:
            (self.backoff.pods if info.key in self.backoff.pods else self.backoff.error_pods).add(info)
        elif not self._calls_hints:
            # Whether more than the pod's status has changed (``isPodUpdated``).
            before = msgspec.structs.replace(old.metadata, resource_version="")
            if (before, old.spec) != (msgspec.structs.replace(new.metadata, resource_version=""), new.spec):
                self._requeue(info, Strategy.AFTER_BACKOFF, None, now)
        else:
            for event in events:
                self._requeue(
                    info, self._strategy(info, QueueEvent(event, old, new), self._awaiting(event)), event, now
                )
                if info.key not in self.unschedulable:
                    return

    def delete(self, pod: Pod, now: datetime, *, is_bound: bool = False) -> None:
        """Remove the pod from its queue, and drop its nomination."""
        self.nominator.delete(pod)
        if not self.active.delete(pod.key) and not self.backoff.delete(pod.key):
            self.unschedulable.leave(pod.key)

    def nominate(self, pod: Pod, node_name: str, now: datetime) -> None:
        """Run ``AddNominatedPod``; a pod that already has a node is not nominated."""
        if not pod.spec.node_name:
            self.nominator.add(pod, node_name)

    def move(self, queue_event: QueueEvent, now: datetime, is_selected: Selector | None = None) -> None:
        """Handle an event that may help unschedulable pods; only those that ``is_selected`` selects are considered."""
        if not is_of_interest(
            queue_event.event, waits_for_all=self._rules.awaits_everything, calls_hints=self._calls_hints
        ):
            return
        infos: Iterable[QueuedPodInfo]
        if is_selected is not None:
            infos = list(filter(is_selected, self.unschedulable.values()))
        elif queue_event.event.is_wild_card:
            infos = list(self.unschedulable.values())
        else:
            # None of the plugins that rejected the other pods waits for the event.
            waiting = self._awaiting(queue_event.event)
            infos = self.unschedulable.rejected_by(
                lambda plugins: not plugins or any(map(waiting.__getitem__, plugins))
            )
        self._move_pods(infos, queue_event, now)

    def _move_pods(self, infos: Iterable[QueuedPodInfo], queue_event: QueueEvent, now: datetime) -> None:
        waiting = self._awaiting(queue_event.event)
        for info in infos:
            if info.gating_plugin and not waiting[info.gating_plugin]:
                continue
            strategy = self._strategy(info, queue_event, waiting)
            if strategy != Strategy.SKIP:
                del self.unschedulable[info.key]
                self._requeue(info, strategy, queue_event.event, now)
        self.move_request_cycle = self.scheduling_cycle
        # If no pod is in flight, the event does not need to be recorded.
        if self.in_flight:
            self.in_flight.append(queue_event)

    def _strategy(self, info: QueuedPodInfo, queue_event: QueueEvent, waiting: Awaiting) -> Strategy:
        """Ask the plugins that rejected the pod whether the event may help it (``isPodWorthRequeuing``).

        ``waiting`` has each plugin's registrations that the event matches.
        """
        event, old, new = queue_event
        rejectors = info.rejector_plugins
        if not rejectors:
            return Strategy.AFTER_BACKOFF
        if event.is_wild_card:
            is_of_other = isinstance(new, Node) or (new is not None and new.identity != info.pod.identity)
            return Strategy.SKIP if is_of_other else Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        # Usually none of them waits for it.
        for plugin in sorted(rejectors) if any(map(waiting.__getitem__, rejectors)) else ():
            for each in waiting[plugin]:
                if each.hint is not None and not each.hint(info.pod, old, new):
                    continue
                # Without hints, the scheduler checks whether the pod fits on the node, if the check is available.
                looks_at_nodes = event.resource == NODE and self._rules.fits_on is None
                if not each.is_modeled if self._calls_hints else looks_at_nodes:
                    self.unmodeled_hints.add((plugin, str(event)))
                if plugin in info.pending_plugins:
                    return Strategy.IMMEDIATELY
                strategy = Strategy.AFTER_BACKOFF
        return strategy

    def _requeue(self, info: QueuedPodInfo, strategy: Strategy, event: ClusterEvent | None, now: datetime) -> None:
        if strategy == Strategy.SKIP:
            self.unschedulable[info.key] = info
        elif strategy == Strategy.AFTER_BACKOFF and self.backoff.is_backing_off(info, now):
            if self.pops_from_backoff:
                self._run_pre_enqueue(info)
            if self.pops_from_backoff and info.gating_plugin:
                self.unschedulable[info.key] = info
            else:
                self.unschedulable.leave(info.key)
                self.backoff.add(info)
        else:
            self._move_to_active(info, event)

    def _move_to_active(self, info: QueuedPodInfo, event: ClusterEvent | None, *, from_backoff: bool = False) -> bool:
        """Return whether the pod is active now; a gated one becomes unschedulable instead."""
        if not (self.pops_from_backoff and from_backoff):
            self._run_pre_enqueue(info)
        if info.gating_plugin:
            if info.key not in self.active and self.backoff.get(info.key) is None:
                self.unschedulable[info.key] = info
            return False
        self.unschedulable.leave(info.key)
        self.backoff.delete(info.key)
        self.active.add(info)
        if event in (UNSCHEDULED_POD_ADD, UNSCHEDULED_POD_UPDATE):
            self.nominator.add(info.pod)
        return True

    def _next_timer(self) -> tuple[datetime, Callable[[datetime], None]] | None:
        timers: list[tuple[datetime, Callable[[datetime], None]]] = []
        if (end := self.backoff.next_completion()) is not None:
            timers.append((self._backoff_ticker.first_after(max(self._now, end)), self.flush_backoff_completed))
        # A gated pod stays, but the check counts as an event for pods in flight; once is enough.
        last = self.in_flight[-1] if self.in_flight else None
        is_considered = isinstance(last, QueueEvent) and last.event == UNSCHEDULABLE_TIMEOUT
        counts_gated = bool(self.in_flight) and not is_considered
        # The pod that has been unschedulable the longest is left over first.
        oldest = self.unschedulable.oldest(with_gated=counts_gated)
        if oldest is not None:
            timers.append((self.leftover_flush_time(oldest), self.flush_unschedulable_leftover))
        return min(timers, key=lambda timer: timer[0], default=None)

    def _run_pre_enqueue(self, info: QueuedPodInfo) -> None:
        """Gate the pod while it has scheduling gates, and then while an out-of-tree plugin does."""
        if info.pod.spec.scheduling_gates:
            info.gating_plugin = SchedulingGates.name
        else:
            info.gating_plugin = self._rules.blocked_pods(info.pod) if self._rules.blocked_pods is not None else ""
        if info.gating_plugin:
            info.unschedulable_plugins.add(info.gating_plugin)


_AWAITED = {name: awaited for name, each in REGISTRY.items() if (awaited := each.awaits())}
# What a plugin without registrations waits for: everything.
_EVERYTHING = tuple(
    Awaited(ClusterEvent(resource, Action.ALL))
    for resource in (
        "Pod",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "StorageClass",
        "ResourceClaim",
        "DeviceClass",
    )
)


# Registrations for any node update if hints are not called (v1.31.14); otherwise for specific ones.
_AWAIT_ANY_UPDATE = frozenset(
    ("NodeAffinity", "NodeName", "NodePorts", "NodeResourcesFit", "NodeUnschedulable", "TaintToleration")
)
_INSTEAD_OF_ADD = Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
_ANY_UPDATE = (
    _INSTEAD_OF_ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_CONDITION | Action.UPDATE_NODE_ANNOTATION
)


@cache
def awaited_by(plugin: str, *, calls_hints: bool = True) -> Sequence[Awaited]:
    """Return the events that a plugin waits for; an out-of-tree plugin is assumed to wait for everything.

    Plugins whose hints are not called wait for more node updates: the queue itself checks the event.
    """
    awaited = _AWAITED.get(plugin, _EVERYTHING)
    if calls_hints:
        return awaited
    more = _ANY_UPDATE if plugin in _AWAIT_ANY_UPDATE else _INSTEAD_OF_ADD
    return tuple(
        Awaited(ClusterEvent(NODE, each.event.action | more), is_modeled=each.is_modeled)
        if each.event.resource == NODE
        else each._replace(hint=None)
        for each in awaited
    )


class Awaiting(dict[str, Sequence[Awaited]]):
    """By plugin, its registrations that one event matches; computed on first use."""

    def __init__(self, event: ClusterEvent, *, calls_hints: bool) -> None:
        self._event = event
        self._calls_hints = calls_hints

    def __missing__(self, plugin: str) -> Sequence[Awaited]:
        awaited = awaited_by(plugin, calls_hints=self._calls_hints)
        found = self[plugin] = tuple(each for each in awaited if each.event.awaits(self._event))
        return found


@cache
def awaiting(event: ClusterEvent, *, calls_hints: bool = True) -> Awaiting:
    """Return each plugin's registrations that match ``event``, in the plugin's order."""
    return Awaiting(event, calls_hints=calls_hints)


@cache
def is_of_interest(event: ClusterEvent, *, waits_for_all: bool = False, calls_hints: bool = True) -> bool:
    """Return whether any plugin waits for the event; ``waits_for_all``: some plugins wait for everything."""
    waiting = [
        *(awaited_by(each, calls_hints=calls_hints) for each in _AWAITED),
        *([_EVERYTHING] if waits_for_all else []),
    ]
    return event.is_wild_card or any(each.event.awaits(event) for plugin in waiting for each in plugin)


ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE)
NODE_ADD = ClusterEvent(NODE, Action.ADD)
NODE_DELETE = ClusterEvent(NODE, Action.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(WILD_CARD, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(WILD_CARD, Action.ALL, "ForceActivate")
# A move request with no specific event, as in the real queue's tests.
MOVE_ALL = ClusterEvent(WILD_CARD, Action.ALL, "MoveAll")


def pod_changes(old: Pod, new: Pod) -> list[ClusterEvent]:
    """Return the events of a pod's update (``PodSchedulingPropertiesChange``); a general one if none is specific."""
    resource = ASSIGNED_POD if new.spec.node_name else UNSCHEDULABLE_POD
    before, after = pod_requests(old), pod_requests(new)
    changes = (
        (Action.UPDATE_POD_LABEL, old.metadata.labels != new.metadata.labels),
        (Action.UPDATE_POD_SCALE_DOWN, any(after.get(name, -1) < amount for name, amount in before.items())),
        (
            Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates,
        ),
        (Action.UPDATE_POD_TOLERATION, len(old.spec.tolerations) != len(new.spec.tolerations)),
        (
            Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
            old.status.resource_claim_statuses != new.status.resource_claim_statuses,
        ),
    )
    found = [ClusterEvent(resource, action) for action, has_changed in changes if has_changed]
    return found or [ClusterEvent(resource, Action.UPDATE)]


def node_changes(old: Node, new: Node) -> list[ClusterEvent]:
    """Return the events of a node's update (``NodeSchedulingPropertiesChange``); empty if nothing relevant changed."""
    conditions = [{each.type: each.status for each in node.status.conditions} for node in (old, new)]
    changes = (
        (Action.UPDATE_NODE_TAINT, old.spec.unschedulable and not new.spec.unschedulable),
        (Action.UPDATE_NODE_ALLOCATABLE, old.status.allocatable != new.status.allocatable),
        (Action.UPDATE_NODE_LABEL, old.labels != new.labels),
        (Action.UPDATE_NODE_TAINT, old.spec.taints != new.spec.taints),
        (Action.UPDATE_NODE_CONDITION, conditions[0] != conditions[1]),
        (Action.UPDATE_NODE_ANNOTATION, old.metadata.annotations != new.metadata.annotations),
        (Action.UPDATE_NODE_DECLARED_FEATURE, old.status.declared_features != new.status.declared_features),
    )
    return [ClusterEvent(NODE, action) for action, has_changed in changes if has_changed]


class QueueEvent(NamedTuple):
    """An event with the object before and after."""

    event: ClusterEvent
    old: Pod | Node | None = None
    new: Pod | Node | None = None
