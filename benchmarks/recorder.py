"""Cost of recording a big cluster that changes all the time: ``python -m benchmarks.recorder``.

A test API server on loopback lists nodes and running pods of realistic size, and then sends a fixed rate of changes to
the watches of pods and nodes: pods are created, bound, started, marked and deleted, and kubelets write the status of
pods and nodes. ``kpreempt record`` is a separate process, so that everything counts: HTTP, decoding, minimizing fields,
segments and fsync. Processor time and memory are the kernel's figures for that process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from tabulate import tabulate

from benchmarks.clusters import objects
from kpreempt.snapshot.recording.as_of import info_of
from tests.fake_api import Answer, Asked, FakeApi, FakeCluster

CORES = 0.5
MEGABYTES = 1000
_SEED = 20261123
_VERSION = 10_000_000
_PAGE = 500
_PATHS = {
    "/api/v1/pods": "Pod",
    "/api/v1/nodes": "Node",
    "/apis/apps/v1/deployments": "Deployment",
    "/apis/apps/v1/replicasets": "ReplicaSet",
}
# Pods of a Deployment, and its ReplicaSets: those of ten old templates are kept.
_REPLICAS = 30
_TEMPLATES = 11
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
Object = dict[str, Any]


class Line(NamedTuple):
    """A line of a watch, and its kind."""

    kind: str
    text: bytes


class Used(NamedTuple):
    """A process's processor time in seconds, and its peak resident memory in bytes."""

    seconds: float
    peak: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods-per-node", type=int, default=30)
    parser.add_argument("--rate", type=int, default=200, help="changes a second")
    parser.add_argument("--seconds", type=int, default=30, help="so long without a new base, and again with one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Busy(given.nodes, given.pods_per_node, given.rate, 2 * given.seconds), given.seconds, Path(folder))


class Busy:
    """A cluster that answers lists, and sends changes to watches when they are due; ``begun`` once it is watched."""

    def __init__(self, nodes: int, pods_per_node: int, rate: int, seconds: int) -> None:
        found = list(objects(nodes=nodes, pods_per_node=pods_per_node))
        chance = random.Random(_SEED)
        of = {kind: [each for each in found if each["kind"] == kind] for kind in _PATHS.values()}
        for deployment in map(_deployment, of["Pod"][::_REPLICAS], range(len(of["Pod"]))):
            of["Deployment"].append(deployment)
            of["ReplicaSet"] += (_replica_set(deployment, number) for number in range(_TEMPLATES))
        self.lines = [line for line, _ in zip(_changes(chance, of), range(rate * seconds), strict=False)]
        self.items = {kind: [_text(each) for each in each_kind] for kind, each_kind in of.items()}
        self.begun, self.over = Event(), Event()
        self._rate = rate
        self._begin = 0.0

    def __call__(self, request: Asked) -> Answer | None:
        kind = _PATHS.get(request.path)
        if kind is None:
            return None
        if request.query.get("watch"):
            if not self.begun.is_set():
                self._begin = time.monotonic()
                self.begun.set()
            return Answer(stream=self._stream(kind))
        start = int(request.query.get("continue", "0"))
        end, items = start + _PAGE, self.items[kind]
        head = {"resourceVersion": str(_VERSION), **({"continue": str(end)} if end < len(items) else {})}
        version = b"v1" if request.path.startswith("/api/") else b"apps/v1"
        body = b'{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[%s]}'
        return Answer(body=body % (kind.encode(), version, _text(head), b",".join(items[start:end])))

    def _stream(self, kind: str) -> Iterator[bytes]:
        for index, line in enumerate(self.lines):
            if line.kind == kind:
                time.sleep(max(0.0, self._begin + index / self._rate - time.monotonic()))
                yield line.text
        self.over.wait()


def measure(cluster: Busy, seconds: int, folder: Path) -> None:
    """Record the cluster, and print the cost."""
    server = FakeCluster({}, version=_VERSION, special=cluster, holder="one")
    to = folder / "recording"
    with FakeApi(server) as api:
        # The second half has a separate base, a quarter before its end.
        every = f"{seconds + seconds // 2}s"
        command = ["-m", "kpreempt", "record", "--server", api.url, "--to", str(to), "--base-every", every, "-q"]
        environment = {**os.environ, "KUBECONFIG": os.devnull}
        process = subprocess.Popen([sys.executable, *command], env=environment)
        try:
            wall = time.monotonic()
            while not cluster.begun.wait(1):
                if process.poll() is not None:
                    raise SystemExit("recording failed")
            wall = time.monotonic() - wall
            marks = [used(process.pid)]
            for _ in range(2):
                time.sleep(seconds)
                marks.append(used(process.pid))
            # The last change is on disk a second later, on an idle machine.
            time.sleep(5)
        finally:
            # A recording is intact whenever the recorder is killed.
            process.kill()
            process.wait()
            cluster.over.set()
            server.end()
    info = info_of(str(to))
    size = sum(path.stat().st_size for path in to.iterdir())
    counts = " and ".join(f"{len(each):,} {kind.lower()}s" for kind, each in cluster.items.items())
    print(f"{counts}, {len(cluster.lines):,} changes; {size / 1e6:.0f} MB on disk")
    print("\n".join(info.lines(str(to))))
    begin, middle, end = marks
    plain, more = ((after.seconds - before.seconds) / seconds for before, after in ((begin, middle), (middle, end)))
    rows = [
        ("to list, and the first base", f"{begin.seconds:.1f} s of processor, {wall:.1f} s", ""),
        ("changes", f"{plain:.3f} cores", CORES),
        (f"changes, with a base each {seconds} s", f"{more:.3f} cores", CORES),
        ("highest resident memory to list", f"{begin.peak / 1e6:.0f} MB", MEGABYTES),
        ("highest resident memory", f"{end.peak / 1e6:.0f} MB", MEGABYTES),
    ]
    print(tabulate(rows, ("", "taken", "bound"), disable_numparse=True))
    if sum(info.changes.values()) != len(cluster.lines):
        raise SystemExit("not all changes were recorded in time")


def used(pid: int) -> Used:
    """Return the process's usage so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    peak = _PEAK.search(Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    assert peak is not None
    return Used(sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK"), int(peak[1]) * 1024)


def _changes(chance: random.Random, of: Mapping[str, list[Object]]) -> Iterator[Line]:
    """Yield changes endlessly: of twelve, three create a pod, two delete one, and seven change status."""
    pods, nodes = list(of["Pod"]), of["Node"]
    version = _VERSION

    def line(what: str, pod: Object) -> Line:
        nonlocal version
        version += 1
        pod = {**pod, "metadata": {**pod["metadata"], "resourceVersion": str(version)}}
        return Line(pod["kind"], b'{"type":"%s","object":%s}\n' % (what.encode(), _text(pod)))

    while True:
        model = chance.choice(pods)
        name = f"{model['metadata']['labels']['app']}-new-{version}"
        running = {**model, "metadata": {**model["metadata"], "name": name, "uid": name}}
        spec = {key: value for key, value in model["spec"].items() if key != "nodeName"}
        yield line("ADDED", {**running, "spec": spec, "status": {"phase": "Pending"}})
        yield line("MODIFIED", {**running, "status": {"phase": "Pending"}})
        yield line("MODIFIED", running)
        leaving = pods.pop(chance.randrange(len(pods)))
        pods.append(running)
        marked = {"deletionTimestamp": "2026-11-23T12:00:30Z", "deletionGracePeriodSeconds": 30}
        leaving = {**leaving, "metadata": {**leaving["metadata"], **marked}}
        yield line("MODIFIED", leaving)
        yield line("DELETED", leaving)
        for _ in range(3):
            yield line("MODIFIED", chance.choice(pods))
        for _ in range(2):
            yield line("MODIFIED", chance.choice(nodes))
        for kind in ("ReplicaSet", "Deployment"):
            model = chance.choice(of[kind])
            yield line("MODIFIED", {**model, "status": {"replicas": _REPLICAS, "readyReplicas": version % _REPLICAS}})


def _deployment(pod: Object, number: int) -> Object:
    """A Deployment of pods like this one."""
    labels, name = pod["metadata"]["labels"], f"deployment-{number:05}"
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": pod["metadata"]["namespace"], "uid": name, "labels": labels},
        "spec": {
            "replicas": _REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _replica_set(deployment: Object, number: int) -> Object:
    """One of the ReplicaSets of a Deployment; the last one has the pods."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"], "controller": True}
    name = f"{owner['name']}-{number}"
    return {
        **deployment,
        "kind": "ReplicaSet",
        "metadata": {**deployment["metadata"], "name": name, "uid": name, "ownerReferences": [{**owner, "uid": "x"}]},
        "spec": {**deployment["spec"], "replicas": _REPLICAS if number == _TEMPLATES - 1 else 0},
    }


def _text(value: Object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
