"""Cluster events as the scheduling queue classifies them, and how a plugin declares the events that it waits for.

Follows ``framework/types.go`` of ``k8s.io/kube-scheduler`` v0.36.3 (``ActionType``, ``ClusterEventWithHint``), and
``framework/types.go`` of ``pkg/scheduler`` v1.36.3 (``MatchClusterEvents``).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag, auto
from typing import NamedTuple

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod

WILD_CARD = "*"
POD = "Pod"
ASSIGNED_POD = "AssignedPod"
UNSCHEDULABLE_POD = "UnschedulablePod"
NODE = "Node"


class Action(IntFlag):
    """An action on an object.

    Upstream's order matters: a general update does not match a plugin that waits for a special one.
    """

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    UPDATE = (1 << 13) - 1 - 0b11
    ALL = (1 << 13) - 1


class ClusterEvent(NamedTuple):
    """An event, or what a plugin waits for. ``label`` names special events."""

    resource: str
    action: Action
    label: str = ""

    def __str__(self) -> str:
        return self.label or f"{self.resource}{name_of(self.action)}"

    @property
    def is_wild_card(self) -> bool:
        """Whether it concerns all pods, whichever plugin rejected them."""
        return self.resource == WILD_CARD and self.action == Action.ALL

    def awaits(self, event: ClusterEvent) -> bool:
        """Return whether this registration receives ``event`` (``MatchClusterEvents``)."""
        is_same = self.resource in (WILD_CARD, event.resource) or (
            self.resource == POD and event.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)
        )
        return self.is_wild_card or (is_same and bool(self.action & event.action) and event.action <= self.action)


def name_of(action: Action) -> str:
    """Return the action as upstream prints it; several are joined."""
    if action in (Action.UPDATE, Action.ALL):
        return str(action.name).capitalize()
    return "|".join("".join(word.capitalize() for word in str(each.name).split("_")) for each in action)


# Takes a rejected pod, and the object before and after the change; returns whether to retry the pod.
Hint = Callable[[Pod, Pod | Node | None, Pod | Node | None], bool]
# Created or updated.
WRITTEN = Action.ADD | Action.UPDATE


class Awaited(NamedTuple):
    """An event that a plugin waits for. Without a ``hint``, every one helps, which is exact only if ``is_modeled``."""

    event: ClusterEvent
    hint: Hint | None = None
    is_modeled: bool = True


def on_pod(
    action: Action, hint: Callable[[Pod, Pod | None, Pod | None], bool] | None = None, *, is_modeled: bool = True
) -> Awaited:
    """Register a pod event; the hint receives the pod before and after."""

    def of_pods(pod: Pod, old: Pod | Node | None, new: Pod | Node | None) -> bool:
        assert hint is not None
        return hint(pod, old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None)

    return Awaited(ClusterEvent(POD, action), of_pods if hint else None, is_modeled)


def on_node(action: Action, hint: Callable[[Pod, Node | None, Node | None], bool] | None = None) -> Awaited:
    """Register a node event; the hint receives the node before and after."""

    def of_nodes(pod: Pod, old: Pod | Node | None, new: Pod | Node | None) -> bool:
        assert hint is not None
        return hint(pod, old if isinstance(old, Node) else None, new if isinstance(new, Node) else None)

    return Awaited(ClusterEvent(NODE, action), of_nodes if hint else None)


def on(resource: str, action: Action, *, is_modeled: bool = False) -> Awaited:
    """Register an event of another kind without its hint; ``is_modeled`` if upstream has none either."""
    return Awaited(ClusterEvent(resource, action), is_modeled=is_modeled)


def is_own(pod: Pod, _: Pod | None, new: Pod | None) -> bool:
    """The hint of plugins that wait for a change of the pod itself."""
    return new is not None and is_same(new, pod)


def is_same(one: Pod, other: Pod) -> bool:
    """Return whether both are the same pod, possibly at different times."""
    return one.identity == other.identity


def has_position(pod: Pod) -> bool:
    """Return whether the pod has a node or a nominated node, which count the same for a hint."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
