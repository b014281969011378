"""Which events each plugin waits for after it refused a pod, and whether one may help that pod.

Follows ``EventsToRegister`` and the queueing hints of the plugins under ``pkg/scheduler/framework/plugins`` of v1.36.3,
with the default plugins and gates. Of hints that look at volumes, claims, device classes or inferred features only the
event is known here: it is taken to help, so that a pod may be tried where the real scheduler would leave it.
``Registration.is_modelled`` tells them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.queue import hint_functions as helps
from kpreempt.schedulers.kube.queue.events import NODE, POD, Action, ClusterEvent

# A pod that was refused, and the object that changed before and after; whether to try the pod again.
Hint = Callable[[Pod, Pod | Node | None, Pod | Node | None], bool]

SCHEDULING_GATES = "SchedulingGates"
_WRITTEN = Action.ADD | Action.UPDATE


class Registration(NamedTuple):
    """An event that a plugin waits for. Without a ``hint`` each one helps, in truth only where ``is_modelled``."""

    event: ClusterEvent
    hint: Hint | None = None
    is_modelled: bool = True


def _on_pod(
    action: Action, hint: Callable[[Pod, Pod | None, Pod | None], bool] | None = None, *, is_modelled: bool = True
) -> Registration:
    def of_pods(pod: Pod, old: Pod | Node | None, new: Pod | Node | None) -> bool:
        assert hint is not None
        return hint(pod, old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None)

    return Registration(ClusterEvent(POD, action), of_pods if hint else None, is_modelled)


def _on_node(action: Action, hint: Callable[[Pod, Node | None, Node | None], bool] | None = None) -> Registration:
    def of_nodes(pod: Pod, old: Pod | Node | None, new: Pod | Node | None) -> bool:
        assert hint is not None
        return hint(pod, old if isinstance(old, Node) else None, new if isinstance(new, Node) else None)

    return Registration(ClusterEvent(NODE, action), of_nodes if hint else None)


def _on(resource: str, action: Action, *, is_modelled: bool = False) -> Registration:
    return Registration(ClusterEvent(resource, action), is_modelled=is_modelled)


REGISTRATIONS: dict[str, tuple[Registration, ...]] = {
    SCHEDULING_GATES: (_on_pod(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, helps.is_own),),
    "NodeUnschedulable": (
        _on_node(Action.ADD | Action.UPDATE_NODE_TAINT, helps.is_opened),
        _on_pod(Action.UPDATE_POD_TOLERATION, helps.is_own),
    ),
    "NodeName": (_on_node(Action.ADD),),
    "TaintToleration": (
        _on_node(Action.ADD | Action.UPDATE_NODE_TAINT, helps.is_tolerated_now),
        _on_pod(Action.UPDATE_POD_TOLERATION, helps.is_own),
    ),
    "NodeAffinity": (_on_node(Action.ADD | Action.UPDATE_NODE_LABEL, helps.is_selected_now),),
    "NodePorts": (_on_pod(Action.DELETE, helps.frees_a_port), _on_node(Action.ADD)),
    "NodeResourcesFit": (
        _on_pod(Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, helps.frees_resources),
        _on_node(Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, helps.has_more_room),
        _on("DeviceClass", _WRITTEN),
    ),
    "VolumeRestrictions": (
        _on_pod(Action.DELETE, helps.is_of_namespace, is_modelled=False),
        _on_node(Action.ADD),
        _on("PersistentVolumeClaim", Action.ADD),
    ),
    "NodeVolumeLimits": (
        _on("CSINode", Action.ADD, is_modelled=True),
        _on("CSINode", Action.UPDATE),
        _on_pod(Action.DELETE, is_modelled=False),
        _on("PersistentVolumeClaim", Action.ADD),
        _on("VolumeAttachment", Action.DELETE),
    ),
    "VolumeBinding": (
        _on("StorageClass", _WRITTEN),
        _on("PersistentVolumeClaim", _WRITTEN),
        _on("PersistentVolume", _WRITTEN, is_modelled=True),
        _on_node(Action.ADD | Action.UPDATE_NODE_LABEL),
        _on("CSINode", _WRITTEN),
        _on("CSIDriver", Action.UPDATE),
        _on("CSIStorageCapacity", _WRITTEN),
    ),
    "VolumeZone": (
        _on("StorageClass", Action.ADD),
        _on_node(Action.ADD | Action.UPDATE_NODE_LABEL),
        _on("PersistentVolumeClaim", _WRITTEN),
        _on("PersistentVolume", _WRITTEN),
    ),
    "PodTopologySpread": (
        _on_pod(
            Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE,
            helps.pod_changes_spread,
        ),
        _on_node(
            Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT, helps.node_changes_spread
        ),
    ),
    "InterPodAffinity": (
        _on_pod(Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, helps.changes_affinity),
        _on_node(Action.ADD | Action.UPDATE_NODE_LABEL, helps.changes_topology),
    ),
    "DynamicResources": (
        _on_node(Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        _on("ResourceClaim", _WRITTEN),
        _on_pod(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, helps.is_own, is_modelled=False),
        _on("DeviceClass", _WRITTEN, is_modelled=True),
        _on("ResourceSlice", _WRITTEN, is_modelled=True),
    ),
    "NodeDeclaredFeatures": (
        _on_node(Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, helps.declares_otherwise),
        _on_pod(Action.UPDATE, helps.is_own, is_modelled=False),
    ),
    "DefaultPreemption": (_on_pod(Action.DELETE, helps.never),),
}
# What a plugin that says nothing waits for: everything.
_EVERYTHING = tuple(
    Registration(ClusterEvent(resource, Action.ALL))
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


def registrations_of(plugin: str) -> tuple[Registration, ...]:
    """The events that a plugin waits for; one that is not in the tree is taken to wait for everything."""
    return REGISTRATIONS.get(plugin, _EVERYTHING)


def is_of_interest(event: ClusterEvent, *, with_others: bool = False) -> bool:
    """Whether any plugin waits for the event; ``with_others``: there are plugins that wait for everything."""
    waiting = [*REGISTRATIONS.values(), *([_EVERYTHING] if with_others else [])]
    return event.is_wild_card or any(each.event.awaits(event) for plugin in waiting for each in plugin)
