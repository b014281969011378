"""Decisions judged one by one: predicted from just before, or from a moment at which they may have been taken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from kpreempt.admission import complete_cluster
from kpreempt.analysis.algorithms import KUBE_ALGORITHMS, Scheduler
from kpreempt.analysis.explain.pods import Question, explain_pods
from kpreempt.analysis.verify.comparison import differences
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, AssumptionKind, Verdict
from kpreempt.verdict.verify import Cause, DecisionDifference, DecisionKind, TakenDecision

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
        self._ask = ask
        self._is_configured = is_configured

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
            others, [Question(pod=pod)], asked.scheduler, now=decision.at, assumptions=said, records_steps=False
        )
        leaving = {each.key for each in cluster.pods if each.spec.node_name and _is_leaving(each)}
        return Prediction(verdict, cluster, pod, leaving.union(about_then))

    def _cause(self, decision: TakenDecision, predicted: Prediction) -> tuple[Cause, str]:
        verdict = predicted.verdict
        told, choices = verdict.alternatives, verdict.volume_choices
        if (told is not None and (told.untold or not told.exact)) or (choices is not None and not choices.complete):
            return Cause.ORDER, "an order that is not known decides, and not all of them were followed"
        found = [each for each in verdict.assumptions if not each.lists_files]
        ignored = [each for each in found if each.kind is not AssumptionKind.TOLD]
        if ignored:
            return Cause.NOT_MODELLED, f"{ignored[0].subject}: {ignored[0].message}"
        for algorithm in _neighbours(verdict.algorithm):
            other = self._predict(decision, predicted.cluster, predicted.leaving, algorithm)
            if other is not None and not other.differences(decision):
                return Cause.VERSION, f"{algorithm} decides so"
        fits = decision.decision is DecisionKind.BOUND and decision.node in verdict.feasible_nodes
        if fits and not self._is_configured:
            return Cause.CONFIGURATION, "it fits there, too; is --scheduler-config that of the cluster?"
        return Cause.UNKNOWN, ""


def _is_leaving(pod: Pod) -> bool:
    marks = (each for each in pod.status.conditions if each.type == "DisruptionTarget" and each.status == "True")
    return pod.metadata.deletion_timestamp is not None or any(marks)


def _different(
    decision: TakenDecision, lines: list[str], cause: Cause, why: str, changes: Sequence[str] = ()
) -> DecisionDifference:
    return DecisionDifference(
        decision=decision, differences=lines, cause=cause, why=why, changes=list(dict.fromkeys(changes))
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


def _neighbours(algorithm: str) -> list[str]:
    minor = ".".join(algorithm.split(".")[:2])
    if minor not in KUBE_ALGORITHMS:
        return []
    at = KUBE_ALGORITHMS.index(minor)
    return [*KUBE_ALGORITHMS[max(0, at - 1) : at], *KUBE_ALGORITHMS[at + 1 : at + 2]]
