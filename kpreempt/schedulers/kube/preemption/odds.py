"""How likely each node is to win a preemption's sampled search (``DryRunPreemption``, ``preemption.go``, v1.36.3).

On big clusters the dry run starts at a random one of the potential nodes and goes round. It stops once it has enough
candidates, one of which violates no budget. Candidates that violate budgets and those that do not are kept in two
lists, each with room for just as many, and then the ordinary rules choose. Counted here are all starts, one by one as
a sequential search would go; the real one runs in parallel.

As the start moves on by one node, so does the end of its search, or it stays. So the best candidate of all searches is
that of a window which slides once around the nodes, and ties are those at its front.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kpreempt.schedulers.kube.framework.interface import DEFAULT_PARALLELISM
from kpreempt.verdict import Odds, OddsGroup

# How good a candidate is under the rules of the choice, the higher the better.
Rank = tuple[float, ...]


class SampledCandidate(NamedTuple):
    """A candidate as the search sees it.

    ``rank`` is not looked at for candidates that violate budgets where there are others.
    """

    violates_budgets: bool
    rank: Rank


def num_candidates(potential_nodes: int, percentage: int, absolute: int) -> int:
    """How many candidates a search among so many nodes wants (``calculateNumCandidates``)."""
    return min(max(potential_nodes * percentage // 100, absolute), potential_nodes)


def count_odds(
    potential_nodes: Sequence[str],
    candidates: Mapping[str, SampledCandidate],
    wanted: int,
    *,
    parallelism: int = DEFAULT_PARALLELISM,
) -> Odds:
    """The outcome of the search from every start.

    ``potential_nodes`` are in the order of the search, ``candidates`` those of them on which preemption helps (at least
    one), and ``wanted`` is the number of candidates to find.
    """
    size = len(potential_nodes)
    chunk_size = max(1, min(math.isqrt(size), size // parallelism + 1))
    if wanted == 0:
        return Odds(size, wanted, [], parallelism, chunk_size)
    found = [(index, candidates[name]) for index, name in enumerate(potential_nodes) if name in candidates]
    # Where there is a candidate without violations, one is in every search, and beats those with violations.
    has_clean = any(not candidate.violates_budgets for _, candidate in found)
    rivals = [(index, candidate.rank) for index, candidate in found if has_clean != candidate.violates_budgets]
    ends = _ends_of_searches(size, [index for index, _ in found], [index for index, _ in rivals], wanted)
    winners = _winning_ranks(size, rivals, ends)
    starts_of: dict[Rank, list[int]] = {}
    for start, rank in enumerate(winners):
        starts_of.setdefault(rank, []).append(start)
    nodes_of: dict[Rank, dict[str, int]] = {rank: {} for rank in starts_of}
    for index, rank in rivals:
        if rank in starts_of and (count := _starts_reaching(index, size, ends, starts_of[rank])):
            nodes_of[rank][potential_nodes[index]] = count
    groups = [OddsGroup(len(starts), nodes_of[rank]) for rank, starts in starts_of.items()]
    groups.sort(key=lambda group: (-group.starts, min(group.nodes)))
    return Odds(size, wanted, groups, parallelism, chunk_size)


def _ends_of_searches(size: int, found: list[int], rivals: list[int], wanted: int) -> list[int]:
    """For each start the last node that can win, as an index that goes on counting after the first round.

    ``found`` are the indices of all candidates, ``rivals`` those of the candidates that can win.
    """
    if len(found) < wanted:
        return [start + size - 1 for start in range(size)]
    found_twice = [*found, *(index + size for index in found)]
    rivals_twice = [*rivals, *(index + size for index in rivals)]
    ends = []
    next_found = next_rival = 0
    for start in range(size):
        while found_twice[next_found] < start:
            next_found += 1
        while rivals_twice[next_rival] < start:
            next_rival += 1
        ends.append(max(found_twice[next_found + wanted - 1], rivals_twice[next_rival]))
    return ends


def _winning_ranks(size: int, rivals: list[tuple[int, Rank]], ends: list[int]) -> list[Rank]:
    """For each start the best rank among the rivals from there to the search's end."""
    rivals_twice = [*rivals, *((index + size, rank) for index, rank in rivals)]
    # Ranks fall from the front to the back, so that the front is the best of the window.
    window: deque[tuple[int, Rank]] = deque()
    winners = []
    entered = 0
    for start, end in enumerate(ends):
        while entered < len(rivals_twice) and rivals_twice[entered][0] <= end:
            while window and window[-1][1] < rivals_twice[entered][1]:
                window.pop()
            window.append(rivals_twice[entered])
            entered += 1
        while window[0][0] < start:
            window.popleft()
        winners.append(window[0][1])
    return winners


def _starts_reaching(index: int, size: int, ends: list[int], starts: list[int]) -> int:
    """How many of ``starts`` (ascending) come to the node, before or after the end of the list."""
    before = bisect_right(starts, index) - bisect_left(starts, bisect_left(ends, index))
    around = len(starts) - bisect_left(starts, bisect_left(ends, index + size))
    return max(before, 0) + around
