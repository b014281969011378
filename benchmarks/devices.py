"""Cost of allocating devices: ``python -m benchmarks.devices --nodes 5000``.

Every node has 8 devices, half of them allocated, and the pod's claim has two requests with selectors. Seconds are
processor time, so that other processes matter little. With ``--against-reference`` the real scheduler's code filters
the same cluster on the same machine, measured in elapsed time on all cores.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tabulate import tabulate

from benchmarks.decide import reference_seconds
from kpreempt.cli.process import COLLECTION_THRESHOLDS
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.load import cluster_from_json

DRIVER = "gpu.example.com"
DEVICES_PER_NODE = 8
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
Object = dict[str, Any]


class _Seconds:
    def __init__(self) -> None:
        self.of: dict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str, /) -> Iterator[None]:
        begin = time.process_time()
        yield
        self.of[name] += time.process_time() - begin

    @contextmanager
    def part(self, _name: str, /) -> Iterator[None]:
        yield


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.devices", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000, help="how many nodes there are")
    parser.add_argument("--against-reference", action="store_true", help="time the real scheduler's code as well")
    options = parser.parse_args()
    nodes = options.nodes
    objects = list(_objects(nodes))
    cluster = cluster_from_json([json.dumps(each).encode() for each in objects], "devices")
    spec = {
        "containers": [{"name": "c", "resources": {"claims": [{"name": "gpus"}]}}],
        "resourceClaims": [{"name": "gpus", "resourceClaimName": "wanted"}],
    }
    document = {"metadata": {"name": "new", "namespace": "ml", "uid": "new"}, "spec": spec}
    pod: Pod = decode_object("Pod", document)
    scheduler = KubeScheduler()
    prepared = scheduler.prepare(cluster, now=NOW)
    # As the program does after reading a cluster.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    rows = []
    for look in ("first", "second"):
        seconds = _Seconds()
        verdict = scheduler.decide(prepared, pod, records_steps=False, phases=seconds)
        rows.append([look, len(verdict.feasible_nodes), seconds.of["filter"], seconds.of["score"]])
    print(f"{nodes:,} nodes of {DEVICES_PER_NODE} devices:")
    if options.against_reference:
        rows.append(["real", None, _reference_seconds(objects, document), None])
    print(tabulate(rows, headers=["look", "nodes that fit", "filter", "score"], floatfmt=".2f"))
    if options.against_reference:
        print(f"ratio of the first look: {rows[0][2] / rows[-1][2]:.2f}")


def _reference_seconds(objects: list[Object], pod: Object) -> float:
    with TemporaryDirectory() as folder:
        snapshot = Path(folder) / "cluster.json"
        snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), encoding="utf-8")
        return reference_seconds(snapshot, pod, runs=3)["filter"]


def _objects(nodes: int) -> Iterator[Object]:
    yield _object("DeviceClass", "gpu", spec={"selectors": _selectors(f'device.driver == "{DRIVER}"')})
    requests = [
        _request("fast", f'device.attributes["{DRIVER}"].model == "h100"'),
        _request(
            "near",
            f'device.attributes["{DRIVER}"].numa == 1'
            f' && device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0',
        ),
    ]
    yield _object("ResourceClaim", "wanted", spec={"devices": {"requests": requests}})
    for index in range(nodes):
        node = f"node-{index}"
        allocatable = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "status": {"allocatable": allocatable}}
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = [_device(node, number) for number in range(DEVICES_PER_NODE)]
        yield _object(
            "ResourceSlice", node, spec={"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
        )
        for number in range(DEVICES_PER_NODE // 2):
            result = {"request": "fast", "driver": DRIVER, "pool": node, "device": f"gpu-{number}"}
            status = {"allocation": {"devices": {"results": [result]}}}
            yield _object("ResourceClaim", f"held-{index}-{number}", spec={}, status=status)


def _device(node: str, number: int) -> Object:
    attributes = {
        "model": {"string": "h100" if number % 2 else "a100"},
        "numa": {"int": number // 4},
        "uuid": {"string": f"{node}-{number}"},
        "driverVersion": {"version": "550.54.15"},
    }
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}


def _request(name: str, expression: str) -> Object:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    return {"name": name, "exactly": {**exactly, "selectors": _selectors(expression)}}


def _selectors(expression: str) -> list[Object]:
    return [{"cel": {"expression": expression}}]


def _object(kind: str, name: str, **parts: Object) -> Object:
    metadata = {"name": name} | ({"namespace": "ml"} if kind == "ResourceClaim" else {})
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, **parts}


if __name__ == "__main__":
    main()
