"""Equal pods on many nodes at once: whether their order matters, and what every order would lead to."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter, mul
from typing import NamedTuple

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import Choice, EquivalentPods, Outcomes, Possible, StayingPods, Steps
from kpreempt.schedulers.kube.bulk.lockstep import BudgetUses, Lockstep
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable, dense
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex
from kpreempt.schedulers.kube.preemption.ties import follow_on_node

# The key of an exhausted budget.
_USED_UP = ""


def other_orders(
    table: PodTable,
    search: Lockstep,
    victims: Integers,
    tried: Integers,
    uses: BudgetUses,
    budgets: BudgetIndex,
    steps: Steps,
) -> dict[int, Outcomes[Pod]]:
    """Return what every order of equals leads to, by node of the query; without nodes where all orders agree.

    ``victims`` are node by node, on each the most important first, equals in the likely order; ``tried`` are their
    indices in the order in which ``search`` put them back.
    """
    if not len(victims):
        return {}
    # Both orders are node by node.
    victim_nodes = search.nodes
    place = np.empty_like(tried)
    place[tried] = np.arange(len(tried))
    gone = ~search.is_kept[place]
    rank = table.importance.rank[victims]
    tie = np.concatenate(([0], np.cumsum(rank[1:] != rank[:-1])))
    parted = _parted(tie, uses)
    num_removed = np.bincount(tie, weights=gone)
    is_undecided = (num_removed > 0) & (num_removed < np.bincount(tie))
    is_undecided[tie[parted.victim]] = True
    is_candidate = search.fits & (np.bincount(victim_nodes, weights=gone, minlength=len(search.fits)) > 0)
    undecided = np.flatnonzero(is_undecided[tie] & is_candidate[victim_nodes])
    if not len(undecided):
        return {}
    kind = _kinds(undecided, search.amounts_in(place[undecided]), tie, parted)
    is_open = np.zeros(len(search.fits), dtype=np.bool_)
    is_open[victim_nodes[_if_order_matters(search, undecided, place, kind, tie, uses)]] = True
    is_open[victim_nodes[_if_kinds_share_a_budget(undecided, kind, tie, parted)]] = True
    num_removed = np.bincount(kind, weights=gone[undecided])
    parts = ((num_removed > 0) & (num_removed < np.bincount(kind)))[kind]
    is_chosen = np.zeros(len(search.fits), dtype=np.bool_)
    is_chosen[victim_nodes[undecided[parts]]] = True
    chosen = np.flatnonzero(is_chosen & ~is_open)
    found = _as_they_went(table, search, victims, undecided[parts], kind[parts], gone, uses.violates, chosen)
    followed = np.flatnonzero(is_open[victim_nodes])
    if len(followed):
        for node, ties in _ties_of_nodes(table, search, victims, followed, place, tie, parted, budgets):
            outcomes = follow_on_node(ties.ties, ties.allowed, ties.fits, steps)
            if not outcomes.is_certain:
                found[node] = outcomes
    return found


class _Parted(NamedTuple):
    """What pods use of budgets that allow only some of their tie to be evicted, one entry per pod and budget.

    ``violates`` has a flag for each victim that violates another budget in any order.
    """

    victim: Integers
    budget: Integers
    allowed: Integers
    violates: Booleans


def _parted(tie: Integers, uses: BudgetUses) -> _Parted:
    chosen = np.flatnonzero(np.bincount(tie)[tie[uses.victim]] > 1)
    index = dense(tie[uses.victim[chosen]] * len(uses.budgets) + uses.budget[chosen])
    is_allowed = np.bincount(index, weights=uses.allowed[chosen] > 0) > 0
    has_none = np.bincount(index, weights=uses.allowed[chosen] <= 0) > 0
    parted = chosen[(is_allowed & has_none)[index]]
    is_used_up = uses.allowed <= 0
    is_used_up[parted] = False
    violates = np.zeros(len(tie), dtype=np.bool_)
    violates[uses.victim[is_used_up]] = True
    return _Parted(uses.victim[parted], uses.budget[parted], uses.allowed[parted], violates)


def _kinds(undecided: Integers, amounts: Iterable[Integers], tie: Integers, parted: _Parted) -> Integers:
    """Return the kind of each of these victims: pods of a tie that no relevant limit and no budget distinguishes."""
    # Rows that are equal in all columns get the same number, from 0 on.
    columns = [tie[undecided], parted.violates[undecided].astype(np.int64), *_budgets_of(undecided, parted), *amounts]
    number: Integers | None = None
    for column in columns:
        index = dense(column)
        number = index if number is None else dense(number * (int(index.max()) + 1) + index)
    assert number is not None
    return number


def _if_order_matters(
    search: Lockstep, undecided: Integers, place: Integers, kind: Integers, tie: Integers, uses: BudgetUses
) -> Integers:
    """Return victims of ties, among the ``undecided`` ones, for which another order may keep other kinds.

    This is the case if the pods put back in one pass do not all fit although each fits alone, and their kinds differ.
    It is computed for what the likely order leaves to them: up to the first such tie of a node, all orders leave the
    same.
    """
    order = np.argsort(place[undecided])
    places, kind = place[undecided][order], kind[order]
    group = 2 * tie[undecided][order] + uses.violates[undecided][order]
    first = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    size = np.diff(np.append(first, len(group)))
    amounts = search.amounts_in(places)
    capacities = search.capacity_before(places[first])
    fits_alone = np.ones(len(places), dtype=np.bool_)
    uses_limit = np.zeros(len(places), dtype=np.bool_)
    for amount, capacity in zip(amounts, capacities, strict=True):
        fits_alone &= amount <= np.repeat(capacity, size)
        uses_limit |= amount > 0
    is_rival = fits_alone & uses_limit
    is_crowded = np.zeros(len(first), dtype=np.bool_)
    for amount, capacity in zip(amounts, capacities, strict=True):
        is_crowded |= np.add.reduceat(np.where(is_rival, amount, 0), first) > capacity
    least = np.minimum.reduceat(np.where(is_rival, kind, len(kind)), first)
    most = np.maximum.reduceat(np.where(is_rival, kind, -1), first)
    open_ones: Integers = undecided[order[first[is_crowded & (least < most)]]]
    return open_ones


def _if_kinds_share_a_budget(undecided: Integers, kind: Integers, tie: Integers, parted: _Parted) -> Integers:
    """Return victims of ties, among the ``undecided`` ones, if the order decides how many of a kind violate a budget.

    If the budget that splits them protects pods of only one kind, the number that violates it is the same in any order.
    """
    kind_of = np.full(len(tie), -1, dtype=np.int64)
    kind_of[undecided] = kind
    mine = np.flatnonzero(kind_of[parted.victim] >= 0)
    victim = parted.victim[mine]
    index = dense(tie[victim] * (int(parted.budget.max(initial=0)) + 1) + parted.budget[mine])
    some_kind = np.empty(len(index), dtype=np.int64)
    some_kind[index] = kind_of[victim]
    shared: Integers = victim[some_kind[index] != kind_of[victim]]
    return shared


def _budgets_of(undecided: Integers, parted: _Parted) -> Iterable[Integers]:
    """Yield the first such budget of each of the victims ``undecided``, then the second, and so on; -1 for none."""
    place = np.full(len(parted.violates), -1, dtype=np.int64)
    place[undecided] = np.arange(len(undecided))
    victim, budget = place[parted.victim], parted.budget
    order = np.argsort(victim, kind="stable")
    victim, budget = victim[order], budget[order]
    which = np.arange(len(victim)) - np.searchsorted(victim, victim)
    for number in range(int(which[victim >= 0].max(initial=-1)) + 1):
        column = np.full(len(undecided), -1, dtype=np.int64)
        is_it = (which == number) & (victim >= 0)
        column[victim[is_it]] = budget[is_it]
        yield column


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
    """Return the outcomes on ``nodes`` where everything is certain except which equivalent pods are evicted.

    ``parted`` are the victims of a ``kind`` of which some are evicted and some stay.
    """
    victim_nodes = search.nodes
    is_selected = np.zeros(len(search.counts), dtype=np.bool_)
    is_selected[nodes] = True
    num_violations = np.bincount(victim_nodes, weights=violates & gone, minlength=len(search.counts))
    is_certain = gone & is_selected[victim_nodes]
    is_certain[parted] = False
    certain = np.flatnonzero(is_certain)
    bounds = np.searchsorted(victim_nodes[certain], [nodes, nodes + 1]).tolist()
    pods = [table.pods[position] for position in victims[certain].tolist()]
    choices: dict[int, dict[int, Choice[Pod]]] = {}
    parted, kind = parted[is_selected[victim_nodes[parted]]], kind[is_selected[victim_nodes[parted]]]
    of_kind: dict[int, list[Pod]] = {}
    for node, number, position in zip(
        victim_nodes[parted].tolist(), kind.tolist(), victims[parted].tolist(), strict=True
    ):
        of_node = choices.setdefault(node, {})
        if number not in of_node:
            of_kind[number] = []
            of_node[number] = Choice(0, of_kind[number])
        of_kind[number].append(table.pods[position])
    num_removed = np.bincount(kind, weights=gone[parted]).astype(np.int64).tolist()
    return {
        node: Outcomes(
            [
                Possible(
                    pods[begin:end],
                    [choice._replace(number=num_removed[number]) for number, choice in choices[node].items()],
                    int(num_violations[node]),
                )
            ]
        )
        for node, begin, end in zip(nodes.tolist(), *bounds, strict=True)
    }


class _TiesOfNode(NamedTuple):
    """The ties of a node, what the budgets that distinguish their pods allow, and what limits leave free."""

    ties: list[list[EquivalentPods[Pod]]]
    allowed: dict[str, int]
    # By limit, what it leaves to the victims, and what a pod of each kind uses.
    capacities: list[tuple[int, tuple[int, ...]]]

    def fits(self, kept: StayingPods, kind: int) -> bool:
        """Return whether one more pod of the kind fits with these."""
        return all(sum(map(mul, kept, amounts), amounts[kind]) <= capacity for capacity, amounts in self.capacities)


def _ties_of_nodes(
    table: PodTable,
    search: Lockstep,
    victims: Integers,
    followed: Integers,
    place: Integers,
    tie: Integers,
    parted: _Parted,
    budgets: BudgetIndex,
) -> Iterable[tuple[int, _TiesOfNode]]:
    """Return the ties of each node whose victims are to be ``followed``."""
    amounts = search.amounts_in(place[followed])
    keys, allowed = _keys(followed, tie, parted, budgets)
    columns = zip(
        search.nodes[followed].tolist(),
        tie[followed].tolist(),
        _kinds(followed, amounts, tie, parted).tolist(),
        zip(*(column.tolist() for column in amounts), strict=True),
        keys,
        victims[followed].tolist(),
        strict=True,
    )
    for node, rows in groupby(columns, key=itemgetter(0)):
        kinds: dict[int, dict[int, EquivalentPods[Pod]]] = {}
        takes = []
        for _, number, kind, taken, protected_by, position in rows:
            of_tie = kinds.setdefault(number, {})
            if kind not in of_tie:
                of_tie[kind] = EquivalentPods([], protected_by)
                takes.append(taken)
            of_tie[kind].pods.append(table.pods[position])
        capacities = zip(search.other_limits(node), zip(*takes, strict=True), strict=True)
        ties = [list(of_tie.values()) for of_tie in kinds.values()]
        yield node, _TiesOfNode(ties, allowed, [each for each in capacities if any(each[1])])


def _keys(
    followed: Integers, tie: Integers, parted: _Parted, budgets: BudgetIndex
) -> tuple[list[tuple[str, ...]], dict[str, int]]:
    """Return the keys of the budgets of each of these victims, and what they allow when the tie's turn comes.

    Within a node, a budget splits only one tie, so each tie has its own keys.
    """
    is_followed = np.zeros(len(tie), dtype=np.bool_)
    is_followed[followed] = True
    mine = np.flatnonzero(is_followed[parted.victim])
    by_victim: dict[int, tuple[str, ...]] = {}
    allowed: dict[str, int] = {}
    for victim, number, budget, before in zip(
        parted.victim[mine].tolist(),
        tie[parted.victim[mine]].tolist(),
        parted.budget[mine].tolist(),
        parted.allowed[mine].tolist(),
        strict=True,
    ):
        key = f"{budgets.budgets[budget].key} {number}"
        by_victim[victim] = (*by_victim.get(victim, ()), key)
        allowed[key] = max(before, allowed.get(key, before))
    keys = [
        (*by_victim.get(victim, ()), *([_USED_UP] if violates else []))
        for victim, violates in zip(followed.tolist(), parted.violates[followed].tolist(), strict=True)
    ]
    return keys, allowed
