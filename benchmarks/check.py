"""Time to check complete rollouts, from reading files to the result: ``python -m benchmarks.check``.

Every node has 20 pods. ``fits`` is a new Deployment that fits; ``displaces`` is one whose pods must evict others, which
are recreated elsewhere.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tabulate import tabulate

from benchmarks.clusters import write_cluster

PODS_PER_NODE = 20
# Its pods request some 15 of the 64 CPUs of a node.
REQUESTS = {"fits": {"cpu": "2", "memory": "1Gi"}, "displaces": {"cpu": "55", "memory": "1Gi"}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--replicas", type=int, default=500, help="how many pods the Deployment has")
    parser.add_argument("--nodes", type=int, default=1_000, help="how many nodes there are")
    parser.add_argument("--changes", default=",".join(REQUESTS), help=f"of {', '.join(REQUESTS)}")
    parser.add_argument("--runs", type=int, default=3, help="times that each is measured")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        cluster = Path(name) / "cluster.json"
        write_cluster(
            cluster, nodes=options.nodes, pods_per_node=PODS_PER_NODE, style="json", fat=False, flavour="budgets"
        )
        for change in options.changes.split(","):
            manifest = Path(name) / "change.json"
            manifest.write_text(json.dumps(deployment(change, options.replicas)), encoding="utf-8")
            rows.append(measure(change, cluster, manifest, options))
    headers = ["change", "nodes", "replicas", "lands", "victims", "seconds"]
    print(tabulate(rows, headers=headers, intfmt=",", floatfmt=".2f"))


def deployment(change: str, replicas: int) -> dict[str, Any]:
    """A Deployment of the highest priority."""
    container = {"name": "main", "resources": {"requests": REQUESTS[change]}}
    labels = {"app": "rollout"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "rollout", "namespace": "team-01"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"priorityClassName": "production", "containers": [container]},
            },
        },
    }


def measure(change: str, cluster: Path, manifest: Path, options: argparse.Namespace) -> list[str | int | float]:
    """A row of the table, its seconds the median of the runs."""
    program = [str(Path(sys.executable).parent / "kpreempt"), "check", "--algorithm", "kube-1.36"]
    program += ["-f", str(manifest), "--snapshot", str(cluster)]
    seconds = []
    for _ in range(options.runs):
        start = time.perf_counter()
        done = subprocess.run([*program, "-o", "json"], check=False, capture_output=True)
        seconds.append(time.perf_counter() - start)
        if done.returncode not in (0, 1):
            raise SystemExit(done.stderr.decode())
    simulation = json.loads(done.stdout)["simulation"]
    (workload,) = (each for each in simulation["workloads"] if each.get("isChanged"))
    landed = sum(workload.get("nodesAfter", {}).values())
    return [change, options.nodes, options.replicas, landed, len(simulation["displaced"]), statistics.median(seconds)]


if __name__ == "__main__":
    main()
