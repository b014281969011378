"""Decisions judged one by one: predicted from just before, or from a moment at which they may have been made.

A decision is compared with the verdict from just before it: host, victims and message. If chance or the order of equal
pods decides, any outcome that the verdict gives counts. The result: counts, a score, and preemptions by namespace and
priority class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec

from kpreempt.admission import complete_cluster
from kpreempt.analysis.algorithms import AnalysisContext, Scheduler
from kpreempt.analysis.explain.pods import Question, explain_pods
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.scheduler_table import KUBE_ALGORITHMS
from kpreempt.verdict import Assumption, AssumptionKind, PossibleOutcome, Verdict
from kpreempt.verdict.status import FOUND_PLACEMENT
from kpreempt.verdict.verify import (
    REDACTED,
    Cause,
    DecisionCounts,
    DecisionDifference,
    DecisionKind,
    PreemptionCounts,
    TakenDecision,
    Verification,
)

# So many other states are tried for one decision.
_MOST_TRIES = 300
_PODS_AHEAD = 8


class Situation(Protocol):
    """A cluster just before a decision, and as it may have been to the scheduler (``snapshot.recording.replay``)."""

    @property
    def meanwhile(self) -> Sequence[object]:
        """What changed while it may have been decided."""

    @property
    def gap(self) -> str:
        """The kind that was not watched."""

    @property
    def leaving(self) -> set[str]:
        """The pods that began to leave about then."""

    @property
    def is_near_end(self) -> bool:
        """Whether the recording may end before all is told of the decision."""

    def bindings(self, *, by_place: bool) -> tuple[int, int]:
        """How many pods were bound or nominated a moment before and after, as they were written or tried."""

    def cluster(self, undone: int = 0, bound: int = 0, *, by_place: bool = False) -> ClusterSnapshot:
        """The cluster with fewer changes, and with more or fewer pods bound or nominated."""

    def changes(self, undone: int, bound: int, *, by_place: bool) -> list[str]:
        """The same in words."""


class Asked(NamedTuple):
    """A scheduler for a cluster, and what is assumed of it."""

    scheduler: Scheduler
    assumptions: Sequence[Assumption]


# The scheduler of a cluster, or that of another version, which is ``None`` where it does not take the configuration.
Ask = Callable[[ClusterSnapshot, str | None], Asked | None]


class Prediction(NamedTuple):
    """What was predicted, in which cluster, of which pod."""

    verdict: Verdict
    cluster: ClusterSnapshot
    pod: Pod
    # Pods that were leaving already, or began to then.
    leaving: set[str]

    def differences(self, decision: TakenDecision) -> list[str]:
        """What was decided otherwise."""
        return differences(self.verdict, decision, self.leaving)


class Judgement(NamedTuple):
    """What there is to say of a decision; without a ``difference`` it is as ``predicted``.

    One that could not be compared has neither, but for ``not_compared``, which says why.
    """

    predicted: Prediction | None = None
    difference: DecisionDifference | None = None
    not_compared: str = ""


class Judge:
    """Judges decisions. ``is_configured`` says that the scheduler's configuration was told."""

    def __init__(self, ask: Ask, *, is_configured: bool) -> None:
        self._ask, self._is_configured = ask, is_configured

    def judge(self, decision: TakenDecision, situation: Situation) -> Judgement:
        """Hold a decision against what is predicted from just before, and else look for the cause."""
        about_then = situation.leaving if decision.decision is DecisionKind.NOMINATED else set()
        predicted = self._predict(decision, situation.cluster(), about_then)
        if predicted is None:
            return Judgement(not_compared="the pod was not known then")
        lines = predicted.differences(decision)
        if not lines:
            return Judgement(predicted)
        for undone, bound, by_place in _tries(situation):
            other = self._predict(decision, situation.cluster(undone, bound, by_place=by_place), about_then)
            if other is not None and not other.differences(decision):
                changes = situation.changes(undone, bound, by_place=by_place)
                return Judgement(other, _different(decision, lines, Cause.RACE, "", changes))
        if situation.gap:
            return Judgement(not_compared=f"{situation.gap} was not watched then")
        if situation.is_near_end:
            return Judgement(not_compared="the recording ends before all is told that came with it")
        cause, why = self._cause(decision, predicted)
        return Judgement(predicted, _different(decision, lines, cause, why))

    def _predict(
        self,
        decision: TakenDecision,
        cluster: ClusterSnapshot,
        about_then: Collection[str],
        algorithm: str | None = None,
    ) -> Prediction | None:
        cluster, assumed = complete_cluster(cluster)
        pod = next((each for each in cluster.pods if each.key == decision.pod), None)
        if pod is None or pod.spec.node_name:
            return None
        others = msgspec.structs.replace(cluster, pods=[each for each in cluster.pods if each is not pod])
        asked = self._ask(cluster, algorithm)
        if asked is None:
            return None
        said = [*asked.assumptions, *assumed]
        (verdict,) = explain_pods(
            AnalysisContext(others, asked.scheduler, decision.at, assumptions=said),
            [Question(pod=pod)],
            records_steps=False,
        )
        leaving = {
            each.key
            for each in cluster.pods
            if each.spec.node_name
            and (
                each.metadata.deletion_timestamp is not None
                or any(mark.type == "DisruptionTarget" and mark.status == "True" for mark in each.status.conditions)
            )
        }
        return Prediction(verdict, cluster, pod, leaving.union(about_then))

    def _cause(self, decision: TakenDecision, predicted: Prediction) -> tuple[Cause, str]:
        verdict = predicted.verdict
        told, choices = verdict.alternatives, verdict.volume_choices
        if (told is not None and (told.omitted or not told.exact)) or (choices is not None and not choices.complete):
            return Cause.ORDER, "an order that is not known decides, and not all of them were followed"
        found = [each for each in verdict.assumptions if not each.lists_files]
        ignored = [each for each in found if each.kind is not AssumptionKind.INFORMATIONAL]
        if ignored:
            return Cause.UNMODELED, f"{ignored[0].subject}: {ignored[0].message}"
        minor = ".".join(verdict.algorithm.split(".")[:2])
        if minor not in KUBE_ALGORITHMS:
            neighbours = []
        else:
            at = KUBE_ALGORITHMS.index(minor)
            neighbours = [*KUBE_ALGORITHMS[max(0, at - 1) : at], *KUBE_ALGORITHMS[at + 1 : at + 2]]
        for algorithm in neighbours:
            other = self._predict(decision, predicted.cluster, predicted.leaving, algorithm)
            if other is not None and not other.differences(decision):
                return Cause.VERSION, f"{algorithm} decides so"
        fits = decision.decision is DecisionKind.BOUND and decision.node in verdict.feasible_nodes
        if fits and not self._is_configured:
            return Cause.CONFIGURATION, "it fits there, too; is --scheduler-config that of the cluster?"
        return Cause.UNKNOWN, ""


