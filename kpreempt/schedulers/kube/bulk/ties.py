"""Equal pods on many nodes at once: where their order matters, and what every order would lead to there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import Choice, Outcomes, Possible, Steps
from kpreempt.schedulers.kube.bulk.budgets import BudgetUses
from kpreempt.schedulers.kube.bulk.lockstep import Lockstep
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable
from kpreempt.schedulers.kube.bulk.sorting import dense, distinct
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
) -> dict[int, Outcomes[Pod]]:
    """What every order of equals leads to, by node of the question; no node where all lead to the same.

    ``victims`` are node by node, on each most important first, equals in the likely order; ``tried`` are their indices
    in the order in which ``search`` has put them back.
    """
    kept = np.empty(len(victims), dtype=np.bool_)
    kept[tried] = search.kept
    # Both orders are node by node.
    where = search.where
    ties = _ties(table.importance.rank[victims], kept, uses)
    asked = np.flatnonzero(ties.is_undecided[ties.number] & search.fits[where])
    if not len(asked):
        return {}
    amounts = search.amounts_in(np.argsort(tried)[asked])
    kind = _numbered([ties.number[asked], *_budgets_of(asked, uses), *amounts])
    size = np.bincount(kind)
    # Of each kind some pod.
    one_of_kind = np.empty(len(size), dtype=np.int64)
    one_of_kind[kind] = asked
    gone = np.bincount(kind, weights=~kept[asked])
    parts = (gone > 0) & (gone < size)
    has_kinds = np.bincount(ties.number[one_of_kind], minlength=len(ties.is_undecided)) > 1
    is_open = has_kinds & ties.is_decided_by_order
    open_nodes = distinct(where[asked[is_open[ties.number[asked]]]]).tolist()
    is_chosen = np.zeros(len(search.counts), dtype=np.bool_)
    is_chosen[where[asked[parts[kind]]]] = True
    is_chosen[open_nodes] = False
    chosen = np.flatnonzero(is_chosen)
    found = _as_they_went(table, search, victims, asked[parts[kind]], kind[parts[kind]], ~kept, uses.violates, chosen)
    for node in open_nodes:
        outcomes = _on_node(table, search, victims, tried, kept, uses.violates, budgets, node, steps)
        if not outcomes.is_certain:
            found[node] = outcomes.of_each(lambda info: info.pod)
    return found


class _Ties(NamedTuple):
    """The number of each victim's tie; by that, whether its order may matter at all, and whether where kinds differ."""

    number: Integers
    is_undecided: Booleans
    is_decided_by_order: Booleans


def _ties(rank: Integers, kept: Booleans, uses: BudgetUses) -> _Ties:
    """Undecided are ties of which some pods stay and some go, or of which budgets allow some to go and some not.

    ``is_decided_by_order`` of the plain path says what else there must be: pods that are told apart.
    """
    tie = np.concatenate(([0], np.cumsum(rank[1:] != rank[:-1]))) if len(rank) else np.zeros(0, dtype=np.int64)
    sizes = np.bincount(tie)

    def parts(chosen: Booleans, among: Integers) -> Booleans:
        number = np.bincount(tie, weights=chosen, minlength=len(sizes))
        return (number > 0) & (number < among)

    num_violating = np.bincount(tie, weights=uses.violates, minlength=len(sizes))
    splits = parts(kept & uses.violates, num_violating) | parts(kept & ~uses.violates, sizes - num_violating)
    chosen = np.flatnonzero(sizes[tie[uses.victim]] > 1)
    if len(chosen):
        tie_of, allowed = tie[uses.victim[chosen]], uses.allowed[chosen]
        index = dense(tie_of * len(uses.budgets) + uses.budget[chosen])
        has_room = np.bincount(index, weights=allowed > 0) > 0
        has_none = np.bincount(index, weights=allowed <= 0) > 0
        splits[tie_of[(has_room & has_none)[index]]] = True
    return _Ties(tie, (splits | parts(kept, sizes)) & (sizes > 1), splits)


