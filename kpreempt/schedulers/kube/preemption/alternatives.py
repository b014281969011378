"""The choice between nodes where the order of equal pods, and so the victims on some of them, is not known.

Each node's list has an order of its own, so that any outcome on one node may meet any on another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import CandidateVictims, Criterion, rank_of
from kpreempt.schedulers.equal_pods import Outcomes, Possible
from kpreempt.schedulers.kube.preemption.importance import tie_of
from kpreempt.verdict import Alternatives, PodChoice, PossibleOutcome

# So many outcomes are told, the most likely first.
MAX_TOLD = 200


class _Rival(NamedTuple):
    """One possible outcome on a node: the victims as the choice sees them, and the outcome where it is not certain."""

    node: str
    victims: CandidateVictims
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
    # Others may have had their say about the victims where not all is known.
    rivals = [
        each
        for node, victims in likely.items()
        for each in _rivals(node, victims, outcomes.get(node), is_likely_known=is_exact)
    ]
    winners = _winners(rivals, criteria)
    if not any(each.possible for each in winners):
        return None
    first = {node: place for place, node in enumerate(nominated)}
    winners.sort(key=lambda each: (first.get(each.node, len(first)), [-value for value in _rank(each, criteria)]))
    told = [_told(each) for each in winners[:MAX_TOLD]]
    is_complete = all(outcomes[each.node].is_exact for each in winners if each.node in outcomes)
    return Alternatives(told, exact=is_exact and is_complete, untold=len(winners) - len(told))


def _rivals(node: str, likely: CandidateVictims, found: Outcomes[Pod] | None, *, is_likely_known: bool) -> list[_Rival]:
    """Equals have one priority and start, so that any example of an outcome has the rank of all."""
    if found is None:
        return [_Rival(node, likely, None)]
    if is_likely_known and len(found.possible) == 1:
        return [_Rival(node, likely, found.possible[0])]
    return [
        _Rival(node, CandidateVictims(sorted(each.an_example, key=tie_of), each.num_violations), each)
        for each in found.possible
    ]


def _rank(rival: _Rival, criteria: Sequence[Criterion]) -> tuple[float, ...]:
    return rank_of(rival.node, rival.victims, criteria)


def _winners(rivals: Sequence[_Rival], criteria: Sequence[Criterion]) -> list[_Rival]:
    """The outcomes that can win: every other node may be no better, even at its worst.

    Rule by rule, as the choice goes, so that the later ones are asked about few.
    """
    winners: list[int] = []
    level = list(range(len(rivals)))
    # The nodes of which no outcome is worse by the rules so far than the best that a node is at its worst.
    setting = {each.node for each in rivals}
    for criterion in criteria:
        ranks = {index: criterion.rank(rivals[index].node, rivals[index].victims) for index in level}
        worst: dict[str, float] = {}
        for index, rank in ranks.items():
            node = rivals[index].node
            if node in setting:
                worst[node] = min(rank, worst.get(node, rank))
        bar = max(worst.values())
        setting = {node for node, rank in worst.items() if rank == bar}
        winners += [index for index, rank in ranks.items() if rank > bar]
        level = [index for index, rank in ranks.items() if rank == bar]
    return [rivals[index] for index in sorted([*winners, *level])]


def _told(rival: _Rival) -> PossibleOutcome:
    if rival.possible is None:
        return PossibleOutcome(rival.node, [pod.key for pod in rival.victims.pods], [], rival.victims.num_violations)
    return told_outcome(rival.node, rival.possible)


def told_outcome(node: str, possible: Possible[Pod]) -> PossibleOutcome:
    """An outcome as evidence; pods by name, as which way it was found has no part in it."""
    certain = sorted(pod.key for pod in possible.pods)
    choices = [PodChoice(choice.number, sorted(pod.key for pod in choice.pods)) for choice in possible.choices]
    return PossibleOutcome(node, certain, choices, possible.num_violations)
