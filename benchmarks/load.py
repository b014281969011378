"""Time and memory to load big clusters: ``python -m benchmarks.load``.

Each dump is written to a temporary folder and loaded by a separate process. Memory is the process's peak anonymous
memory, without the pages of the mapped file.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tabulate import tabulate

from benchmarks.clusters import Style, write_cluster

NODES = 5_000
PODS_PER_NODE = 30
_LOAD = (
    "import sys, time; begin = time.perf_counter(); from kpreempt.snapshot.load import load_snapshot; "
    "pods = len(load_snapshot([sys.argv[1]]).cluster.pods); print(pods, time.perf_counter() - begin)"
)
_ANONYMOUS = re.compile(r"^RssAnon:\s+(\d+) kB$", re.MULTILINE)
_SECONDS_BETWEEN_LOOKS = 0.02


class Dump(NamedTuple):
    """A dump to load, and how."""

    name: str
    style: Style
    fat: bool
    seconds: float
    megabytes: int


DUMPS = (
    Dump("lean JSON", "json", False, 2, 500),
    Dump("lean YAML", "yaml", False, 5, 500),
    Dump("fat JSON", "json", True, 12, 1000),
)


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for dump in DUMPS:
            path = Path(folder) / "cluster"
            size = write_cluster(path, nodes=NODES, pods_per_node=PODS_PER_NODE, style=dump.style, fat=dump.fat)
            pods, seconds, whole, peak = measure(path)
            rows.append(
                (
                    *(dump.name, f"{size / 1e6:.0f}", f"{pods:,}", f"{seconds:.2f}", f"{whole:.2f}"),
                    *(f"{dump.seconds:g}", f"{peak / 1e6:.0f}", dump.megabytes),
                )
            )
    head = ("cluster", "MB", "pods", "load s", "process s", "bound s", "memory MB", "bound MB")
    print(tabulate(rows, head, disable_numparse=True, colalign=("left", *["right"] * (len(head) - 1))))


def measure(path: Path) -> tuple[int, float, float, int]:
    """Return pods, seconds to load, seconds of the entire process, and peak anonymous memory in bytes."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", _LOAD, str(path)], stdout=subprocess.PIPE, text=True)
    peak = highest_memory(process)
    whole = time.perf_counter() - begin
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"loading {path} failed")
    pods, seconds = output.split()
    return int(pods), float(seconds), whole, peak


def highest_memory(process: subprocess.Popen[Any]) -> int:
    """Wait for a process, and return its peak anonymous memory in bytes."""
    peak = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status")
        found = _ANONYMOUS.search(status.read_text()) if status.exists() else None
        peak = max(peak, int(found[1]) * 1024 if found else 0)
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return peak


if __name__ == "__main__":
    main()
