"""Cost of a drain: ``python -m benchmarks.drain --nodes 1000 --drained 50``.

Every node has 20 pods of ReplicaSets, whose sizes follow Zipf's law and whose replicas started within one second; every
other ReplicaSet has a PodDisruptionBudget, and nodes have capacity for a few more pods. Loading, all simulations and
the result count, as in ``kpreempt drain``; seconds are elapsed time.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PODS_PER_NODE = 20
_APPS = 1_000
_READY = [{"type": "Ready", "status": "True"}]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drain", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000, help="how many nodes there are")
    parser.add_argument("--drained", type=int, default=50, help="how many of them are drained")
    parser.add_argument("--max-unavailable", type=int, default=15, help="of each budget, in percent")
    parser.add_argument("--write", help="write the cluster to this file, and do no more")
    options, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(options.write or Path(name) / "cluster.json")
        items = list(_items(options.nodes, options.max_unavailable))
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
        if options.write:
            return
        nodes = [_node_name(index) for index in range(options.drained)]
        start = time.monotonic()
        run = subprocess.run(
            [sys.executable, "-m", "kpreempt", "drain", *nodes, "--snapshot", str(path), *more],
            check=False,
            capture_output=True,
            text=True,
        )
        seconds = time.monotonic() - start
    print("\n".join(run.stdout.splitlines()[:5]) or run.stderr)
    print(f"{seconds:.1f} s")


def _items(nodes: int, max_unavailable: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    for index in range(nodes):
        name = _node_name(index)
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{index % 3}"}
        allocatable = {"cpu": "32", "memory": "128Gi", "pods": "110"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": allocatable, "conditions": _READY, "nodeInfo": {"kubeletVersion": "v1.36.3"}},
        }
    weights = [1 / (rank + 1) for rank in range(_APPS)]
    owned = chance.choices(range(_APPS), weights, k=nodes * _PODS_PER_NODE)
    for app in range(_APPS):
        yield from _workload(app, owned.count(app), max_unavailable)
    for index, app in enumerate(owned):
        yield _pod(app, index, _node_name(index % nodes))


def _workload(app: int, size: int, max_unavailable: int) -> Iterator[dict[str, Any]]:
    allowed = -(-size * max_unavailable // 100)
    metadata = {"name": f"app-{app:03d}", "namespace": f"team-{app % 20:02d}", "uid": f"rs-{app}", "generation": 1}
    selector = {"matchLabels": {"app": metadata["name"]}}
    yield {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {"replicas": size, "selector": selector},
    }
    if app % 2:
        return
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**metadata, "uid": f"pdb-{app}"},
        "spec": {"maxUnavailable": f"{max_unavailable}%", "selector": selector},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": size,
            "desiredHealthy": size - allowed,
            "expectedPods": size,
            "observedGeneration": 1,
        },
    }


def _pod(app: int, index: int, node: str) -> dict[str, Any]:
    name = f"app-{app:03d}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"rs-{app}", "controller": True}
    requests = {"cpu": ("250m", "500m", "1")[app % 3], "memory": ("512Mi", "1Gi", "2Gi")[app % 3]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{index:06d}",
            "namespace": f"team-{app % 20:02d}",
            "uid": f"pod-{index}",
            "labels": {"app": name},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        "status": {
            "phase": "Running",
            "startTime": f"2026-11-{app % 20 + 1:02d}T08:{app % 60:02d}:00Z",
            "conditions": _READY,
        },
    }


def _node_name(index: int) -> str:
    return f"node-{index:05d}"


if __name__ == "__main__":
    main()