def _different(
    decision: TakenDecision, lines: list[str], cause: Cause, why: str, changes: Sequence[str] = ()
) -> DecisionDifference:
    return DecisionDifference(
        decision=decision, differences=lines, cause=cause, explanation=why, changes=list(dict.fromkeys(changes))
    )


def _tries(situation: Situation) -> Iterator[tuple[int, int, bool]]:
    """Other states, the nearest first: how many changes fewer, how many more pods bound, and in which order."""
    found = []
    for by_place in (False, True):
        before, after = situation.bindings(by_place=by_place)
        bounds = range(-min(before, _PODS_AHEAD), min(after, _PODS_AHEAD) + 1)
        found += [(undone, bound, by_place) for undone in range(len(situation.meanwhile) + 1) for bound in bounds]
    # What is explained by one of the two needs no other.
    found.sort(key=lambda each: (bool(each[0] and each[1]), each[0] + abs(each[1]), abs(each[1])))
    yield from [each for each in found if each != (0, 0, False)][:_MOST_TRIES]


_PREDICTED, _RACED, _DIFFERENT, _NOT_COMPARED = range(4)


class Tally:
    """Counts judgements."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[DecisionKind, int]] = Counter()
        self._preemptions: Counter[tuple[str, str]] = Counter()
        self._victims: Counter[tuple[str, str]] = Counter()
        self._violating: Counter[tuple[str, str]] = Counter()
        self._algorithms: dict[str, None] = {}
        self._missing: Counter[str] = Counter()
        self._assumptions: dict[Assumption, None] = {}
        self.differences: list[DecisionDifference] = []

    def count(self, decision: TakenDecision, judgement: Judgement) -> None:
        """Add a judgement."""
        predicted, difference = judgement.predicted, judgement.difference
        result = _PREDICTED
        if judgement.not_compared:
            result = _NOT_COMPARED
            self._missing[judgement.not_compared] += 1
        elif difference is not None:
            result = _RACED if difference.cause is Cause.RACE else _DIFFERENT
            self.differences.append(difference)
        self._counts[decision.decision, result] += 1
        if predicted is not None:
            self._algorithms[predicted.verdict.algorithm] = None
            self._assumptions.update(dict.fromkeys(predicted.verdict.assumptions))
        if decision.decision is DecisionKind.NOMINATED:
            class_name = predicted.pod.spec.priority_class_name if predicted is not None else ""
            key = decision.pod.partition("/")[0], class_name
            self._preemptions[key] += 1
            self._victims[key] += len(decision.victims)
            self._violating[key] += result in (_PREDICTED, _RACED) and _violates(decision, judgement)

    def score(self) -> float | None:
        """The share, in percent, of what was predicted among what was compared; races are neither."""
        predicted = sum(self._counts[kind, _PREDICTED] for kind in DecisionKind)
        compared = predicted + sum(self._counts[kind, _DIFFERENT] for kind in DecisionKind)
        return 100 * predicted / compared if compared else None

    def verification(self, begins: datetime, ends: datetime) -> Verification:
        """The answer about the decisions between two times."""
        return Verification(
            begins=begins,
            ends=ends,
            algorithms=list(self._algorithms),
            score=self.score(),
            decisions=[
                DecisionCounts(
                    decision=kind,
                    predicted=self._counts[kind, _PREDICTED],
                    raced=self._counts[kind, _RACED],
                    different=self._counts[kind, _DIFFERENT],
                    not_compared=self._counts[kind, _NOT_COMPARED],
                )
                for kind in DecisionKind
            ],
            preemptions=[
                PreemptionCounts(
                    namespace=namespace,
                    priority_class=priority_class,
                    preemptions=number,
                    victims=self._victims[namespace, priority_class],
                    violating_budgets=self._violating[namespace, priority_class],
                )
                for (namespace, priority_class), number in sorted(self._preemptions.items())
            ],
            items=self.differences,
            not_compared=dict(self._missing),
            assumptions=list(self._assumptions),
        )


def _violates(decision: TakenDecision, judgement: Judgement) -> bool:
    """Whether the eviction that was predicted, and came, violates a budget."""
    if judgement.predicted is None:
        return False
    predicted = judgement.predicted
    told = predicted.verdict.possible_outcomes
    gone = leaving_of(predicted.verdict) | predicted.leaving
    fits = [each for each in told if each.node == decision.node and is_outcome(each, decision.victims, gone)]
    return bool(fits) and all(each.num_pdb_violations for each in fits)


_SHOWN = 5


def differences(verdict: Verdict, decision: TakenDecision, leaving: Collection[str] = ()) -> list[str]:
    """What was decided otherwise than the verdict says, a line each; none where it is as predicted.

    Pods that are ``leaving`` already nobody evicts again.
    """
    hosts = possible_hosts(verdict)
    if hosts or decision.decision is DecisionKind.BOUND:
        if decision.decision is DecisionKind.BOUND and decision.node in hosts:
            return []
        return [f"{_did(decision)}; predicted: {_outcome(verdict)}"]
    lines = []
    told = verdict.possible_outcomes
    gone = leaving_of(verdict) | set(leaving)
    if decision.decision is DecisionKind.UNSCHEDULABLE:
        if told:
            return [f"{_did(decision)}; predicted: {_outcome(verdict)}"]
    elif decision.node not in {each.node for each in told}:
        return [f"{_did(decision)}; predicted: {_outcome(verdict)}"]
    elif not any(each.node == decision.node and is_outcome(each, decision.victims, gone) for each in told):
        expected = " or ".join(_victims(each) for each in told if each.node == decision.node)
        lines.append(f"evicted {_listed(decision.victims)} from {decision.node}; predicted: {expected}")
    if REDACTED not in decision.message and decision.message not in (
        messages := reported_messages(verdict, decision.node)
    ):
        expected = " or ".join(f'"{each}"' for each in sorted(messages))
        lines.append(f'said "{decision.message}"; predicted: {expected}')
    return lines


def possible_hosts(verdict: Verdict) -> list[str]:
    """The nodes that the pod may be bound to; where a search stops early, each that fits may be the best it finds."""
    return verdict.feasible_nodes if verdict.sampling is not None else verdict.lands_on


def leaving_of(verdict: Verdict) -> set[str]:
    """The victims that are on their way out already."""
    return {victim.pod for victims in verdict.victims.values() for victim in victims if victim.terminating}


def is_outcome(outcome: PossibleOutcome, evicted: Collection[str], leaving: Collection[str]) -> bool:
    """Whether just these pods may be evicted, where victims that are leaving are not evicted once more."""
    seen, gone = set(evicted), set(leaving) - set(evicted)
    chosen = [(choice.count, len(seen & set(choice.pods)), len(gone & set(choice.pods))) for choice in outcome.choices]
    is_whole = set(outcome.victims) - gone <= seen <= set(outcome.pods)
    return is_whole and all(went <= count <= went + may_have for count, went, may_have in chosen)


def reported_messages(verdict: Verdict, node: str) -> set[str]:
    """What the scheduler may say where ``node`` is picked: the verdict's message is about one of those that tie."""
    start, placement, _ = verdict.message.partition(FOUND_PLACEMENT)
    if not placement or node not in verdict.nominated_nodes:
        return {verdict.message}
    sizes = {each.num_victims for each in verdict.possible_outcomes if each.node == node}
    return {f"{start}{placement}{node}, preempting {size} victims" for size in sizes}


