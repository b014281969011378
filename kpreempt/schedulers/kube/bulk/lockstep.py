"""Put the potential victims of all nodes back in lockstep: the first of every node, then the second of every node.

``uses_of`` computes for all of them at once which evictions would violate a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import add
from typing import NamedTuple

import numpy as np

from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.kube.bulk.limits import Excess, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable, distinct, order_by
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex
from kpreempt.verdict import BudgetUse, Status


class _Scarce(NamedTuple):
    """The ``capacity`` that a limit leaves to each node's victims, and on which nodes it ``is_short`` for all."""

    capacity: Integers
    amounts: Integers
    is_short: Booleans


class Lockstep:
    """Decides which pods stay with the incoming one.

    ``victims`` are positions in the table, node by node, on each node in reprieve order, and ``nodes`` is the node of
    each, as an index into the nodes of the query. ``is_kept`` has a flag for each victim that stays, and ``fits`` for
    each node on which the incoming pod fits without any of them.
    """

    def __init__(
        self,
        limits: Sequence[PluginLimits],
        victims: Integers,
        nodes: Integers,
        num_nodes: int,
    ) -> None:
        self._by_plugin = limits
        self._limits = [limit for each in limits for limit in each.limits]
        self.nodes = nodes
        # The number of victims per node, and the index in ``victims`` at which they start.
        self.counts = np.bincount(nodes, minlength=num_nodes)
        self.first = np.concatenate(([0], np.cumsum(self.counts)))
        self._amounts = [limit.amounts[victims] for limit in self._limits]
        # Sums without any lower-priority pod.
        self._bare_sums: list[Integers] = []
        for limit, amounts in zip(self._limits, self._amounts, strict=True):
            running = np.zeros(len(amounts) + 1, dtype=np.int64)
            np.cumsum(amounts, out=running[1:])
            self._bare_sums.append(limit.used - (running[self.first[1:]] - running[self.first[:-1]]))
        self.fits = np.ones(num_nodes, dtype=np.bool_)
        for limit, total in zip(self._limits, self._bare_sums, strict=True):
            self.fits &= total <= limit.limit
        self.is_kept = np.zeros(len(victims), dtype=np.bool_)
        # Decide every pod of the feasible nodes.
        sums = [total.copy() for total in self._bare_sums]
        active = np.flatnonzero(self.fits & (self.counts > 0))
        for rank in range(int(self.counts.max(initial=0))):
            active = active[self.counts[active] > rank]
            each = self.first[active] + rank
            totals = [total[active] + amounts[each] for total, amounts in zip(sums, self._amounts, strict=True)]
            stays = np.ones(len(active), dtype=np.bool_)
            for limit, total in zip(self._limits, totals, strict=True):
                stays &= total <= limit.limit[active]
            self.is_kept[each] = stays
            staying = active[stays]
            for mine, total in zip(sums, totals, strict=True):
                mine[staying] = total[stays]

    @cached_property
    def _scarce(self) -> list[_Scarce]:
        """Return the limits that are too low for all victims of each feasible node."""
        every = [
            _Scarce(limit.limit - total, amounts, limit.used > limit.limit)
            for limit, total, amounts in zip(self._limits, self._bare_sums, self._amounts, strict=True)
        ]
        return [each for each in every if (each.is_short & self.fits).any()]

    def amounts_in(self, order: Integers) -> list[Integers]:
        """Return for each scarce limit what each of these victims uses; nothing on nodes where all victims fit."""
        return [np.where(each.is_short[self.nodes[order]], each.amounts[order], 0) for each in self._scarce]

    def capacity_before(self, order: Integers) -> list[Integers]:
        """Return for each scarce limit what is still free when each of these victims is tried."""
        nodes = self.nodes[order]
        capacities = []
        for each in self._scarce:
            taken = np.where(self.is_kept, each.amounts, 0)
            before = np.cumsum(taken) - taken
            capacities.append(each.capacity[nodes] - (before[order] - before[self.first[nodes]]))
        return capacities

    def other_limits(self, node: int) -> list[int]:
        """Return what every scarce limit leaves to the victims of a node."""
        return [int(each.capacity[node]) for each in self._scarce]

    # Plain integers, because reading single values of a column is slow.

    @cached_property
    def _limits_of_nodes(self) -> list[list[int]]:
        return [_integers(limit.limit) for limit in self._limits]

    @cached_property
    def _bare_sums_of_nodes(self) -> list[list[int]]:
        return [_integers(total) for total in self._bare_sums]

    def rejection_without_victims(self, node: int, num_pods: int) -> Status:
        """Return why the pod does not fit a node even without lower-priority pods; ``num_pods`` others remain."""
        return self._rejection(node, [total[node] for total in self._bare_sums_of_nodes], num_pods, is_bare=True)

    def rejections_on(self, node: int, num_others: int) -> list[Status | None]:
        """Return for each victim of a node why the pod did not fit with it just put back; ``None`` if it stays.

        ``num_others`` is the number of pods that stay there in any case.
        """
        victims = slice(self.first[node], self.first[node + 1])
        sums = [total[node] for total in self._bare_sums_of_nodes]
        amounts = zip(*(_integers(column[victims]) for column in self._amounts), strict=True)
        num_pods, rejections = num_others, list[Status | None]()
        for is_kept, mine in zip(self.is_kept[victims].tolist(), amounts, strict=True):
            totals = list(map(add, sums, mine))
            if is_kept:
                sums, num_pods = totals, num_pods + 1
            rejections.append(None if is_kept else self._rejection(node, totals, num_pods + 1, is_bare=False))
        return rejections

    def _rejection(self, node: int, sums: list[int], num_pods: int, *, is_bare: bool) -> Status:
        """Return the status of the first plugin with an exceeded limit."""
        offset = 0
        for each in self._by_plugin:
            end = offset + len(each.limits)
            mine = sums[offset:end]
            exceeded = [
                total > limit[node] for total, limit in zip(mine, self._limits_of_nodes[offset:end], strict=True)
            ]
            if any(exceeded):
                return each.reject(Excess(node, exceeded, mine, num_pods, is_bare)).of_plugin(each.plugin)
            offset = end
        raise AssertionError("a feasible node was rejected")


