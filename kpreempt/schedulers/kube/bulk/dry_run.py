"""Find the victims of many nodes in lockstep, and reconstruct the selection steps from what the search recorded.

If the scheduler's own order of pods is known, equal pods are in the order in which Go's sort leaves them (``GoOrder``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import Outcomes, Steps
from kpreempt.schedulers.go_sort import sorted_as_in_go
from kpreempt.schedulers.kube.bulk.limits import PluginLimits
from kpreempt.schedulers.kube.bulk.lockstep import BudgetUses, Lockstep, uses_of
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable, distinct, order_by
from kpreempt.schedulers.kube.bulk.ties import other_orders
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.in_tree import LimitedFilterPlugin, NodeFilterPlugin
from kpreempt.schedulers.kube.framework.interface import BriefDryRun, BulkDryRun, FilterPlugin, HelpfulNode, Victims
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.preemption.importance import NO_START, BudgetIndex, sort_by_importance
from kpreempt.schedulers.kube.preemption.rules import REASON_NO_VICTIMS
from kpreempt.verdict import SUCCESS, Code, Reprieve, Status

NO_VICTIMS = Victims(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_NO_VICTIMS]), [], 0, [])


def dry_run(
    table: PodTable,
    framework: Framework,
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    budgets: BudgetIndex,
    orders: Steps | None,
    *,
    is_brief: bool = False,
) -> BulkDryRun:
    """Return the victims on each of ``nodes`` that can be handled here; the others are missing from the result.

    All of ``nodes``, which are in snapshot order, must have passed the filters that ignore pods. ``state`` is the state
    after PreFilter. If it requests steps, nodes on which a plugin rejects without its details are missing, too.
    ``orders`` has the steps that may be used to follow the orders of equal pods, if the order is unknown.
    If preemption helps anywhere, the result ``is_brief`` on request. Nothing is changed.
    """
    limits = all_limits(table, framework.plugins.filters, state, nodes)
    if limits is None or not nodes:
        return BulkDryRun({})
    position = table.cluster.position
    number_of_node = np.full(len(table.cluster.node_infos), -1, dtype=np.int64)
    number_of_node[[position[node_info.name] for node_info in nodes]] = np.arange(len(nodes))
    is_victim = (table.priority < pod.priority) & (number_of_node[table.node] >= 0)
    order = table.importance.order
    victims = order[is_victim[order]]
    victim_nodes = number_of_node[table.node[victims]]
    # Whether the pod fits on each node once all pods of lower priority are removed. On other nodes, no pod is put back,
    # so neither order nor budgets matter there.
    selected = np.flatnonzero(number_of_node >= 0)
    can_help = np.ones(len(selected), dtype=np.bool_)
    for limit in [limit for each in limits for limit in each.limits]:
        freed = table.total(np.where(table.priority < pod.priority, limit.amounts, 0))[selected]
        can_help &= limit.used - freed <= limit.limit
    helpful = np.flatnonzero(can_help[victim_nodes])
    victims[helpful] = table.in_likely_order(victims[helpful])
    in_go = GoOrder(table, victims, victim_nodes, len(nodes)) if orders is None else None
    if in_go is not None:
        victims = in_go.sort(victims)
    nominated = {
        index: framework.nominated_pods_except(pod, node_info.name)
        for index, node_info in enumerate(nodes)
        if node_info.name in table.cluster.nominated_pods
    }
    is_omitted = _add_nominated(limits, nominated, len(nodes))
    for each in limits:
        if each.left_out is not None:
            is_omitted |= each.left_out
    uses = uses_of(table, victims, helpful, budgets)
    if budgets.stops_at_violated:
        # What remains of a budget depends on the pods before it here.
        is_omitted[victim_nodes[np.bincount(uses.victim, minlength=len(victims)) > 1]] = True
    # Pods that violate a budget are put back before all others.
    tried = np.argsort(2 * victim_nodes + ~uses.violates, kind="stable")
    search = Lockstep(limits, victims[tried], victim_nodes[tried], len(nodes))
    others = other_orders(table, search, victims, tried, uses, budgets, orders) if orders is not None else {}
    is_evicted = ~search.is_kept & search.fits[search.nodes]
    goes = _removed_pods(table, search, is_evicted, victims[tried], tried, uses.violates[tried], in_go).tolist()
    gone = [table.pods[position] for position in goes]
    evicted = _Evicted(nodes, search, is_evicted, gone, uses.violates[tried], others)
    if is_brief and gone:
        timed = distinct(victim_nodes[table.start[victims] == NO_START]).tolist()
        return BulkDryRun({}, brief=evicted.in_brief(is_omitted, victim_nodes, uses, timed))
    # Pods that stay in any case.
    num_others = [
        node_info.num_pods - count + len(nominated.get(index, ()))
        for index, (node_info, count) in enumerate(zip(nodes, search.counts.tolist(), strict=True))
    ]
    steps_on = _steps_on_nodes(table, search, victims[tried], uses, tried, num_others)
    outcomes = _outcomes(evicted, search, is_omitted, num_others)
    silent = {each.plugin for each in limits if not each.has_detail}
    # A node without its victims is not bare if other pods are nominated to it.
    detailed = outcomes if state.records_steps else {nodes[index].name for index, infos in nominated.items() if infos}
    for name in [name for name in detailed if name in outcomes and outcomes[name].status.plugin in silent]:
        del outcomes[name]

    def steps_of(name: str) -> list[Reprieve] | None:
        """Return the steps on a node with victims, unless a plugin that rejected there cannot give the reason."""
        if name not in outcomes or not outcomes[name].pods:
            return None
        found = steps_on(int(number_of_node[position[name]]))
        is_reported = all(each.blocked_by is None or each.blocked_by.plugin not in silent for each in found)
        return found if is_reported else None

    if not state.records_steps:
        return BulkDryRun(outcomes, steps_of)
    # Nodes whose steps cannot be reconstructed are omitted.
    steps_by_node = {name: steps_of(name) if outcome.pods else [] for name, outcome in outcomes.items()}
    with_steps = {
        name: outcomes[name]._replace(steps=steps) for name, steps in steps_by_node.items() if steps is not None
    }
    return BulkDryRun(with_steps, steps_of)


def _add_nominated(
    limits: Sequence[PluginLimits], nominated: Mapping[int, Sequence[PodInfo]], num_nodes: int
) -> Booleans:
    """Add the pods nominated to nodes to the sums; return the nodes for which that is not possible.

    The incoming pod must fit both with and without these pods; because they only use resources, checking with them is
    enough.
    """
    is_omitted = np.zeros(num_nodes, dtype=np.bool_)
    for node, infos in nominated.items():
        for each in limits:
            for info in infos:
                added = each.adds(info)
                if added is None:
                    is_omitted[node] = True
                    continue
                for limit, amount in zip(each.limits, added, strict=True):
                    limit.used[node] += amount
    return is_omitted


def _removed_pods(
    table: PodTable,
    search: Lockstep,
    is_evicted: Booleans,
    victims: Integers,
    tried: Integers,
    violates: Booleans,
    in_go: GoOrder | None,
) -> Integers:
    """Return the victims' positions, node by node, in the scheduler's order; ``victims`` are in reprieve order."""
    goes = victims[is_evicted]
    if not table.cluster.behavior.sorts_victims_again:
        return goes
    if in_go is None:
        # A likely order stays unchanged.
        return goes[order_by(table.importance.rank[goes], tried[is_evicted])]
    num_violating = np.bincount(search.nodes[violates], minlength=len(search.counts))
    has_both = (num_violating > 0) & (num_violating < search.counts)
    first = np.searchsorted(search.nodes[is_evicted], np.arange(len(search.counts) + 1)).tolist()
    return in_go.sort_again(goes, first, has_both.tolist().__getitem__)


class _Evicted:
    """The pods that are evicted from each of ``nodes``: ``gone``, node by node; ``violates`` is for all victims."""

    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        search: Lockstep,
        is_evicted: Booleans,
        gone: Sequence[Pod],
        violates: Booleans,
        others: Mapping[int, Outcomes[Pod]],
    ) -> None:
        where = search.nodes[is_evicted]
        self.nodes = nodes
        self._gone, self._others = gone, others
        self._num_violations: list[int] = np.bincount(where[violates[is_evicted]], minlength=len(nodes)).tolist()
        self._bounds: list[int] = np.searchsorted(where, np.arange(len(nodes) + 1)).tolist()
        self.has_victims: list[bool] = (search.counts > 0).tolist()
        self.fits: list[bool] = search.fits.tolist()

    def is_any(self, node: int) -> bool:
        """Return whether any pod is evicted from the node."""
        return self._bounds[node] < self._bounds[node + 1]

    def on(self, node: int) -> Victims:
        """Return the victims on such a node."""
        pods = list(self._gone[self._bounds[node] : self._bounds[node + 1]])
        return Victims(SUCCESS, pods, self._num_violations[node], [], self._others.get(node))

    def in_brief(
        self, is_omitted: Booleans, victim_nodes: Integers, uses: BudgetUses, timed: Sequence[int]
    ) -> BriefDryRun:
        """Return the helpful and the useless nodes."""
        helpful, useless = {}, []
        for index, (node_info, left_out) in enumerate(zip(self.nodes, is_omitted.tolist(), strict=True)):
            if left_out:
                continue
            if not self.has_victims[index] or not self.fits[index]:
                useless.append(node_info.name)
            elif self.is_any(index):
                first = self._gone[self._bounds[index]].priority
                helpful[node_info.name] = HelpfulNode(self._num_violations[index], first, partial(self.on, index))
        selected = _selected_on(self.nodes, victim_nodes[uses.selected[0]], uses.selected[1])
        return BriefDryRun(helpful, useless, selected, [self.nodes[index].name for index in timed])


def _outcomes(
    evicted: _Evicted, search: Lockstep, is_omitted: Booleans, num_others: Sequence[int]
) -> dict[str, Victims]:
    result: dict[str, Victims] = {}
    for index, (node_info, left_out) in enumerate(zip(evicted.nodes, is_omitted.tolist(), strict=True)):
        if left_out:
            continue
        if not evicted.has_victims[index]:
            result[node_info.name] = NO_VICTIMS
        elif not evicted.fits[index]:
            result[node_info.name] = Victims(search.rejection_without_victims(index, num_others[index]), [], 0, [])
        elif evicted.is_any(index):
            result[node_info.name] = evicted.on(index)
    return result


def _selected_on(nodes: Sequence[NodeInfo], node: Integers, budget: Integers) -> dict[int, dict[str, int]]:
    """Return by budget how many pods it selects on each node; there is a pair for each pod."""
    pairs = budget * len(nodes) + node
    there = distinct(pairs)
    counts = np.bincount(np.searchsorted(there, pairs), minlength=len(there)).tolist()
    budgets, places = np.divmod(there, len(nodes))
    names = [nodes[index].name for index in places.tolist()]
    positions = distinct(budgets)
    bounds = [*np.searchsorted(budgets, positions).tolist(), len(budgets)]
    return {
        position: dict(zip(names[begin:end], counts[begin:end], strict=True))
        for position, begin, end in zip(positions.tolist(), bounds, bounds[1:], strict=False)
    }


def all_limits(
    table: PodTable, filters: Sequence[FilterPlugin], state: CycleState, nodes: Sequence[NodeInfo]
) -> list[PluginLimits] | None:
    """Return the limits of all filters that run for this pod, in order; ``None`` if one of them cannot state them.

    Filters that ignore pods must come first: the given nodes have passed these, but may not have reached the filters
    after the one that rejected them.
    """
    limits: list[PluginLimits] = []
    for plugin in filters:
        if plugin.name in state.skip_filter_plugins or (isinstance(plugin, NodeFilterPlugin) and not limits):
            continue
        stated = plugin.limits(state, table, nodes) if isinstance(plugin, LimitedFilterPlugin) else None
        if stated is None:
            return None
        limits.append(stated)
    return limits


def _steps_on_nodes(
    table: PodTable,
    search: Lockstep,
    victims: Integers,
    uses: BudgetUses,
    tried: Integers,
    num_others: Sequence[int],
) -> Callable[[int], list[Reprieve]]:
    """Return a function that lists the steps on a node of the query, in the order in which they were taken.

    ``victims`` are those of ``search``, and ``num_others`` is the number of pods that stay on each node in any case;
    ``tried`` gives for each victim its index in the order in which budgets were counted.
    """
    uses_by_victim = cache(uses.by_victim)

    def steps_on(node: int) -> list[Reprieve]:
        begin, end = int(search.first[node]), int(search.first[node + 1])
        # Budgets were counted on the same node, in another order.
        uses_of_node = uses_by_victim()(begin, end)
        counted = tried[begin:end]
        steps = zip(
            victims[begin:end].tolist(),
            (counted - begin).tolist(),
            uses.violates[counted].tolist(),
            search.rejections_on(node, num_others[node]),
            strict=True,
        )
        return [
            Reprieve(
                pod=(pod := table.pods[position]).key,
                priority=pod.priority,
                is_reprieved=rejection is None,
                start_time=pod.start,
                violates_budget=violates,
                budgets=uses_of_node[place],
                blocked_by=rejection,
            )
            for position, place, violates, rejection in steps
        ]

    return steps_on


# Up to this length, Go's sort preserves the order of equals.
MAX_STABLE = 12


class GoOrder:
    """Sorts the potential and the actual victims of nodes as the scheduler does.

    ``victims`` are positions in the table, node by node, on each node the most important first and equals in table
    order; ``where`` is the node of each, one of ``num_nodes``.
    """

    def __init__(self, table: PodTable, victims: Integers, nodes: Integers, num_nodes: int) -> None:
        self._table = table
        self._first = np.searchsorted(nodes, np.arange(num_nodes + 1)).tolist()
        self._rank: list[int] = table.importance.rank.tolist()
        rank = table.importance.rank[victims]
        self._is_tied = np.zeros(num_nodes, dtype=np.bool_)
        self._is_tied[nodes[1:][rank[1:] == rank[:-1]]] = True
        # Missing start times count as now, by a clock that advances while it is read.
        self._lacks_start = np.zeros(num_nodes, dtype=np.bool_)
        self._lacks_start[nodes[table.start[victims] == NO_START]] = True
        self._listed: dict[int, dict[str, int]] = {}

    def sort(self, victims: Integers) -> Integers:
        """Sort all potential victims by importance."""
        ordered = victims.copy()
        for node, begin, end in self._decided(self._first):
            # Their order on the node is the table's.
            ordered[begin:end] = self._sorted(node, np.sort(victims[begin:end]).tolist())
        return ordered

    def sort_again(self, goes: Integers, first: Sequence[int], is_sorted_again: Callable[[int], bool]) -> Integers:
        """Sort the victims by importance.

        ``goes`` are positions in the table in reprieve order; those of node n are from ``first[n]`` up to ``first[n +
        1]``. Only if it ``is_sorted_again`` does the order of a node change.
        """
        ordered = goes[np.argsort(self._table.importance.rank[goes], kind="stable")]
        for node, begin, end in self._decided(first):
            positions = goes[begin:end].tolist()
            ordered[begin:end] = self._sorted(node, positions) if is_sorted_again(node) else positions
        return ordered

    def _decided(self, first: Sequence[int]) -> list[tuple[int, int, int]]:
        """Yield the nodes whose order the sort decides, with the start and end of their pods."""
        begins, ends = np.array(first[:-1], dtype=np.int64), np.array(first[1:], dtype=np.int64)
        nodes = np.flatnonzero(self._lacks_start | (self._is_tied & (ends - begins > MAX_STABLE))).tolist()
        return [(node, first[node], first[node + 1]) for node in nodes]

    def _sorted(self, node: int, positions: Sequence[int]) -> list[int]:
        if not self._lacks_start[node]:
            rank = self._rank
            return sorted_as_in_go(positions, lambda one, other: rank[one] < rank[other])
        cluster = self._table.cluster
        infos = {PodInfo(self._table.pods[position], cluster.behavior): position for position in positions}
        # The first call covers all potential victims.
        listed = self._listed.setdefault(node, {info.key: place for place, info in enumerate(infos)})
        reads_once = cluster.behavior.reads_start_times_once
        in_order = sort_by_importance(
            list(infos), cluster.now, has_scheduler_order=True, reads_starts_once=reads_once, listed=listed
        )
        return [infos[info] for info in in_order]
