"""Victims of many nodes in lockstep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.bulk.budgets import violating
from kpreempt.schedulers.kube.bulk.checks import all_limits
from kpreempt.schedulers.kube.bulk.limits import Excess, Limit, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import NO_START, Booleans, Integers, PodTable
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FilterPlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex
from kpreempt.schedulers.kube.preemption.victims import REASON_NO_VICTIMS, Victims
from kpreempt.verdict import SUCCESS, Code, Status

# Up to here Go's sort keeps the order of equals.
MAX_STABLE = 12


def dry_run(
    table: PodTable,
    filters: Sequence[FilterPlugin],
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    budgets: BudgetIndex,
) -> dict[str, Victims]:
    """The victims on each of ``nodes`` that can be answered here; the others are missing from the result.

    All of ``nodes`` must have passed the filters that pods do not matter to. ``state`` is the one after PreFilter.
    Steps are not recorded. Nothing is changed.
    """
    cluster = table.cluster
    limits = all_limits(table, filters, state, nodes)
    if limits is None or not nodes:
        return {}
    asked = np.array([cluster.position[node_info.name] for node_info in nodes], dtype=np.int64)
    question = np.full(len(cluster.node_infos), -1, dtype=np.int64)
    question[asked] = np.arange(len(asked))
    lower = np.flatnonzero((table.priority < pod.priority) & (question[table.node] >= 0))
    where = question[table.node[lower]]
    is_left_out = _left_out(cluster, table, nodes, lower, where)
    for each in limits:
        if each.left_out is not None:
            is_left_out |= each.left_out
    by_importance = np.lexsort((lower, table.start[lower], -table.priority[lower], where))
    victims = lower[by_importance]
    violates = violating(table, victims, budgets)
    # Those that violate a budget are put back before all others.
    order = np.lexsort((np.arange(len(victims)), ~violates, question[table.node[victims]]))
    victims, violates = victims[order], violates[order]
    search = _Lockstep(limits, table, victims, question[table.node[victims]], len(nodes))
    search.run()
    return _outcomes(table, nodes, limits, search, victims, violates, is_left_out)


def _left_out(
    cluster: ClusterState, table: PodTable, nodes: Sequence[NodeInfo], lower: Integers, where: Integers
) -> Booleans:
    """Nodes for the plain path: nominated pods count there, or equal pods are in an order that Go's sort decides."""
    left_out = np.array([node_info.name in cluster.nominated_pods for node_info in nodes], dtype=np.bool_)
    left_out[where[table.start[lower] == NO_START]] = True
    counts = np.bincount(where, minlength=len(nodes))
    order = np.lexsort((table.start[lower], table.priority[lower], where))
    node, priority, start = where[order], table.priority[lower][order], table.start[lower][order]
    ties = (node[1:] == node[:-1]) & (priority[1:] == priority[:-1]) & (start[1:] == start[:-1])
    tied = node[1:][ties]
    left_out[tied[counts[tied] > MAX_STABLE]] = True
    return left_out


class _Lockstep:
    """Puts the pods of all nodes back, rank by rank."""

    def __init__(
        self, limits: Sequence[PluginLimits], table: PodTable, victims: Integers, where: Integers, num_nodes: int
    ) -> None:
        self._limits: list[Limit] = [limit for each in limits for limit in each.limits]
        self._victims = victims
        self._where = where
        self._num_nodes = num_nodes
        self.counts = np.bincount(where, minlength=num_nodes)
        self._first = np.concatenate(([0], np.cumsum(self.counts)[:-1])) if num_nodes else self.counts
        self._amounts = [limit.amounts[victims] for limit in self._limits]
        # Sums without any lower-priority pod.
        self.sums = [
            limit.used - _sum_by(where, amounts, num_nodes)
            for limit, amounts in zip(self._limits, self._amounts, strict=True)
        ]
        self.bare_sums = [total.copy() for total in self.sums]
        self.fits = np.ones(num_nodes, dtype=np.bool_)
        for limit, total in zip(self._limits, self.sums, strict=True):
            self.fits &= total <= limit.limit
        self.kept = np.zeros(len(victims), dtype=np.bool_)

    def run(self) -> None:
        """Decide every pod of the nodes that fit at all."""
        active = np.flatnonzero(self.fits & (self.counts > 0))
        for rank in range(int(self.counts.max(initial=0))):
            active = active[self.counts[active] > rank]
            each = self._first[active] + rank
            totals = [total[active] + amounts[each] for total, amounts in zip(self.sums, self._amounts, strict=True)]
            stays = np.ones(len(active), dtype=np.bool_)
            for limit, total in zip(self._limits, totals, strict=True):
                stays &= total <= limit.limit[active]
            self.kept[each] = stays
            for mine, total in zip(self.sums, totals, strict=True):
                mine[active[stays]] = total[stays]


def _sum_by(where: Integers, amounts: Integers, size: int) -> Integers:
    result = np.zeros(size, dtype=np.int64)
    np.add.at(result, where, amounts)
    return result


def _outcomes(
    table: PodTable,
    nodes: Sequence[NodeInfo],
    limits: Sequence[PluginLimits],
    search: _Lockstep,
    victims: Integers,
    violates: Booleans,
    is_left_out: Booleans,
) -> dict[str, Victims]:
    evicted = np.flatnonzero(~search.kept)
    goes = victims[evicted]
    where = search._where[evicted]
    # Most important first; equals stay in the order in which they were tried.
    order = np.lexsort((evicted, table.start[goes], -table.priority[goes], where))
    goes, where = goes[order], where[order]
    bounds = np.searchsorted(where, np.arange(len(nodes) + 1)).tolist()
    positions = goes.tolist()
    violations = (
        np.bincount(search._where[evicted], weights=violates[evicted], minlength=len(nodes)).astype(int).tolist()
    )
    counts, fits, left_out = search.counts.tolist(), search.fits.tolist(), is_left_out.tolist()
    result: dict[str, Victims] = {}
    for index, node_info in enumerate(nodes):
        if left_out[index]:
            continue
        if not counts[index]:
            status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_NO_VICTIMS])
            result[node_info.name] = Victims(status, [], 0, [])
        elif not fits[index]:
            status = _refusal(index, node_info.num_pods - counts[index], limits, search)
            result[node_info.name] = Victims(status, [], 0, [])
        else:
            pods = [table.info(each) for each in positions[bounds[index] : bounds[index + 1]]]
            if pods:
                result[node_info.name] = Victims(SUCCESS, pods, violations[index], [])
    return result


def _refusal(index: int, num_pods: int, limits: Sequence[PluginLimits], search: _Lockstep) -> Status:
    """The status of a node that the pod does not fit even without its lower-priority pods: of the first plugin."""
    offset = 0
    for each in limits:
        sums = [int(search.bare_sums[offset + i][index]) for i in range(len(each.limits))]
        exceeded = [total > int(limit.limit[index]) for total, limit in zip(sums, each.limits, strict=True)]
        if any(exceeded):
            return each.refuse(Excess(index, exceeded, sums, num_pods)).of_plugin(each.plugin)
        offset += len(each.limits)
    raise AssertionError("a node that fits was refused")
