"""What is worse, better or new since a former answer of ``check``, whatever version wrote that."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.check.report import read_former, since
from kpreempt.errors import InputError
from kpreempt.gate_rules import RuleId
from kpreempt.report.document import indented
from kpreempt.verdict.check import Check, DriftKind, FindingStatus
from tests.checks import failed, finding, passed, quiet_check, replaced, whole_check


def written(check: Check) -> bytes:
    return indented(check).encode()


def drifts(before: Check, after: Check) -> list[tuple[str, str, int, int]]:
    found = since(read_former(written(before), "old.json"), after)
    return [
        (each.kind.value, each.metric or f"{each.rule} {each.subject}", each.before, each.after)
        for each in found.drifts
    ]


def of(*findings: Any) -> Check:
    return replaced(quiet_check(), findings=list(findings))


def one(amount: int, **fields: Any) -> Any:
    return finding(RuleId.MAX_VICTIMS, "Deployment a/b", amount=amount, **fields)


@pytest.mark.parametrize(
    "check", [quiet_check(), passed(), whole_check(), failed()], ids=["quiet", "passes", "whole", "fails"]
)
def test_nothing_differs_from_itself(check: Check) -> None:
    assert drifts(check, check) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(of(), of(one(2)), [("New", "max-victims Deployment a/b", 0, 2)], id="a new finding"),
        pytest.param(of(one(2)), of(), [("Fixed", "max-victims Deployment a/b", 2, 0)], id="one that is gone"),
        pytest.param(of(one(2)), of(one(3)), [("Worse", "max-victims Deployment a/b", 2, 3)], id="one that is worse"),
        pytest.param(of(one(3)), of(one(2)), [("Better", "max-victims Deployment a/b", 3, 2)], id="one that is better"),
        pytest.param(
            of(one(3)),
            of(one(3, status=FindingStatus.WAIVED)),
            [("Fixed", "max-victims Deployment a/b", 3, 0)],
            id="one that is waived since",
        ),
        pytest.param(
            of(one(3, status=FindingStatus.ACCEPTED)),
            of(one(3)),
            [("New", "max-victims Deployment a/b", 0, 3)],
            id="one that was accepted",
        ),
        pytest.param(of(one(3)), of(one(3, status=FindingStatus.WARNS)), [], id="one that warns only"),
        pytest.param(of(one(3, fingerprint="")), of(one(3, fingerprint="")), [], id="without a fingerprint"),
    ],
)
def test_findings_are_known_from_run_to_run(before: Check, after: Check, expected: list[Any]) -> None:
    assert drifts(before, after) == expected


def test_figures_are_compared_and_what_is_worse_comes_first() -> None:
    quiet, whole = quiet_check(), replaced(whole_check(), findings=[])
    worse = drifts(quiet, whole)
    assert worse == [
        ("Worse", "pods evicted", 0, 3),
        ("Worse", "budget violations", 0, 1),
        ("Worse", "evictions in a chain", 0, 2),
        ("Worse", "previously running pods pending", 0, 1),
        ("Worse", "broken dependencies", 0, 2),
    ]
    assert drifts(whole, quiet) == [("Better", what, after, before) for _, what, before, after in worse]
    mixed = drifts(of(one(3)), replaced(whole, findings=[finding(RuleId.MAX_PENDING)]))
    kinds = [DriftKind(kind) for kind, *_ in mixed]
    assert kinds == sorted(kinds, key=list(DriftKind).index)


def test_what_an_old_document_lacks_is_not_compared_and_said_to_be_lacking() -> None:
    old = b'{"apiVersion": "kpreempt.io/v1alpha0", "kind": "Check", "passed": true, "future": {"x": [1]}}'
    found = since(read_former(old, "old.json"), whole_check())
    assert (found.drifts, found.is_complete, found.passed) == ([], False, True)


def test_rules_that_are_not_known_any_more_are_gone() -> None:
    document = json.loads(written(of(one(1))))
    document["findings"][0] |= {"rule": "max-of-old", "surprise": 1}
    found = since(read_former(json.dumps(document).encode(), "old.json"), of())
    assert [(each.kind, each.rule) for each in found.drifts] == [(DriftKind.FIXED, "max-of-old")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "old.json: invalid JSON: ", id="an empty file"),
        pytest.param(b"\xff", "old.json: invalid JSON: ", id="no text"),
        pytest.param(b"[" * 100_000, "old.json: ", id="nested without an end"),
        pytest.param(b"[]", "old.json: expected `object`, got `array`", id="a list"),
        pytest.param(b"{}", "old.json: not a check result: no kind", id="an object"),
        pytest.param(
            b'{"kind": "Verdict", "apiVersion": "kpreempt.io/v1alpha1"}',
            "old.json: not a check result: kpreempt.io/v1alpha1 Verdict",
            id="another answer",
        ),
        pytest.param(
            b'{"kind": "Check", "apiVersion": "kpreempt.io/v1", "findings": 3}',
            "old.json: findings: expected `array | null`, got `int`",
            id="findings that are none",
        ),
    ],
)
def test_what_is_no_answer_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_former(content, "old.json")
    assert caught.value.message.startswith(message)


def test_amounts_that_are_no_numbers_are_not_compared() -> None:
    document = json.loads(written(whole_check()))
    document["simulation"]["budgets"][0]["violations"] = "many"
    found = since(read_former(json.dumps(document).encode(), "old.json"), quiet_check())
    assert "budget violations" not in [each.metric for each in found.drifts]


def test_the_difference_is_part_of_the_document() -> None:
    found = since(read_former(written(quiet_check()), "old.json"), whole_check())
    document = json.loads(indented(replaced(whole_check(), previous_run=found)))
    assert document["previousRun"]["drifts"][0]["kind"] == "New"
    assert msgspec.json.decode(json.dumps(document), type=Check).previous_run == found
