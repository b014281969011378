"""Which filters a dry run has to ask again, and their limits."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.kube.bulk.limits import PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import PodTable
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.in_tree import LimitedFilterPlugin, NodeFilterPlugin
from kpreempt.schedulers.kube.framework.interface import FilterPlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo


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
        if isinstance(plugin, NodeFilterPlugin) and not limits:
            continue
        stated = plugin.limits(state, table, nodes) if isinstance(plugin, LimitedFilterPlugin) else None
        if stated is None:
            return None
        limits.append(stated)
    return limits
