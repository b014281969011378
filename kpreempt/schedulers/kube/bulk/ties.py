"""Equal pods on many nodes at once: where their order matters, and what every order would lead to there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpreempt.schedulers.equal_pods import Outcomes, Steps
from kpreempt.schedulers.kube.bulk.budgets import BudgetUses
from kpreempt.schedulers.kube.bulk.lockstep import Lockstep
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex, PodWithBudgets
from kpreempt.schedulers.kube.preemption.importance import have_equal_rank
from kpreempt.schedulers.kube.preemption.ties import Put, allowed_by, follow_all, node_ties


def other_orders(
    table: PodTable,
    search: Lockstep,
    victims: Integers,
    tried: Integers,
    uses: BudgetUses,
    budgets: BudgetIndex,
    steps: Steps,
) -> dict[int, Outcomes[PodInfo]]:
    """What every order of equals leads to, by node of the question; no node where all lead to the same.

    ``victims`` are node by node, on each most important first, equals in the likely order; ``tried`` are their indices
    in the order in which ``search`` has put them back.
    """
    kept = np.empty(len(victims), dtype=np.bool_)
    kept[tried] = search.kept
    # Both orders are node by node.
    where = search.where
    undecided = _undecided(table.importance.rank[victims], kept, uses)
    violates, amounts = uses.violates.tolist(), search.amounts_in(np.argsort(tried))
    found = {}
    for node in np.unique(where[undecided & search.fits[where]]).tolist():
        positions = range(int(search.first[node]), int(search.first[node + 1]))
        infos = [PodInfo(table.pods[victims[position]], table.cluster.behaviour) for position in positions]
        put = [
            Put(PodWithBudgets(info, [], violates[position]), bool(kept[position]))
            for position, info in zip(positions, infos, strict=True)
        ]
        outcomes = _on_node(put, budgets, search.limits_beside(node), [amounts[each] for each in positions], steps)
        if outcomes is not None and not outcomes.is_certain:
            found[node] = outcomes
    return found


def _undecided(rank: Integers, kept: Booleans, uses: BudgetUses) -> Booleans:
    """The pods of ties of which some stay and some go, or of which budgets allow some to go and some not."""
    if not len(rank):
        return kept
    tie = np.concatenate(([0], np.cumsum(rank[1:] != rank[:-1])))
    sizes = np.bincount(tie)
    num_kept = np.bincount(tie, weights=kept)
    is_open = (num_kept > 0) & (num_kept < sizes)
    if len(uses.victim):
        pair = tie[uses.victim] * len(uses.budgets) + uses.budget
        _, index = np.unique(pair, return_inverse=True)
        has_room = np.bincount(index, weights=uses.allowed > 0) > 0
        has_none = np.bincount(index, weights=uses.allowed <= 0) > 0
        is_open[tie[uses.victim[(has_room & has_none)[index]]]] = True
    return is_open[tie] & (sizes[tie] > 1)


def _on_node(
    put: Sequence[Put],
    budgets: BudgetIndex,
    room: Sequence[int],
    amounts: Sequence[tuple[int, ...]],
    steps: Steps,
) -> Outcomes[PodInfo] | None:
    """``room`` is what each limit leaves to potential victims, and ``amounts`` what each of these takes of it."""
    takes = {each.counted.pod_info.key: amount for each, amount in zip(put, amounts, strict=True)}
    ties = node_ties(
        put,
        budgets,
        have_equal_rank,
        lambda one, other: takes[one.key] == takes[other.key],
        only_takes_room=True,
    )
    if ties is None:
        return None
    if not ties.is_open:
        return ties.as_it_went(sum(each.counted.violates and not each.kept for each in put))

    def fits(beside: Sequence[PodInfo], info: PodInfo) -> bool:
        columns = zip(*(takes[each.key] for each in (*beside, info)), strict=True)
        return all(sum(column) <= most for column, most in zip(columns, room, strict=True))

    return follow_all(ties, allowed_by(budgets, put), fits, steps)