def _budgets_of(asked: Integers, uses: BudgetUses) -> Iterable[Integers]:
    """The first budget of each of the victims that are ``asked`` about, then the second, and so on; -1 for none."""
    place = np.full(len(uses.violates), -1, dtype=np.int64)
    place[asked] = np.arange(len(asked))
    victim, budget = place[uses.victim], uses.budget
    order = np.argsort(victim, kind="stable")
    victim, budget = victim[order], budget[order]
    which = np.arange(len(victim)) - np.searchsorted(victim, victim)
    for number in range(int(which[victim >= 0].max(initial=-1)) + 1):
        column = np.full(len(asked), -1, dtype=np.int64)
        is_it = (which == number) & (victim >= 0)
        column[victim[is_it]] = budget[is_it]
        yield column


def _numbered(columns: Iterable[Integers]) -> Integers:
    """The same number, from 0 on, where all columns have the same."""
    number: Integers | None = None
    for column in columns:
        index = dense(column)
        number = index if number is None else dense(number * (int(index.max()) + 1) + index)
    assert number is not None
    return number


def _as_they_went(
    table: PodTable,
    search: Lockstep,
    victims: Integers,
    parted: Integers,
    kind: Integers,
    gone: Booleans,
    violates: Booleans,
    nodes: Integers,
) -> dict[int, Outcomes[Pod]]:
    """The outcomes on ``nodes``, where all is certain but who of alike pods goes.

    ``parted`` are the victims of a ``kind`` of which some go and some stay.
    """
    where = search.where
    is_asked = np.zeros(len(search.counts), dtype=np.bool_)
    is_asked[nodes] = True
    num_violations = np.bincount(where, weights=violates & gone, minlength=len(search.counts))
    is_certain = gone & is_asked[where]
    is_certain[parted] = False
    certain = np.flatnonzero(is_certain)
    bounds = np.searchsorted(where[certain], [nodes, nodes + 1]).tolist()
    pods = [table.pods[position] for position in victims[certain].tolist()]
    choices: dict[int, dict[int, Choice[Pod]]] = {}
    parted, kind = parted[is_asked[where[parted]]], kind[is_asked[where[parted]]]
    of_kind: dict[int, list[Pod]] = {}
    for node, number, position in zip(where[parted].tolist(), kind.tolist(), victims[parted].tolist(), strict=True):
        of_node = choices.setdefault(node, {})
        if number not in of_node:
            of_kind[number] = []
            of_node[number] = Choice(0, of_kind[number])
        of_kind[number].append(table.pods[position])
    num_gone = np.bincount(kind, weights=gone[parted]).astype(np.int64).tolist()
    return {
        node: Outcomes(
            [
                Possible(
                    pods[begin:end],
                    [choice._replace(number=num_gone[number]) for number, choice in choices[node].items()],
                    int(num_violations[node]),
                )
            ]
        )
        for node, begin, end in zip(nodes.tolist(), *bounds, strict=True)
    }


def _on_node(
    table: PodTable,
    search: Lockstep,
    victims: Integers,
    tried: Integers,
    kept: Booleans,
    violates: Booleans,
    budgets: BudgetIndex,
    node: int,
    steps: Steps,
) -> Outcomes[PodInfo]:
    """What every order leads to on a node where that is more than who of alike pods goes."""
    of_node = slice(int(search.first[node]), int(search.first[node + 1]))
    put = [
        Put(PodWithBudgets(PodInfo(table.pods[position], table.cluster.behaviour), [], violating), stays)
        for position, violating, stays in zip(
            victims[of_node].tolist(), violates[of_node].tolist(), kept[of_node].tolist(), strict=True
        )
    ]
    back = np.argsort(tried[of_node]) + of_node.start
    # What each limit leaves to potential victims, and what each of these takes of it.
    room = search.limits_beside(node)
    amounts = list(zip(*(column.tolist() for column in search.amounts_in(back)), strict=True)) or [()] * len(put)
    takes = {each.counted.pod_info.key: amount for each, amount in zip(put, amounts, strict=True)}
    ties = node_ties(
        put,
        budgets,
        have_equal_rank,
        lambda one, other: takes[one.key] == takes[other.key],
        only_takes_room=True,
    )
    assert ties is not None and ties.is_open

    def fits(beside: Sequence[PodInfo], info: PodInfo) -> bool:
        columns = zip(*(takes[each.key] for each in (*beside, info)), strict=True)
        return all(sum(column) <= most for column, most in zip(columns, room, strict=True))

    return follow_all(ties, allowed_by(budgets, put), fits, steps)
