"""Recordings with valid checksums and content that kpreempt did not write."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

from kpreempt.snapshot.recording.segments import MAGIC, Limits, block_bytes, read_blocks
from tests.fuzz.mutations import mangled, mutated
from tests.unit.snapshot.recording.making import Making, a_node, a_pod

# All ways in which a command reads a recording, the folder ``past``.
READERS: tuple[tuple[str, ...], ...] = (
    ("pending", "-A", "--snapshot", "past"),
    ("explain", "pod/api", "-n", "shop", "--snapshot", "past"),
    ("explain", "pod/api", "-n", "shop", "--snapshot", "past", "--at", "pod/shop/api"),
    ("check", "-f", "change.yaml", "--snapshot", "past"),
    ("drain", "node-a", "--snapshot", "past"),
    ("at-risk", "-A", "--snapshot", "past"),
    ("queue", "--snapshot", "past"),
    ("budgets", "-A", "--snapshot", "past"),
    ("who-evicted", "encode-1", "-n", "shop", "--snapshot", "past"),
    ("history", "api", "-n", "shop", "--snapshot", "past"),
    ("history", "node/node-a", "--snapshot", "past"),
    ("history", "pdb/api", "-n", "shop", "--snapshot", "past"),
    ("verify", "past"),
    ("verify", "past", "-o", "json"),
    ("record", "--info", "past"),
    ("record", "--from", "past", "--redact", "--to", "redacted"),
    ("snapshot", "--snapshot", "past", "--redact", "--to", "-"),
    ("compare", "-f", "change.yaml", "--algorithms", "kube-1.18,kube-1.36", "--snapshot", "past"),
)
CHANGE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "web:2", "resources": {"requests": {"cpu": "1"}}}]},
        },
    },
}


def recorded(folder: Path, base_every: timedelta = timedelta(minutes=1)) -> Path:
    """Record a preemption and related changes in two segments, unless bases are less frequent; return the folder."""
    objects: dict[str, list[dict[str, Any]]] = {
        "Node": [a_node("node-a", "3"), a_node("node-b", "1")],
        "Pod": [a_pod("agent", "node-a", priority=2000), a_pod("encode-1", "node-a")],
        "PodDisruptionBudget": [_budget(1)],
        "PriorityClass": [{"metadata": {"name": "high"}, "value": 1000}],
        "Deployment": [{each: CHANGE[each] for each in ("metadata", "spec")}],
        "Service": [{"metadata": {"name": "api", "namespace": "shop"}, "spec": {"selector": {"app": "api"}}}],
    }
    making = Making(folder, objects, Limits(base_every=base_every))
    api = a_pod("api", priority=1000)
    making.change("ADDED", "Pod", api, seconds=30)
    victim = a_pod("encode-1", "node-a", conditions=[_DISRUPTED])
    making.change("MODIFIED", "Pod", victim)
    making.change("MODIFIED", "Pod", a_pod("api", priority=1000, nominatedNodeName="node-a", conditions=[_REFUSED]))
    making.change("ADDED", "Event", _EVENT)
    making.change("DELETED", "Pod", victim, seconds=5)
    making.change("MODIFIED", "Pod", a_pod("api", "node-a", priority=1000))
    making.change("MODIFIED", "Node", a_node("node-b", "2"))
    making.change("MODIFIED", "PodDisruptionBudget", _budget(0))
    making.hold("another")
    making.wait(90)
    making.relist("Node")
    making.change("ADDED", "Pod", a_pod("late"))
    making.wait(10)
    making.end()
    return folder


def _budget(allowed: int) -> dict[str, Any]:
    return {
        "metadata": {"name": "api", "namespace": "shop"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "api"}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    }


_DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
_REFUSED = {
    **{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
    "message": "0/2 nodes are available: 2 Insufficient cpu.",
}
_EVENT = {
    "metadata": {"name": "encode-1.18", "namespace": "shop"},
    "reason": "Preempted",
    "regarding": {"kind": "Pod", "namespace": "shop", "name": "encode-1", "uid": "uid-encode-1"},
    "related": {"kind": "Pod", "namespace": "shop", "name": "api", "uid": "uid-api"},
    "note": "Preempted by pod uid-api on node node-a",
}


def rewritten(content: bytes, change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    """The segment with each block's lines changed by ``change``, with valid checksums."""
    blocks = [(block.kind, block.content().split(b"\n")) for block in read_blocks(BytesIO(content), len(content))]
    return MAGIC + b"".join(block_bytes(kind, b"\n".join(change(lines))) for kind, lines in blocks)


def damaged(content: bytes, random: Random) -> bytes:
    """The segment with other content in up to three lines, or with lines in another order."""
    count = 0

    def note(lines: list[bytes]) -> list[bytes]:
        nonlocal count
        count += len(lines)
        return lines

    rewritten(content, note)
    chosen = set(random.sample(range(count), min(count, random.choice((1, 1, 1, 3)))))
    number = 0

    def change(lines: list[bytes]) -> list[bytes]:
        nonlocal number
        made: list[bytes] = []
        for line in lines:
            made += _damaged_line(line, random) if number in chosen else [line]
            number += 1
        return made

    return rewritten(content, change)


def _damaged_line(line: bytes, random: Random) -> list[bytes]:
    match random.randrange(8):
        case 0:
            return []
        case 1:
            return [line, line]
        case 2:
            at = random.randrange(len(line) or 1)
            return [line[:at] + random.choice((b"", b"\xff", b"\x00", b"[" * 3000, b'"', b"9" * 30)) + line[at + 1 :]]
        case 3:
            return [_mangled(line, random)]
    value = mutated(json.loads(line), random) if line else line
    return [json.dumps(value).encode() if not isinstance(value, bytes) else value]


def _mangled(line: bytes, random: Random) -> bytes:
    while line and (found := mangled(line, random)) == line:
        continue
    return found if line else b"x"
