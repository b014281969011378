"""Which filters a dry run has to ask again, and their limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpreempt.schedulers.kube.bulk.affinity_limits import affinity_limits
from kpreempt.schedulers.kube.bulk.limits import PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import PodTable
from kpreempt.schedulers.kube.bulk.resource_limits import resource_limits
from kpreempt.schedulers.kube.bulk.spread_limits import spread_limits
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FilterPlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resources import Resource
from kpreempt.schedulers.kube.plugins.inter_pod_affinity import plugin as inter_pod_affinity
from kpreempt.schedulers.kube.plugins.node_affinity import NodeAffinity
from kpreempt.schedulers.kube.plugins.node_name import NodeName
from kpreempt.schedulers.kube.plugins.node_resources_fit import STATE_KEY, NodeResourcesFit
from kpreempt.schedulers.kube.plugins.node_unschedulable import NodeUnschedulable
from kpreempt.schedulers.kube.plugins.pod_topology_spread import plugin as pod_topology_spread
from kpreempt.schedulers.kube.plugins.taint_toleration import TaintToleration

# What these say of a node is the same whichever pods are on it.
INDIFFERENT_TO_PODS = (NodeUnschedulable, NodeName, TaintToleration, NodeAffinity)


def all_limits(
    table: PodTable, filters: Sequence[FilterPlugin], state: CycleState, nodes: Sequence[NodeInfo]
) -> list[PluginLimits] | None:
    """The limits of all filters that run for this pod, in order; ``None`` where one of them cannot state them.

    Filters that pods do not matter to must come first: the nodes asked about have passed these, but have perhaps not
    reached those behind the filter that refused them.
    """
    limits: list[PluginLimits] = []
    for plugin in filters:
        if plugin.name in state.skip_filter_plugins:
            continue
        if isinstance(plugin, INDIFFERENT_TO_PODS) and not limits:
            continue
        stated = _limits_of(plugin, table, state, nodes)
        if stated is None:
            return None
        limits.append(stated)
    return limits


def _limits_of(
    plugin: FilterPlugin, table: PodTable, state: CycleState, nodes: Sequence[NodeInfo]
) -> PluginLimits | None:
    cluster = table.cluster
    if isinstance(plugin, NodeResourcesFit):
        requested = state.read(STATE_KEY)
        asked = np.array([cluster.position[node_info.name] for node_info in nodes], dtype=np.int64)
        return resource_limits(plugin, requested, table, asked) if isinstance(requested, Resource) else None
    if isinstance(plugin, pod_topology_spread.PodTopologySpread):
        return spread_limits(plugin.name, pod_topology_spread.filter_state_of(state), table, nodes)
    if isinstance(plugin, inter_pod_affinity.InterPodAffinity):
        counts = inter_pod_affinity.filter_state_of(state)
        return affinity_limits(plugin.name, counts, table, nodes)
    return None
