"""The choice between candidates (``pickOneNodeForPreemption``, ``framework/preemption/preemption.go``, v1.36.3).

1. fewest budget violations, 2. lowest priority of the most important victim, 3. lowest sum of the victims' priorities
(each plus 2^31), 4. fewest victims, 5. latest start among the victims of the highest priority (the earliest of them
counts), 6. any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.node_info import start_of
from kpreempt.verdict import Selection, TieBreakRound

# Makes every priority positive, so that few negative ones do not outweigh many.
PRIORITY_OFFSET = 2**31
NOW = "now"


class CandidateVictims(NamedTuple):
    """A candidate node's victims, most important first, and how many of them violate a budget."""

    pods: Sequence[Pod]
    num_violations: int


class _Criterion(NamedTuple):
    name: str
    value: Callable[[CandidateVictims], int | str]
    # The higher the better.
    rank: Callable[[CandidateVictims], float]


def select_nodes(candidates: Mapping[str, CandidateVictims], now: datetime) -> Selection:
    """Play the rules until one node is left or all are played; ``tied`` are the nodes that remain."""
    remaining = list(candidates)
    rounds: list[TieBreakRound] = []
    for criterion in _criteria(now):
        if len(remaining) <= 1:
            break
        ranks = {node: criterion.rank(candidates[node]) for node in remaining}
        best = max(ranks.values())
        survivors = [node for node in remaining if ranks[node] == best]
        values = {node: criterion.value(candidates[node]) for node in remaining}
        rounds.append(TieBreakRound(criterion.name, values, survivors))
        remaining = survivors
    return Selection(rounds, remaining)


def rank_all(candidates: Mapping[str, CandidateVictims], now: datetime) -> dict[str, tuple[float, ...]]:
    """How good each candidate is, one number a rule in their order; of two tuples the greater one wins."""
    ranks = [criterion.rank for criterion in _criteria(now)]
    return {node: tuple([rank(victims) for rank in ranks]) for node, victims in candidates.items()}


def _criteria(now: datetime) -> tuple[_Criterion, ...]:
    return (
        _lowest("pdbViolations", lambda victims: victims.num_violations),
        _lowest("highestPriority", lambda victims: victims.pods[0].priority),
        _lowest("prioritySum", lambda victims: sum(pod.priority + PRIORITY_OFFSET for pod in victims.pods)),
        _lowest("victims", lambda victims: len(victims.pods)),
        _Criterion(
            "latestStart",
            lambda victims: _format_start(earliest_start(victims.pods, now)),
            lambda victims: (earliest_start(victims.pods, now) or now).timestamp(),
        ),
    )


def _lowest(name: str, value: Callable[[CandidateVictims], int]) -> _Criterion:
    return _Criterion(name, value, lambda victims: -value(victims))


def earliest_start(victims: Sequence[Pod], now: datetime) -> datetime | None:
    """The earliest start among the victims of the highest priority; ``None`` where that is a pod not started yet."""
    highest = max(pod.priority for pod in victims)
    return min(
        (start_of(pod) for pod in victims if pod.priority == highest), key=lambda start: start or now, default=None
    )


def _format_start(start: datetime | None) -> str:
    return NOW if start is None else start.strftime("%Y-%m-%dT%H:%M:%SZ")
