"""The in-tree plugins by name, with the arguments and weights that configuration loading fills in.

Follows ``framework/plugins/registry.go`` and ``apis/config/v1/default_plugins.go`` under ``pkg/scheduler`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kpreempt.schedulers.kube.framework.interface import Handle, Plugin, PluginArgs
from kpreempt.schedulers.kube.plugins import (
    default_preemption,
    node_resources_balanced_allocation,
    node_resources_fit,
)
from kpreempt.schedulers.kube.plugins.default_preemption import DefaultPreemption
from kpreempt.schedulers.kube.plugins.dynamic_resources import DynamicResources
from kpreempt.schedulers.kube.plugins.image_locality import ImageLocality
from kpreempt.schedulers.kube.plugins.inter_pod_affinity import plugin as inter_pod_affinity
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kpreempt.schedulers.kube.plugins.node_affinity import NodeAffinity
from kpreempt.schedulers.kube.plugins.node_declared_features import NodeDeclaredFeatures
from kpreempt.schedulers.kube.plugins.node_name import NodeName
from kpreempt.schedulers.kube.plugins.node_ports import NodePorts
from kpreempt.schedulers.kube.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kpreempt.schedulers.kube.plugins.node_resources_fit import NodeResourcesFit
from kpreempt.schedulers.kube.plugins.node_unschedulable import NodeUnschedulable
from kpreempt.schedulers.kube.plugins.node_volume_limits import NodeVolumeLimits
from kpreempt.schedulers.kube.plugins.pod_topology_spread import plugin as pod_topology_spread
from kpreempt.schedulers.kube.plugins.pod_topology_spread.plugin import PodTopologySpread
from kpreempt.schedulers.kube.plugins.scheduling_gates import SchedulingGates
from kpreempt.schedulers.kube.plugins.taint_toleration import TaintToleration
from kpreempt.schedulers.kube.plugins.volume_binding import plugin as volume_binding
from kpreempt.schedulers.kube.plugins.volume_binding.plugin import VolumeBinding
from kpreempt.schedulers.kube.plugins.volume_restrictions import VolumeRestrictions
from kpreempt.schedulers.kube.plugins.volume_zone import VolumeZone


def _no_args() -> PluginArgs:
    return {}


class Registration(NamedTuple):
    """How a plugin is made, and its arguments where the configuration gives none.

    ``points`` are the extension points that it implements. ``plugin`` is the class of one from outside, and ``source``
    says where that was found.
    """

    factory: Callable[[Any, Handle], Plugin]
    default_args: Callable[[], PluginArgs] = _no_args
    points: frozenset[str] = frozenset()
    plugin: type[Plugin] | None = None
    source: str = ""


class EnabledPlugin(NamedTuple):
    """A plugin of a profile and its score weight."""

    name: str
    weight: int = 1


# The extension points that each plugin in the tree implements.
IN_TREE: dict[str, frozenset[str]] = {
    name: frozenset(points.split())
    for name, points in {
        "SchedulingGates": "preEnqueue",
        "PrioritySort": "queueSort",
        "NodeUnschedulable": "filter",
        "NodeName": "filter",
        "TaintToleration": "filter preScore score",
        "NodeAffinity": "preFilter filter preScore score",
        "NodePorts": "preFilter filter",
        "NodeResourcesFit": "preFilter filter preScore score placementScore",
        "VolumeRestrictions": "preFilter filter",
        "NodeVolumeLimits": "preFilter filter",
        "VolumeBinding": "preFilter filter reserve preBind preScore score",
        "VolumeZone": "preFilter filter",
        "PodTopologySpread": "preFilter filter preScore score",
        "InterPodAffinity": "preFilter filter preScore score",
        "DynamicResources": "preEnqueue preFilter filter postFilter score reserve preBind",
        "DefaultPreemption": "preEnqueue postFilter",
        "NodeResourcesBalancedAllocation": "preScore score",
        "ImageLocality": "score",
        "DefaultBinder": "bind",
        "NodeDeclaredFeatures": "preFilter filter",
        "GangScheduling": "preEnqueue permit",
        "TopologyPlacementGenerator": "placementGenerate",
        "PodGroupPodsCount": "placementScore",
    }.items()
}


_FACTORIES: dict[str, Registration] = {
    "SchedulingGates": Registration(SchedulingGates),
    "NodeUnschedulable": Registration(NodeUnschedulable),
    "NodeName": Registration(NodeName),
    "TaintToleration": Registration(TaintToleration),
    "NodeAffinity": Registration(NodeAffinity),
    "NodePorts": Registration(NodePorts),
    "NodeResourcesFit": Registration(NodeResourcesFit, node_resources_fit.default_args),
    "VolumeRestrictions": Registration(VolumeRestrictions),
    "NodeVolumeLimits": Registration(NodeVolumeLimits),
    "VolumeBinding": Registration(VolumeBinding, volume_binding.default_args),
    "VolumeZone": Registration(VolumeZone),
    "NodeDeclaredFeatures": Registration(NodeDeclaredFeatures),
    "PodTopologySpread": Registration(PodTopologySpread, pod_topology_spread.default_args),
    "InterPodAffinity": Registration(InterPodAffinity, inter_pod_affinity.default_args),
    "DynamicResources": Registration(DynamicResources),
    "DefaultPreemption": Registration(DefaultPreemption, default_preemption.default_args),
    "NodeResourcesBalancedAllocation": Registration(
        NodeResourcesBalancedAllocation, node_resources_balanced_allocation.default_args
    ),
    "ImageLocality": Registration(ImageLocality),
}

Registry = Mapping[str, Registration]
# The plugins of kube-scheduler itself that are modelled.
REGISTRY: Registry = {name: each._replace(points=IN_TREE[name]) for name, each in _FACTORIES.items()}


def from_outside(names: Iterable[str], registry: Registry) -> dict[str, type[Plugin]]:
    """The classes of those of the plugins that are from outside, each once, in the order of ``names``."""
    found = {name: registry[name].plugin for name in names if name in registry}
    return {name: plugin for name, plugin in found.items() if plugin is not None}


# Modelled without a class: the queues have the order of the one in themselves, and the other comes after the choice.
WITHOUT_CLASS = frozenset(("PrioritySort", "DefaultBinder"))

# Enabled at every extension point that they implement, in this order. PrioritySort and DefaultBinder take no part in
# the cycles of a what-if: the one orders the queue, the other binds.
DEFAULT_PLUGINS: tuple[EnabledPlugin, ...] = (
    EnabledPlugin("SchedulingGates"),
    EnabledPlugin("PrioritySort"),
    EnabledPlugin("NodeUnschedulable"),
    EnabledPlugin("NodeName"),
    EnabledPlugin("TaintToleration", 3),
    EnabledPlugin("NodeAffinity", 2),
    EnabledPlugin("NodePorts"),
    EnabledPlugin("NodeResourcesFit", 1),
    EnabledPlugin("VolumeRestrictions"),
    EnabledPlugin("NodeVolumeLimits"),
    EnabledPlugin("VolumeBinding"),
    EnabledPlugin("VolumeZone"),
    EnabledPlugin("PodTopologySpread", 2),
    EnabledPlugin("InterPodAffinity", 2),
    EnabledPlugin("DynamicResources", 2),
    EnabledPlugin("DefaultPreemption"),
    EnabledPlugin("NodeResourcesBalancedAllocation", 1),
    EnabledPlugin("ImageLocality", 1),
    EnabledPlugin("DefaultBinder"),
    EnabledPlugin("NodeDeclaredFeatures"),
)
