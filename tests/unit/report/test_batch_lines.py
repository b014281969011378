"""Lines of ``batch`` keep the names that recorded suites were compared with."""

from __future__ import annotations

import json

import msgspec
import pytest

from kpreempt.report.batch_lines import FIELDS, VALUES, encode_line
from kpreempt.report.document import encode_json
from kpreempt.verdict import (
    Alternatives,
    Assumption,
    AssumptionKind,
    BudgetUse,
    Code,
    ExtenderCall,
    Outcome,
    PodSummary,
    Reprieve,
    Status,
    Verdict,
)
from kpreempt.verdict.details import InsufficientDevices, NodeNameMismatch
from kpreempt.verdict.records import Candidate, Victim
from kpreempt.verdict.simulation import StepKind
from kpreempt.verdict.volcano import Attempt, AttemptOutcome, NodeAttempt, NodeOutcome, Purpose, Vote, VoteEffect

POD = PodSummary("shop", "api")
BUDGET = BudgetUse("shop/web", 1, 0)
# Each with the part of its line that has other names.
RENAMED = {
    "an outcome": (Verdict(algorithm="k", outcome=Outcome.UNSCHEDULABLE, pod=POD), '"outcome":"NeverLands"'),
    "a pod that never fits": (
        Verdict(algorithm="k", outcome=Outcome.LANDS, pod=POD, permanently_unschedulable=True),
        '"refusedForGood":true',
    ),
    "a budget of a victim": (
        Verdict(algorithm="k", outcome=Outcome.LANDS, pod=POD, victims={"left": [Victim("a/b", 1, budgets=[BUDGET])]}),
        '"victims":{"left":[{"pod":"a/b","priority":1,"owner":"","startTime":null,"gracePeriodSeconds":30,'
        '"terminating":false,"budgets":[{"budget":"shop/web","allowed":1,"left":0}]}]}',
    ),
    "a pod that was put back": (
        Verdict(
            algorithm="k",
            outcome=Outcome.LANDS,
            pod=POD,
            candidates=[Candidate("n", [], steps=[Reprieve("a/b", 1, is_reprieved=True)])],
        ),
        '"steps":[{"pod":"a/b","priority":1,"kept":true,"startTime":null,"violatesBudget":false,"budgets":[],'
        '"blockedBy":null}]',
    ),
    "outcomes that are omitted": (Alternatives([], omitted=3), '{"outcomes":[],"exact":true,"untold":3}'),
    "something unmodeled": (Assumption("a", "b", "c"), '{"subject":"a","field":"b","message":"c"}'),
    "a skipped object": (Assumption("a", "b", "c", AssumptionKind.SKIPPED), '"kind":"SetAside"'),
    "an informational assumption": (Assumption("a", "b", "c", AssumptionKind.INFORMATIONAL), '"kind":"Told"'),
    "another node": (
        Status(Code.UNSCHEDULABLE, detail=NodeNameMismatch("n")),
        '"detail":{"type":"NodeNameMismatch","wanted":"n"}',
    ),
    "devices": (InsufficientDevices("c", "r", "gpu", requested=2, matching=1), '"wanted":2,"matching":1'),
    "a call of an extender": (
        ExtenderCall("e", "filter", nodes_sent=3, rejected={"n": ""}, added=["m"], removed=["o"]),
        '"asked":3,"refused":{"n":""},"letIn":["m"],"dropped":["o"]',
    ),
    "an attempt of Volcano": (
        Attempt(
            purpose=Purpose.RECLAIM,
            queue="q",
            job="j",
            outcome=AttemptOutcome.NO_NODE,
            rejected={"n": "x"},
            explanations={"n": "y"},
            nodes=[
                NodeAttempt(
                    node="n",
                    outcome=NodeOutcome.NOT_ENOUGH,
                    votes=[Vote(tier=1, plugin="gang", effect=VoteEffect.INTERSECTED, remaining=["t"])],
                )
            ],
        ),
        '"refused":{"n":"x"},"because":{"n":"y"},"nodes":[{"node":"n","outcome":"NotEnough","votes":'
        '[{"tier":1,"plugin":"gang","effect":"Kept","left":["t"]}]}]',
    ),
}


@pytest.mark.parametrize(("record", "part"), RENAMED.values(), ids=RENAMED.keys())
def test_a_line_has_the_recorded_names(record: msgspec.Struct, part: str) -> None:
    line = encode_line(record)
    assert part in line
    assert list(json.loads(line)) != [] and len(json.loads(line)) == len(json.loads(encode_json(record)))


def test_what_keeps_its_names_is_written_as_everywhere() -> None:
    verdict = Verdict(algorithm="k", outcome=Outcome.LANDS, pod=POD, filter={"kept": Status(Code.SUCCESS)})
    assert encode_line(verdict) == encode_json(verdict)


def test_the_table_names_fields_and_values_that_there_are() -> None:
    for kind, names in FIELDS.items():
        assert set(names) <= set(kind.__struct_fields__)
        assert not set(names.values()) & set(kind.__struct_encode_fields__)
    assert StepKind.BOUND not in VALUES
    assert all(str(value) != line for value, line in VALUES.items())
