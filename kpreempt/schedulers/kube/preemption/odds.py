"""How likely each node is to win a preemption's search that stops early (``DryRunPreemption``, v1.36.3).

On big clusters the dry run stops once it has enough candidates, one of which violates no budget. Candidates that
violate budgets and those that do not are kept in two lists, each with room for just as many, and then the ordinary
rules choose. Nodes that are no candidates are passed over, so that only the order among the candidates decides.

That order is, as a rule, that of the Go map of refused nodes (``NodesForStatusCode``, ``framework/interface.go``),
which is made anew for every attempt: any order is then as likely as any other, or nearly so. Where PreFilter refused
the pod on all nodes at once, and where the map is so small that it is not hashed at all, it is the order of the
scheduler's list from a random start. Both are counted as a search would go that looks at one node after the other.

``sampling_of`` says how many nodes that fit are enough to score (``numFeasibleNodesToFind``, ``schedule_one.go``,
v1.36.3).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from kpreempt.schedulers.kube.framework.interface import DEFAULT_PARALLELISM, NodeToStatus
from kpreempt.verdict import Code, Odds, OddsOutcome, Sampling, SearchOrder

# Starts of searches: from the first one up to, but without, the second.
_Span = tuple[int, int]
# How good a candidate is under the rules of the choice, the higher the better.
Rank = tuple[float, ...]

# A Go map (1.24 and later) keeps so few entries in the order in which they came, and starts anywhere in it.
_ENTRIES_IN_ORDER = 8
# From here on a map's order is as good as any: no outcome is off by a percentage point (``make parity`` measures it).
_ENTRIES_IN_ANY_ORDER = 100
# Outcomes that all together are less likely than this are left out.
_NEVER = 1e-12
# From here on all outcomes that are left come to nothing beside that.
_NEVER_AT_ALL = 1e-16


class SampledCandidate(NamedTuple):
    """A candidate as the search sees it.

    ``rank`` is not looked at for candidates that violate budgets where there are others.
    """

    violates_budgets: bool
    rank: Rank


def num_candidates(potential_nodes: int, percentage: int, absolute: int) -> int:
    """How many candidates a search among so many nodes wants (``calculateNumCandidates``)."""
    return min(max(potential_nodes * percentage // 100, absolute), potential_nodes)


def search_order(filtered: NodeToStatus, *, is_list_known: bool) -> SearchOrder:
    """The order in which a search goes through the refused nodes.

    ``is_list_known`` says that the nodes were refused in the order of the list, and no node's turn came before.
    """
    if filtered.absent.code == Code.UNSCHEDULABLE:
        return SearchOrder.LIST
    # Where PreFilter left some nodes only, these come in the order of another map.
    is_full_list = is_list_known and not filtered.absent.reasons
    entries = filtered.num_rejected
    return SearchOrder.LIST if is_full_list and entries <= _ENTRIES_IN_ORDER else order_of_map(entries)


def order_of_map(entries: int) -> SearchOrder:
    """The order of a Go map with so many entries, of which nobody knows in which order they came."""
    return SearchOrder.ANY if entries >= _ENTRIES_IN_ANY_ORDER else SearchOrder.SMALL_MAP


def odds_of(
    potential_nodes: Sequence[str],
    candidates: Mapping[str, SampledCandidate],
    requested: int,
    *,
    order: SearchOrder,
    parallelism: int = DEFAULT_PARALLELISM,
) -> Odds:
    """What a search for ``requested`` candidates can end with.

    ``potential_nodes`` are in the order of the scheduler's list, ``candidates`` those of them on which preemption helps
    (at least one).
    """
    if order is SearchOrder.LIST:
        outcomes = outcomes_from_a_start(potential_nodes, candidates, requested)
    else:
        outcomes = outcomes_in_any_order(candidates, requested)
    size = len(potential_nodes)
    return Odds(order, requested, outcomes, parallelism, max(1, min(math.isqrt(size), size // parallelism + 1)))


def outcomes_in_any_order(candidates: Mapping[str, SampledCandidate], requested: int) -> list[OddsOutcome]:
    """The outcomes where every order of the nodes is as likely as every other, the most likely first.

    Of equal nodes each is as likely as the others. No outcomes where no candidate is wanted, or there is none.
    """
    if requested == 0:
        return []
    rivals = _rivals(candidates)
    best_first = sorted(rivals, key=rivals.__getitem__, reverse=True)
    # That none of the better ones is among the first candidates: as many candidates are left to draw from.
    none_before, left = 1.0, len(candidates)
    shares = []
    for _, names in groupby(best_first, key=rivals.__getitem__):
        tier, share = list(names), 0.0
        for _ in tier:
            is_drawn = min(requested, left) / left
            share += none_before * is_drawn
            none_before *= 1.0 - is_drawn
            left -= 1
        shares.append((tier, share))
        if none_before < _NEVER_AT_ALL:
            break
    # Candidates that violate budgets may fill the sample. The search then goes on to the first that does not.
    return _likely([OddsOutcome(tier, share + none_before * len(tier) / len(rivals)) for tier, share in shares])


def outcomes_from_a_start(
    potential_nodes: Sequence[str], candidates: Mapping[str, SampledCandidate], requested: int
) -> list[OddsOutcome]:
    """The outcomes where the nodes come in this order, from any of them on and round, the most likely first.

    Of equal nodes one that is in the search from more starts is more likely than the others. No outcomes where no
    candidate is wanted, or there is none.
    """
    size = len(potential_nodes)
    found = [(index, candidates[name]) for index, name in enumerate(potential_nodes) if name in candidates]
    if requested == 0 or not found:
        return []
    can_win = _rivals(candidates)
    rivals = [(index, candidate.rank) for index, candidate in found if potential_nodes[index] in can_win]
    ends = _ends_of_searches(size, [index for index, _ in found], [index for index, _ in rivals], requested)
    return _told(potential_nodes, ends, _won(size, rivals, ends))


def outcomes_of_scores(nodes: Sequence[str], scores: Sequence[int], requested: int) -> list[OddsOutcome]:
    """``outcomes_from_a_start`` where each of ``nodes`` is a candidate, as good as its score."""
    size = len(nodes)
    if requested == 0 or not nodes:
        return []
    ends = range(min(requested, size) - 1, min(requested, size) - 1 + size)
    return _told(nodes, ends, _won(size, enumerate(scores), ends))


def _told(nodes: Sequence[str], ends: Sequence[int], won: Iterable[tuple[list[int], list[int]]]) -> list[OddsOutcome]:
    size, outcomes = len(nodes), {}
    for tier, starts in won:
        # A search comes to the node that it starts with.
        is_all = len(starts) == size
        reached = [nodes[index] for index in tier if is_all or _is_reached(index, size, ends, starts)]
        outcomes[starts[0]] = OddsOutcome(reached, len(starts) / size)
    return _likely([outcomes[start] for start in sorted(outcomes)])


def _rivals(candidates: Mapping[str, SampledCandidate]) -> dict[str, Rank]:
    """The candidates that can win: one without violations, where there is one, is in every search, and beats others."""
    clean = {name: each.rank for name, each in candidates.items() if not each.violates_budgets}
    return clean or {name: each.rank for name, each in candidates.items()}


def _likely(outcomes: list[OddsOutcome]) -> list[OddsOutcome]:
    """The outcomes, the most likely first, without the least likely that together never happen."""
    ordered = sorted(outcomes, key=lambda each: -each.probability)
    rest = 0.0
    while ordered and rest + ordered[-1].probability < _NEVER:
        rest += ordered.pop().probability
    return ordered


def _ends_of_searches(size: int, found: list[int], rivals: list[int], requested: int) -> list[int]:
    """For each start the last node that can win, as an index that goes on counting after the first round.

    ``found`` are the indices of all candidates, ``rivals`` those of the candidates that can win.
    """
    if len(found) < requested:
        return [start + size - 1 for start in range(size)]
    if len(found) == len(rivals) == size:
        return [start + requested - 1 for start in range(size)]
    found_twice = [*found, *(index + size for index in found)]
    rivals_twice = [*rivals, *(index + size for index in rivals)]
    ends = []
    next_found = next_rival = 0
    for start in range(size):
        while found_twice[next_found] < start:
            next_found += 1
        while rivals_twice[next_rival] < start:
            next_rival += 1
        ends.append(max(found_twice[next_found + requested - 1], rivals_twice[next_rival]))
    return ends


def _won(
    size: int, rivals: Iterable[tuple[int, Rank | int]], ends: Sequence[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """The candidates of each rank that wins, with the starts (ascending) of the searches that it wins; the best first.

    As the start moves on by one node, so does the end of its search, or it stays: who comes to a candidate are
    neighbours.
    """
    tiers: dict[Any, list[int]] = {}
    for index, rank in rivals:
        tiers.setdefault(rank, []).append(index)
    left: list[_Span] = [(0, size)]
    first_start = _first_start(ends)
    for rank in sorted(tiers, reverse=True):
        tier = tiers[rank]
        spans = [(first_start(index), index + 1) for index in tier]
        won, left = _divided(left, sorted([*spans, (first_start(tier[0] + size), size)]))
        if won:
            yield tier, [start for span in won for start in range(*span)]
        if not left:
            return


def _divided(spans: Sequence[_Span], others: Sequence[_Span]) -> tuple[list[_Span], list[_Span]]:
    """What of ``spans`` is in some of the ``others``, and what is in none; all by their starts, ascending."""
    inside, outside = [], []
    position = 0
    for start, end in spans:
        at = start
        while at < end:
            while position < len(others) and others[position][1] <= at:
                position += 1
            if position == len(others) or others[position][0] >= end:
                outside.append((at, end))
                break
            first, last = others[position]
            if first > at:
                outside.append((at, first))
            at = max(at, first)
            inside.append((at, min(end, last)))
            at = min(end, last)
    return inside, outside


def _first_start(ends: Sequence[int]) -> Callable[[int], int]:
    """What gives, by a node's index, the first start from which a search gets as far as the node."""
    if isinstance(ends, range):
        return lambda index: min(max(index - ends.start, 0), len(ends))
    return partial(bisect_left, ends)


