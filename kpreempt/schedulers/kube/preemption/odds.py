"""The odds of each node to be chosen by a preemption that stops its search early (``DryRunPreemption``, v1.36.3).

On big clusters, the dry run stops once it has enough candidates, at least one of which violates no budget. Candidates
that violate budgets and those that do not are collected in two lists, each with the same capacity, and then the
ordinary rules choose. Nodes that are not candidates are skipped, so only the order of the candidates matters.

That order is usually the order of the Go map of rejected nodes (``NodesForStatusCode``, ``framework/interface.go``),
which is rebuilt for every attempt: all orders are equally likely, or nearly so. If PreFilter rejected the pod on all
nodes, or if the map is too small to be hashed, it is the order of the scheduler's list from a random start. Both are
computed as if the search evaluated one node after the other.

``sampling_of`` returns how many feasible nodes are enough to score (``numFeasibleNodesToFind``, ``schedule_one.go``,
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

# Start positions of searches: the first inclusive, the second exclusive.
_Span = tuple[int, int]
# How good a candidate is under the rules of the choice; higher is better.
Rank = tuple[float, ...]

# A Go map (1.24 and later) iterates up to this many entries in insertion order, from a random start.
_ENTRIES_IN_ORDER = 8
# From this size on, all orders of a map are taken as equally likely: no outcome is off by a percentage point (``make
# parity`` measures it).
_ENTRIES_IN_ANY_ORDER = 100
# Outcomes whose total probability is lower are omitted.
_NEVER = 1e-12
# Below this, all remaining outcomes are negligible even compared with that.
_NEVER_AT_ALL = 1e-16


class SampledCandidate(NamedTuple):
    """A candidate from the search's point of view.

    ``rank`` is ignored for candidates that violate budgets if others do not.
    """

    violates_budgets: bool
    rank: Rank


def num_candidates(potential_nodes: int, percentage: int, absolute: int) -> int:
    """Return how many candidates a search needs (``calculateNumCandidates``)."""
    return min(max(potential_nodes * percentage // 100, absolute), potential_nodes)


def search_order(filtered: NodeToStatus, *, is_list_known: bool) -> SearchOrder:
    """Return the order in which a search goes through the rejected nodes.

    ``is_list_known`` means that nodes were rejected in list order, and no node was evaluated first.
    """
    if filtered.absent.code == Code.UNSCHEDULABLE:
        return SearchOrder.LIST
    # If PreFilter restricted the nodes, they are in the order of another map.
    is_full_list = is_list_known and not filtered.absent.reasons
    entries = filtered.num_rejected
    return SearchOrder.LIST if is_full_list and entries <= _ENTRIES_IN_ORDER else order_of_map(entries)


def order_of_map(entries: int) -> SearchOrder:
    """Return the order of a Go map with this many entries, inserted in an unknown order."""
    return SearchOrder.ANY if entries >= _ENTRIES_IN_ANY_ORDER else SearchOrder.SMALL_MAP


def odds_of(
    potential_nodes: Sequence[str],
    candidates: Mapping[str, SampledCandidate],
    requested: int,
    *,
    order: SearchOrder,
    parallelism: int = DEFAULT_PARALLELISM,
) -> Odds:
    """Return the possible outcomes of a search for ``requested`` candidates.

    ``potential_nodes`` are in the order of the scheduler's list; ``candidates`` are the ones on which preemption helps
    (at least one).
    """
    if order is SearchOrder.LIST:
        outcomes = outcomes_from_a_start(potential_nodes, candidates, requested)
    else:
        outcomes = outcomes_in_any_order(candidates, requested)
    size = len(potential_nodes)
    return Odds(order, requested, outcomes, parallelism, max(1, min(math.isqrt(size), size // parallelism + 1)))


def outcomes_in_any_order(candidates: Mapping[str, SampledCandidate], requested: int) -> list[OddsOutcome]:
    """Return the outcomes if every order of the nodes is equally likely, the most likely first.

    Equally ranked nodes are equally likely. Empty if there are no candidates or none is needed.
    """
    if requested == 0:
        return []
    rivals = _rivals(candidates)
    best_first = sorted(rivals, key=rivals.__getitem__, reverse=True)
    # The probability that no better one is among the first candidates; ``left`` candidates remain to draw from.
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
    # Candidates that violate budgets may fill the sample. The search then continues to the first one that does not.
    return _likely([OddsOutcome(tier, share + none_before * len(tier) / len(rivals)) for tier, share in shares])


def outcomes_from_a_start(
    potential_nodes: Sequence[str], candidates: Mapping[str, SampledCandidate], requested: int
) -> list[OddsOutcome]:
    """Return the outcomes if nodes are in this order from a random start, wrapping around, the most likely first.

    Of equally ranked nodes, one that is reached from more starts is more likely. Empty if there are no candidates or
    none is needed.
    """
    size = len(potential_nodes)
    found = [(index, candidates[name]) for index, name in enumerate(potential_nodes) if name in candidates]
    if requested == 0 or not found:
        return []
    can_win = _rivals(candidates)
    rivals = [(index, candidate.rank) for index, candidate in found if potential_nodes[index] in can_win]
    ends = _ends_of_searches(size, [index for index, _ in found], [index for index, _ in rivals], requested)
    return _outcomes(potential_nodes, ends, _won(size, rivals, ends))


def outcomes_of_scores(nodes: Sequence[str], scores: Sequence[int], requested: int) -> list[OddsOutcome]:
    """Compute ``outcomes_from_a_start`` if each of ``nodes`` is a candidate ranked by its score."""
    size = len(nodes)
    if requested == 0 or not nodes:
        return []
    ends = range(min(requested, size) - 1, min(requested, size) - 1 + size)
    return _outcomes(nodes, ends, _won(size, enumerate(scores), ends))


def _outcomes(
    nodes: Sequence[str], ends: Sequence[int], won: Iterable[tuple[list[int], list[int]]]
) -> list[OddsOutcome]:
    size, outcomes = len(nodes), {}
    for tier, starts in won:
        # A search includes the node that it starts with.
        is_all = len(starts) == size
        reached = [nodes[index] for index in tier if is_all or _is_reached(index, size, ends, starts)]
        outcomes[starts[0]] = OddsOutcome(reached, len(starts) / size)
    return _likely([outcomes[start] for start in sorted(outcomes)])


def _rivals(candidates: Mapping[str, SampledCandidate]) -> dict[str, Rank]:
    """Return the candidates that can win: one without violations, if any, is in every search and beats the others."""
    clean = {name: each.rank for name, each in candidates.items() if not each.violates_budgets}
    return clean or {name: each.rank for name, each in candidates.items()}


def _likely(outcomes: list[OddsOutcome]) -> list[OddsOutcome]:
    """Sort the outcomes by likelihood and omit the least likely, whose total probability is negligible."""
    ordered = sorted(outcomes, key=lambda each: -each.probability)
    rest = 0.0
    while ordered and rest + ordered[-1].probability < _NEVER:
        rest += ordered.pop().probability
    return ordered


def _ends_of_searches(size: int, found: list[int], rivals: list[int], requested: int) -> list[int]:
    """Return for each start the last node that can win, as an index that continues after the first round.

    ``found`` are the indices of all candidates, ``rivals`` the indices of the candidates that can win.
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
    """Yield the candidates of each winning rank with the starts (ascending) of the searches that they win, best first.

    As the start advances by one node, the end of the search advances or stays, so the starts that reach a candidate are
    adjacent.
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
    """Split ``spans`` into parts that are in some of the ``others`` and parts that are in none; all sorted by start."""
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
    """Return a function that gives, for a node's index, the first start from which a search reaches the node."""
    if isinstance(ends, range):
        return lambda index: min(max(index - ends.start, 0), len(ends))
    return partial(bisect_left, ends)


def _is_reached(index: int, size: int, ends: Sequence[int], starts: list[int]) -> bool:
    """Return whether a search from one of ``starts`` (ascending) reaches the node, before or after the list's end."""
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
    """Return the sampling of a search through ``nodes`` nodes; ``None`` if it finds all ``feasible`` ones.

    If ``percentage`` is 0, it depends on the number of nodes. Without score plugins (``is_scoring``), the first node
    that fits is chosen. If PreFilter restricted the nodes (``is_restricted``), they are in the order of a Go map.
    """
    if percentage == 0:
        percentage = max(_MAX_PERCENTAGE - nodes // _NODES_PER_PERCENT, MIN_PERCENTAGE)
    nodes_to_find = nodes if nodes < MIN_FEASIBLE_NODES else max(nodes * percentage // 100, MIN_FEASIBLE_NODES)
    if not is_scoring:
        nodes_to_find = 1
    order = order_of_map(nodes) if is_restricted else SearchOrder.LIST
    return Sampling(nodes, nodes_to_find, percentage, order) if feasible > nodes_to_find else None
