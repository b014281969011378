from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Kpreempt

CLUSTER = {
    "kind": "List",
    "apiVersion": "v1",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "low", "namespace": "default"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
        },
    ],
}
DECIDING = {"filter", "dryRun", "choice"}


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(CLUSTER), encoding="utf-8")
    return str(path)


def test_explain_writes_where_its_time_went(kpreempt: Kpreempt, snapshot: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    run = kpreempt("explain", "--cpu", "1", "--priority", "9", "--snapshot", snapshot, "--profile-json", str(path))
    profile = json.loads(path.read_text(encoding="utf-8"))
    assert run.returncode == 0
    assert profile.keys() == {"phases", "total", "peakMemoryBytes"}
    assert DECIDING | {"read", "decode", "admission", "prepare", "report"} <= profile["phases"].keys()
    assert all(seconds >= 0 for seconds in profile["phases"].values())
    assert 0 < sum(profile["phases"].values()) <= profile["total"] + 0.0001
    assert profile["peakMemoryBytes"] > 1_000_000


def test_a_batch_adds_up_the_phases_of_its_lines(kpreempt: Kpreempt, snapshot: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    pod = {
        "metadata": {"name": "p"},
        "spec": {"priority": 9, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    lines = "".join(json.dumps({"name": name, "pod": pod}) + "\n" for name in "ab")
    run = kpreempt("batch", "--snapshot", snapshot, "--profile-json", str(path), stdin=lines)
    profile = json.loads(path.read_text(encoding="utf-8"))
    assert run.returncode == 0 and len(run.stdout.splitlines()) == 2
    assert DECIDING | {"read", "decode", "prepare", "report"} <= profile["phases"].keys()


def test_the_answer_is_the_same_with_a_profile(kpreempt: Kpreempt, snapshot: str, tmp_path: Path) -> None:
    command = ("explain", "--cpu", "1", "--priority", "9", "--snapshot", snapshot, "--now", "2026-11-21T00:00:00Z")
    profiled = kpreempt(*command, "-o", "json", "--profile-json", str(tmp_path / "profile.json"))
    assert profiled == kpreempt(*command, "-o", "json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["--profile-json", ""], "--profile-json: file name missing", id="an empty file name"),
        pytest.param(
            ["-o", "json=here", "--profile-json", "./here"],
            "--profile-json: an output uses the same file",
            id="the file of an output",
        ),
    ],
)
def test_a_wrong_file_is_refused(kpreempt: Kpreempt, snapshot: str, options: list[str], message: str) -> None:
    run = kpreempt("explain", "--cpu", "1", "--snapshot", snapshot, *options)
    assert run.returncode == 2
    assert run.complaint.startswith(message)


def test_no_profile_is_left_where_the_command_fails(kpreempt: Kpreempt, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    run = kpreempt("explain", "--cpu", "1", "--snapshot", str(tmp_path / "none"), "--profile-json", str(path))
    assert run.returncode == 3
    assert not path.exists()
