"""Verifies decisions one by one: predicted from just before, or from a time at which they may have been made.

A decision is compared with the verdict from just before it: node, victims and message. If chance or the order of equal
pods decides, any outcome of the verdict matches. The result has counts, a score, and preemptions by namespace and
priority class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import msgspec

from kpreempt.admission import fill_budget_statuses, fill_priorities
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.pods import ExplainInput, explain_pod
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

# The maximum number of other states tried for one decision.
_MAX_TRIES = 300
_PODS_AHEAD = 8
# Another configuration would change at least this share of the decisions that scores decide.
_CONFIGURED = 0.1


class Situation(Protocol):
    """A cluster just before a decision, and as the scheduler may have seen it (``snapshot.recording.replay``)."""

    @property
    def meanwhile(self) -> Sequence[object]:
        """The changes while it may have been decided."""

    @property
    def unknown_changes(self) -> Sequence[int]:
        """How many of the last changes the scheduler may not have known when it decided, as times of events show."""

    def cluster_as_written(self) -> ClusterSnapshot:
        """The cluster with everything that was written before the decision."""

    def vanishing(self, cluster: ClusterSnapshot) -> Iterator[tuple[Pod, bool]]:
        """The nominated pods that are deleted before they are bound, and whether they may have been gone already."""

    @property
    def gap(self) -> str:
        """The kind that was not watched."""

    @property
    def leaving(self) -> set[str]:
        """The pods that started terminating at about that time."""

    @property
    def num_decisions(self) -> int:
        """The number of decisions about the pod at about that time, with this one."""

    @property
    def is_near_end(self) -> bool:
        """Whether the recording may end before the decision is complete."""

    def bindings(self, *, by_position: bool) -> tuple[int, int]:
        """The numbers of pods bound or nominated shortly before and after, in the order of writes or of attempts."""

    def cluster(self, undone: int = 0, bound: int = 0, *, by_position: bool = False) -> ClusterSnapshot:
        """The cluster with fewer changes, and with more or fewer pods bound or nominated."""

    def differing(self, undone: int, bound: int, *, by_position: bool) -> Hashable:
        """A value that is equal for equal clusters."""

    def changes(self, undone: int, bound: int, *, by_position: bool) -> list[str]:
        """A description of these changes."""


class PreparedScheduler(NamedTuple):
    """A scheduler for a cluster, and its assumptions."""

    scheduler: Scheduler
    assumptions: Sequence[Assumption]


# Returns the scheduler for a cluster, or of another version; ``None`` if that rejects the configuration.
PrepareScheduler = Callable[[ClusterSnapshot, str | None], PreparedScheduler | None]


class Prediction(NamedTuple):
    """A prediction, its cluster and its pod."""

    verdict: Verdict
    cluster: ClusterSnapshot
    pod: Pod
    # Pods that were terminating, or started to at that time.
    leaving: set[str]

    def differences(self, decision: TakenDecision) -> list[str]:
        """How the decision differs."""
        return differences(self.verdict, decision, self.leaving)


class Judgment(NamedTuple):
    """The result for a decision; without a ``difference`` it is as ``predicted``.

    A decision that could not be compared has only ``not_compared``, the reason.
    """

    predicted: Prediction | None = None
    difference: DecisionDifference | None = None
    not_compared: str = ""


class Judge:
    """Verifies decisions; ``is_configured`` means that the scheduler's configuration is known."""

    def __init__(self, scheduler_for: PrepareScheduler, *, is_configured: bool) -> None:
        self._scheduler_for, self._is_configured = scheduler_for, is_configured
        # The scheduler that decided last, on its cluster: the next cluster is usually almost the same.
        self._last: tuple[Scheduler, Any] | None = None

    def judge(self, decision: TakenDecision, situation: Situation) -> Judgment:
        """Compare a decision with the prediction from just before, and otherwise search for the cause."""
        about_then = situation.leaving if decision.decision is DecisionKind.NOMINATED else set()
        predicted = self._predict(decision, situation.cluster_as_written(), about_then)
        if predicted is None:
            return Judgment(not_compared="the pod was unknown at that time")
        lines = predicted.differences(decision)
        if not lines:
            return Judgment(predicted)
        for cluster in self._known_clusters(decision, situation):
            other = self._predict(decision, cluster, about_then)
            if other is not None and not other.differences(decision):
                return Judgment(other)
        tried = {situation.differing(fewer, 0, by_position=False) for fewer in situation.unknown_changes}
        for fewer, more, by_position in _tries(situation):
            # Both orders often result in the same state.
            state = situation.differing(fewer, more, by_position=by_position)
            if state in tried:
                continue
            tried.add(state)
            other = self._predict(decision, situation.cluster(fewer, more, by_position=by_position), about_then)
            if other is not None and not other.differences(decision):
                changes = situation.changes(fewer, more, by_position=by_position)
                return Judgment(other, _different(decision, lines, Cause.RACE, "", changes))
        if situation.gap:
            return Judgment(not_compared=f"{situation.gap} was not watched at that time")
        if situation.is_near_end:
            return Judgment(not_compared="the recording ends before the decision is complete")
        cause, why = self._cause(decision, predicted)
        if cause is Cause.UNKNOWN:
            why = _evidence(situation, len(tried))
        return Judgment(predicted, _different(decision, lines, cause, why))

    def _known_clusters(self, decision: TakenDecision, situation: Situation) -> Iterator[ClusterSnapshot]:
        """Yield the clusters that the scheduler knew by the times of its reports.

        A pod that is deleted before it is bound leaves no trace of where the scheduler had put it last. It is gone, or
        where it is predicted to land.
        """
        clusters = [situation.cluster(fewer) for fewer in situation.unknown_changes]
        yield from clusters
        for cluster in clusters:
            for pod, may_be_gone in situation.vanishing(cluster):
                others = [each for each in cluster.pods if each is not pod]
                if may_be_gone:
                    yield msgspec.structs.replace(cluster, pods=others)
                own = TakenDecision(decision=DecisionKind.BOUND, pod=pod.key, at=decision.at)
                found = self._predict(own, cluster, ())
                hosts = possible_hosts(found.verdict) if found is not None else []
                if len(hosts) == 1:
                    spec = msgspec.structs.replace(pod.spec, node_name=hosts[0])
                    yield msgspec.structs.replace(cluster, pods=[*others, msgspec.structs.replace(pod, spec=spec)])

    def _predict(
        self,
        decision: TakenDecision,
        cluster: ClusterSnapshot,
        about_then: Collection[str],
        algorithm: str | None = None,
    ) -> Prediction | None:
        # Its objects have the defaults of their types already.
        cluster, of_priorities = fill_priorities(cluster)
        cluster, of_budgets = fill_budget_statuses(cluster)
        pod = next((each for each in cluster.pods if each.key == decision.pod), None)
        if pod is None or pod.spec.node_name:
            return None
        others = msgspec.structs.replace(cluster, pods=[each for each in cluster.pods if each is not pod])
        found = self._scheduler_for(cluster, algorithm)
        if found is None:
            return None
        assumptions = [*found.assumptions, *of_priorities, *of_budgets]
        scheduler = found.scheduler
        before = self._last[1] if self._last is not None and self._last[0] is scheduler else None
        prepared = scheduler.prepare(others, now=decision.at, before=before)
        self._last = scheduler, prepared
        verdict = explain_pod(
            others,
            ExplainInput(pod=pod),
            scheduler,
            prepared,
            now=decision.at,
            assumptions=assumptions,
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
        alternatives, choices = verdict.alternatives, verdict.volume_choices
        if (alternatives is not None and (alternatives.omitted or not alternatives.exact)) or (
            choices is not None and not choices.complete
        ):
            return Cause.ORDER, "an unknown order decides, and not all orders were evaluated"
        found = [each for each in verdict.assumptions if not each.lists_files]
        ignored = [each for each in found if each.kind is not AssumptionKind.INFORMATIONAL]
        if ignored:
            return Cause.UNMODELED, f"{ignored[0].subject}: {ignored[0].message}"
        minor = ".".join(verdict.algorithm.split(".")[:2])
        if minor not in KUBE_ALGORITHMS:
            adjacent = []
        else:
            at = KUBE_ALGORITHMS.index(minor)
            adjacent = [*KUBE_ALGORITHMS[max(0, at - 1) : at], *KUBE_ALGORITHMS[at + 1 : at + 2]]
        for algorithm in adjacent:
            other = self._predict(decision, predicted.cluster, predicted.leaving, algorithm)
            if other is not None and not other.differences(decision):
                return Cause.VERSION, f"{algorithm} decides this way"
        fits = decision.decision is DecisionKind.BOUND and decision.node in verdict.feasible_nodes
        if fits and not self._is_configured:
            return Cause.CONFIGURATION, "the pod also fits there; pass the cluster's --scheduler-config"
        return Cause.UNKNOWN, ""


def _evidence(situation: Situation, num_tried: int) -> str:
    """What is known about a decision that nothing explains."""
    states = f"none of the {num_tried:,} states that the scheduler may have seen predicts it" if num_tried > 1 else ""
    number = situation.num_decisions
    burst = f"one of {number:,} decisions about this pod within 4s, which may be reported late" if number > 1 else ""
    return "; ".join(filter(None, (states, burst)))


def _different(
    decision: TakenDecision, lines: list[str], cause: Cause, why: str, changes: Sequence[str] = ()
) -> DecisionDifference:
    return DecisionDifference(
        decision=decision, differences=lines, cause=cause, explanation=why, changes=list(dict.fromkeys(changes))
    )


def _tries(situation: Situation) -> Iterator[tuple[int, int, bool]]:
    """Other states, the closest first: the number of changes fewer, of pods more, and the order."""
    found = []
    for by_position in (False, True):
        before, after = situation.bindings(by_position=by_position)
        bounds = range(-min(before, _PODS_AHEAD), min(after, _PODS_AHEAD) + 1)
        found += [(undone, bound, by_position) for undone in range(len(situation.meanwhile) + 1) for bound in bounds]
    # If one of the two explains it, the other is not needed.
    found.sort(key=lambda each: (bool(each[0] and each[1]), each[0] + abs(each[1]), abs(each[1])))
    yield from [each for each in found if each != (0, 0, False)][:_MAX_TRIES]


_PREDICTED, _RACED, _DIFFERENT, _NOT_COMPARED = range(4)


class Tally:
    """Counts the results."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[DecisionKind, int]] = Counter()
        self._preemptions: Counter[tuple[str, str]] = Counter()
        self._victims: Counter[tuple[str, str]] = Counter()
        self._violating: Counter[tuple[str, str]] = Counter()
        self._algorithms: dict[str, None] = {}
        self._missing: Counter[str] = Counter()
        self._assumptions: dict[Assumption, None] = {}
        # By scheduler name, the predicted bindings for which scores decided, and those that scores may have decided.
        self._scored: Counter[str] = Counter()
        self._scored_otherwise: Counter[str] = Counter()
        self._scheduler_of: dict[int, str] = {}
        self.differences: list[DecisionDifference] = []

    def count(self, decision: TakenDecision, judgment: Judgment) -> None:
        """Add a result."""
        predicted, difference = judgment.predicted, judgment.difference
        result = _PREDICTED
        if judgment.not_compared:
            result = _NOT_COMPARED
            self._missing[judgment.not_compared] += 1
        elif difference is not None:
            result = _RACED if difference.cause is Cause.RACE else _DIFFERENT
            self.differences.append(difference)
            if difference.cause is Cause.CONFIGURATION and predicted is not None:
                self._scored_otherwise[predicted.pod.spec.scheduler_name] += 1
                self._scheduler_of[id(difference)] = predicted.pod.spec.scheduler_name
        elif predicted is not None and decision.decision is DecisionKind.BOUND:
            has_choice = len(possible_hosts(predicted.verdict)) < len(predicted.verdict.feasible_nodes)
            self._scored[predicted.pod.spec.scheduler_name] += has_choice
        self._counts[decision.decision, result] += 1
        if predicted is not None:
            self._algorithms[predicted.verdict.algorithm] = None
            self._assumptions.update(dict.fromkeys(predicted.verdict.assumptions))
        if decision.decision is DecisionKind.NOMINATED:
            class_name = predicted.pod.spec.priority_class_name if predicted is not None else ""
            key = decision.pod.partition("/")[0], class_name
            self._preemptions[key] += 1
            self._victims[key] += len(decision.victims)
            self._violating[key] += result in (_PREDICTED, _RACED) and _violates(decision, judgment)

    def score(self) -> float | None:
        """The percentage of correct predictions among compared decisions; races count as neither."""
        predicted = sum(self._counts[kind, _PREDICTED] for kind in DecisionKind)
        compared = predicted + sum(self._counts[kind, _DIFFERENT] for kind in DecisionKind)
        return 100 * predicted / compared if compared else None

    def _with_evidence(self, difference: DecisionDifference) -> DecisionDifference:
        """Blame the configuration only if it is not just a few of the scheduler's decisions that differ."""
        name = self._scheduler_of.get(id(difference), "")
        predicted, differing = self._scored[name], self._scored_otherwise[name]
        if difference.cause is not Cause.CONFIGURATION or differing >= _CONFIGURED * (predicted + differing):
            return difference
        why = f"the pod also fits there, but {predicted:,} of {predicted + differing:,} choices by score were predicted"
        return msgspec.structs.replace(difference, cause=Cause.UNKNOWN, explanation=why)

    def verification(self, begins: datetime, ends: datetime) -> Verification:
        """The verification of the decisions between two times."""
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
            items=[self._with_evidence(each) for each in self.differences],
            not_compared=dict(self._missing),
            assumptions=list(self._assumptions),
        )


