"""Times of Kueue commands on big clusters: ``python -m benchmarks.kueue --sizes 50,500``.

A size is a number of ClusterQueues in cohorts of ten below one root; there are 40 Workloads and 10 nodes for each.
Nineteen of twenty Workloads have quota, the others wait; some ClusterQueues borrow. Seconds exclude reading the dump.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tabulate import tabulate

WORKLOADS, NODES, COHORT = 40, 10, 10
VERSION = "kueue.x-k8s.io/v1beta2"
CREATED, NOW = datetime(2026, 11, 20, tzinfo=UTC), "2026-11-22T12:00:00Z"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kueue", description=__doc__)
    parser.add_argument("--sizes", default="50,500", help="numbers of ClusterQueues, separated by commas")
    parser.add_argument("--runs", type=int, default=3, help="times that each is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = [row for size in map(int, options.sizes.split(",")) for row in measure(size, Path(name), options.runs)]
    print(tabulate(rows, headers=["ClusterQueues", "Workloads", "nodes", "command", "seconds"], floatfmt=".2f"))


def measure(size: int, folder: Path, runs: int) -> Iterator[list[Any]]:
    """Return a row for each command, its seconds the median of ``runs`` complete commands."""
    dump, job, profile = folder / "cluster.json", folder / "job.json", folder / "profile.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(cluster(size))}), encoding="utf-8")
    job.write_text(json.dumps(job_to_explain()), encoding="utf-8")
    for command in (["explain", "-f", str(job)], ["pending"], ["at-risk", "-A"]):
        seconds = []
        for _ in range(runs):
            options = ["--snapshot", str(dump), "--algorithm", "kueue-0.19", "--now", NOW]
            options += ["--profile-json", str(profile)]
            arguments = [sys.executable, "-m", "kpreempt", *command, *options]
            subprocess.run(arguments, check=True, capture_output=True)
            seconds.append(float(json.loads(profile.read_text(encoding="utf-8"))["phases"]["session"]))
        yield [size, size * WORKLOADS, size * NODES, command[0], statistics.median(seconds)]


def cluster(size: int) -> Iterator[dict[str, Any]]:
    """Return the objects of a cluster, the same for the same size."""
    draws = random.Random(size)
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    yield _queueing("ResourceFlavor", "main", {"nodeLabels": {"pool": "main"}})
    for number in range(size // COHORT):
        yield _queueing("Cohort", f"cohort-{number}", {"parentName": "root"})
    for number in range(size):
        resources = [{"name": "cpu", "nominalQuota": WORKLOADS * 3}, {"name": "memory", "nominalQuota": "1000Gi"}]
        group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "main", "resources": resources}]}
        spec = {
            "cohortName": f"cohort-{number % (size // COHORT)}",
            "namespaceSelector": {},
            "resourceGroups": [group],
            "preemption": {"reclaimWithinCohort": "LowerPriority", "withinClusterQueue": "LowerPriority"},
        }
        yield _queueing("ClusterQueue", f"queue-{number}", spec)
        local = _queueing("LocalQueue", f"queue-{number}", {"clusterQueue": f"queue-{number}"})
        yield {**local, "metadata": {**local["metadata"], "namespace": "team"}}
    for number in range(size * WORKLOADS):
        yield _workload(number, draws, size)
    for number in range(size * NODES):
        status = {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        metadata = {"name": f"node-{number}", "labels": {"pool": "main"}}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def job_to_explain() -> dict[str, Any]:
    """Return the Job to explain: it requests more than its ClusterQueue has left."""
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "asked", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "queue-0"}},
        "spec": {"parallelism": 20, "template": {"spec": {"containers": [container]}}},
    }


def _queueing(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _workload(number: int, draws: random.Random, size: int) -> dict[str, Any]:
    queue, count = f"queue-{draws.randrange(size)}", draws.randint(1, 5)
    created = (CREATED + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    pod_set = {"name": "main", "count": count, "template": {"spec": {"containers": [container]}}}
    found = _queueing(
        "Workload",
        f"workload-{number}",
        {"queueName": queue, "priority": draws.randrange(4) * 100, "podSets": [pod_set]},
    )
    found["metadata"] |= {"namespace": "team", "uid": f"u-{number}", "creationTimestamp": created}
    if draws.random() < 0.95:
        given = {
            "name": "main",
            "count": count,
            "flavors": {"cpu": "main", "memory": "main"},
            "resourceUsage": {"cpu": str(count), "memory": f"{2 * count}Gi"},
        }
        conditions = [
            {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": created}
            for kind in ("QuotaReserved", "Admitted")
        ]
        found["status"] = {
            "conditions": conditions,
            "admission": {"clusterQueue": queue, "podSetAssignments": [given]},
        }
    return found


if __name__ == "__main__":
    main()