def _did(decision: TakenDecision) -> str:
    if decision.decision is DecisionKind.BOUND:
        return f"bound to {decision.node}"
    if decision.decision is DecisionKind.NOMINATED:
        return f"nominated to {decision.node}, evicting {_listed(decision.victims)}"
    return f'refused ("{decision.message}")'


def _outcome(verdict: Verdict) -> str:
    if hosts := possible_hosts(verdict):
        return f"bound to {' or '.join(_first(hosts))}"
    if told := verdict.possible_outcomes:
        return " or ".join(_first([f"nominated to {each.node}, evicting {_victims(each)}" for each in told]))
    if verdict.message:
        return f'refused ("{verdict.message}")'
    return f"not tried ({verdict.reason or verdict.held_by})"


def _victims(outcome: PossibleOutcome) -> str:
    choices = [f"{each.count} of {_listed(each.pods)}" for each in outcome.choices]
    return " and ".join([*([_listed(outcome.victims)] if outcome.victims or not choices else []), *choices])


def _listed(pods: Collection[str]) -> str:
    return ", ".join(_first(sorted(pods))) or "nobody"


def _first(texts: list[str]) -> list[str]:
    return texts if len(texts) <= _SHOWN else [*texts[:_SHOWN], f"{len(texts) - _SHOWN} more"]
