"""``kpreempt verify`` on recordings that are made up: what was predicted, what raced, what is different and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kpreempt.snapshot.recording.runs import runs_of
from tests.unit.snapshot.recording.making import Document, Making, a_node, a_pod

Kpreempt = Callable[..., Any]
RECORDING = "fixtures/recording"
NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."
UNHELPFUL = (
    "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)


def refused(message: str) -> Document:
    return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}


def verified(kpreempt: Kpreempt, making: Making, *options: str) -> dict[str, Any]:
    making.wait(30)
    making.end()
    result = kpreempt("verify", making.folder, "-o", "json", *options)
    assert result.returncode == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    to = f"{making.folder}-redacted"
    assert kpreempt("record", "--redact", "--from", making.folder, "--to", to).returncode == 0
    redacted = json.loads(kpreempt("verify", to, "-o", "json", *options).stdout)
    # Messages are not in it, all else is.
    reported = [
        each for each in answer["items"] if not all(line.startswith("message ") for line in each["differences"])
    ]
    assert [each["cause"] for each in redacted["items"]] == [each["cause"] for each in reported]
    assert sum(map(len, counts(redacted).values())) == sum(map(len, counts(answer).values()))
    return answer


def counts(answer: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    keys = ("predicted", "raced", "different", "notCompared")
    found = {each["decision"]: tuple(each[key] for key in keys) for each in answer["decisions"]}
    return {kind: numbers for kind, numbers in found.items() if any(numbers)}


@pytest.fixture
def making(tmp_path: Path) -> Making:
    """Two nodes, of which the first has one free CPU less."""
    return Making(
        tmp_path / "rec",
        {"Node": [a_node("n1", "2"), a_node("n2", "2")], "Pod": [a_pod("there", "n1")]},
    )


def arrives(making: Making, name: str, node: str = "", **status: Any) -> None:
    making.change("ADDED", "Pod", a_pod(name))
    making.change("MODIFIED", "Pod", a_pod(name, node, **status))


def test_decisions_as_predicted_make_a_score_of_100(kpreempt: Kpreempt) -> None:
    result = kpreempt("verify", RECORDING, "--fail-below", "100", "-o", "json")
    answer = json.loads(result.stdout)
    assert result.returncode == 0
    assert (answer["score"], answer["items"], answer["algorithms"]) == (100.0, [], ["kube-1.36"])
    assert counts(answer) == {"Bound": (3, 0, 0, 0), "Nominated": (1, 0, 0, 0)}
    assert answer["preemptions"] == [
        {"namespace": "shop", "priorityClass": "", "preemptions": 1, "victims": 1, "violatingBudgets": 0}
    ]


def test_another_node_than_the_best_is_a_difference_that_another_configuration_may_explain(
    kpreempt: Kpreempt, making: Making
) -> None:
    arrives(making, "a", "n1")
    answer = verified(kpreempt, making)
    assert counts(answer) == {"Bound": (0, 0, 1, 0)}
    assert (answer["score"], answer["items"][0]["cause"]) == (0.0, "Configuration")
    assert answer["items"][0]["differences"] == ["bound to n1; predicted: bound to n2"]


def test_a_single_decision_among_many_as_predicted_does_not_point_to_another_configuration(
    kpreempt: Kpreempt, making: Making
) -> None:
    nodes = [*["n2"] * 12, "n1"]
    for number, node in enumerate(nodes):
        arrives(making, f"p{number}", node)
        making.change("DELETED", "Pod", a_pod(f"p{number}", node))
        making.wait(10)
    answer = verified(kpreempt, making)
    assert counts(answer) == {"Bound": (12, 0, 1, 0)}
    (item,) = answer["items"]
    assert item["cause"] == "Unknown"
    assert item["explanation"] == "the pod also fits there, but 12 of 13 choices by score were predicted"


def test_a_node_without_room_is_not_explained(kpreempt: Kpreempt, making: Making) -> None:
    making.change("ADDED", "Pod", a_pod("full", "n1"))
    making.wait(20)
    arrives(making, "a", "n1")
    answer = verified(kpreempt, making)
    assert [each["cause"] for each in answer["items"]] == ["Unknown"]


def test_the_decision_of_a_moment_earlier_is_a_race_that_is_shown(kpreempt: Kpreempt, making: Making) -> None:
    making.change("ADDED", "Pod", a_pod("late"))
    # What the scheduler did not know of yet.
    making.change("MODIFIED", "Node", a_node("n1", "8"), seconds=0.5)
    making.change("MODIFIED", "Pod", a_pod("late", "n2"))
    answer = verified(kpreempt, making)
    assert counts(answer) == {"Bound": (0, 1, 0, 0)}
    assert (answer["score"], answer["items"][0]["cause"]) == (None, "Race")
    assert answer["items"][0]["changes"] == ["nodes n1 changed"]


def test_a_change_long_before_is_no_race(kpreempt: Kpreempt, making: Making) -> None:
    making.change("ADDED", "Pod", a_pod("late"))
    making.change("MODIFIED", "Node", a_node("n1", "8"))
    making.wait(10)
    making.change("MODIFIED", "Pod", a_pod("late", "n2"))
    assert counts(verified(kpreempt, making)) == {"Bound": (0, 0, 1, 0)}


@pytest.mark.parametrize("seconds", [0.01, 0.5])
def test_what_the_scheduler_had_decided_itself_excuses_no_other_strategy(
    kpreempt: Kpreempt, tmp_path: Path, seconds: float
) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node(f"n{number}") for number in range(3)]})
    names = [f"p{number}" for number in range(9)]
    for name in names:
        making.change("ADDED", "Pod", a_pod(name), seconds=0.01)
    # The fullest node first: without the pods before, each might have gone anywhere.
    for number, name in enumerate(names):
        making.change("MODIFIED", "Pod", a_pod(name, f"n{number // 3}"), seconds=seconds)
    answer = verified(kpreempt, making)
    # Who begins a node chose among equal ones, and the last node is the emptiest.
    assert counts(answer) == {"Bound": (5, 0, 4, 0)}
    assert {each["cause"] for each in answer["items"]} == {"Configuration"}


@pytest.mark.parametrize(
    ("first", "numbers"),
    [
        ({"conditions": [refused(NO_ROOM)]}, (1, 1, 0, 0)),
        ({}, (1, 0, 1, 0)),
    ],
    ids=["one that was refused before may have been tried later", "one that came first was tried first"],
)
def test_a_race_needs_an_order_in_which_pods_may_have_been_tried(
    kpreempt: Kpreempt, tmp_path: Path, first: dict[str, Any], numbers: tuple[int, ...]
) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1", "2"), a_node("n2", "3")], "Pod": [a_pod("there", "n2")]})
    making.change("ADDED", "Pod", a_pod("a"), seconds=5)
    if first:
        making.change("MODIFIED", "Pod", a_pod("a", **first), seconds=5)
    making.change("ADDED", "Pod", a_pod("b"), seconds=0.01)
    making.change("MODIFIED", "Pod", a_pod("a", "n1", **first), seconds=0.01)
    making.change("MODIFIED", "Pod", a_pod("b", "n1"), seconds=0.01)
    found = counts(verified(kpreempt, making))
    assert found["Bound"] == numbers


def test_pods_that_are_bound_in_another_order_than_they_were_tried_in(kpreempt: Kpreempt, making: Making) -> None:
    for name in "ab":
        making.change("ADDED", "Pod", a_pod(name), seconds=0.01)
    # The first goes to the emptier node, the second to either; their bindings overtake each other.
    making.change("MODIFIED", "Pod", a_pod("b", "n1"), seconds=0.01)
    making.change("MODIFIED", "Pod", a_pod("a", "n2"), seconds=0.01)
    assert counts(verified(kpreempt, making)) == {"Bound": (2, 0, 0, 0)}


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        (f"{NO_ROOM} {UNHELPFUL}", (1, 0)),
        (NO_ROOM, (0, 1)),
    ],
)
def test_a_refusal_has_its_message(kpreempt: Kpreempt, making: Making, message: str, numbers: tuple[int, int]) -> None:
    big = a_pod("big")
    big["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    making.change("ADDED", "Pod", big)
    making.change("MODIFIED", "Pod", big | {"status": {"phase": "Pending", "conditions": [refused(message)]}})
    predicted, different = numbers
    answer = verified(kpreempt, making)
    assert counts(answer) == {"Unschedulable": (predicted, 0, different, 0)}, answer["items"]


def test_other_victims_than_predicted_are_a_difference(kpreempt: Kpreempt, tmp_path: Path) -> None:
    objects = {"Node": [a_node("n1", "2")], "Pod": [a_pod("low", "n1"), a_pod("high", "n1", priority=5)]}
    making = Making(tmp_path / "rec", objects)
    making.change("ADDED", "Pod", a_pod("api", priority=9))
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    making.change("MODIFIED", "Pod", a_pod("high", "n1", priority=5, conditions=[target]))
    status = {"nominatedNodeName": "n1", "conditions": [refused("0/1 nodes are available: 1 Insufficient cpu.")]}
    making.change("MODIFIED", "Pod", a_pod("api", priority=9, **status))
    event = {
        "metadata": {"namespace": "shop", "name": "high.1"},
        "reason": "Preempted",
        "regarding": {"kind": "Pod", "namespace": "shop", "name": "high", "uid": "uid-high"},
        "related": {"kind": "Pod", "namespace": "shop", "name": "api", "uid": "uid-api"},
        "note": "Preempted by pod uid-api on node n1",
    }
    making.change("ADDED", "Event", event)
    answer = verified(kpreempt, making)
    assert counts(answer) == {"Nominated": (0, 0, 1, 0)}
    assert answer["items"][0]["differences"] == ["evicted shop/high from n1; predicted: shop/low"]


@pytest.mark.parametrize(("node", "numbers"), [("n1", (0, 0, 0, 1)), ("n2", (1, 0, 0, 0))])
def test_a_difference_where_something_was_not_watched_does_not_count(
    kpreempt: Kpreempt, making: Making, node: str, numbers: tuple[int, ...]
) -> None:
    making.change("ADDED", "Pod", a_pod("a"))
    making.change("MODIFIED", "Pod", a_pod("a", node))
    making.change("MODIFIED", "Node", a_node("n1", "3"), reported=False)
    making.relist("Node")
    answer = verified(kpreempt, making)
    assert counts(answer) == {"Bound": numbers}
    assert answer["notCompared"] == ({"Node was not watched at that time": 1} if numbers[3] else {})


def test_a_difference_at_the_end_does_not_count(kpreempt: Kpreempt, making: Making) -> None:
    arrives(making, "a", "n1")
    making.end()
    answer = json.loads(kpreempt("verify", making.folder, "-o", "json").stdout)
    assert counts(answer) == {"Bound": (0, 0, 0, 1)}


def test_a_pod_that_waits_from_the_beginning_is_decided_on(kpreempt: Kpreempt, tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")], "Pod": [a_pod("a")]})
    making.change("MODIFIED", "Pod", a_pod("a", "n1"))
    assert counts(verified(kpreempt, making)) == {"Bound": (1, 0, 0, 0)}


def test_victims_that_someone_has_evicted_already_are_not_evicted_again(kpreempt: Kpreempt, tmp_path: Path) -> None:
    leaving = a_pod("low", "n1")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-21T03:00:30Z"
    making = Making(tmp_path / "rec", {"Node": [a_node("n1", "1")], "Pod": [leaving]})
    making.change("ADDED", "Pod", a_pod("api", priority=9))
    status = {"nominatedNodeName": "n1", "conditions": [refused("0/1 nodes are available: 1 Insufficient cpu.")]}
    making.change("MODIFIED", "Pod", a_pod("api", priority=9, **status))
    answer = verified(kpreempt, making)
    assert counts(answer) == {"Nominated": (1, 0, 0, 0)}, answer["items"]


def test_a_nomination_that_was_written_late_was_known(kpreempt: Kpreempt, tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1", "1")]})
    for name in ("first", "second"):
        making.change("ADDED", "Pod", a_pod(name, priority=9), seconds=0.01)
    # The scheduler knows of the nomination of the first, and keeps its room.
    no_victims = "no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for"
    status = {"conditions": [refused(f"0/1 nodes are available: 1 Insufficient cpu. {no_victims} incoming pod.")]}
    making.change("MODIFIED", "Pod", a_pod("second", priority=9, **status), seconds=0.01)
    first = {"nominatedNodeName": "n1", "conditions": [refused("0/1 nodes are available: 1 Insufficient cpu.")]}
    making.change("MODIFIED", "Pod", a_pod("first", priority=9, **first), seconds=0.01)
    items = verified(kpreempt, making)["items"]
    assert [each for each in items if each["decision"]["pod"] == "shop/second"] == []


def reports(making: Making, reason: str, about: str, note: str, ago: float, repeated: str = "") -> None:
    """Write an event that its reporter created ``ago`` seconds before, or repeats if it has that time."""
    at = (making.now - timedelta(seconds=ago)).isoformat()
    event = {
        "metadata": {"namespace": "shop", "name": f"{about}.{reason}"},
        "reason": reason,
        "regarding": {"kind": "Pod", "namespace": "shop", "name": about, "uid": f"uid-{about}"},
        "note": note,
        "eventTime": repeated or at,
        **({"series": {"count": 2, "lastObservedTime": at}} if repeated else {}),
    }
    making.change("MODIFIED" if repeated else "ADDED", "Event", event, seconds=0.01)


@pytest.mark.parametrize(("ago", "numbers"), [(0.4, (1, 0, 0, 0)), (0.0, (0, 1, 0, 0))], ids=["before", "after"])
def test_the_time_of_the_event_says_which_changes_the_scheduler_knew(
    kpreempt: Kpreempt, making: Making, ago: float, numbers: tuple[int, ...]
) -> None:
    message = f"{NO_ROOM} {UNHELPFUL}"
    big = a_pod("big")
    big["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    making.change("ADDED", "Pod", big, seconds=1)
    # An event with a known delay shows how the clocks differ.
    reports(making, "FailedScheduling", "other", "", 0.0)
    making.change("MODIFIED", "Node", a_node("n2", "8"), seconds=0.5)
    making.change("MODIFIED", "Pod", big | {"status": {"conditions": [refused(message)]}}, seconds=0.2)
    reports(making, "FailedScheduling", "big", message, ago)
    assert counts(verified(kpreempt, making)) == {"Unschedulable": numbers}


def test_versions_of_events_in_another_store_say_nothing(kpreempt: Kpreempt, making: Making) -> None:
    making.change("ADDED", "Pod", a_pod("a"), seconds=1)
    making.change("MODIFIED", "Node", a_node("n1", "8"), seconds=5)
    making.change("MODIFIED", "Pod", a_pod("a", "n1"), seconds=0.1)
    making.version, version = 1, making.version
    reports(making, "FailedScheduling", "other", "", 0.0)
    making.version = version
    making.wait(30)
    making.end()
    (run,) = runs_of(making.folder)
    assert run.reports == []


@pytest.mark.parametrize(("waits", "numbers"), [(0.1, (1, 0, 0, 0)), (20, (0, 0, 1, 0))], ids=["soon", "later"])
def test_a_pod_that_is_deleted_before_it_is_bound_may_have_been_put_on_a_node(
    kpreempt: Kpreempt, tmp_path: Path, waits: float, numbers: tuple[int, ...]
) -> None:
    big = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
    low, gone = a_pod("low", "n1"), a_pod("gone", priority=9, nominatedNodeName="n1", conditions=[refused(NO_ROOM)])
    low["spec"] |= big
    gone["spec"] |= big
    objects = {"Node": [a_node("n1", "4"), a_node("n3", "2")], "Pod": [low, gone, a_pod("there", "n3")]}
    making = Making(tmp_path / "rec", objects)
    # It lands on the new node, which would otherwise be the best one for the next pod.
    making.change("ADDED", "Node", a_node("n2", "4"), seconds=5)
    arrives(making, "late", "n3")
    making.change("DELETED", "Pod", gone, seconds=waits)
    assert counts(verified(kpreempt, making))["Bound"] == numbers


def test_attempts_that_overlap_are_not_mixed_up(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1", "2")], "Pod": [a_pod("a", "n1"), a_pod("b", "n1")]})
    making.change("ADDED", "Pod", a_pod("api", priority=9))
    reports(making, "FailedScheduling", "api", NO_ROOM, 0.0)
    status = {"nominatedNodeName": "n1", "conditions": [refused(NO_ROOM)]}
    making.change("MODIFIED", "Pod", a_pod("api", priority=9, **status))
    note = "Preempted by pod uid-api on node n1"
    for victim in "ab":
        leaving = a_pod(victim, "n1")
        leaving["metadata"]["deletionTimestamp"] = "2026-11-21T03:00:30Z"
        making.change("MODIFIED", "Pod", leaving)
        first = making.now.isoformat()
        reports(making, "Preempted", victim, note, 0.0)
        reports(making, "Preempted", victim, note, 0.0, repeated=first)
    making.wait(30)
    making.end()
    (run,) = runs_of(making.folder)
    assert [(each.decision.pod, each.decision.victims) for each in run.traces] == [("shop/api", ["shop/a", "shop/b"])]


def test_what_is_made_on_a_node_is_no_decision(kpreempt: Kpreempt, making: Making) -> None:
    making.change("ADDED", "Pod", a_pod("static", "n1"))
    assert counts(verified(kpreempt, making)) == {}


@pytest.mark.parametrize(("limit", "code"), [("0", 0), ("50", 0), ("50.1", 1)])
def test_a_score_below_the_limit_fails(kpreempt: Kpreempt, making: Making, limit: str, code: int) -> None:
    arrives(making, "a", "n2")
    making.wait(20)
    making.change("MODIFIED", "Node", a_node("n2", "8"))
    making.wait(20)
    arrives(making, "b", "n1")
    making.wait(20)
    making.end()
    assert kpreempt("verify", making.folder, "--fail-below", limit).returncode == code


def test_nothing_to_compare_fails_a_gate(kpreempt: Kpreempt, making: Making) -> None:
    making.end()
    result = kpreempt("verify", making.folder, "--fail-below", "1")
    assert result.returncode == 1
    assert "No decision could be compared." in result.stdout


def test_a_difference_is_filed_under_other_names_and_batch_predicts_it_again(
    kpreempt: Kpreempt, making: Making, tmp_path: Path
) -> None:
    arrives(making, "secret-name", "n1")
    folder = tmp_path / "differences"
    answer = verified(kpreempt, making, "--differences", str(folder))
    (file,) = folder.iterdir()
    assert answer["items"][0]["file"] == str(file)
    text = file.read_text(encoding="utf-8")
    assert not any(name in text for name in ("secret-name", '"n1"', "shop"))
    line = json.loads(kpreempt("batch", str(file)).stdout)
    nodes = [each["metadata"]["name"] for each in json.loads(text)["objects"] if each["kind"] == "Node"]
    (predicted,) = line["verdict"]["landsOn"]
    (other,) = set(nodes) - {predicted}
    assert line["name"] == f"decided: bound to {other}"


def test_metrics_have_the_score_and_preemptions_by_namespace_and_class(kpreempt: Kpreempt) -> None:
    lines = kpreempt("verify", RECORDING, "-o", "openmetrics").stdout.splitlines()
    assert lines[-1] == "# EOF"
    assert "kpreempt_verify_score_ratio 1" in lines
    assert 'kpreempt_verify_decisions{decision="nominated",result="predicted"} 1' in lines
    assert 'kpreempt_preemptions{namespace="shop",priority_class=""} 1' in lines


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "either a recording or --for is required"),
        ([RECORDING, "--for", "1m"], "either a recording or --for is required"),
        ([RECORDING, "--context", "prod"], "a recording and --context cannot be used together"),
        ([RECORDING, "--fail-below", "101"], "--fail-below 101: expected a percentage"),
        ([RECORDING, "--fail-below", "nan"], "--fail-below nan: expected a percentage"),
        (["--for", "soon"], '--for: "soon" is not a duration'),
    ],
)
def test_wrong_usage_is_reported(kpreempt: Kpreempt, options: list[str], words: str) -> None:
    result = kpreempt("verify", *options)
    assert result.returncode == 2
    assert words in result.stderr


def test_a_folder_without_a_recording_is_reported(kpreempt: Kpreempt, tmp_path: Path) -> None:
    result = kpreempt("verify", str(tmp_path))
    assert result.returncode == 3
    assert "not a recording" in result.stderr


@pytest.mark.parametrize(("priority", "words"), [(20, "have priority 20 and took the room"), (9, "")])
def test_a_recording_has_the_priority_of_a_preemptor_that_is_gone(
    kpreempt: Kpreempt, tmp_path: Path, priority: int, words: str
) -> None:
    def old(name: str, node: str = "", priority: int = 0) -> Document:
        pod = a_pod(name, node, priority=priority)
        pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "old", "uid": "o", "controller": True}]
        return pod

    making = Making(tmp_path / "rec", {"Node": [a_node("n1", "1")], "Pod": [old("old-1", "n1")]})
    making.change("ADDED", "Pod", a_pod("api", priority=9))
    status = {"nominatedNodeName": "n1", "conditions": [refused(NO_ROOM)]}
    making.change("MODIFIED", "Pod", a_pod("api", priority=9, **status))
    making.change("DELETED", "Pod", old("old-1", "n1"))
    reports(making, "Preempted", "old-1", "Preempted by pod uid-api on node n1", 0.0)
    making.change("ADDED", "Pod", old("old-2", priority=priority))
    making.change("MODIFIED", "Pod", old("old-2", "n1", priority=priority))
    making.change("DELETED", "Pod", a_pod("api", priority=9, **status))
    making.wait(30)
    making.end()
    text = " ".join(kpreempt("history", "old-2", "-n", "shop", "--snapshot", making.folder).stdout.split())
    expected = "Pod api (priority 9; the preemptors are gone) preempted 1 pod of ReplicaSet old"
    assert (expected in text) is bool(words)
    assert words in text
