"""Time and memory to write a dump of a big cluster: ``python -m benchmarks.dump``.

Each run is a separate process, which loads the cluster first. Memory is the process's peak anonymous memory, without
the pages of the mapped file.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tabulate import tabulate

from benchmarks.clusters import write_cluster
from benchmarks.load import NODES, PODS_PER_NODE, highest_memory

RUNS = (
    ("JSON", "cluster.json", ()),
    ("JSON, zstandard", "cluster.json.zst", ()),
    ("JSON lines, gzip", "cluster.jsonl.gz", ()),
    ("redacted, zstandard", "redacted.json.zst", ("--redact",)),
)


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.json"
        write_cluster(source, nodes=NODES, pods_per_node=PODS_PER_NODE, style="json", fat=False, flavour="volumes")
        for name, file, options in RUNS:
            target = Path(folder) / file
            command = [
                sys.executable,
                "-m",
                "kpreempt",
                "snapshot",
                "-q",
                "--snapshot",
                str(source),
                "--to",
                str(target),
            ]
            begin = time.perf_counter()
            process = subprocess.Popen([*command, *options])
            peak = highest_memory(process)
            seconds = time.perf_counter() - begin
            if process.returncode:
                raise SystemExit(f"writing {target} failed")
            rows.append((name, f"{target.stat().st_size / 1e6:.1f}", f"{seconds:.2f}", f"{peak / 1e6:.0f}"))
    head = ("form", "MB", "process s", "memory MB")
    print(tabulate(rows, head, disable_numparse=True, colalign=("left", *["right"] * (len(head) - 1))))


if __name__ == "__main__":
    main()
