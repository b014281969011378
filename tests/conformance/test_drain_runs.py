"""Complete runs of ``kubectl drain``, recorded from the real program and the real controllers."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.drains import answer

RECORDED = Path(__file__).parents[2] / "fixtures" / "conformance" / "evictions" / "drain-runs.jsonl.gz"
# Shortly after the last of the recordings.
NOW = datetime(2026, 11, 22, 14, 0, tzinfo=UTC)
_MADE_UP = re.compile(r"\b([a-z]+-(?:[0-9a-f]{8,10}-)?)(?:[a-z0-9]{5}|new\d+)\b")


def _runs() -> dict[str, dict[str, Any]]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        return {run["name"]: run for run in map(json.loads, lines)}


RUNS = _runs()


def _answer(run: dict[str, Any]) -> dict[str, Any]:
    given = {key: run[key] for key in ("name", "command", "objects")}
    verdict: dict[str, Any] = answer(json.dumps(given).encode(), NOW)["verdict"]
    return verdict


def _without_chance(text: str) -> str:
    """The text without random name suffixes, and with unordered lines sorted."""
    text = _MADE_UP.sub(r"\1…", text)
    start, colon, rest = text.partition("Warning: ")
    return f"{start}{colon}{'; '.join(sorted(rest.split('; ')))}" if colon else text


def _lines(run: dict[str, Any]) -> Counter[tuple[str, str]]:
    return Counter((line["stream"], _without_chance(line["text"])) for line in run["lines"])


def _pods(objects: list[dict[str, Any]]) -> Counter[tuple[str, str | None, bool]]:
    """The pods with their nodes, and whether they terminate. A new pod's progress varies by tenths of a second."""
    return Counter(
        (
            _without_chance(each["metadata"]["name"]),
            each["spec"].get("nodeName"),
            "deletionTimestamp" in each["metadata"],
        )
        for each in objects
        if each["kind"] == "Pod"
    )


def _budgets(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    numbers = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods", "observedGeneration")
    return [
        {key: each["status"].get(key, 0) for key in numbers}
        | {
            "reasons": [
                (it["status"], it["reason"], it.get("message", "")) for it in each["status"].get("conditions", [])
            ]
        }
        for each in objects
        if each["kind"] == "PodDisruptionBudget"
    ]


def _cordoned(run: dict[str, Any], objects: list[dict[str, Any]]) -> set[str]:
    """The nodes of this run; others are drained at the same time."""
    own = {f"{run['name']}-{letter}" for letter in "abc"}
    return own & {
        each["metadata"]["name"] for each in objects if each["kind"] == "Node" and each["spec"].get("unschedulable")
    }


@pytest.mark.parametrize("name", RUNS)
def test_a_run_ends_like_the_recorded_one(name: str) -> None:
    run = RUNS[name]
    found = _answer(run)
    assert found["exit"] == run["exit"]
    assert _lines(found) == _lines(run)
    assert _pods(found["after"]) == _pods(run["after"])
    assert _budgets(found["after"]) == _budgets(run["after"])
    assert _cordoned(run, found["after"]) == _cordoned(run, run["after"])


def test_there_are_runs() -> None:
    assert len(RUNS) == 34


def test_without_a_timeout_a_blocked_run_never_ends() -> None:
    run = {**RUNS["blocked"], "command": ["kubectl", "drain", "blocked-a"]}
    found = _answer(run)
    assert found["exit"] is None
    assert "node/blocked-a drained" not in {line["text"] for line in found["lines"]}


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["blocked-a", "-l", "a=b"], "error: cannot specify both a node name and a --selector option"),
        (["nowhere"], 'Error from server (NotFound): nodes "nowhere" not found'),
        (
            ["blocked-a", "--pod-selector", "a in"],
            "error: --pod-selector=<pod_selector> must be a valid label selector",
        ),
        (["blocked-a", "--what"], "error: unknown flag: --what"),
        (
            ["blocked-a", "--timeout=soon"],
            'error: invalid argument "soon" for "--timeout" flag: time: invalid',
        ),
    ],
)
def test_a_command_that_kubectl_rejects_cordons_nothing(arguments: list[str], first: str) -> None:
    found = _answer({**RUNS["blocked"], "command": ["kubectl", "drain", *arguments]})
    assert found["exit"] == 1
    assert found["lines"][0]["text"].startswith(first)
    assert "blocked-a" not in _cordoned(RUNS["blocked"], found["after"])


