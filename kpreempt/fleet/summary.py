"""A sweep's dataset in one record: how each cluster fared, the worst first."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kpreempt.fleet.dataset import Dataset
from kpreempt.fleet.rows import BY_BADNESS, SCHEMA_VERSION
from kpreempt.verdict.status import Outcome
from kpreempt.verdict.sweep import Sweep, SweepAssumption, SweepFailure, SweptCluster

# The dataset has all of them.
_LISTED = 200
_NAMED = 1_000
# Kinds of questions that are about single pods.
_OF_PODS = ("explain", "pending")
_COUNTED = ("cluster", "question", "algorithm", "kind", "worst_outcome", "certain", "victims", "violations")


class _Tally:
    """What is counted on the way through the dataset."""

    def __init__(self) -> None:
        self.algorithms: dict[str, None] = {}
        self.questions: dict[str, None] = {}
        self.failures: list[SweepFailure] = []
        self.num_failures: Counter[str] = Counter()
        self.failed: dict[str, str] = {}
        self.answers: Counter[str] = Counter()


def summary_of(dataset: Dataset) -> Sweep:
    """The whole sweep. Raises ``InputError`` where the dataset cannot be read."""
    tally = _Tally()
    for table in dataset.tables("failures"):
        for row in table.to_pylist():
            tally.num_failures[row["cluster"]] += 1
            if not row["question"]:
                tally.failed[row["cluster"]] = row["reason"]
            if len(tally.failures) < _LISTED:
                tally.failures.append(SweepFailure(**row))
    swept = dict(zip(dataset.folders(), dataset.tables("clusters"), strict=True))
    items = [
        _cluster(about.to_pylist()[0], verdicts, tally)
        for about, verdicts in zip(swept.values(), dataset.tables("verdicts", _COUNTED), strict=True)
        if about.num_rows
    ]
    outcomes: Counter[str] = Counter()
    audits: Counter[str] = Counter()
    for each in items:
        outcomes.update(each.outcomes)
        audits.update(each.audits)
    return Sweep(
        schema_version=SCHEMA_VERSION,
        algorithms=list(tally.algorithms),
        questions=list(tally.questions)[:_NAMED],
        outcomes=_sorted(outcomes),
        audits=dict(sorted(audits.items())),
        answers=sum(tally.answers.values()),
        uncertain=sum(each.uncertain for each in items),
        num_failures=sum(tally.num_failures.values()),
        items=sorted(items, key=_badness),
        failures=tally.failures,
        assumptions=_assumptions(dataset),
    )


def _cluster(about: dict[str, Any], verdicts: Any, tally: _Tally) -> SweptCluster:
    outcomes: Counter[str] = Counter()
    audits: Counter[str] = Counter()
    name = about["cluster"]
    questions, algorithms = _columns(verdicts, "question", "algorithm")
    tally.questions |= dict.fromkeys(questions)
    tally.algorithms |= dict.fromkeys(algorithms)
    tally.answers[name] = len(set(zip(questions, algorithms, strict=True)))
    victims = violations = uncertain = 0
    counted = _columns(verdicts, "kind", "worst_outcome", "certain", "victims", "violations")
    for kind, outcome, certain, evicted, violated in zip(*counted, strict=True):
        (outcomes if kind in _OF_PODS else audits)[outcome] += 1
        uncertain += not certain
        if kind in _OF_PODS:
            victims += evicted or 0
            violations += violated or 0
    return SweptCluster(
        cluster=name,
        source=about["source"] or "",
        version=about["version"] or "",
        nodes=about["nodes"],
        pods=about["pods"],
        outcomes=_sorted(outcomes),
        audits=dict(sorted(audits.items())),
        victims=victims,
        violations=violations,
        uncertain=uncertain,
        failures=tally.num_failures[name],
        failed=tally.failed.get(name, ""),
    )


def _columns(table: Any, *names: str) -> list[list[Any]]:
    return [table[name].to_pylist() for name in names]


def _assumptions(dataset: Dataset) -> list[SweepAssumption]:
    """By what is said, in how many clusters; what is said of most first."""
    found: Counter[tuple[str, str]] = Counter()
    for table in dataset.tables("assumptions", ["kind", "message"]):
        found.update(set(zip(*_columns(table, "kind", "message"), strict=True)))
    listed = sorted(found.items(), key=lambda each: (-each[1], each[0]))[:_LISTED]
    return [SweepAssumption(kind=kind, message=message, clusters=number) for (kind, message), number in listed]


def _sorted(outcomes: Counter[str]) -> dict[str, int]:
    """In the order of their badness, the best first."""
    known = [str(each) for each in BY_BADNESS]
    return {each: outcomes[each] for each in sorted(outcomes, key=lambda one: (one in known and known.index(one), one))}


def _badness(each: SweptCluster) -> tuple[Any, ...]:
    stuck = each.outcomes.get(Outcome.NEVER_LANDS, 0)
    errors = each.audits.get("error", 0)
    return (
        not each.failed,
        -each.failures,
        -stuck,
        -each.violations,
        -errors,
        -each.victims,
        -each.uncertain,
        each.cluster,
    )
