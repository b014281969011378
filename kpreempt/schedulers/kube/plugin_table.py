"""The plugins of kube-scheduler, one row each, in the order of the default profile.

Follows ``framework/plugins/registry.go`` and ``apis/config/v1/default_plugins.go`` (``pkg/scheduler``, v1.36.3). Each
plugin's module describes the plugin; this table only has the versions in which it exists and its default position.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from kpreempt.scheduler_table import DEFAULT_VERSION
from kpreempt.schedulers.kube.framework.in_tree import Registration
from kpreempt.schedulers.kube.plugins import (
    default_preemption,
    dynamic_resources,
    image_locality,
    in_tree_volume_limits,
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_resources_balanced_allocation,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    scheduling_gates,
    taint_toleration,
    volume_restrictions,
    volume_zone,
)
from kpreempt.schedulers.kube.plugins.inter_pod_affinity import plugin as inter_pod_affinity
from kpreempt.schedulers.kube.plugins.pod_topology_spread import plugin as pod_topology_spread
from kpreempt.schedulers.kube.plugins.volume_binding import plugin as volume_binding
from kpreempt.schedulers.kube.versions import Behavior, holds


class EnabledPlugin(NamedTuple):
    """A plugin in a profile, and its score weight."""

    name: str
    weight: int = 1


class InTreePlugin(NamedTuple):
    """A plugin of kube-scheduler, as described by its module, and its position among the default plugins.

    By default it is enabled at all its points, with its score weight; if it has a gate, only while the gate is on.
    ``points`` are the extension points that it implements, if its module does not say so: because it is unmodeled, is
    not modeled by a class (``WITHOUT_CLASS``), or had other points in some versions. A plugin whose position or points
    change has one row for each period.
    """

    name: str
    stated: Registration | None = None
    weight: int = 1
    gate: str = ""
    is_default: bool = True
    since: str = ""
    until: str = ""
    points: str = ""


_DEVICES = "dynamic_resource_allocation"
_PLUGINS: tuple[InTreePlugin, ...] = (
    InTreePlugin("SchedulingGates", scheduling_gates.PLUGIN, since="1.30"),
    InTreePlugin("PrioritySort", points="queueSort"),
    InTreePlugin("NodeUnschedulable", node_unschedulable.PLUGIN, until="1.37"),
    InTreePlugin("NodeName", node_name.PLUGIN),
    InTreePlugin("NodeUnschedulable", node_unschedulable.PLUGIN, since="1.37"),
    InTreePlugin("TaintToleration", taint_toleration.PLUGIN, 3),
    InTreePlugin("NodeAffinity", node_affinity.PLUGIN, 2),
    InTreePlugin("NodePorts", node_ports.PLUGIN),
    InTreePlugin("DeferredPodScheduling", is_default=False, since="1.37", points="preFilter filter permit"),
    InTreePlugin("NodeResourcesFit", node_resources_fit.PLUGIN, until="1.36", points="preFilter filter preScore score"),
    InTreePlugin("NodeResourcesFit", node_resources_fit.PLUGIN, since="1.36"),
    InTreePlugin("VolumeRestrictions", volume_restrictions.PLUGIN),
    InTreePlugin("EBSLimits", in_tree_volume_limits.EBS, until="1.31"),
    InTreePlugin("EBSLimits", in_tree_volume_limits.EBS, is_default=False, since="1.31", until="1.32"),
    InTreePlugin("GCEPDLimits", in_tree_volume_limits.GCE_PD, until="1.31"),
    InTreePlugin("GCEPDLimits", in_tree_volume_limits.GCE_PD, is_default=False, since="1.31", until="1.32"),
    InTreePlugin("NodeVolumeLimits", node_volume_limits.PLUGIN),
    InTreePlugin("AzureDiskLimits", in_tree_volume_limits.AZURE_DISK, until="1.31"),
    InTreePlugin("AzureDiskLimits", in_tree_volume_limits.AZURE_DISK, is_default=False, since="1.31", until="1.32"),
    InTreePlugin("CinderLimits", in_tree_volume_limits.CINDER, is_default=False, until="1.32"),
    InTreePlugin("VolumeBinding", volume_binding.PLUGIN, until="1.30", points="preFilter filter reserve preBind score"),
    InTreePlugin("VolumeBinding", volume_binding.PLUGIN, since="1.30"),
    InTreePlugin("VolumeZone", volume_zone.PLUGIN),
    InTreePlugin("PodTopologySpread", pod_topology_spread.PLUGIN, 2),
    InTreePlugin("InterPodAffinity", inter_pod_affinity.PLUGIN, 2),
    InTreePlugin(
        "DynamicResources",
        dynamic_resources.PLUGIN,
        gate=_DEVICES,
        since="1.26",
        until="1.32",
        points="preEnqueue preFilter filter postFilter preScore reserve postBind",
    ),
    InTreePlugin(
        "DynamicResources",
        dynamic_resources.PLUGIN,
        gate=_DEVICES,
        since="1.32",
        until="1.35",
        points="preEnqueue preFilter filter postFilter reserve preBind",
    ),
    InTreePlugin("DynamicResources", dynamic_resources.PLUGIN, 2, gate=_DEVICES, since="1.35"),
    InTreePlugin("DefaultPreemption", default_preemption.PLUGIN, until="1.32", points="postFilter"),
    InTreePlugin("DefaultPreemption", default_preemption.PLUGIN, since="1.32"),
    InTreePlugin("NodeResourcesBalancedAllocation", node_resources_balanced_allocation.PLUGIN),
    InTreePlugin("ImageLocality", image_locality.PLUGIN),
    InTreePlugin("DefaultBinder", points="bind"),
    InTreePlugin("SchedulingGates", scheduling_gates.PLUGIN, since="1.26", until="1.30"),
    InTreePlugin("NodeDeclaredFeatures", node_declared_features.PLUGIN, gate="node_declared_features", since="1.35"),
    InTreePlugin("GangScheduling", is_default=False, since="1.35", until="1.36", points="preEnqueue reserve permit"),
    InTreePlugin("GangScheduling", is_default=False, since="1.36", points="preEnqueue permit"),
    InTreePlugin("TopologyPlacementGenerator", is_default=False, since="1.36", points="placementGenerate"),
    InTreePlugin("PodGroupPodsCount", is_default=False, since="1.36", points="placementScore"),
)
# Modeled without a class: the first is the queues' built-in order, and the second acts after a node is chosen.
WITHOUT_CLASS = frozenset(("PrioritySort", "DefaultBinder"))

Registry = Mapping[str, Registration]
# Kube-scheduler's own plugins that are modeled by a class, in any version.
REGISTRY: Registry = {each.name: each.stated for each in _PLUGINS if each.stated is not None}


@cache
def registry_of(version: str) -> Registry:
    """Return the version's plugins that are modeled by a class."""
    in_tree = plugins_in_tree(version)
    return {name: each._replace(points=in_tree[name]) for name, each in REGISTRY.items() if name in in_tree}


def plugins_in_tree(version: str = DEFAULT_VERSION) -> dict[str, frozenset[str]]:
    """Return the extension points of every plugin in the version."""
    return {each.name: _points(each) for each in _PLUGINS if holds(version, each.since, each.until)}


def plugins_elsewhere(version: str = DEFAULT_VERSION) -> dict[str, frozenset[str]]:
    """Return the plugins of other versions that this version does not have."""
    own = plugins_in_tree(version)
    return {each.name: _points(each) for each in _PLUGINS if each.name not in own}


def _points(plugin: InTreePlugin) -> frozenset[str]:
    if plugin.stated is not None and not plugin.points:
        return plugin.stated.points
    return frozenset(plugin.points.split())


def default_plugins(facts: Behavior) -> tuple[EnabledPlugin, ...]:
    """Return the plugins that are enabled at all their points unless a configuration says otherwise."""
    return tuple(
        EnabledPlugin(each.name, each.weight)
        for each in _PLUGINS
        if each.is_default
        and holds(facts.version, each.since, each.until)
        and (not each.gate or getattr(facts, each.gate))
    )
