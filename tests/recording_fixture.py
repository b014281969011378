"""The recording in ``fixtures/recording``: pods are scheduled on a node, and one of them is preempted.

``python -m tests.recording_fixture`` writes it again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.unit.snapshot.recording.making import Document, Making, a_node, a_pod

FOLDER = Path(__file__).parent.parent / "fixtures" / "recording"
_START = "2026-11-21T03:00:05Z"
_REFUSED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available: 1 Insufficient cpu.",
}


def make(folder: Path) -> None:
    """Record to a new folder."""
    making = Making(folder, {"Node": [a_node("node-a", "3")], "Pod": [a_pod("agent", "node-a", priority=2000)]})
    for name in ("encode-2", "encode-1"):
        making.change("ADDED", "Pod", a_pod(name))
        making.change("MODIFIED", "Pod", a_pod(name, "node-a", startTime=_START))
    making.change("ADDED", "Pod", a_pod("api", priority=1000), seconds=30)
    victim = a_pod("encode-1", "node-a", startTime=_START, conditions=[_target()])
    making.change("MODIFIED", "Pod", victim)
    making.change("MODIFIED", "Pod", a_pod("api", priority=1000, nominatedNodeName="node-a", conditions=[_REFUSED]))
    making.change("ADDED", "Event", _event())
    making.change("DELETED", "Pod", victim, seconds=5)
    making.change("MODIFIED", "Pod", a_pod("api", "node-a", priority=1000))
    making.wait(60)
    making.change("DELETED", "Event", _event())
    making.end()
    (folder / "lock").unlink()


def _target() -> Document:
    return {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def _event() -> Document:
    return {
        "metadata": {"namespace": "shop", "name": "encode-1.18"},
        "reason": "Preempted",
        "regarding": {"kind": "Pod", "namespace": "shop", "name": "encode-1", "uid": "uid-encode-1"},
        "related": {"kind": "Pod", "namespace": "shop", "name": "api", "uid": "uid-api"},
        "note": "Preempted by pod uid-api on node node-a",
        "eventTime": "2026-11-21T03:00:30.500000Z",
    }


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    make(FOLDER)
