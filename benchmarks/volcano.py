"""Time of a Volcano session on clusters of several sizes: ``python -m benchmarks.volcano --sizes 100,1000``.

Every node runs 20 pods of gangs of 100, whose five queues hold more than they deserve. 20 gangs of 10 pods with a
higher priority wait, half of them in queues that hold nothing, so the session preempts and reclaims.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tabulate import tabulate

PODS_PER_NODE = 20
GANG = 100
WAITING_GANGS, WAITING_PODS = 20, 10
QUEUES, HOLDING_QUEUES = 10, 5
CREATED, NOW = "2026-11-21T11:00:00Z", "2026-11-21T12:00:00Z"
CONFIGURATION = {
    "actions": "enqueue, allocate, preempt, reclaim, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]},
        {"plugins": [{"name": name} for name in ("overcommit", "drf", "predicates", "proportion", "nodeorder")]},
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.volcano", description=__doc__)
    parser.add_argument("--sizes", default="100,1000", help="numbers of nodes, separated by commas")
    parser.add_argument("--runs", type=int, default=3, help="times that each is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = [measure(nodes, Path(name), options.runs) for nodes in map(int, options.sizes.split(","))]
    headers = ["nodes", "pods", "waiting", "evicted", "seconds"]
    print(tabulate(rows, headers=headers, intfmt=",", floatfmt=".2f"))


def measure(nodes: int, folder: Path, runs: int) -> list[int | float]:
    """Return a row of the table, its seconds the median of ``runs`` complete commands that print the report."""
    dump, configuration = folder / "cluster.json", folder / "configuration.yaml"
    items = list(cluster(nodes))
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    configuration.write_text(yaml.safe_dump(CONFIGURATION), encoding="utf-8")
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        _play(dump, configuration, "text")
        seconds.append(time.perf_counter() - start)
    session = json.loads(_play(dump, configuration, "json"))["session"]
    pods = sum(item["kind"] == "Pod" for item in items)
    evicted = sum(len(action["evictions"]) for action in session["actions"])
    return [nodes, pods, WAITING_GANGS * WAITING_PODS, evicted, statistics.median(seconds)]


def _play(dump: Path, configuration: Path, form: str) -> str:
    """Print the report of the complete command."""
    program = [str(Path(sys.executable).parent / "kpreempt"), "volcano", "--snapshot", str(dump)]
    options = ["--scheduler-config", str(configuration), "--now", NOW, "-o", form]
    return subprocess.run(
        [*program, *options], check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ).stdout


def cluster(nodes: int) -> Iterator[dict[str, Any]]:
    """The objects of a cluster, as kubectl dumps them."""
    for index in range(nodes):
        name = f"node-{index:05}"
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
        }
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
    for index in range(QUEUES):
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": f"queue-{index}"},
            "spec": {"weight": 1 + index},
        }
    for index in range(nodes * PODS_PER_NODE // GANG):
        yield _group(f"running-{index}", f"queue-{index % HOLDING_QUEUES}", 5, "Running")
        for task in range(GANG):
            yield _pod(f"running-{index}", task, "1500m", f"node-{(index * GANG + task) % nodes:05}")
    for index in range(WAITING_GANGS):
        yield _group(f"waiting-{index}", f"queue-{index % QUEUES}", WAITING_PODS, "Inqueue")
        for task in range(WAITING_PODS):
            yield _pod(f"waiting-{index}", task, "4", None)


def _group(name: str, queue: str, min_member: int, phase: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": CREATED},
        "spec": {
            "minMember": min_member,
            "queue": queue,
            "minResources": {"cpu": str(min_member)},
            **({"priorityClassName": "high"} if phase == "Inqueue" else {}),
        },
        "status": {"phase": phase},
    }


def _pod(group: str, task: int, cpu: str, node: str | None) -> dict[str, Any]:
    name = f"{group}-{task}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": CREATED,
            "annotations": {"scheduling.k8s.io/group-name": group},
        },
        "spec": {
            "schedulerName": "volcano",
            "priority": 1 if node else 1000,
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


if __name__ == "__main__":
    main()
