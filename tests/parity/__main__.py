"""Compares kpreempt with the real scheduler on random scenarios: ``python -m tests.parity --examples N --seed S``.

Exit code 1 where they differ; the scenario is then kept under ``fixtures/parity``. Exit code 2 where the reference
cannot be built.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

from tests.parity.kept import keep
from tests.parity.reference import Genuine, UnavailableError, program, version_of
from tests.parity.search import Search, search

# Each search ends with its first difference, so several are made, with seeds that follow from the one that is given.
CHUNK = 250
SEEDS_APART = 1_000_003


def main() -> int:
    """Run as many searches as the number of examples asks for, and say what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.add_argument("--examples", type=int, default=2000, help="scenarios to draw (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="where to start from (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    asked = parser.parse_args()
    try:
        path = program("reference")
    except UnavailableError as reason:
        sys.stderr.write(f"parity: {reason}\n")
        return 2
    begun = time.monotonic()
    sizes = [min(CHUNK, asked.examples - start) for start in range(0, asked.examples, CHUNK)]
    seeds = [asked.seed * SEEDS_APART + number for number in range(len(sizes))]
    with ProcessPoolExecutor(asked.jobs) as pool:
        searches = list(pool.map(_search, repeat(path), sizes, seeds))
    return _report(searches, version_of(path), asked.seed, time.monotonic() - begun)


def _search(path: Path, examples: int, start: int) -> Search:
    with Genuine(path) as genuine:
        return search(genuine.answer, examples, start)


def _report(searches: list[Search], version: str, start: int, seconds: float) -> int:
    outcomes: Counter[str] = sum((each.outcomes for each in searches), Counter())
    count = sum(each.examples for each in searches)
    lines = [
        f"parity: {count} scenarios from seed {start} in {seconds:.0f} s",
        "  " + ", ".join(f"{number} {outcome}" for outcome, number in outcomes.most_common()),
    ]
    kept = {keep(found.scenario, found.genuine, version): found for each in searches if (found := each.difference)}
    for path, found in kept.items():
        lines += [f"difference, kept as {path}:", *(f"  {line}" for line in found.lines[:8])]
    lines.append(f"{len(kept)} differences" if kept else "no difference")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if kept else 0


if __name__ == "__main__":
    sys.exit(main())
