"""Decisions of Volcano 1.8.0 in recorded sessions, and results of its arithmetic, compared with ours."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from kpreempt.model.quantity import quantity
from kpreempt.schedulers.volcano.resources import Missing, Resource, SchedulerPanicError, larger, smaller
from tests.conformance.cases import read_lines
from tests.conformance.comparison import batch_answers, disagreeing
from tests.tiers import Sample

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "conformance" / "volcano-1.8"
TABLE = list(read_lines(FOLDER / "resource_ops.jsonl.gz"))
PAIRS = [case for case in TABLE if "a" in case]
LISTS = [case for case in TABLE if "resourceList" in case]
PANIC = "PANIC"


@pytest.mark.parametrize("suite", ["generated", "upstream"])
def test_all_sessions_of_a_suite_agree(suite: str, tmp_path: Path, sample: Sample) -> None:
    scenarios = sample(read_lines(FOLDER / f"{suite}.jsonl.gz"))
    answers = batch_answers(scenarios, tmp_path)
    assert disagreeing(scenarios, answers) == {}
    refused = {each["name"] for each in scenarios if "error" in each["expect"]}
    assert {answer["name"] for answer in answers if "error" in answer} == refused


@pytest.mark.parametrize("case", LISTS, ids=lambda case: json.dumps(case["resourceList"]))
def test_a_resource_list_is_read_as_volcano_reads_it(case: dict[str, Any]) -> None:
    amounts = Resource.from_quantities({name: quantity(text) for name, text in case["resourceList"].items()})
    assert is_same(case["NewResource"], plain(amounts))
    assert amounts.max_tasks == case["maxTaskNum"]


# FitDelta is recorded, too, but no modeled session uses it.
@pytest.mark.parametrize("operation", sorted({key for case in PAIRS for key in case} - {"a", "b", "FitDelta"}))
def test_an_operation_gives_what_volcanos_gives_on_all_pairs(operation: str) -> None:
    assert PAIRS
    wrong = [
        (case["a"], case["b"], case[operation], got)
        for case in PAIRS
        if not is_same(case[operation], got := result_of(operation, case["a"], case["b"]))
    ]
    assert wrong == []


def result_of(operation: str, left: dict[str, Any], right: dict[str, Any]) -> Any:
    """Return the result of our operation of that name."""
    a, b = resource(left), resource(right)
    zero, infinity = Missing.ZERO, Missing.INFINITY
    if operation == "Sub":
        try:
            return plain(a.sub(b))
        except SchedulerPanicError:
            return PANIC
    if operation == "SetMaxResource":
        a.raise_to(b)
        return plain(a)
    results: dict[str, Any] = {
        "Add": lambda: plain(a.add(b)),
        "DiffInfinity": lambda: [plain(each) for each in a.difference(b, infinity)],
        "DiffZero": lambda: [plain(each) for each in a.difference(b, zero)],
        "Equal": lambda: a.equals(b),
        "IsEmpty": a.is_empty,
        "LessEqualInfinity": lambda: a.less_equal(b, infinity),
        "LessEqualZero": lambda: a.less_equal(b, zero),
        "LessEqualPartlyInfinity": lambda: a.less_equal_partly(b, infinity),
        "LessEqualPartlyZero": lambda: a.less_equal_partly(b, zero),
        "LessEqualWithResourcesNameZero": lambda: not a.exceeding(b),
        "LessInfinity": lambda: a.less(b, infinity),
        "LessZero": lambda: a.less(b, zero),
        "LessPartlyInfinity": lambda: a.less_partly(b, infinity),
        "LessPartlyZero": lambda: a.less_partly(b, zero),
        "MinDimensionResourceInfinity": lambda: plain(a.lower_to(b, infinity)),
        "MinDimensionResourceZero": lambda: plain(a.lower_to(b, zero)),
        "Multi0.3": lambda: plain(a.multiply(0.3)),
        "helpersMax": lambda: plain(larger(a, b)),
        "helpersMin": lambda: plain(smaller(a, b)),
    }
    return results[operation]()


def resource(amounts: dict[str, Any]) -> Resource:
    """A resource as in the table; a missing and an empty map of scalars differ."""
    scalars = amounts["scalars"]
    return Resource(amounts["cpu"], amounts["memory"], None if scalars is None else dict(scalars))


def plain(amounts: Resource) -> dict[str, Any]:
    """A resource in the table's format."""
    return {"cpu": amounts.cpu, "memory": amounts.memory, "scalars": amounts.scalars}


def is_same(want: Any, got: Any) -> bool:
    """Whether both are equal, numbers up to the last bits."""
    if isinstance(want, dict) and isinstance(got, dict):
        return want.keys() == got.keys() and all(is_same(value, got[key]) for key, value in want.items())
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(is_same(one, other) for one, other in zip(want, got, strict=True))
    if isinstance(want, bool | str) or want is None or isinstance(got, bool | str) or got is None:
        return bool(want == got)
    return math.isclose(want, got, rel_tol=1e-9, abs_tol=1e-6)
