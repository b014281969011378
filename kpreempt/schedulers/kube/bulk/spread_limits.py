"""PodTopologySpread as limits: a domain may have as many matching pods as the emptiest other one and the skew allow.

In a dry run the pods of one node come and go, so the counts of all other domains stand still. With ``others`` for the
lowest of these, the check ``count + self - min(count, others) <= maxSkew`` comes to
``count <= others + maxSkew - self``, because a domain that has the fewest pods never exceeds the skew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.bulk.limits import ALWAYS, NEVER, Excess, Limit, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import PodTable
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.pod_topology_spread.constraints import has_all_keys
from kpreempt.schedulers.kube.plugins.pod_topology_spread.filtering import REASON_SKEW, FilterState, too_many
from kpreempt.verdict import Code, Status


def spread_limits(plugin: str, state: FilterState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
    """One limit per constraint. Nodes that lack a topology label are left out; ``None`` where they share counts."""
    if state.shares_counts:
        return None
    left_out = [not has_all_keys(node_info.node.labels, state.constraints) for node_info in nodes]
    limits = [_limit(state, index, table, nodes) for index in range(len(state.constraints))]

    def refuse(excess: Excess) -> Status:
        if not excess.is_bare:
            return Status(Code.UNSCHEDULABLE, [REASON_SKEW])
        index, node = excess.exceeded.index(True), nodes[excess.node].node
        domain = node.labels[state.constraints[index].topology_key]
        if not state.is_counted(node, index):
            return too_many(state, index, domain, state.counts[index].get(domain, 0), state.minimum(index))
        count = excess.sums[index]
        return too_many(state, index, domain, count, state.minimum_with(index, domain, count))

    def adds(info: PodInfo) -> list[int]:
        return [int(_counts(state, index, info.pod)) for index in range(len(state.constraints))]

    return PluginLimits(plugin, limits, refuse, np.array(left_out, dtype=np.bool_), adds=adds)


def _counts(state: FilterState, index: int, pod: Pod) -> bool:
    is_there = pod.metadata.namespace == state.pod.metadata.namespace
    return is_there and state.constraints[index].matches(pod.metadata.labels)


def _limit(state: FilterState, index: int, table: PodTable, nodes: Sequence[NodeInfo]) -> Limit:
    constraint = state.constraints[index]
    self_match = int(constraint.matches(state.pod.metadata.labels))
    _, representatives = table.label_groups
    amounts = table.per_group([int(_counts(state, index, pod)) for pod in representatives])
    used, most = [], []
    for node_info in nodes:
        domain = node_info.node.labels.get(constraint.topology_key, "")
        count = state.counts[index].get(domain, 0)
        if state.is_counted(node_info.node, index):
            used.append(count)
            most.append(state.lowest_of_others(index, domain) + constraint.max_skew - self_match)
        else:
            # Pods on a node that does not count change nothing.
            used.append(0)
            most.append(ALWAYS if count + self_match - state.minimum(index) <= constraint.max_skew else NEVER)
    return Limit(np.array(used, dtype=np.int64), np.array(most, dtype=np.int64), amounts)
