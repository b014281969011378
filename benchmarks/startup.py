"""Time of ``kpreempt --help``: ``python -m benchmarks.startup``."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 20


def main() -> None:
    program = [str(Path(sys.executable).parent / "kpreempt"), "--help"]
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    print(
        f"kpreempt --help, {RUNS} runs: median {statistics.median(seconds) * 1000:.0f} ms, "
        f"slowest {max(seconds) * 1000:.0f} ms (bound: 150 ms)"
    )


if __name__ == "__main__":
    main()
