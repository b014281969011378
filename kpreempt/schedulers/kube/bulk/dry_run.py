"""Victims of many nodes in lockstep, and the steps of choosing them, from what the search has noted down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import Outcomes, Steps
from kpreempt.schedulers.kube.bulk.budgets import BudgetUses, uses_of
from kpreempt.schedulers.kube.bulk.go_order import GoOrder
from kpreempt.schedulers.kube.bulk.limits import PluginLimits
from kpreempt.schedulers.kube.bulk.lockstep import Lockstep
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable, order_by
from kpreempt.schedulers.kube.bulk.ties import other_orders
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.in_tree import LimitedFilterPlugin, NodeFilterPlugin
from kpreempt.schedulers.kube.framework.interface import AtOnce, FilterPlugin, Victims
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex
from kpreempt.schedulers.kube.preemption.rules import REASON_NO_VICTIMS
from kpreempt.verdict import SUCCESS, BudgetUse, Code, Reprieve, Status

NO_VICTIMS = Victims(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_NO_VICTIMS]), [], 0, [])


def dry_run(
    table: PodTable,
    filters: Sequence[FilterPlugin],
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    budgets: BudgetIndex,
    orders: Steps | None,
    beside: Callable[[Pod, str], Sequence[PodInfo]],
) -> AtOnce:
    """The victims on each of ``nodes`` that can be answered here; the others are missing from the result.

    All of ``nodes``, which are in the order of the snapshot, must have passed the filters that pods do not matter to.
    ``state`` is the one after PreFilter. Where it asks for steps, nodes are missing too on which a plugin refuses that
    cannot tell its details. ``orders`` has the steps that may be taken to follow the orders of equal pods, where theirs
    is not known. ``beside`` gives the pods nominated to a node that count there. Nothing is changed.
    """
    limits = all_limits(table, filters, state, nodes)
    if limits is None or not nodes:
        return AtOnce({})
    position = table.cluster.position
    question = np.full(len(table.cluster.node_infos), -1, dtype=np.int64)
    question[[position[node_info.name] for node_info in nodes]] = np.arange(len(nodes))
    is_victim = (table.priority < pod.priority) & (question[table.node] >= 0)
    order = table.importance.order
    victims = order[is_victim[order]]
    where = question[table.node[victims]]
    # On other nodes nobody is put back, so that neither order nor budgets matter there.
    can_help = _can_help(table, limits, pod.priority, np.flatnonzero(question >= 0))
    helpful = np.flatnonzero(can_help[where])
    victims[helpful] = table.in_likely_order(victims[helpful])
    in_go = GoOrder(table, victims, where, len(nodes)) if orders is None else None
    if in_go is not None:
        victims = in_go.sort(victims)
    nominated = {
        index: beside(pod, node_info.name)
        for index, node_info in enumerate(nodes)
        if node_info.name in table.cluster.nominated_pods
    }
    is_left_out = _add_nominated(limits, nominated, len(nodes))
    for each in limits:
        if each.left_out is not None:
            is_left_out |= each.left_out
    uses = uses_of(table, victims, helpful, budgets)
    if budgets.stops_at_violated:
        # What is left of a budget hangs on those before it here.
        is_left_out[where[np.bincount(uses.victim, minlength=len(victims)) > 1]] = True
    # Those that violate a budget are put back before all others.
    tried = np.argsort(2 * where + ~uses.violates, kind="stable")
    search = Lockstep(limits, victims[tried], where[tried], len(nodes))
    search.run()
    # Pods that stay in any case.
    num_others = [
        node_info.num_pods - count + len(nominated.get(index, ()))
        for index, (node_info, count) in enumerate(zip(nodes, search.counts.tolist(), strict=True))
    ]
    steps = StepsOfNodes(table, search, victims[tried], uses, tried, num_others)
    others = other_orders(table, search, victims, tried, uses, budgets, orders) if orders is not None else {}
    is_evicted = ~search.kept & search.fits[search.where]
    goes = _those_who_go(table, search, is_evicted, victims[tried], tried, uses.violates[tried], in_go)
    gone = [table.pods[position] for position in goes.tolist()]
    outcomes = _outcomes(nodes, search, is_evicted, gone, uses.violates[tried], is_left_out, others, num_others)
    silent = {each.plugin for each in limits if not each.tells_detail}
    # A node without its victims is not bare where others are nominated to it.
    asked = outcomes if state.records_steps else {nodes[index].name for index, infos in nominated.items() if infos}
    for name in [name for name in asked if name in outcomes and outcomes[name].status.plugin in silent]:
        del outcomes[name]

    def steps_of(name: str) -> list[Reprieve] | None:
        """The steps on a node of which there are victims, unless a plugin that refused there cannot tell why."""
        if name not in outcomes or not outcomes[name].pods:
            return None
        found = steps.of_node(int(question[position[name]]))
        is_told = all(each.blocked_by is None or each.blocked_by.plugin not in silent for each in found)
        return found if is_told else None

    return AtOnce(_with_steps(outcomes, steps_of) if state.records_steps else outcomes, steps_of)


def _with_steps(
    outcomes: Mapping[str, Victims], steps_of: Callable[[str], list[Reprieve] | None]
) -> dict[str, Victims]:
    """The outcomes with their steps, without those of which these cannot be told."""
    told = {name: steps_of(name) if outcome.pods else [] for name, outcome in outcomes.items()}
    return {name: outcomes[name]._replace(steps=steps) for name, steps in told.items() if steps is not None}


def _add_nominated(
    limits: Sequence[PluginLimits], nominated: Mapping[int, Sequence[PodInfo]], num_nodes: int
) -> Booleans:
    """Add the pods nominated to nodes to the sums there; the nodes of which that cannot be said.

    The incoming pod must fit beside these and without them; as they only take room, that is the same as beside them.
    """
    is_left_out = np.zeros(num_nodes, dtype=np.bool_)
    for node, infos in nominated.items():
        for each in limits:
            for info in infos:
                added = each.adds(info)
                if added is None:
                    is_left_out[node] = True
                    continue
                for limit, amount in zip(each.limits, added, strict=True):
                    limit.used[node] += amount
    return is_left_out


def _can_help(table: PodTable, limits: Sequence[PluginLimits], priority: int, asked: Integers) -> Booleans:
    """Whether the pod fits on each of the nodes ``asked`` about once all pods of lower priority are gone."""
    can_help = np.ones(len(asked), dtype=np.bool_)
    for limit in [limit for each in limits for limit in each.limits]:
        gone = table.total(np.where(table.priority < priority, limit.amounts, 0))[asked]
        can_help &= limit.used - gone <= limit.limit
    return can_help


def _those_who_go(
    table: PodTable,
    search: Lockstep,
    is_evicted: Booleans,
    victims: Integers,
    tried: Integers,
    violates: Booleans,
    in_go: GoOrder | None,
) -> Integers:
    """The positions of those who go, node by node, in the scheduler's order; ``victims`` are as they were put back."""
    goes = victims[is_evicted]
    if not table.cluster.behaviour.sorts_victims_again:
        return goes
    if in_go is None:
        # A likely order stays as it is.
        return goes[order_by(table.importance.rank[goes], tried[is_evicted])]
    num_violating = np.bincount(search.where[violates], minlength=len(search.counts))
    has_both = (num_violating > 0) & (num_violating < search.counts)
    first = np.searchsorted(search.where[is_evicted], np.arange(len(search.counts) + 1)).tolist()
    return in_go.sort_again(goes, first, has_both.tolist().__getitem__)


