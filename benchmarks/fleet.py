"""A sweep over many clusters on two workers, compared with one plain process: ``python -m benchmarks.fleet``.

A third of the clusters are parts of the one given with ``--parts-of`` (a List of nodes and pods), the others are
random. During the run a worker is killed, one snapshot is truncated, and one is too big for a worker; every row must be
there once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import zstandard
from tabulate import tabulate

from benchmarks.clusters import query, write_cluster
from kpreempt.fleet.dataset import Dataset
from kpreempt.fleet.engine import USABLE
from kpreempt.fleet.plan import PlanOverrides, make_plan
from kpreempt.fleet.sources import targets_of
from kpreempt.fleet.work import sweep_cluster
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.manifest import read_manifest

WORKER_MEMORY = 2 << 30
_SEED = 20261124


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--parts-of", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "dumps").mkdir()
        write_dumps(folder / "dumps", options.clusters, options.parts_of)
        plan = write_plan(folder, options.queries)
        size = sum(each.stat().st_size for each in (folder / "dumps").iterdir())
        alone = plain_seconds(folder, plan)
        together, output, killed = sweep_seconds(folder, plan)
        written = sum(each.stat().st_size for each in (folder / "out").rglob("*.parquet"))
        peak = max(int(word.replace(",", "")) for word in peaks(output))
        rows = [
            ["clusters x queries", f"{options.clusters} x {options.queries}"],
            ["snapshots, packed", f"{size >> 20} MiB"],
            ["one plain process", f"{alone:.1f} s"],
            ["kpreempt sweep --workers 2", f"{together:.1f} s"],
            ["ratio", f"{together / alone:.2f}"],
            ["most memory of a worker", f"{peak} MiB of {WORKER_MEMORY >> 20}"],
            ["workers killed on the way", killed],
            ["dataset", f"{written >> 10} KiB"],
        ]
        print(tabulate(rows, disable_numparse=True), flush=True)
        check(folder, options.clusters, options.queries)


def write_dumps(folder: Path, number: int, parts_of: str) -> None:
    chance = random.Random(_SEED)
    packer = zstandard.ZstdCompressor()
    parts = _parts(parts_of, number // 3, chance) if parts_of else iter(())
    for index in range(number):
        path = folder / f"cluster-{index:04}.json"
        part = next(parts, None)
        if part is None:
            write_cluster(
                path, nodes=chance.randint(20, 60), pods_per_node=chance.randint(5, 15), style="json", fat=False
            )
        else:
            path.write_text(
                json.dumps({"apiVersion": "v1", "kind": "List", "items": part}, default=str), encoding="utf-8"
            )
        (folder / f"{path.name}.zst").write_bytes(packer.compress(path.read_bytes()))
        path.unlink()
    whole = (folder / "cluster-0000.json.zst").read_bytes()
    (folder / "cut.json.zst").write_bytes(whole[: len(whole) // 2])
    parts_of_big = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"x{index}"}, "data": {"x": "y" * 1000}}
        for index in range(250_000)
    ]
    big = {"apiVersion": "v1", "kind": "List", "items": parts_of_big}
    (folder / "big.json.zst").write_bytes(packer.compress(json.dumps(big).encode()))


def _parts(path: str, number: int, chance: random.Random) -> Iterator[list[dict[str, Any]]]:
    """Some of the nodes of a cluster, and the pods on them."""
    items = [each.document for each in read_manifest(path, input_limits=InputLimits())]
    nodes = [each for each in items if each["kind"] == "Node"]
    others = [each for each in items if each["kind"] not in ("Node", "Pod")]
    pods: dict[str, list[dict[str, Any]]] = {}
    for each in items:
        if each["kind"] == "Pod":
            pods.setdefault(each["spec"].get("nodeName", ""), []).append(each)
    for _ in range(number):
        some = chance.sample(nodes, min(len(nodes), chance.randint(20, 60)))
        yield [*others, *some, *(pod for node in some for pod in pods.get(node["metadata"]["name"], ()))]


def write_plan(folder: Path, queries: int) -> Path:
    (folder / "pod.json").write_text(json.dumps(query("plain")), encoding="utf-8")
    ladder = [number * 2000 for number in range(queries - 2)]
    text = f'now = "2026-11-24T00:00:00Z"\n[[query]]\nid = "pod"\nmanifest = "pod.json"\npriority = {ladder}\n'
    path = folder / "sweep.toml"
    path.write_text(f'{text}[[query]]\nkind = "pending"\n[[query]]\nkind = "budgets"\n', encoding="utf-8")
    return path


def plain_seconds(folder: Path, path: Path) -> float:
    """Return the seconds of one process that evaluates the clusters one after the other, without Dask."""
    program = "import sys, pathlib, benchmarks.fleet as b; b.plain(pathlib.Path(sys.argv[1]), sys.argv[2])"
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program, str(folder), str(path)], check=True)
    return time.perf_counter() - start


def plain(folder: Path, path: str) -> None:
    plan = make_plan(path, PlanOverrides(snapshots=[f"{folder}/dumps/*"]))
    dataset = Dataset(str(folder / "plain"))
    dataset.begin(resumes=False)
    for target in targets_of(plan.snapshots, (), ""):
        done = sweep_cluster(target, plan, plan.digest, int(WORKER_MEMORY * USABLE))
        dataset.write(done.cluster, done.files)


def sweep_seconds(folder: Path, plan: Path) -> tuple[float, str, int]:
    """Return the seconds of the command, its output, and the number of workers killed."""
    words = ["sweep", str(plan), "--snapshots", f"{folder}/dumps/*", "--to", str(folder / "out")]
    words += ["--workers", "2", "--worker-memory", str(WORKER_MEMORY)]
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "kpreempt", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    output: list[str] = []
    killed = 0

    def listen() -> None:
        assert process.stderr is not None
        output.extend(process.stderr)

    listener = threading.Thread(target=listen)
    listener.start()
    while listener.is_alive():
        listener.join(0.2)
        if not killed and len(output) > 20 and (workers := _workers_of(process.pid)):
            os.kill(workers[-1], signal.SIGKILL)
            killed = 1
    process.wait()
    assert process.returncode == 3, "".join(output)
    return time.perf_counter() - start, "".join(output), killed


def _workers_of(parent: int) -> list[int]:
    """Return the processes that Dask started, except resource trackers."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            stat, line = (each / "stat").read_text(encoding="utf-8"), (each / "cmdline").read_bytes()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == parent and b"spawn_main" in line and b"tracker_fd" in line:
            found.append(int(each.name))
    return sorted(found)


def peaks(output: str) -> list[str]:
    return [line.split()[-2] for line in output.splitlines() if line.endswith(" MiB")]


def check(folder: Path, clusters: int, queries: int) -> None:
    """Check that every row is there once, failures are named, and the rest matches the plain process."""
    key = "count(*), count(DISTINCT (cluster, query, algorithm))"
    sql = f"SELECT {key} FROM '{folder}/out/*/verdicts.parquet' WHERE item = 0"
    assert duckdb.sql(sql).fetchall() == [(clusters * queries, clusters * queries)]
    failures = duckdb.sql(f"SELECT cluster, reason FROM '{folder}/out/*/failures.parquet' ORDER BY 1").fetchall()
    assert failures == [("big", "TooBig"), ("cut", "Input")], failures
    for path in (folder / "plain").rglob("*.parquet"):
        assert path.read_bytes() == (folder / "out" / path.relative_to(folder / "plain")).read_bytes(), path.name


if __name__ == "__main__":
    main()
