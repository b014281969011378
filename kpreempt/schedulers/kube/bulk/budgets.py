"""Which evictions would violate a budget, for the potential victims of all nodes at once."""

from __future__ import annotations

import numpy as np

from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex


def violating(table: PodTable, victims: Integers, budgets: BudgetIndex) -> Booleans:
    """For each of ``victims`` whether its eviction, after those before it on its node, violates a budget.

    ``victims`` are positions in the table, node by node, on each node most important first.
    """
    groups, representatives = table.label_groups
    protecting = [budgets.selecting(pod) for pod in representatives]
    by_key = {budget.key: budget for each in protecting for budget in each}
    numbers = {key: number for number, key in enumerate(by_key)}
    numbered = list(by_key.values())
    allowed = [budget.status.disruptions_allowed if budget.status else 0 for budget in numbered]
    result = np.zeros(len(victims), dtype=np.bool_)
    most = max(map(len, protecting), default=0)
    of_victims = groups[victims]
    uses: list[tuple[Integers, Integers]] = []
    for column in range(most):
        by_group = np.array(
            [numbers[each[column].key] if column < len(each) else -1 for each in protecting], dtype=np.int64
        )
        used = by_group[of_victims]
        where = np.flatnonzero(used >= 0)
        uses.append((where, used[where]))
    if not uses:
        return result
    positions = np.concatenate([where for where, _ in uses])
    numbers_used = np.concatenate([used for _, used in uses])
    positions, numbers_used = _without_disrupted(table, victims, positions, numbers_used, numbered)
    node = table.node[victims[positions]]
    # Per node and budget, in the order of importance: the how-manieth eviction this is.
    order = np.lexsort((positions, numbers_used, node))
    same = (node[order][1:] == node[order][:-1]) & (numbers_used[order][1:] == numbers_used[order][:-1])
    starts = np.flatnonzero(np.concatenate(([True], ~same))) if len(order) else np.zeros(0, dtype=np.int64)
    lengths = np.diff(np.append(starts, len(order)))
    nth = np.arange(len(order)) - np.repeat(starts, lengths)
    exceeds = nth >= np.array(allowed, dtype=np.int64)[numbers_used[order]]
    result[positions[order][exceeds]] = True
    return result


def _without_disrupted(
    table: PodTable,
    victims: Integers,
    positions: Integers,
    budget: Integers,
    numbered: list[PodDisruptionBudget],
) -> tuple[Integers, Integers]:
    """Leave out pods that their budget counts as disrupted already; ``budget`` are indices into ``numbered``."""
    disrupted = [each.status.disrupted_pods if each.status else {} for each in numbered]
    if not any(disrupted):
        return positions, budget
    keep = np.array(
        [
            table.pods[victims[position]].metadata.name not in disrupted[number]
            for position, number in zip(positions.tolist(), budget.tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    return positions[keep], budget[keep]