def _outcomes(
    nodes: Sequence[NodeInfo],
    search: Lockstep,
    is_evicted: Booleans,
    gone: Sequence[Pod],
    violates: Booleans,
    is_left_out: Booleans,
    others: Mapping[int, Outcomes[Pod]],
    num_others: Sequence[int],
) -> dict[str, Victims]:
    where = search.where[is_evicted]
    num_violations = np.bincount(where[violates[is_evicted]], minlength=len(nodes)).tolist()
    bounds = np.searchsorted(where, np.arange(len(nodes) + 1)).tolist()
    counts, fits, left_out = search.counts.tolist(), search.fits.tolist(), is_left_out.tolist()
    result: dict[str, Victims] = {}
    for index, node_info in enumerate(nodes):
        if left_out[index]:
            continue
        if not counts[index]:
            result[node_info.name] = NO_VICTIMS
        elif not fits[index]:
            result[node_info.name] = Victims(search.refusal_without_victims(index, num_others[index]), [], 0, [])
        elif bounds[index] < bounds[index + 1]:
            on_node = list(gone[bounds[index] : bounds[index + 1]])
            result[node_info.name] = Victims(SUCCESS, on_node, num_violations[index], [], others.get(index))
    return result


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


class StepsOfNodes:
    """Makes the steps on one node, in the order in which they were taken.

    ``victims`` are those of ``search``, and ``num_others`` says how many pods stay on each node in any case; ``tried``
    gives for each victim its index in the order in which budgets were counted.
    """

    def __init__(
        self,
        table: PodTable,
        search: Lockstep,
        victims: Integers,
        uses: BudgetUses,
        tried: Integers,
        num_others: Sequence[int],
    ) -> None:
        self._table = table
        self._search = search
        self._victims = victims
        self._uses = uses
        self._tried = tried
        self._num_others = num_others

    @cached_property
    def _of_budgets(self) -> Callable[[int, int], list[list[BudgetUse]]]:
        return self._uses.by_victim()

    def of_node(self, node: int) -> list[Reprieve]:
        """The steps on a node of the question."""
        begin, end = int(self._search.first[node]), int(self._search.first[node + 1])
        # Budgets were counted on the same node, in another order.
        uses = self._of_budgets(begin, end)
        tried = self._tried[begin:end]
        steps = zip(
            self._victims[begin:end].tolist(),
            (tried - begin).tolist(),
            self._uses.violates[tried].tolist(),
            self._search.refusals_on(node, self._num_others[node]),
            strict=True,
        )
        return [
            _step(self._table.pods[position], uses[place], refusal, violates=violates)
            for position, place, violates, refusal in steps
        ]


def _step(pod: Pod, uses: list[BudgetUse], refusal: Status | None, *, violates: bool) -> Reprieve:
    return Reprieve(
        pod=pod.key,
        priority=pod.priority,
        kept=refusal is None,
        start_time=pod.start,
        violates_budget=violates,
        budgets=uses,
        blocked_by=refusal,
    )