@pytest.mark.parametrize(
    ("timeout", "shown"), [("90s", "1m30s"), ("1h", "1h0m0s"), ("6s", "6s"), ("1.5s", "1.5s"), ("500ms", "500ms")]
)
def test_a_timeout_is_shown_as_go_does(timeout: str, shown: str) -> None:
    found = _answer({**RUNS["blocked"], "command": ["kubectl", "drain", "blocked-a", f"--timeout={timeout}"]})
    assert found["lines"][-1]["text"].endswith(f"global timeout reached: {shown}")


def _texts(run: dict[str, Any]) -> list[str]:
    return [_without_chance(line["text"]) for line in _answer(run)["lines"]]


def test_a_stopped_run_ends() -> None:
    run = {**RUNS["blocked"], "command": ["kubectl", "drain", "blocked-a"], "stoppedAfterSeconds": 12}
    given = {key: run[key] for key in ("name", "command", "objects", "stoppedAfterSeconds")}
    texts = [each["text"] for each in answer(json.dumps(given).encode(), NOW)["verdict"]["lines"]]
    assert sum(text.startswith("evicting pod") for text in texts) == 3


def _with(run: dict[str, Any], *objects: dict[str, Any]) -> dict[str, Any]:
    return {**run, "objects": [*run["objects"], *objects]}


def test_a_pod_with_two_budgets_is_not_retried() -> None:
    run = RUNS["blocked"]
    budget = next(each for each in run["objects"] if each["kind"] == "PodDisruptionBudget")
    second = {**budget, "metadata": {**budget["metadata"], "name": "second"}}
    texts = _texts(_with(run, second))
    assert sum(text.startswith("evicting pod") for text in texts) == 1
    assert texts[-1].endswith(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )


def test_in_a_namespace_that_is_being_terminated_nothing_is_evicted() -> None:
    run = RUNS["blocked"]
    objects = [
        {**each, "status": {"phase": "Terminating"}} if each["kind"] == "Namespace" else each for each in run["objects"]
    ]
    texts = _texts({**run, "objects": objects})
    assert texts[2].endswith("unable to create new content in namespace blocked because it is being terminated")
    assert texts[2].startswith('error when evicting pod "web-55cf947b48-…" from terminating namespace "blocked" (will')


def test_a_stateful_set_recreates_its_pod() -> None:
    run = RUNS["pod-selector"]
    pods = [each for each in run["objects"] if each["kind"] == "Pod" and each["metadata"]["name"].startswith("web-")]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u-db", "controller": True}
    metadata = {**pods[0]["metadata"], "name": "db-0", "uid": "u-db-0", "ownerReferences": [owner]}
    pod = {**pods[0], "metadata": metadata}
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": metadata["namespace"], "uid": "u-db"},
        "spec": {"replicas": 1, "selector": {"matchLabels": metadata["labels"]}},
    }
    found = _answer(_with(run, pod, stateful_set))
    again = next(each for each in found["after"] if each["metadata"]["name"] == "db-0")
    assert again["metadata"]["uid"] != "u-db-0"
    assert "pod/db-0 evicted" in {line["text"] for line in found["lines"]}
    assert found["exit"] == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", [None, 3, "x", [1], {"a": 1}, "9999-12-31T23:59:59Z", 10**18])
def test_any_line_results_in_an_answer_or_one_message(wrong: Any) -> None:
    run = RUNS["budget-two"]
    given = {key: run[key] for key in ("name", "command", "objects")}
    for place, each in enumerate(given["objects"]):
        for part, value in each.items():
            fields = value if isinstance(value, dict) else {}
            for changed in [wrong, *({**fields, field: wrong} for field in fields)]:
                objects = [*given["objects"][:place], {**each, part: changed}, *given["objects"][place + 1 :]]
                line = json.dumps({**given, "objects": objects, "command": ["kubectl", "drain", "x"]})
                found = answer(line.encode(), NOW)
                assert "verdict" in found or found["error"]["message"]
