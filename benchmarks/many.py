"""Time of many what-ifs on one big snapshot, on one core and on all: ``python -m benchmarks.many``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tabulate import tabulate

from benchmarks.clusters import Flavour, preemptor, write_cluster
from kpreempt.cli.workers import num_cores

NODES = 5_000
PODS_PER_NODE = 30
NUM_PODS = 20
FLAVOURS: tuple[Flavour, ...] = ("budgets", "affinity")


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for flavour in FLAVOURS:
            folder = Path(name)
            write_cluster(
                folder / "cluster.json",
                nodes=NODES,
                pods_per_node=PODS_PER_NODE,
                style="json",
                fat=False,
                flavour=flavour,
            )
            lines = "".join(json.dumps(line) + "\n" for line in scenarios(flavour))
            (folder / "lines.jsonl").write_text(lines, encoding="utf-8")
            seconds = [_batch(folder, jobs) for jobs in (1, num_cores())]
            rows.append([flavour, NUM_PODS, *(f"{each:.2f}" for each in seconds), f"{seconds[0] / seconds[1]:.2f}"])
    headers = ["flavour", "what-ifs", "1 core", f"{num_cores()} cores", "gain"]
    print(tabulate(rows, headers=headers, disable_numparse=True, colalign=["left", *["right"] * 4]))


def scenarios(flavour: Flavour) -> Iterator[dict[str, Any]]:
    """Pods of several sizes, each of which must preempt."""
    for number in range(NUM_PODS):
        pod = preemptor(flavour)
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(50 + number % 12)
        yield {"name": str(number), "pod": pod}


def _batch(folder: Path, jobs: int) -> float:
    """Return the seconds of the complete command."""
    program = [str(Path(sys.executable).parent / "kpreempt"), "batch", str(folder / "lines.jsonl")]
    start = time.perf_counter()
    subprocess.run(
        [*program, "--snapshot", str(folder / "cluster.json"), "--jobs", str(jobs)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
