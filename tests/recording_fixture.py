"""The recordings in ``fixtures``.

In ``recording``, pods are scheduled on a node, and one of them is preempted. In ``recording-again``, pods of one
ReplicaSet preempt those of another one, again and again; the first of them preempts twice on the same node, which its
status does not show. ``python -m tests.recording_fixture`` writes them again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.unit.snapshot.recording.making import Document, Making, a_node, a_pod

FOLDER = Path(__file__).parent.parent / "fixtures" / "recording"
FOLDER_AGAIN = FOLDER.parent / "recording-again"
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


def make_again(folder: Path) -> None:
    """Record preemptions by the same workload to a new folder."""
    making = Making(folder, {"Node": [a_node("node-a", "2")]})
    low = {name: _of_replica_set(a_pod(f"encode-{name}"), "encode") for name in "abcd"}
    high = {name: _of_replica_set(a_pod(f"api-{name}", priority=1000), "api") for name in "xy"}

    def binds(pod: Document) -> Document:
        making.change("MODIFIED", "Pod", bound := _on_node(pod))
        return bound

    def preempts(pod: Document, victim: Document, *, is_new: bool = True) -> None:
        name, uid, evicted = pod["metadata"]["name"], pod["metadata"]["uid"], victim["metadata"]["name"]
        making.change("ADDED", "Event", _scheduler_event(making, name, "FailedScheduling", _REFUSED["message"]))
        if is_new:
            status = {**pod["status"], "nominatedNodeName": "node-a", "conditions": [_REFUSED]}
            making.change("MODIFIED", "Pod", {**pod, "status": status})
        status = {**victim["status"], "conditions": [_target()]}
        making.change("MODIFIED", "Pod", {**victim, "status": status})
        note = f"Preempted by pod {uid} on node node-a"
        making.change("ADDED", "Event", _scheduler_event(making, evicted, "Preempted", note))
        making.change("DELETED", "Pod", {**victim, "status": status}, seconds=1)

    for name in "ab":
        making.change("ADDED", "Pod", low[name])
        low[name] = binds(low[name])
    making.change("ADDED", "Pod", high["x"], seconds=30)
    preempts(high["x"], low["b"])
    # Another pod takes the place.
    urgent = a_pod("urgent", priority=2000)
    making.change("ADDED", "Pod", urgent, seconds=0.01)
    urgent = binds(urgent)
    preempts(high["x"], low["a"], is_new=False)
    high["x"] = binds(high["x"])
    making.change("DELETED", "Pod", urgent, seconds=60)
    making.change("ADDED", "Pod", low["c"])
    low["c"] = binds(low["c"])
    making.change("ADDED", "Pod", high["y"], seconds=60)
    preempts(high["y"], low["c"])
    binds(high["y"])
    making.wait(60)
    making.end()
    (folder / "lock").unlink()


def _of_replica_set(pod: Document, name: str) -> Document:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-rs-{name}", "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}


def _on_node(pod: Document) -> Document:
    return {**pod, "spec": {**pod["spec"], "nodeName": "node-a"}, "status": {"phase": "Running", "startTime": _START}}


def _scheduler_event(making: Making, about: str, reason: str, note: str) -> Document:
    return {
        "metadata": {"namespace": "shop", "name": f"{about}.{making.version}"},
        "reason": reason,
        "type": "Warning" if reason == "FailedScheduling" else "Normal",
        "regarding": {"kind": "Pod", "namespace": "shop", "name": about, "uid": f"uid-{about}"},
        "note": note,
        "eventTime": making.now.isoformat(),
    }


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
    for directory, write in ((FOLDER, make), (FOLDER_AGAIN, make_again)):
        shutil.rmtree(directory, ignore_errors=True)
        write(directory)