def _integers(column: Integers) -> list[int]:
    integers: list[int] = column.tolist()
    return integers


class BudgetUses(NamedTuple):
    """What evicting the victims uses of budgets.

    ``violates`` has a flag for each victim that violates a budget. The other columns have one entry per victim and
    budget, a victim's budgets in their order: the ``victim``, the ``budget`` and the disruptions that it ``allowed``
    before. ``selected`` are victims and budgets that select them, including pods that already count as disrupted.
    """

    violates: Booleans
    victim: Integers
    budget: Integers
    allowed: Integers
    budgets: list[PodDisruptionBudget]
    selected: tuple[Integers, Integers]

    def by_victim(self) -> Callable[[int, int], list[list[BudgetUse]]]:
        """Return a function for what each victim in a range uses of its budgets."""
        order = np.argsort(self.victim, kind="stable")
        victims, budgets, allowed = self.victim[order], self.budget[order], self.allowed[order]
        keys = [budget.key for budget in self.budgets]

        def of_range(begin: int, end: int) -> list[list[BudgetUse]]:
            uses: list[list[BudgetUse]] = [[] for _ in range(begin, end)]
            mine = slice(*np.searchsorted(victims, [begin, end]).tolist())
            for victim, number, before in zip(
                victims[mine].tolist(), budgets[mine].tolist(), allowed[mine].tolist(), strict=True
            ):
                uses[victim - begin].append(BudgetUse(keys[number], before, before - 1))
            return uses

        return of_range


def uses_of(table: PodTable, victims: Integers, nodes: Integers, budgets: BudgetIndex) -> BudgetUses:
    """Return what evicting each of ``victims``, after those before it on its node, uses of ``budgets``.

    ``victims`` are positions in the table, node by node, on each node the most important first, and ``nodes`` the
    indices of the relevant ones, with all or none of a node.
    """
    groups, representatives = table.label_groups
    there = distinct(groups[victims[nodes]])
    protecting = [budgets.positions_of(representatives[group]) for group in there.tolist()]
    numbered = list(budgets.budgets)
    none = np.zeros(0, dtype=np.int64)
    of_victims = np.searchsorted(there, groups[victims[nodes]])
    victim, budget = [none], [none]
    for column in range(max(map(len, protecting), default=0)):
        by_group = np.array([each[column] if column < len(each) else -1 for each in protecting], dtype=np.int64)
        used = by_group[of_victims]
        indices = np.flatnonzero(used >= 0)
        victim.append(nodes[indices])
        budget.append(used[indices])
    selected = np.concatenate(victim), np.concatenate(budget)
    protected, protects = _without_disrupted(table, victims, *selected, numbered)
    allowed = _allowed_before(table.node[victims[protected]], protected, protects, numbered)
    violates = np.zeros(len(victims), dtype=np.bool_)
    violates[protected[allowed <= 0]] = True
    return BudgetUses(violates, protected, protects, allowed, numbered, selected)


def _allowed_before(
    node: Integers, victim: Integers, budget: Integers, numbered: list[PodDisruptionBudget]
) -> Integers:
    """Return the disruptions that each budget allows at a victim's turn, counted separately for every node."""
    allowed = np.array([each.status.disruptions_allowed if each.status else 0 for each in numbered], dtype=np.int64)
    # Per node and budget in order of importance; then the sequence number of each eviction.
    order = order_by(node, budget, victim)
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (node[order][1:] != node[order][:-1]) | (budget[order][1:] != budget[order][:-1])
    starts = np.flatnonzero(is_first)
    evictions_before = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    result = np.empty(len(order), dtype=np.int64)
    result[order] = allowed[budget[order]] - evictions_before
    return result


def _without_disrupted(
    table: PodTable,
    victims: Integers,
    victim: Integers,
    budget: Integers,
    numbered: list[PodDisruptionBudget],
) -> tuple[Integers, Integers]:
    """Omit pods that their budget already counts as disrupted; ``budget`` are indices into ``numbered``."""
    disrupted = [each.status.disrupted_pods if each.status else {} for each in numbered]
    if not any(disrupted):
        return victim, budget
    keep = np.array(
        [
            table.pods[victims[position]].metadata.name not in disrupted[number]
            for position, number in zip(victim.tolist(), budget.tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    return victim[keep], budget[keep]
