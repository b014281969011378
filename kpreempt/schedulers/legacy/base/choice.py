"""The choice between candidates (``pickOneNodeForPreemption``, ``core/generic_scheduler.go``).

A candidate without victims wins at once. Otherwise a version's rules are applied in turn, each keeping the ties of the
one before; what is left equal at the end comes in the order of a Go map, which is any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kpreempt.schedulers.legacy.base.victims import Victims
from kpreempt.verdict import Selection, TieBreakRound

# Makes every priority positive, so that few negative ones do not outweigh many.
PRIORITY_OFFSET = 2**31


class Criterion(NamedTuple):
    """A rule of the choice: what to show of a candidate, and its rank, of which the lowest wins."""

    name: str
    value: Callable[[Victims], int | str]
    rank: Callable[[Victims], float]


def lowest(name: str, value: Callable[[Victims], int]) -> Criterion:
    """The rule that the lowest value wins."""
    return Criterion(name, value, value)


FEWEST_VIOLATIONS = lowest("pdbViolations", lambda victims: victims.num_violations)
# Upstream takes the first victim for the highest; behind one that violates a budget there may be higher ones.
LOWEST_FIRST_VICTIM = lowest("highestPriority", lambda victims: victims.pods[0].priority)
SMALLEST_SUM = lowest("prioritySum", lambda victims: sum(info.priority + PRIORITY_OFFSET for info in victims.pods))
FEWEST_VICTIMS = lowest("victims", lambda victims: len(victims.pods))


def choose(candidates: Mapping[str, Victims], criteria: Sequence[Criterion]) -> Selection:
    """Apply the rules until one node is left or all are applied; ``tied`` are the nodes that remain."""
    if any(not victims.pods for victims in candidates.values()):
        criteria = [FEWEST_VICTIMS]
    remaining = list(candidates)
    rounds: list[TieBreakRound] = []
    for criterion in criteria:
        if len(remaining) <= 1:
            break
        ranks = {node: criterion.rank(candidates[node]) for node in remaining}
        best = min(ranks.values())
        survivors = [node for node in remaining if ranks[node] == best]
        values = {node: criterion.value(candidates[node]) for node in remaining}
        rounds.append(TieBreakRound(criterion.name, values, survivors))
        remaining = survivors
    return Selection(rounds, remaining)