def _violates(decision: TakenDecision, judgment: Judgment) -> bool:
    """Whether the predicted eviction, if it happened, violates a budget."""
    if judgment.predicted is None:
        return False
    predicted = judgment.predicted
    outcomes = predicted.verdict.possible_outcomes
    terminating = leaving_of(predicted.verdict) | predicted.leaving
    fits = [
        each for each in outcomes if each.node == decision.node and is_outcome(each, decision.selected, terminating)
    ]
    return bool(fits) and all(each.num_pdb_violations for each in fits)


_SHOWN = 5


def differences(verdict: Verdict, decision: TakenDecision, leaving: Collection[str] = ()) -> list[str]:
    """How the decision differs from the verdict, one line each; empty if it is as predicted.

    Pods in ``leaving`` are already terminating, so they are not evicted again.
    """
    hosts = possible_hosts(verdict)
    if hosts or decision.decision is DecisionKind.BOUND:
        if decision.decision is DecisionKind.BOUND and decision.node in hosts:
            return []
        return [f"{_format_decision(decision)}; predicted: {_format_verdict(verdict)}"]
    lines = []
    outcomes = verdict.possible_outcomes
    terminating = leaving_of(verdict) | set(leaving)
    if decision.decision is DecisionKind.UNSCHEDULABLE:
        if outcomes:
            return [f"{_format_decision(decision)}; predicted: {_format_verdict(verdict)}"]
    elif decision.node not in {each.node for each in outcomes}:
        return [f"{_format_decision(decision)}; predicted: {_format_verdict(verdict)}"]
    elif not any(each.node == decision.node and is_outcome(each, decision.selected, terminating) for each in outcomes):
        expected = " or ".join(_victims(each) for each in outcomes if each.node == decision.node)
        lines.append(f"evicted {_listed(decision.selected)} from {decision.node}; predicted: {expected}")
    if (
        decision.message
        and REDACTED not in decision.message
        and decision.message not in (messages := reported_messages(verdict, decision.node))
    ):
        expected = " or ".join(f'"{each}"' for each in sorted(messages))
        lines.append(f'message "{decision.message}"; predicted: {expected}')
    return lines


