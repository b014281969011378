"""The comparison detects differences, shrinks and keeps them. Needs no Go: a fake scheduler stands in."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.parity.answers import kpreempt_answer
from tests.parity.differences import differences
from tests.parity.kept import expected_answer, keep, kept_scenarios
from tests.parity.search import search

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n0"},
    "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}},
}


def scenario(cpu: str) -> dict[str, Any]:
    containers = [{"name": "c0", "image": "img0", "resources": {"requests": {"cpu": cpu}}}]
    pod = {"metadata": {"name": "incoming", "namespace": "default"}, "spec": {"containers": containers}}
    running = {
        "kind": "Pod",
        "metadata": {"name": "p0", "namespace": "default", "uid": "u"},
        "spec": {"nodeName": "n0", "priority": -1, "containers": containers},
        "status": {"phase": "Running"},
    }
    return {"name": "s", "objects": [NODE, running], "pod": pod}


def without_taints(scenario_document: dict[str, Any]) -> dict[str, Any]:
    """The result of a scheduler that ignores taints."""
    scenario_document = copy.deepcopy(scenario_document)
    for each in scenario_document["objects"]:
        if each["kind"] == "Node":
            each["spec"].pop("taints", None)
    return as_reference(kpreempt_answer(scenario_document))


def as_reference(answer: dict[str, Any]) -> dict[str, Any]:
    """kpreempt's result in the reference's format instead of ``landsOn``."""
    if "verdict" not in answer:
        return answer
    verdict = answer["verdict"]
    fits = verdict.get("landsOn") != verdict.get("chosenNodes")
    return answer | {"verdict": verdict | {"nominatedNodeFits": fits}}


def test_equal_answers_do_not_differ() -> None:
    scenario_document = scenario("600m")
    assert differences(kpreempt_answer(scenario_document), kpreempt_answer(scenario_document)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("message", "0/2 nodes are available."),
        ("nominatedNodes", []),
        ("candidates", [{"node": "n0", "victims": ["default/p0"], "numPDBViolations": 1}]),
        ("eligibility", {"eligible": False}),
        ("filter", {}),
        ("dryRun", {"n0": {"code": "Unschedulable"}}),
        ("feasibleNodes", ["n0"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_different_key_is_detected_in_both_directions(key: str, value: Any) -> None:
    ours = kpreempt_answer(scenario("600m"))
    other = {"name": "s", "verdict": ours["verdict"] | {key: value}}
    assert differences(other, ours)
    assert differences(ours, other)


def test_a_missing_key_is_detected() -> None:
    ours = kpreempt_answer(scenario("600m"))
    other = copy.deepcopy(ours)
    del other["verdict"]["message"]
    assert differences(other, ours)
    assert differences(ours, other)


def test_errors_must_match() -> None:
    assert differences({"error": {"message": "boom"}}, kpreempt_answer(scenario("600m")))
    assert differences(kpreempt_answer(scenario("100m")), {"error": {"message": "boom"}})


@pytest.mark.slow
def test_a_scheduler_that_ignores_taints_is_detected_with_a_small_scenario(tmp_path: Path) -> None:
    found = search(without_taints, 200, 1).difference
    assert found is not None
    assert any("TaintToleration" in line for line in found.lines)
    nodes = [each for each in found.scenario["objects"] if each["kind"] == "Node"]
    assert len(nodes) == 1
    assert not [each for each in found.scenario["objects"] if each["kind"] == "Pod"]

    path = keep(found.scenario, found.real, "v1.36.3", tmp_path)
    assert keep(found.scenario, found.real, "v1.36.3", tmp_path) == path
    (kept,) = kept_scenarios(tmp_path)
    assert differences(expected_answer(kept), kpreempt_answer(kept))
    assert differences(expected_answer(kept), without_taints(kept)) == []
