from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.program import run_kpreempt

NO_CPU = "0/3 nodes are available: 3 Insufficient cpu."
LIST = "fixtures/events/list.txt"


@pytest.fixture
def pasted(tmp_path: Path) -> Path:
    path = tmp_path / "pasted.txt"
    path.write_text(NO_CPU)
    return path


def test_an_event_is_explained_without_a_cluster(pasted: Path) -> None:
    ended = run_kpreempt(["explain", "--event", str(pasted)])
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Reported, not verified: The pod fits on none of 3 nodes: 3 lack free cpu.")


def test_a_name_selects_the_pod() -> None:
    ended = run_kpreempt(["explain", "--event", LIST, "pod/db-0", "-n", "db", "-o", "json"])
    assert [each["name"] for each in json.loads(ended.stdout)["items"]] == ["db-0"]


def test_names_are_those_of_pods() -> None:
    ended = run_kpreempt(["explain", "--event", LIST, "-o", "name"])
    assert ended.stdout.split()[0] == "pod/db-0"


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        pytest.param(["--snapshot", "x"], 2, "--snapshot does not apply to --event", id="a snapshot"),
        pytest.param(["--context", "x"], 2, "--context does not apply to --event", id="a cluster"),
        pytest.param(["-f", "x"], 2, "--filename does not apply to --event", id="a manifest"),
        pytest.param(["--cordon", "n"], 2, "--cordon does not apply to --event", id="a change"),
        pytest.param(["--exit-code"], 2, "--exit-code does not apply to --event", id="a verdict"),
        pytest.param(["deploy/web"], 2, "with --event, name a pod, or none", id="a workload"),
    ],
)
def test_options_that_need_a_cluster_are_an_error(pasted: Path, arguments: list[str], code: int, error: str) -> None:
    ended = run_kpreempt(["explain", "--event", str(pasted), *arguments])
    assert (ended.returncode, ended.stdout) == (code, "")
    assert error in ended.stderr


def test_a_pod_without_events_is_not_found() -> None:
    ended = run_kpreempt(["explain", "--event", LIST, "nothing", "-n", "shop"])
    assert ended.returncode == 3
    assert "no event is about shop/nothing" in ended.stderr


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"", "contains no event", id="nothing"),
        pytest.param(b"hello\n", "contains no event", id="other text"),
        pytest.param(bytes(range(256)) * 4_000, "is not text", id="binary"),
        pytest.param(gzip.compress(NO_CPU.encode()), "is not text", id="packed"),
        pytest.param(b"\n" * (9 << 20), "has more than one value", id="megabytes of nothing"),
        pytest.param(b"x" * (33 << 20), "larger than 32 MiB", id="too large"),
        pytest.param(b"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n", "contains no events", id="other objects"),
        pytest.param(b"kind: [\n", "", id="broken YAML"),
    ],
)
def test_other_input_is_one_message(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    ended = run_kpreempt(["explain", "--event", str(path)])
    assert (ended.returncode, ended.stdout) == (3, "")
    assert problem in ended.stderr
    assert ended.stderr.startswith("error: ")


def test_objects_of_the_api_are_events_too(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web"},
        "reason": "FailedScheduling",
        "message": NO_CPU,
        "lastTimestamp": "2026-11-22T12:00:00Z",
        "count": 3,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"priority": 7, "containers": [{"name": "a"}]},
        "status": {
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_CPU}]
        },
    }
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [event, pod]}))
    ended = run_kpreempt(["explain", "--event", str(path), "-o", "json"])
    (item,) = json.loads(ended.stdout)["items"]
    assert (item["name"], item["priority"]) == ("web", 7)
    assert [(each["message"], each["times"]) for each in item["events"]] == [(NO_CPU, 4)]


def test_control_characters_are_shown_escaped(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_text("0/3 nodes are available: 3 \x1b[31mred\x1b[0m <script>alert(1)</script>.")
    for format_ in ("text", "markdown", "html"):
        ended = run_kpreempt(["explain", "--event", str(path), "-o", format_])
        assert ended.returncode == 0
        assert "\x1b" not in ended.stdout
        assert format_ == "text" or "<script>alert" not in ended.stdout


def test_utf_16_of_windows_shells_is_read(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(NO_CPU.encode("utf-16"))
    assert run_kpreempt(["explain", "--event", str(path)]).returncode == 0