def possible_hosts(verdict: Verdict) -> list[str]:
    """The nodes that the pod may be bound to; if a search stops early, every feasible node may be the best it finds."""
    return verdict.feasible_nodes if verdict.sampling is not None else verdict.lands_on


def leaving_of(verdict: Verdict) -> set[str]:
    """The victims that are already terminating."""
    return {victim.pod for victims in verdict.victims.values() for victim in victims if victim.terminating}


def is_outcome(outcome: PossibleOutcome, evicted: Collection[str], leaving: Collection[str]) -> bool:
    """Whether exactly these pods may be evicted; victims that are already terminating are not evicted again."""
    evicted_pods, terminating = set(evicted), set(leaving) - set(evicted)
    chosen = [
        (choice.count, len(evicted_pods & set(choice.pods)), len(terminating & set(choice.pods)))
        for choice in outcome.choices
    ]
    is_match = set(outcome.victims) - terminating <= evicted_pods <= set(outcome.pods)
    return is_match and all(
        num_evicted <= count <= num_evicted + num_terminating for count, num_evicted, num_terminating in chosen
    )


def reported_messages(verdict: Verdict, node: str) -> set[str]:
    """The possible messages of the scheduler if ``node`` is picked; the verdict's message names one of several."""
    start, placement, _ = verdict.message.partition(FOUND_PLACEMENT)
    if not placement or node not in verdict.nominated_nodes:
        return {verdict.message}
    sizes = {each.num_victims for each in verdict.possible_outcomes if each.node == node}
    return {f"{start}{placement}{node}, preempting {size} victims" for size in sizes}


