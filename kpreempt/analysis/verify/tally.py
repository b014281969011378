"""What all judgements come to: counts, a score, preemptions by namespace and priority class."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from kpreempt.analysis.verify.comparison import is_outcome, leaving_of
from kpreempt.analysis.verify.judging import Judgement
from kpreempt.verdict import Assumption
from kpreempt.verdict.verify import (
    Cause,
    DecisionCounts,
    DecisionDifference,
    DecisionKind,
    PreemptionCounts,
    TakenDecision,
    Verification,
)

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
