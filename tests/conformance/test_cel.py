"""CEL expressions on devices, evaluated by Kubernetes' own cel package and by kpreempt."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kpreempt.cel import CompileError, EvaluationError
from kpreempt.cel.devices import DeviceView, device_selector
from tests.tiers import Sample

RECORDED = Path(__file__).parents[2] / "fixtures" / "conformance" / "dra"
COUNTS = {"cel": 727, "cel-libraries": 2200}


def _lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(RECORDED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _decide(line: dict[str, Any], names: list[str]) -> dict[str, Any]:
    device = line["device"]
    try:
        selector = device_selector(line["expression"])
    except CompileError as error:
        return {"compileError": str(error)}
    view = DeviceView(
        driver=line["driver"],
        attributes={name: device["attributes"][name] for name in names},
        capacity=device.get("capacity", {}),
        allow_multiple_allocations=device.get("allowMultipleAllocations", False),
    )
    try:
        decided: dict[str, Any] = {"match": selector.matches(view)}
    except EvaluationError as error:
        decided = {"error": str(error)}
    return decided | {"cost": selector.cost}


@pytest.mark.parametrize("name", COUNTS)
def test_every_recorded_expression_is_decided_as_kubernetes_does(name: str, sample: Sample) -> None:
    lines = _lines(name)
    assert len(lines) == COUNTS[name]
    for line in sample(lines):
        expected = {key: line[key] for key in ("match", "error", "compileError", "cost") if key in line}
        names = list(line["device"].get("attributes", {}))
        decided = _decide(line, names)
        if decided != expected and "cost" in expected:
            # The cost of a loop over a map depends on Go's random map order.
            assert ".exists(" in line["expression"] or ".all(" in line["expression"], line["expression"]
            orders = (names[at:] + names[:at] for at in range(len(names)))
            decided = next((other for order in orders if (other := _decide(line, order)) == expected), decided)
        assert decided == expected, line["expression"]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("key", ["match", "error", "compileError"])
def test_the_recorded_expressions_end_in_each_way(name: str, key: str) -> None:
    assert any(key in line for line in _lines(name))
