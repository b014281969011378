"""The events that changes make, and what happens while pods are in flight.

Follows ``pkg/scheduler`` of v1.36.3: ``framework/events.go`` (which changes an update makes) and
``backend/queue/active_queue.go`` (``inFlightPods``, ``inFlightEvents``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.events import (
    ASSIGNED_POD,
    NODE,
    UNSCHEDULABLE_POD,
    WILD_CARD,
    Action,
    ClusterEvent,
)
from kpreempt.schedulers.kube.framework.resources import pod_requests

ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE)
NODE_ADD = ClusterEvent(NODE, Action.ADD)
NODE_DELETE = ClusterEvent(NODE, Action.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(WILD_CARD, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(WILD_CARD, Action.ALL, "ForceActivate")
# A move request by nothing in particular, as the tests of the real queue make it.
MOVE_ALL = ClusterEvent(WILD_CARD, Action.ALL, "MoveAll")


def pod_changes(old: Pod, new: Pod) -> list[ClusterEvent]:
    """The events that a pod's update makes (``PodSchedulingPropertiesChange``); a general one where none is special."""
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
    """The events that a node's update makes (``NodeSchedulingPropertiesChange``); none where nothing counts."""
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


class Happening(NamedTuple):
    """An event with the object before and after."""

    event: ClusterEvent
    old: Pod | Node | None = None
    new: Pod | Node | None = None


class InFlight:
    """Pods that are being scheduled, and what may help them when they come back.

    One list of pods and events in the order in which they came.
    """

    def __init__(self) -> None:
        self._entries: list[str | Happening] = []

    def __contains__(self, pod: Pod) -> bool:
        return pod.identity in self._entries

    def __bool__(self) -> bool:
        return any(isinstance(entry, str) for entry in self._entries)

    @property
    def last_event(self) -> ClusterEvent | None:
        """What happened last, if no pod was popped since."""
        last = self._entries[-1] if self._entries else None
        return last.event if isinstance(last, Happening) else None

    def begin(self, pod: Pod) -> None:
        """The pod was popped."""
        self._entries.append(pod.identity)

    def record(self, happenings: Iterable[Happening]) -> None:
        """Something happened; nobody needs to know where no pod is in flight."""
        if self:
            self._entries.extend(happenings)

    def since(self, pod: Pod) -> list[Happening]:
        """What happened since the pod was popped."""
        start = self._entries.index(pod.identity)
        return [entry for entry in self._entries[start:] if isinstance(entry, Happening)]

    def end(self, pod: Pod) -> None:
        """The pod is not in flight any more; what only it needed to know is forgotten."""
        if pod in self:
            self._entries.remove(pod.identity)
        first = next((index for index, entry in enumerate(self._entries) if isinstance(entry, str)), len(self._entries))
        del self._entries[:first]
