"""Times that cannot be reckoned with in UTC end in one message, if they matter at all."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from kpreempt.cli import process
from kpreempt.cli.scenarios import Situation, situation_of


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
@pytest.mark.parametrize(
    "command", [["who-evicted", "api", "-n", "shop"], ["pending", "-o", "html"], ["queue"]], ids=lambda each: each[0]
)
def test_a_time_beyond_the_calendar_is_no_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], time: str, command: list[str]
) -> None:
    metadata = {"name": "api", "namespace": "shop", "creationTimestamp": time}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": time}
    about = {"kind": "Pod", "namespace": "shop", "name": "api"}
    event = {"reason": "Preempted", "message": "Preempted by a pod on node n", "involvedObject": about}
    items = [
        {"kind": "Pod", "metadata": metadata, "status": {"phase": "Pending", "conditions": [condition]}},
        {"kind": "Event", "metadata": {**metadata, "name": "e"}, "lastTimestamp": time, **event},
    ]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": [{"apiVersion": "v1", **each} for each in items]}))
    code = process.run([*command, "--snapshot", str(path)])
    said = capsys.readouterr().err
    assert code in (0, 3)
    assert "bug" not in said
    assert (code == 3) == ("before the year 1 or after the year 9999" in said)


def _line(name: str, time: str) -> str:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "creationTimestamp": time}}
    return json.dumps({"name": name, "objects": [node], "pod": {"metadata": {"name": "p"}}})


@pytest.mark.parametrize(
    "command", [["batch"], ["compare", "-o", "json", "--algorithms", "kube-1.36,kube-1.35", "--batch"]]
)
def test_a_time_beyond_the_calendar_is_the_error_of_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    def reckoned(*arguments: Any) -> Situation:
        situation = situation_of(*arguments)
        assert situation.cluster.nodes[0].metadata.creation_timestamp is not None
        situation.cluster.nodes[0].metadata.creation_timestamp.astimezone(UTC)
        return situation

    monkeypatch.setattr(f"kpreempt.cli.{command[0]}.situation_of", reckoned)
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join([_line("far", "0001-01-01T00:00:00+14:00"), _line("near", "2026-01-01T00:00:00Z")]))
    code = process.run([*command, str(path)])
    out, said = capsys.readouterr()
    assert code == 3
    assert "bug" not in said
    assert "lines.jsonl:1: a time in the input" in out
    assert "near" in out
