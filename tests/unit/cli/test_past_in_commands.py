"""Commands on the state at a time in a recording."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt.snapshot.recording.segments import Limits
from tests.recording_fixture import FOLDER
from tests.unit.snapshot.recording.making import Document, Making, a_node, a_pod

Kpreempt = Callable[..., Any]
BEFORE = ("--at", "pod/shop/api")
STARTED = "2026-11-21T03:00:05Z"


def explained(kpreempt: Kpreempt, folder: str, *options: str) -> Any:
    run = kpreempt("explain", "pod/api", "-n", "shop", "--snapshot", folder, *options, "-o", "json")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def victims(verdict: Any) -> list[str]:
    return [each["pod"] for each in verdict["victims"]["node-a"]]


def test_a_decision_is_explained_as_its_scheduler_took_it(kpreempt: Kpreempt) -> None:
    verdict = explained(kpreempt, str(FOLDER), *BEFORE)
    assert (victims(verdict), "alternatives" in verdict) == (["shop/encode-1"], False)
    assert verdict.get("assumptions", []) == []


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(["--without", "pod/shop/agent"], id="a pod less on the node"),
        pytest.param(["--set", "spec.schedulerName=other"], id="another scheduler, of which nothing is known"),
    ],
)
def test_the_order_is_unknown_if_the_query_is_different(kpreempt: Kpreempt, changed: list[str]) -> None:
    run = kpreempt("explain", "pod/api", "-n", "shop", "--snapshot", str(FOLDER), *BEFORE, *changed, "-o", "json")
    verdict = json.loads(run.stdout)
    assert "alternatives" in verdict or "victims" not in verdict


def test_ages_count_to_the_moment(kpreempt: Kpreempt) -> None:
    run = kpreempt("pending", "--snapshot", str(FOLDER), "--at", "2026-11-21T03:00:32Z")
    assert "2026-11-21T03:00:32Z" in run.stdout


def test_who_was_there_before_the_recording_stands_anywhere(kpreempt: Kpreempt, tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("node-a", "3")], "Pod": _low("encode-1", "encode-3")})
    making.change("ADDED", "Pod", a_pod("encode-2"))
    making.change("MODIFIED", "Pod", a_pod("encode-2", "node-a", startTime=STARTED))
    making.change("ADDED", "Pod", a_pod("api", priority=1000), seconds=30)
    making.end()
    assert "alternatives" in explained(kpreempt, making.folder)


@pytest.mark.parametrize("seconds", [0.5, 30])
def test_a_binding_under_way_is_reported(kpreempt: Kpreempt, tmp_path: Path, seconds: float) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("node-a", "3")], "Pod": _low("encode-1", "encode-3")}, Limits())
    making.change("ADDED", "Pod", a_pod("other"))
    making.change("ADDED", "Pod", a_pod("api", priority=1000))
    at = making.now.isoformat()
    making.change("MODIFIED", "Pod", a_pod("other", "node-a"), seconds=seconds)
    making.end()
    reported = [each["message"] for each in explained(kpreempt, making.folder, "--at", at).get("assumptions", [])]
    assert any("shop/other; the scheduler may already have assigned" in each for each in reported) is (seconds < 1)


def test_an_eviction_is_explained_when_its_event_and_its_victim_are_gone(kpreempt: Kpreempt) -> None:
    run = kpreempt("who-evicted", "encode-1", "-n", "shop", "--snapshot", str(FOLDER), "-o", "json")
    (preemption,) = [each["preemption"] for each in json.loads(run.stdout)["items"]]
    assert preemption["preemptor"]["pod"] == "shop/api"
    assert preemption["reconstruction"]["result"] == "Confirmed"
    assert preemption["reconstruction"]["takenAt"].startswith("2026-11-21T03:00:30")


def test_an_export_is_a_snapshot_of_the_moment(kpreempt: Kpreempt, tmp_path: Path) -> None:
    dump = str(tmp_path / "then.json")
    assert kpreempt("snapshot", "--snapshot", str(FOLDER), *BEFORE, "--to", dump).returncode == 0
    assert victims(explained(kpreempt, dump)) == ["shop/encode-1"]


def _low(*names: str) -> list[Document]:
    return [a_pod(name, "node-a", startTime=STARTED) for name in names]