def _is_reached(index: int, size: int, ends: Sequence[int], starts: list[int]) -> bool:
    """Whether one of ``starts`` (ascending) comes to the node, before or after the end of the list."""
    first_start = _first_start(ends)
    before = bisect_right(starts, index) - bisect_left(starts, first_start(index))
    return before > 0 or bisect_left(starts, first_start(index + size)) < len(starts)


MIN_FEASIBLE_NODES = 100
MIN_PERCENTAGE = 5
_MAX_PERCENTAGE = 50
_NODES_PER_PERCENT = 125


def sampling_of(
    nodes: int, feasible: int, *, percentage: int, is_scoring: bool, is_restricted: bool = False
) -> Sampling | None:
    """The sampling of a search through ``nodes`` nodes, ``feasible`` of which fit; ``None`` where it finds them all.

    A ``percentage`` of 0 lets the number of nodes decide. Without plugins that score (``is_scoring``) the first node
    that fits is taken. Where PreFilter left some nodes only (``is_restricted``), these come in the order of a Go map.
    """
    if percentage == 0:
        percentage = max(_MAX_PERCENTAGE - nodes // _NODES_PER_PERCENT, MIN_PERCENTAGE)
    nodes_to_find = nodes if nodes < MIN_FEASIBLE_NODES else max(nodes * percentage // 100, MIN_FEASIBLE_NODES)
    if not is_scoring:
        nodes_to_find = 1
    order = order_of_map(nodes) if is_restricted else SearchOrder.LIST
    return Sampling(nodes, nodes_to_find, percentage, order) if feasible > nodes_to_find else None
