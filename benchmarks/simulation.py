"""Cost of simulating many pods created at once: ``python -m benchmarks.simulation --pods 500 --nodes 1000``.

Every node has 20 pods and capacity for some more, so that all of them fit, each with a separate decision. Seconds are
processor time, so that other processes matter little.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from tabulate import tabulate

from benchmarks.clusters import FLAVOURS, Flavour, preemptor, write_cluster
from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.simulation.engine import SimulationStart, simulate
from kpreempt.model.pod import Pod
from kpreempt.snapshot.load import cluster_from_json, load_snapshot
from kpreempt.verdict.simulation import StepKind

PODS_PER_NODE = 20
REQUESTS = {"cpu": "2", "memory": "1Gi"}
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("--pods", type=int, default=500, help="how many come")
    parser.add_argument("--nodes", type=int, default=1_000, help="how many nodes there are")
    parser.add_argument("--flavours", default="budgets", help=f"of {', '.join(FLAVOURS)}, separated by commas")
    parser.add_argument("--runs", type=int, default=3, help="times that each is measured")
    options = parser.parse_args()
    rows = [measure(flavour, options) for flavour in FLAVOURS if flavour in options.flavours.split(",")]
    print(
        tabulate(rows, headers=["flavour", "nodes", "pods", "come", "land", "CPU seconds"], intfmt=",", floatfmt=".2f")
    )


def measure(flavour: Flavour, options: argparse.Namespace) -> list[str | int | float]:
    """A row of the table, its CPU seconds the median of the runs."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "cluster.json"
        write_cluster(path, nodes=options.nodes, pods_per_node=PODS_PER_NODE, style="json", fat=False, flavour=flavour)
        cluster = load_snapshot([str(path)]).cluster
    arriving = pods(flavour, options.pods)
    seconds = []
    for _ in range(options.runs):
        start = time.process_time()
        found, *_ = simulate(cluster, SimulationStart(arriving=arriving), scheduler_for(), now=NOW)
        seconds.append(time.process_time() - start)
    landed = sum(step.kind is StepKind.BOUND for step in found.steps)
    return [flavour, options.nodes, len(cluster.pods), options.pods, landed, statistics.median(seconds)]


def pods(flavour: Flavour, number: int) -> list[Pod]:
    """Equal pods with different names."""
    document = preemptor(flavour)
    document["spec"]["containers"][0]["resources"]["requests"] = REQUESTS
    (pod,) = cluster_from_json([msgspec.Raw(json.dumps(document).encode())], "the pod").pods
    names = [f"replica-{index}" for index in range(number)]
    return [
        msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=name, uid=name))
        for name in names
    ]


if __name__ == "__main__":
    main()
