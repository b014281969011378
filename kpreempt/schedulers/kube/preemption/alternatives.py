"""The choice between nodes where the order of equal pods, and so the victims on some of them, is not known.

Each node's list has an order of its own, so that any outcome on one node may meet any on another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import Outcomes, Possible
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.preemption.importance import tie_of
from kpreempt.schedulers.kube.preemption.rules import CandidateVictims
from kpreempt.schedulers.kube.preemption.selection import Criterion, rank_all
from kpreempt.verdict import Alternatives, PodChoice, PossibleOutcome

# So many outcomes are told, the most likely first.
MAX_TOLD = 200
_Rank = tuple[float, ...]


class _Rival(NamedTuple):
    """One possible outcome on a node: its rank in the choice, and the outcome where it is not certain."""

    rank: _Rank
    victims: Sequence[Pod]
    num_violations: int
    possible: Possible[PodInfo] | None


def alternatives_of(
    likely: Mapping[str, CandidateVictims],
    outcomes: Mapping[str, Outcomes[PodInfo]],
    criteria: Sequence[Criterion],
    nominated: Sequence[str],
    *,
    wanted: int,
    is_exact: bool,
) -> Alternatives | None:
    """Every outcome that the choice can end with, one of ``nominated`` first; ``None`` where that hangs on no order.

    ``likely`` are all candidates with their victims in the likely order, and ``outcomes`` what other orders lead to.
    The search may stop at ``wanted`` candidates, whichever. Not ``is_exact`` is a choice of which not all is known.
    """
    rivals = {node: _rivals(node, victims, outcomes.get(node), criteria) for node, victims in likely.items()}
    winners = _winners(rivals, wanted)
    if not any(each.possible for _, each in winners):
        return None
    first = {node: place for place, node in enumerate(nominated)}
    winners.sort(key=lambda winner: (first.get(winner[0], len(first)), [-value for value in winner[1].rank]))
    told = [_told(node, each) for node, each in winners[:MAX_TOLD]]
    is_complete = all(outcomes[node].is_exact for node, _ in winners if node in outcomes)
    return Alternatives(told, exact=is_exact and is_complete, untold=len(winners) - len(told))


def _rivals(
    node: str, likely: CandidateVictims, found: Outcomes[PodInfo] | None, criteria: Sequence[Criterion]
) -> list[_Rival]:
    if found is None:
        return [_Rival(_rank(node, likely, criteria), likely.pods, likely.num_violations, None)]
    rivals = []
    for possible in found.possible:
        # Equals have one priority and start, so that any example has the rank of all.
        example = sorted(possible.an_example, key=tie_of)
        victims = CandidateVictims([info.pod for info in example], possible.num_violations)
        rivals.append(_Rival(_rank(node, victims, criteria), victims.pods, possible.num_violations, possible))
    return rivals


def _rank(node: str, victims: CandidateVictims, criteria: Sequence[Criterion]) -> _Rank:
    return rank_all({node: victims}, criteria)[node]


def _winners(rivals: Mapping[str, Sequence[_Rival]], wanted: int) -> list[tuple[str, _Rival]]:
    """The outcomes that can win: beside so many nodes as make a search, each of which may be no better."""
    worst = {node: min(each.rank for each in of_node) for node, of_node in rivals.items()}
    ordered = sorted(worst.values())
    needed = min(wanted, len(rivals))
    surely_keeping = sum(not any(each.num_violations for each in of_node) for of_node in rivals.values())
    winners = []
    for node, of_node in rivals.items():
        for each in of_node:
            # Its own worst is among those that are no better.
            if bisect_right(ordered, each.rank) < needed:
                continue
            # A search goes on until it has a candidate that violates no budget, where there is one.
            if each.num_violations and surely_keeping:
                continue
            winners.append((node, each))
    return winners


def _told(node: str, rival: _Rival) -> PossibleOutcome:
    if rival.possible is None:
        pods = [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in rival.victims]
        return PossibleOutcome(node, pods, [], rival.num_violations)
    certain = [info.key for info in sorted(rival.possible.pods, key=tie_of)]
    choices = [PodChoice(choice.number, [info.key for info in choice.pods]) for choice in rival.possible.choices]
    return PossibleOutcome(node, certain, choices, rival.num_violations)
