"""Which evictions would violate a budget, for the potential victims of all nodes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable, distinct, order_by
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex
from kpreempt.verdict import BudgetUse


class BudgetUses(NamedTuple):
    """What evicting the victims takes from budgets.

    ``violates`` says of each victim whether a budget is violated. The others have one entry per victim and budget, the
    budgets of a victim in their order: the ``victim``, the ``budget`` and how many disruptions it ``allowed`` before.
    """

    violates: Booleans
    victim: Integers
    budget: Integers
    allowed: Integers
    budgets: list[PodDisruptionBudget]

    def by_victim(self) -> Callable[[int, int], list[list[BudgetUse]]]:
        """What each victim from one up to another takes from its budgets."""
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


def uses_of(table: PodTable, victims: Integers, asked: Integers, budgets: BudgetIndex) -> BudgetUses:
    """What evicting each of ``victims``, after those before it on its node, takes from ``budgets``.

    ``victims`` are positions in the table, node by node, on each node most important first, and ``asked`` the places
    among them of those that matter, with all or none of a node.
    """
    groups, representatives = table.label_groups
    there = distinct(groups[victims[asked]])
    protecting = [budgets.positions_of(representatives[group]) for group in there.tolist()]
    numbered = list(budgets.budgets)
    none = np.zeros(0, dtype=np.int64)
    of_victims = np.searchsorted(there, groups[victims[asked]])
    victim, budget = [none], [none]
    for column in range(max(map(len, protecting), default=0)):
        by_group = np.array([each[column] if column < len(each) else -1 for each in protecting], dtype=np.int64)
        used = by_group[of_victims]
        where = np.flatnonzero(used >= 0)
        victim.append(asked[where])
        budget.append(used[where])
    protected, protects = _without_disrupted(table, victims, np.concatenate(victim), np.concatenate(budget), numbered)
    allowed = _allowed_before(table.node[victims[protected]], protected, protects, numbered)
    violates = np.zeros(len(victims), dtype=np.bool_)
    violates[protected[allowed <= 0]] = True
    return BudgetUses(violates, protected, protects, allowed, numbered)


def _allowed_before(
    node: Integers, victim: Integers, budget: Integers, numbered: list[PodDisruptionBudget]
) -> Integers:
    """How many disruptions each budget allows when a victim's turn comes, counted on every node on its own."""
    allowed = np.array([each.status.disruptions_allowed if each.status else 0 for each in numbered], dtype=np.int64)
    # Per node and budget in the order of importance; then the how-manieth eviction each is.
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
    """Leave out pods that their budget counts as disrupted already; ``budget`` are indices into ``numbered``."""
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
