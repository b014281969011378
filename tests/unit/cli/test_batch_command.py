from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.batch_lines import as_document
from tests.harmless import obeyed

ROOT = Path(__file__).parents[3]
CLUSTER = str(ROOT / "fixtures/demo/cluster.yaml")
NOW = ["--now", "2026-11-21T03:12:00Z"]


Batch = Callable[..., Any]


@pytest.fixture
def batch(kpreempt: Callable[..., Any]) -> Batch:
    def run(*arguments: str, lines: str = "") -> Any:
        return kpreempt("batch", *arguments, stdin=lines)

    return run


def node(name: str, cpu: str) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def pod(name: str, cpu: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def scenario(name: str, **more: Any) -> str:
    return json.dumps({"name": name, "objects": [node("n", "4")], "pod": pod("p", "1"), **more}) + "\n"


def answers(run: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_lines_are_answered_in_order(batch: Batch) -> None:
    run = batch("-", lines=scenario("a") + "\n" + scenario("b", pod=pod("p", "5")))
    assert (run.returncode, run.stderr) == (0, "")
    first, second = answers(run)
    assert (first["name"], first["verdict"]["chosenNodes"]) == ("a", ["n"])
    assert (second["name"], second["verdict"]["outcome"]) == ("b", "NeverLands")
    assert second["verdict"]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_nothing_in_is_nothing_out(batch: Batch) -> None:
    run = batch(lines="")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_a_bad_line_gives_an_error_and_the_rest_go_on(batch: Batch) -> None:
    bad = json.dumps({"name": "bad", "objects": [], "pod": {"metadata": {"name": "p"}, "spec": {"containers": 3}}})
    run = batch("-", lines=f"{scenario('a')}{bad}\n[\n{scenario('d')}")
    assert (run.returncode, run.complaint) == (3, "")
    good, wrong, unreadable, last = answers(run)
    assert "verdict" in good
    assert "verdict" in last
    assert wrong["name"] == "bad"
    assert "spec.containers" in wrong["error"]["message"]
    assert wrong["error"]["message"].startswith("standard input:2: ")
    assert unreadable["name"] == ""
    assert unreadable["error"]["message"].startswith("standard input:3: not JSON")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        pytest.param({"algorithm": "kube-0.1"}, "unknown algorithm 'kube-0.1'", id="an unknown algorithm"),
        pytest.param(
            {"objects": [{"kind": "Node", "apiVersion": "v1"}]}, "metadata.name", id="an object without a name"
        ),
        pytest.param({"pod": pod("p", "2 cores")}, '"2 cores" is not a quantity', id="a quantity that is none"),
    ],
)
def test_a_scenario_that_makes_no_sense_is_an_error(batch: Batch, more: dict[str, Any], message: str) -> None:
    run = batch("-", lines=scenario("a", **more))
    assert run.returncode == 3
    assert message in answers(run)[0]["error"]["message"]


def test_a_snapshot_is_the_cluster_of_every_line_and_objects_are_laid_over_it(batch: Batch) -> None:
    lines = scenario("as it is", objects=[], pod=pod("p", "5")) + scenario("with a node", objects=[node("big", "8")])
    lines = lines + scenario("again", objects=[], pod=pod("p", "100m"))
    first, second, third = answers(batch("-", "--snapshot", CLUSTER, lines=lines))
    assert first["verdict"]["cluster"]["nodes"] == 8
    assert second["verdict"]["cluster"]["nodes"] == 9
    assert third["verdict"]["cluster"]["nodes"] == 8
    assert third["verdict"]["outcome"] == "Lands"


def test_a_verdict_is_what_explain_prints_as_json(batch: Batch, kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    manifest = pod("p", "2")
    manifest["spec"] |= {"priority": 100, "preemptionPolicy": "PreemptLowerPriority", "priorityClassName": "standard"}
    lines = tmp_path / "in.jsonl"
    lines.write_text(json.dumps({"name": "a", "pod": manifest}) + "\n")
    (tmp_path / "pod.json").write_text(json.dumps(manifest))
    one = as_document(answers(batch(str(lines), "--snapshot", CLUSTER, *NOW))[0]["verdict"])
    ask = [
        "explain",
        "--algorithm",
        "kube-1.36",
        "-f",
        str(tmp_path / "pod.json"),
        "--snapshot",
        CLUSTER,
        *NOW,
        "-o",
        "json",
    ]
    other = json.loads(kpreempt(*ask).stdout)
    # Only explain fills in what the API server would, and searches for remedies.
    for key in ("admission", "remedies", "remedySearch"):
        other.pop(key)
    assert one == other


def test_nominated_pods_keep_their_room_where_the_cluster_has_a_queue(batch: Batch) -> None:
    waiting = pod("waiting", "3")
    waiting["spec"]["priority"] = 100
    waiting["status"] = {"phase": "Pending", "nominatedNodeName": "n"}
    objects = [node("n", "4"), waiting]
    lines = "".join(scenario(str(more), objects=objects, pod=pod("p", "2"), **more) for more in ({}, {"queued": True}))
    without, queued = answers(batch("-", lines=lines))
    assert without["verdict"]["outcome"] == "Lands"
    assert [each["field"] for each in without["verdict"]["assumptions"]] == ["status.nominatedNodeName"]
    assert queued["verdict"]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert "assumptions" not in queued["verdict"]


def test_strict_fails_after_all_answers_are_there(batch: Batch) -> None:
    lines = scenario("a", featureGates={"StatefulSetSemanticRevisionComparison": False})
    assert batch("-", lines=lines).returncode == 0
    run = batch("-", "--strict", lines=lines)
    assert run.returncode == 1
    assert "verdict" in answers(run)[0]


def test_the_output_file_is_written_whole_or_not_at_all(batch: Batch, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    run = batch("-", "-o", f"jsonl={target}", lines=scenario("a"))
    assert (run.returncode, run.stdout) == (0, "")
    assert json.loads(target.read_text())["name"] == "a"
    target.write_text("before")
    assert batch("absent.jsonl", "-o", f"jsonl={target}").returncode == 3
    assert target.read_text() == "before"


def test_a_line_about_an_eviction_is_an_error_that_is_shown_harmless(batch: Batch) -> None:
    name = "\u202e##[group]x"
    about = {"name": name, "namespace": "shop"}
    evicted = {**pod("p", "1"), "metadata": about}
    request = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
    run = batch("-", lines=json.dumps({"name": name, "eviction": request, "pod": evicted}))
    assert run.returncode == 3
    assert not obeyed(run.stdout)
    answer = json.loads(run.stdout)
    assert answer["name"] == name
    message = "standard input:1: evictions are not scheduled; use kpreempt drain for the pods of a node"
    assert answer["error"]["message"] == message
