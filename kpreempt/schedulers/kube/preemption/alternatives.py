"""The choice between nodes where the order of equal pods, and so the victims on some of them, is not known.

Each node's list has an order of its own, so that any outcome on one node may meet any on another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import CandidateVictims, Criterion, rank_all
from kpreempt.schedulers.equal_pods import Outcomes, Possible
from kpreempt.schedulers.kube.preemption.importance import tie_of
from kpreempt.verdict import Alternatives, PodChoice, PossibleOutcome

# So many outcomes are told, the most likely first.
MAX_TOLD = 200
_Rank = tuple[float, ...]


class _Rival(NamedTuple):
    """One possible outcome on a node: its rank in the choice, and the outcome where it is not certain."""

    rank: _Rank
    victims: Sequence[Pod]
    num_violations: int
    possible: Possible[Pod] | None


def alternatives_of(
    likely: Mapping[str, CandidateVictims],
    outcomes: Mapping[str, Outcomes[Pod]],
    criteria: Sequence[Criterion],
    nominated: Sequence[str],
    *,
    is_exact: bool,
) -> Alternatives | None:
    """Every outcome that the choice can end with, one of ``nominated`` first; ``None`` where that hangs on no order.

    ``likely`` are all candidates with their victims in the likely order, and ``outcomes`` what other orders lead to.
    Not ``is_exact`` is a choice of which not all is known.
    """
    rivals = {node: _rivals(node, victims, outcomes.get(node), criteria) for node, victims in likely.items()}
    winners = _winners(rivals)
    if not any(each.possible for _, each in winners):
        return None
    first = {node: place for place, node in enumerate(nominated)}
    winners.sort(key=lambda winner: (first.get(winner[0], len(first)), [-value for value in winner[1].rank]))
    told = [_told(node, each) for node, each in winners[:MAX_TOLD]]
    is_complete = all(outcomes[node].is_exact for node, _ in winners if node in outcomes)
    return Alternatives(told, exact=is_exact and is_complete, untold=len(winners) - len(told))


def _rivals(
    node: str, likely: CandidateVictims, found: Outcomes[Pod] | None, criteria: Sequence[Criterion]
) -> list[_Rival]:
    if found is None:
        return [_Rival(_rank(node, likely, criteria), likely.pods, likely.num_violations, None)]
    rivals = []
    for possible in found.possible:
        # Equals have one priority and start, so that any example has the rank of all.
        example = sorted(possible.an_example, key=tie_of)
        victims = CandidateVictims(example, possible.num_violations)
        rivals.append(_Rival(_rank(node, victims, criteria), victims.pods, possible.num_violations, possible))
    return rivals


def _rank(node: str, victims: CandidateVictims, criteria: Sequence[Criterion]) -> _Rank:
    return rank_all({node: victims}, criteria)[node]


def _winners(rivals: Mapping[str, Sequence[_Rival]]) -> list[tuple[str, _Rival]]:
    """The outcomes that can win: every other node may be no better."""
    best_of_worst = max(min(each.rank for each in of_node) for of_node in rivals.values())
    return [(node, each) for node, of_node in rivals.items() for each in of_node if each.rank >= best_of_worst]


def _told(node: str, rival: _Rival) -> PossibleOutcome:
    if rival.possible is None:
        return PossibleOutcome(node, [pod.key for pod in rival.victims], [], rival.num_violations)
    return told_outcome(node, rival.possible)


def told_outcome(node: str, possible: Possible[Pod]) -> PossibleOutcome:
    """An outcome as evidence."""
    certain = [pod.key for pod in sorted(possible.pods, key=tie_of)]
    choices = [PodChoice(choice.number, [pod.key for pod in choice.pods]) for choice in possible.choices]
    return PossibleOutcome(node, certain, choices, possible.num_violations)
