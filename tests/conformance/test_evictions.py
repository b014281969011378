"""Evictions, PodDisruptionBudgets and the pods that a drain selects, recorded from the real code."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kpreempt.analysis.algorithms import eviction_rules_of, scheduler_for
from kpreempt.errors import InputError
from tests.conformance.eviction_lines import answer_line
from tests.tiers import Sample

RECORDED = Path(__file__).parents[2] / "fixtures" / "conformance" / "evictions"
COUNTS = {"eviction": 468, "disruption": 339, "drain-filter": 343}


def _lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(RECORDED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _answer(line: dict[str, Any], algorithm: str = "kube-1.36") -> dict[str, Any]:
    given = {key: value for key, value in line.items() if key != "expect"}
    answer: dict[str, Any] = json.loads(
        json.dumps(
            answer_line(json.dumps(given).encode(), "line", eviction_rules_of(scheduler_for(algorithm).settings))
        )
    )
    return answer


def _agree(wanted: Any, got: Any) -> bool:
    """Whether everything expected is there; missing, an empty string and an empty list are equal."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        if "messageOneOf" in wanted:
            # Which of these is reported depends on the order of a Go map.
            assert wanted["message"] in got["messageOneOf"]
            wanted = {**wanted, "message": got["message"]}
        return all(_agree(value, got.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(got, list):
        return len(wanted) == len(got) and all(map(_agree, wanted, got))
    if wanted in (None, "", [], {}) and not isinstance(wanted, bool | int):
        return got in (None, "", [], {})
    return bool(wanted == got)


@pytest.mark.parametrize("name", COUNTS)
def test_every_recorded_answer_is_given(name: str, sample: Sample) -> None:
    lines = _lines(name)
    assert len(lines) == COUNTS[name]
    wrong = [line["name"] for line in sample(lines) if not _agree(line["expect"], _answer(line))]
    assert wrong == []


def _cause(line: dict[str, Any], algorithm: str) -> str:
    answer = _answer(line, algorithm)
    causes = (answer["details"] or {}).get("causes") or [{"message": ""}]
    message: str = causes[0]["message"]
    return message


def _named(name: str) -> dict[str, Any]:
    return next(line for line in _lines("eviction") if line["name"] == name)


@pytest.mark.parametrize(
    ("algorithm", "cause"),
    [
        ("kube-1.36", ""),
        (
            "kube-1.37",
            "The disruption budget web does not allow evicting pods currently: "
            "too many pending evictions not confirmed by PDB controller",
        ),
    ],
)
def test_since_1_37_a_broken_budget_is_named_in_a_cause(algorithm: str, cause: str) -> None:
    assert _cause(_named("disrupted-2001"), algorithm) == cause


@pytest.mark.parametrize(
    ("algorithm", "cause"),
    [
        ("kube-1.34", "The disruption budget web needs 0 healthy pods and has 3 currently"),
        ("kube-1.35", "The disruption budget web does not allow evicting pods currently because it failed sync: why"),
    ],
)
def test_since_1_35_a_rejection_reports_a_failed_sync(algorithm: str, cause: str) -> None:
    line = _named("open-8")
    condition = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "why"}
    status = {"observedGeneration": 1, "currentHealthy": 3, "conditions": [condition]}
    line["podDisruptionBudgets"][0]["status"] = status
    assert _cause(line, algorithm) == cause


def test_a_line_with_a_wrong_type_is_an_error_of_the_line() -> None:
    line = {**_named("open-8"), "podDisruptionBudgets": [{"spec": {"selector": {"matchLabels": 3}}}]}
    with pytest.raises(InputError, match=r"expected `object \| null`"):
        _answer(line)
