"""Times that cannot be reckoned with in UTC end in one message, if they matter at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpreempt.cli import process


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
@pytest.mark.parametrize(
    "command", [["who-preempted", "api", "-n", "shop"], ["pending", "-o", "html"], ["queue"]], ids=lambda each: each[0]
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