def _format_decision(decision: TakenDecision) -> str:
    if decision.decision is DecisionKind.BOUND:
        return f"bound to {decision.node}"
    if decision.decision is DecisionKind.NOMINATED:
        return f"nominated to {decision.node}, evicting {_listed(decision.selected)}"
    return f'rejected ("{decision.message}")'


def _format_verdict(verdict: Verdict) -> str:
    if hosts := possible_hosts(verdict):
        return f"bound to {' or '.join(_first(hosts))}"
    if outcomes := verdict.possible_outcomes:
        return " or ".join(_first([f"nominated to {each.node}, evicting {_victims(each)}" for each in outcomes]))
    if verdict.message:
        return f'rejected ("{verdict.message}")'
    return f"not tried ({verdict.reason or verdict.held_by})"


def _victims(outcome: PossibleOutcome) -> str:
    choices = [f"{each.count} of {_listed(each.pods)}" for each in outcome.choices]
    return " and ".join([*([_listed(outcome.victims)] if outcome.victims or not choices else []), *choices])


def _listed(pods: Collection[str]) -> str:
    return ", ".join(_first(sorted(pods))) or "no pods"


def _first(texts: list[str]) -> list[str]:
    return texts if len(texts) <= _SHOWN else [*texts[:_SHOWN], f"{len(texts) - _SHOWN} more"]
