"""Time to load a live cluster, compared with kubectl: ``python -m benchmarks.live``.

A control plane is started on loopback and filled with realistic nodes and pods; then ``kubectl get pods,nodes -A -o
json`` and kpreempt read it alternately. kpreempt reads two dozen kinds, kubectl two. Both are separate processes, so
startup counts. Needs Go for the control plane, and kubectl.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from typing import Any

from tabulate import tabulate

from benchmarks.clusters import write_cluster
from tests.live.plane import ControlPlane, send
from tests.parity.reference import UnavailableError, program

TARGET = 1.5
_WRITERS = 8
_LOAD = """
import os, sys, time
begin = time.perf_counter()
from datetime import UTC, datetime
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import connect
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.snapshot.live.lists import read_cluster
api = Api(connect(ConnectionFlags(kubeconfig=sys.argv[1]), os.environ))
reading = read_cluster(api, taken_at=datetime.now(UTC))
assert not reading.assumptions, reading.assumptions
print(len(reading.cluster.nodes), len(reading.cluster.pods), time.perf_counter() - begin)
"""
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1500)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        print("skipped: kubectl is not installed")
        return
    try:
        path = program("controlplane")
    except UnavailableError as reason:
        print(f"skipped: {reason}")
        return
    with ControlPlane(path) as plane, tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        fill(plane, given.nodes, given.pods)
        print(f"{given.nodes:,} nodes and {given.pods:,} pods created in {time.perf_counter() - begin:.0f} s")
        compare(kubectl, str(plane.kubeconfig), Path(folder, "kubectl.json"), given.runs)


def fill(plane: ControlPlane, nodes: int, pods: int) -> None:
    """Create the objects through the API, several at a time."""
    mine = local()

    def create(document: dict[str, Any]) -> None:
        if not hasattr(mine, "connection"):
            mine.connection = plane.connect()
        kind, metadata = document["kind"], document["metadata"]
        for key in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
            metadata.pop(key, None)
        path = _PATHS[kind].format(**metadata)
        send(mine.connection, "POST", path, document)
        if kind == "Pod":
            send(mine.connection, "PATCH", f"{path}/{metadata['name']}/status", {"status": document["status"]})

    items = _items(nodes, pods)
    teams = dict.fromkeys(each["metadata"].get("namespace", "default") for each in items)
    namespaces = [{"kind": "Namespace", "metadata": {"name": name}} for name in teams if name != "default"]
    with ThreadPoolExecutor(_WRITERS) as pool:
        for kind in _PATHS:
            list(pool.map(create, [each for each in (*namespaces, *items) if each["kind"] == kind]))


def _items(nodes: int, pods: int) -> list[dict[str, Any]]:
    """Yield nodes, priority classes and pods as kubectl prints those of a running cluster."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cluster.json")
        write_cluster(path, nodes=nodes, pods_per_node=-(-pods // nodes), style="json", fat=True)
        items: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["items"]
    others = [each for each in items if each["kind"] != "Pod"]
    return others + [each for each in items if each["kind"] == "Pod"][:pods]


def compare(kubectl: str, kubeconfig: str, dump: Path, runs: int) -> None:
    """Time both alternately, and print the results."""
    environment = {**os.environ, "KUBECONFIG": kubeconfig}
    theirs, ours, load = [], [], []
    for _ in range(runs):
        begin = time.perf_counter()
        with dump.open("wb") as file:
            subprocess.run([kubectl, "get", "pods,nodes", "-A", "-o", "json"], stdout=file, env=environment, check=True)
        theirs.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        run = subprocess.run(
            [sys.executable, "-c", _LOAD, kubeconfig], capture_output=True, text=True, check=True, env=environment
        )
        ours.append(time.perf_counter() - begin)
        load.append(float(run.stdout.split()[2]))
    found = json.loads(dump.read_text(encoding="utf-8"))["items"]
    nodes, pods = run.stdout.split()[:2]
    print(f"kubectl: {len(found):,} objects, {dump.stat().st_size / 1e6:.0f} MB; kpreempt: {nodes} nodes, {pods} pods")
    rows = [
        (name, f"{statistics.median(seconds):.2f}", f"{min(seconds):.2f}", f"{max(seconds):.2f}")
        for name, seconds in (
            ("kubectl get pods,nodes -A -o json", theirs),
            ("kpreempt, all kinds, whole process", ours),
            ("  of it connecting and loading", load),
        )
    ]
    print(tabulate(rows, ("", "median s", "fastest", "slowest"), disable_numparse=True))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"ratio {ratio:.2f} (bound: {TARGET})")


if __name__ == "__main__":
    main()
