"""All possible outcomes of a pod by a verdict: what chance and the order of equals leave open.

Two verdicts surely differ if they have no outcome in common, and surely agree if they have the same ones. From that
follows which changes of a version make a difference: the fewest with which the older version decides as the newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from kpreempt.admission import admit
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.pods import Question
from kpreempt.analysis.version_rules import api_server_rules
from kpreempt.errors import KpreemptError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.history import ToldChange
from kpreempt.verdict import Outcome, PossibleOutcome, Verdict
from kpreempt.verdict.compare import Certainty, UpgradeEffect

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
        if verdict.sampling is None:
            ranking: tuple[frozenset[str], ...] = ()
        else:
            by_score: dict[int, set[str]] = {}
            for node, score in verdict.scores.items():
                by_score.setdefault(score, set()).add(node)
            ranking = tuple(frozenset(by_score[score]) for score in sorted(by_score, reverse=True))
        return Fates(frozenset(Fate(Outcome.LANDS, node) for node in nodes), complete, ranking=ranking)
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


_Key = TypeVar("_Key")
# Versions in between that are tried for a cluster before the search for several changes together ends.
_MOST_TRIES = 120
# Pods, of those that differ from each other, for which causes are sought in a cluster.
_MOST_PODS = 300


class Versions(msgspec.Struct, frozen=True):
    """The scheduler of a cluster's version and of a newer one, and all that changed between them.

    ``with_changes`` makes the older scheduler with some of these changes; it raises where a configuration is refused.
    """

    base: Scheduler
    target: Scheduler
    changes: Sequence[ToldChange]
    with_changes: Callable[[Sequence[ToldChange]], Scheduler]


class Pending(msgspec.Struct, frozen=True):
    """A question about a pod whose fates differ, with those of both versions."""

    question: Question
    base: Fates
    target: Fates


class CauseSearch:
    """The search in one cluster; each version in between is prepared once, for all pods that are asked about."""

    def __init__(self, versions: Versions, cluster: ClusterSnapshot, now: datetime, phases: Phases = NO_PHASES) -> None:
        self._versions = versions
        self._cluster = cluster
        self._now = now
        self._phases = phases
        deciding = (change for change in versions.changes if change.decides and change.facts)
        # Where one sets a part of what another sets, it is tried before.
        self._changes = sorted(deciding, key=lambda change: len(change.facts))
        self._tries = 0

    def find(self, pods: Mapping[_Key, Pending]) -> dict[_Key, tuple[ToldChange, ...]]:
        """The fewest changes that make the difference for each pod; a pod of which none can be told is left out."""
        left = dict(list(pods.items())[:_MOST_PODS])
        found: dict[_Key, tuple[ToldChange, ...]] = {}
        for change in self._changes:
            self._settle(left, found, (change,))
        while left:
            key, pending = next(iter(left.items()))
            several = self._reduced(pending)
            if several is None:
                del left[key]
            else:
                self._settle(left, found, several)
                left.pop(key, None)
        return found

    def _settle(
        self,
        left: dict[_Key, Pending],
        found: dict[_Key, tuple[ToldChange, ...]],
        changes: tuple[ToldChange, ...],
    ) -> None:
        """Note the changes for those pods that fare with them alone as in the newer version."""
        between = self._between(changes) if left else None
        if between is None:
            return
        for key, pending in list(left.items()):
            if between(pending.question).same_as(pending.target):
                found[key] = changes
                del left[key]

    def _reduced(self, pending: Pending) -> tuple[ToldChange, ...] | None:
        """Changes of which none can be left out; ``None`` where all together do not do it, or too many were tried."""
        kept = self._changes
        if not self._suffice(kept, pending):
            return None
        for change in list(kept):
            fewer = [each for each in kept if each is not change]
            if self._tries >= _MOST_TRIES:
                return None
            if fewer and self._suffice(fewer, pending):
                kept = fewer
        return tuple(kept)

    def _suffice(self, changes: Sequence[ToldChange], pending: Pending) -> bool:
        between = self._between(changes)
        return between is not None and between(pending.question).same_as(pending.target)

    def _between(self, changes: Sequence[ToldChange]) -> Callable[[Question], Fates] | None:
        """What may become of a pod with the older version and these changes; ``None`` where there is no such one."""
        self._tries += 1
        try:
            scheduler = self._versions.with_changes(changes)
        except KpreemptError:
            # A configuration that both versions take may be refused by one in between.
            return None
        prepared: Any = scheduler.prepare(self._cluster, now=self._now)

        def fates(question: Question) -> Fates:
            pod = stored_by(scheduler, question, self._cluster)
            return fates_of(scheduler.decide(prepared, pod, records_steps=False, phases=self._phases))

        return fates


def stored_by(scheduler: Scheduler, question: Question, cluster: ClusterSnapshot) -> Pod:
    """The pod as the API server of a scheduler's version stores it, where it is new; else as it is stored already."""
    if question.manifest is None:
        return question.pod
    return admit(question.manifest, cluster, api_server_rules(scheduler.settings)).pod
