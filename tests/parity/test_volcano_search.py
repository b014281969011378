"""The comparison of sessions detects and shrinks differences. Needs no Go: a fake scheduler stands in."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.parity.volcano import keep, kept_sessions
from tests.parity.volcano_answers import volcano_answer
from tests.parity.volcano_differences import volcano_differences
from tests.parity.volcano_scenarios import FEATURES
from tests.parity.volcano_search import volcano_search

CONF = """\
actions: "allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


def scenario(conf: str = CONF) -> dict[str, Any]:
    """A running job, and one of higher priority: one of its pods fits and the other evicts."""
    node = {"cpu": "2", "memory": "4Gi", "pods": "9"}
    return {
        "name": "s",
        "conf": conf,
        "objects": [
            {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": node}},
            {"kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 1}},
            {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9},
            group("runs", 0),
            pod("runs", 0, "n"),
            group("waits", 2, "high"),
            pod("waits", 0),
            pod("waits", 1),
        ],
    }


def group(name: str, minimum: int, priority_class: str = "") -> dict[str, Any]:
    spec = {"minMember": minimum, "queue": "q", "priorityClassName": priority_class}
    metadata = {"name": name, "namespace": "default"}
    return {"kind": "PodGroup", "metadata": metadata, "spec": spec, "status": {"phase": "Inqueue"}}


def pod(job: str, number: int, node: str = "") -> dict[str, Any]:
    name = f"{job}-w-{number}"
    annotations = {"scheduling.k8s.io/group-name": job}
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": annotations},
        "spec": {"schedulerName": "volcano", "nodeName": node, "containers": [container]},
        "status": {"phase": "Running" if node else "Pending"},
    }


def changed(answer: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The result with another value at a path."""
    answer = copy.deepcopy(answer)
    place: Any = answer["verdict"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return answer


def without_taints(scenario_document: dict[str, Any]) -> dict[str, Any]:
    """The result of a scheduler that ignores taints."""
    scenario_document = copy.deepcopy(scenario_document)
    for each in scenario_document["objects"]:
        if each["kind"] == "Node":
            each.get("spec", {}).pop("taints", None)
    return volcano_answer(scenario_document)


def test_equal_answers_do_not_differ() -> None:
    answer = volcano_answer(scenario())
    assert answer["verdict"]["actions"][1]["evictions"]
    assert volcano_differences(answer, answer) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("opening", "jobs", "default/waits", "phase"), "Pending"),
        (("opening", "jobs", "default/more"), {"queue": "q"}),
        (("opening", "queues", "q", "share"), 0.25),
        (("opening", "scores", "default/waits-w-0", "n"), 1),
        (("actions", 1, "trace"), []),
        (("actions", 1, "trace", 0, 3), "default/waits-w-9"),
        (("actions", 1, "evictions"), []),
        (("actions", 1, "pipelined"), [{"task": "default/waits-w-0", "node": "m"}]),
        (("actions", 0, "binds"), [{"task": "default/waits-w-0", "node": "n"}]),
        (("actions", 0, "allocated"), [{"task": "default/other-w-0", "node": "n"}]),
        (("actions", 0, "enqueued"), ["default/waits"]),
        (("actions", 0, "queues", "q", "allocated", "cpu"), 1),
        (("actions",), []),
        (("final", "podGroups", "default/waits", "phase"), "Unknown"),
        (("final", "fitErrors", "default/waits"), {"default/waits-w-9": "no"}),
        (("final", "pods", "default/waits-w-9"), {"reason": "r", "message": "m"}),
        (("final", "events"), []),
        (("panics",), True),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_what_differs_is_noticed_from_either_side(path: tuple[str | int, ...], value: Any) -> None:
    ours = volcano_answer(scenario())
    other = changed(ours, path, value)
    assert volcano_differences(other, ours)
    assert volcano_differences(ours, other)


def test_both_reject_the_same_configurations() -> None:
    refused = volcano_answer(scenario('actions: "elect"\n'))
    assert "error" in refused
    assert volcano_differences(refused, refused) == []
    assert volcano_differences(refused, volcano_answer(scenario()))
    assert volcano_differences(volcano_answer(scenario()), refused)


def test_the_order_of_events_and_evidence_of_our_own_do_not_count() -> None:
    ours = volcano_answer(scenario())
    events = list(reversed(ours["verdict"]["final"]["events"]))
    other = changed(ours, ("final", "events"), events)
    assert len(events) > 1
    assert volcano_differences(other, ours) == []
    assert volcano_differences(changed(ours, ("actions", 0, "attempts"), None), ours) == []


@pytest.mark.slow
def test_a_scheduler_that_ignores_taints_is_detected_with_a_small_scenario(tmp_path: Path) -> None:
    only_taints = frozenset(FEATURES) - {"taints"}
    found = volcano_search(without_taints, 400, 1, without=only_taints).difference
    assert found is not None
    nodes = [each for each in found.scenario["objects"] if each["kind"] == "Node"]
    pods = [each for each in found.scenario["objects"] if each["kind"] == "Pod"]
    assert (len(nodes), len(pods)) == (1, 1)
    assert nodes[0]["spec"]["taints"]

    path = keep(found.scenario, found.real, "v1.8.0", tmp_path)
    assert keep(found.scenario, found.real, "v1.8.0", tmp_path) == path
    (kept,) = kept_sessions(tmp_path)
    assert volcano_differences(kept["expect"], volcano_answer(kept))
    assert volcano_differences(kept["expect"], without_taints(kept)) == []
