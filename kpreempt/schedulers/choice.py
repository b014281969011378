"""The choice between candidates: rules applied in order, and the rules of ``pickOneNodeForPreemption``.

1. fewest budget violations, 2. lowest priority of the most important victim, 3. lowest sum of the victims' priorities
(each plus 2^31), 4. fewest victims, 5. latest start among the victims with the highest priority (the earliest of these
counts), 6. any. These are the rules of 1.18 and later; 1.13 has no fifth rule, and 1.8 neither the first nor the fifth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.verdict import Selection, TieBreakRound

# Makes every priority positive so that a few negative ones do not outweigh many.
PRIORITY_OFFSET = 2**31
NOW = "now"


class CandidateVictims(NamedTuple):
    """A candidate node's victims, most important first, and the number of victims that violate a budget."""

    pods: Sequence[Pod]
    num_violations: int


class Criterion(NamedTuple):
    """A rule of the choice: the value shown to users, and a rank in which higher is better."""

    name: str
    value: Callable[[str, CandidateVictims], int | str]
    rank: Callable[[str, CandidateVictims], float]


def select_nodes(candidates: Mapping[str, CandidateVictims], criteria: Sequence[Criterion]) -> Selection:
    """Apply the rules until one node is left or no rule is; ``tied`` are the nodes that remain."""
    remaining = list(candidates)
    rounds: list[TieBreakRound] = []
    for criterion in criteria:
        if len(remaining) <= 1:
            break
        ranks = {node: criterion.rank(node, candidates[node]) for node in remaining}
        best = max(ranks.values())
        survivors = [node for node in remaining if ranks[node] == best]
        values = {node: criterion.value(node, candidates[node]) for node in remaining}
        rounds.append(TieBreakRound(criterion.name, values, survivors))
        remaining = survivors
    return Selection(rounds, remaining)


def rank_of(node: str, victims: CandidateVictims, criteria: Sequence[Criterion]) -> tuple[float, ...]:
    """Return how good a candidate is, one number per rule in order; the greater tuple wins."""
    return tuple([criterion.rank(node, victims) for criterion in criteria])


def _lowest(name: str, value: Callable[[CandidateVictims], int]) -> Criterion:
    return Criterion(name, lambda _, victims: value(victims), lambda _, victims: -value(victims))


FEWEST_VIOLATIONS = _lowest("pdbViolations", lambda victims: victims.num_violations)
# The first victim is treated as the highest; up to 1.18, higher ones may follow one that violates a budget.
LOWEST_FIRST_VICTIM = _lowest("highestPriority", lambda victims: victims.pods[0].priority)
SMALLEST_SUM = _lowest("prioritySum", lambda victims: sum(pod.priority + PRIORITY_OFFSET for pod in victims.pods))
FEWEST_VICTIMS = _lowest("victims", lambda victims: len(victims.pods))


def default_criteria(now: datetime) -> tuple[Criterion, ...]:
    """Return the rules of 1.18 and later."""
    latest_start = Criterion(
        "latestStart",
        lambda _, victims: f"{start:%Y-%m-%dT%H:%M:%SZ}" if (start := earliest_start(victims.pods, now)) else NOW,
        lambda _, victims: (earliest_start(victims.pods, now) or now).timestamp(),
    )
    return FEWEST_VIOLATIONS, LOWEST_FIRST_VICTIM, SMALLEST_SUM, FEWEST_VICTIMS, latest_start


def default_rank(victims: CandidateVictims, now: datetime) -> tuple[float, ...]:
    """Compute ``rank_of`` for the default criteria in one pass: on big clusters it runs for thousands of nodes."""
    pods = victims.pods
    priorities = [pod.priority for pod in pods]
    highest = max(priorities)
    start = min(
        pod.start or now for pod, priority in zip(pods, priorities, strict=True) if priority == highest
    ).timestamp()
    return -victims.num_violations, -priorities[0], -(sum(priorities) + len(pods) * PRIORITY_OFFSET), -len(pods), start


def earliest_start(victims: Sequence[Pod], now: datetime) -> datetime | None:
    """Return the earliest start among the victims with the highest priority; ``None`` if that pod has not started."""
    highest = max(pod.priority for pod in victims)
    return min((pod.start for pod in victims if pod.priority == highest), key=lambda start: start or now, default=None)
