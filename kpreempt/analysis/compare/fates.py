"""What may become of a pod by a verdict: all that chance and the order of equals leave open.

Two verdicts surely differ where they have no such fate in common, and surely agree where they have the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kpreempt.verdict import Outcome, PossibleOutcome, Verdict
from kpreempt.verdict.upgrade import Certainty, UpgradeEffect

_PREEMPTS = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)


class Fate(msgspec.Struct, frozen=True):
    """One thing that may become of a pod: where it ends, and who goes.

    ``choices`` are equal pods of which so many go. Without a ``node`` it waits.
    """

    outcome: str
    node: str = ""
    victims: frozenset[str] = frozenset()
    choices: frozenset[tuple[int, frozenset[str]]] = frozenset()

    def may_be(self, other: Fate) -> bool:
        """Whether both may come to the same."""
        if (self.outcome, self.node) != (other.outcome, other.node) or self._count != other._count:
            return False
        return self.victims <= other._pods and other.victims <= self._pods

    @property
    def _count(self) -> int:
        return len(self.victims) + sum(count for count, _ in self.choices)

    @property
    def _pods(self) -> frozenset[str]:
        return self.victims.union(*(pods for _, pods in self.choices))


class Fates(msgspec.Struct, frozen=True):
    """All that may become of a pod; there may be others where they are not ``complete``.

    Where a search may end before it has seen all nodes that fit, ``ranking`` has these, the best first: with the same
    one it comes to the same node whichever it has seen.
    """

    fates: frozenset[Fate]
    complete: bool = True
    is_known: bool = True
    ranking: tuple[frozenset[str], ...] = ()

    def same_as(self, other: Fates) -> bool:
        """Whether the same may become of the pod."""
        return (self.fates, self.is_known, self.ranking) == (other.fates, other.is_known, other.ranking)

    def difference_to(self, other: Fates) -> Certainty | None:
        """How sure it is that the pod fares otherwise; ``None`` where it fares the same."""
        if not self.is_known or not other.is_known:
            return Certainty.UNKNOWN
        if self.same_as(other):
            return None
        if self._kinds.isdisjoint(other._kinds):
            return Certainty.CERTAIN
        apart = not any(one.may_be(another) for one in self.fates for another in other.fates)
        return Certainty.CERTAIN if apart and self.complete and other.complete else Certainty.POSSIBLE

    @property
    def _kinds(self) -> frozenset[str]:
        """What may become of it whichever nodes a search comes to; unlike these, nodes may go untold."""
        return frozenset(each.outcome for each in self.fates)


def fates_of(verdict: Verdict) -> Fates:
    """All that may become of the pod by the verdict."""
    told = verdict.alternatives
    complete = verdict.sampling is None and verdict.odds is None and (told is None or (told.exact and not told.untold))
    if verdict.volume_choices is not None and verdict.volume_choices.uncertain:
        return Fates(frozenset(), is_known=False)
    if verdict.outcome == Outcome.UNCERTAIN:
        return Fates(frozenset(), is_known=False)
    if verdict.outcome == Outcome.LANDS:
        nodes = verdict.lands_on or verdict.chosen_nodes or verdict.feasible_nodes
        return Fates(frozenset(Fate(Outcome.LANDS, node) for node in nodes), complete, ranking=_ranking(verdict))
    if verdict.outcome in _PREEMPTS:
        return Fates(frozenset(map(_eviction, _outcomes(verdict))), complete)
    return Fates(frozenset({Fate(verdict.outcome)}))


def effect_of(base: Verdict, target: Verdict) -> UpgradeEffect:
    """What becomes otherwise of a pod with the ``target`` than with the ``base``."""
    ours, theirs = _kind(base), _kind(target)
    if Outcome.UNCERTAIN in (ours, theirs):
        return UpgradeEffect.UNTOLD
    if theirs is Outcome.PREEMPTS:
        return UpgradeEffect.EVICTS
    if theirs is Outcome.LANDS:
        found = {Outcome.LANDS: UpgradeEffect.LANDS_ELSEWHERE, Outcome.PREEMPTS: UpgradeEffect.EVICTS_NOBODY}
        return found.get(ours, UpgradeEffect.LANDS_NOW)
    return UpgradeEffect.NO_LONGER_LANDS if ours in (Outcome.LANDS, Outcome.PREEMPTS) else UpgradeEffect.ATTEMPT


def _ranking(verdict: Verdict) -> tuple[frozenset[str], ...]:
    if verdict.sampling is None:
        return ()
    by_score: dict[int, set[str]] = {}
    for node, score in verdict.scores.items():
        by_score.setdefault(score, set()).add(node)
    return tuple(frozenset(by_score[score]) for score in sorted(by_score, reverse=True))


def _kind(verdict: Verdict) -> Outcome:
    return Outcome.PREEMPTS if verdict.outcome in _PREEMPTS else verdict.outcome


def _outcomes(verdict: Verdict) -> Iterable[PossibleOutcome]:
    """What the preemption can end with, however unlikely."""
    by_node = {candidate.node: candidate for candidate in verdict.candidates}
    drawn = [node for each in (verdict.odds.outcomes if verdict.odds else []) for node in each.nodes]
    yield from verdict.possible_outcomes
    yield from (each for node in drawn if node in by_node for each in by_node[node].possible)


def _eviction(outcome: PossibleOutcome) -> Fate:
    choices = frozenset((choice.count, frozenset(choice.pods)) for choice in outcome.choices)
    return Fate(Outcome.PREEMPTS, outcome.node, frozenset(outcome.victims), choices)
