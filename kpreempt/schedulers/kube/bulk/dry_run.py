"""Victims of many nodes in lockstep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import Outcomes, Steps
from kpreempt.schedulers.kube.bulk.budgets import uses_of
from kpreempt.schedulers.kube.bulk.checks import all_limits
from kpreempt.schedulers.kube.bulk.lockstep import Lockstep
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable
from kpreempt.schedulers.kube.bulk.steps import StepsOfNodes
from kpreempt.schedulers.kube.bulk.ties import other_orders
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FilterPlugin, Victims
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex
from kpreempt.schedulers.kube.preemption.importance import NO_START
from kpreempt.schedulers.kube.preemption.rules import REASON_NO_VICTIMS
from kpreempt.verdict import SUCCESS, Code, Reprieve, Status

# Up to here Go's sort keeps the order of equals.
MAX_STABLE = 12
NO_VICTIMS = Victims(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_NO_VICTIMS]), [], 0, [])


def dry_run(
    table: PodTable,
    filters: Sequence[FilterPlugin],
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    budgets: BudgetIndex,
    orders: Steps | None,
) -> dict[str, Victims]:
    """The victims on each of ``nodes`` that can be answered here; the others are missing from the result.

    All of ``nodes``, which are in the order of the snapshot, must have passed the filters that pods do not matter to.
    ``state`` is the one after PreFilter. Where it asks for steps, nodes are missing too on which a plugin refuses that
    cannot tell its details. ``orders`` has the steps that may be taken to follow the orders of equal pods, where theirs
    is not known. Nothing is changed.
    """
    limits = all_limits(table, filters, state, nodes)
    if limits is None or not nodes:
        return {}
    position = table.cluster.position
    question = np.full(len(table.cluster.node_infos), -1, dtype=np.int64)
    question[[position[node_info.name] for node_info in nodes]] = np.arange(len(nodes))
    is_victim = (table.priority < pod.priority) & (question[table.node] >= 0)
    order = table.importance.order
    victims = order[is_victim[order]]
    is_left_out = _left_out(table, nodes, victims, question[table.node[victims]], is_stable=orders is not None)
    for each in limits:
        if each.left_out is not None:
            is_left_out |= each.left_out
    uses = uses_of(table, victims, budgets)
    where = question[table.node[victims]]
    if budgets.stops_at_violated:
        # What is left of a budget hangs on those before it here.
        is_left_out[where[np.bincount(uses.victim, minlength=len(victims)) > 1]] = True
    # Those that violate a budget are put back before all others.
    tried = np.argsort(2 * where + ~uses.violates, kind="stable")
    search = Lockstep(limits, victims[tried], where[tried], len(nodes), records_steps=state.records_steps)
    search.run()
    steps = StepsOfNodes(table, search, victims[tried], uses, tried, nodes) if state.records_steps else None
    others = other_orders(table, search, victims, tried, uses, budgets, orders) if orders is not None else {}
    # Go sorts the victims once more, which leaves equals as they were tried; a likely order stays as it is.
    ties = np.arange(len(tried)) if orders is None else tried
    outcomes = _outcomes(table, nodes, search, victims[tried], uses.violates[tried], is_left_out, steps, others, ties)
    if state.records_steps:
        silent = {each.plugin for each in limits if not each.tells_detail}
        return {name: outcome for name, outcome in outcomes.items() if not _refusing_plugins(outcome) & silent}
    return outcomes


def _refusing_plugins(outcome: Victims) -> set[str]:
    """The plugins whose refusals are part of the outcome's evidence."""
    blocking = {step.blocked_by.plugin for step in outcome.steps if step.blocked_by is not None}
    return blocking | {outcome.status.plugin}


def _left_out(
    table: PodTable, nodes: Sequence[NodeInfo], victims: Integers, where: Integers, *, is_stable: bool
) -> Booleans:
    """Nodes for the plain path: nominated pods count there, or equal pods are in an order that Go's sort decides.

    ``victims`` are most important first on each node, and ``where`` is the node of each. With a sort that ``is_stable``
    equals stay as they are.
    """
    nominated = table.cluster.nominated_pods
    left_out = np.array([node_info.name in nominated for node_info in nodes], dtype=np.bool_)
    if is_stable:
        return left_out
    left_out[where[table.start[victims] == NO_START]] = True
    rank = table.importance.rank[victims]
    tied = where[1:][rank[1:] == rank[:-1]]
    counts = np.bincount(where, minlength=len(nodes))
    left_out[tied[counts[tied] > MAX_STABLE]] = True
    return left_out


def _outcomes(
    table: PodTable,
    nodes: Sequence[NodeInfo],
    search: Lockstep,
    victims: Integers,
    violates: Booleans,
    is_left_out: Booleans,
    steps: StepsOfNodes | None,
    others: Mapping[int, Outcomes[PodInfo]],
    ties: Integers,
) -> dict[str, Victims]:
    evicted = np.flatnonzero(~search.kept)
    goes, where = victims[evicted], search.where[evicted]
    num_violations = np.bincount(where[violates[evicted]], minlength=len(nodes)).tolist()
    # Most important first, and ``ties`` orders equals.
    order = np.lexsort((ties[evicted], table.importance.rank[goes]))
    if not table.cluster.behaviour.sorts_victims_again:
        order = np.arange(len(goes))
    pods = [table.pods[position] for position in goes[order].tolist()]
    bounds = np.searchsorted(where[order], np.arange(len(nodes) + 1)).tolist()
    counts, fits, left_out = search.counts.tolist(), search.fits.tolist(), is_left_out.tolist()
    result: dict[str, Victims] = {}
    for index, node_info in enumerate(nodes):
        if left_out[index]:
            continue
        if not counts[index]:
            result[node_info.name] = NO_VICTIMS
        elif not fits[index]:
            status = search.refusal_without_victims(index, node_info.num_pods - counts[index])
            result[node_info.name] = Victims(status, [], 0, [])
        elif bounds[index] < bounds[index + 1]:
            of_node: list[Reprieve] = steps.of_node(index) if steps else []
            on_node = pods[bounds[index] : bounds[index + 1]]
            result[node_info.name] = Victims(SUCCESS, on_node, num_violations[index], of_node, others.get(index))
    return result
