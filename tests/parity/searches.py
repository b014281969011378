"""A search from the command line: its options, parallel searches, and the printed results."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.parity.reference import Answer, Scenario
from tests.parity.search import Search

# Each search ends with its first difference, so several are run, with seeds derived from the given one.
CHUNK = 250
SEEDS_APART = 1_000_003
MAX_LINES = 8

# Takes a number of examples and a seed. It is sent to other processes, so it must be a module-level function.
Searcher = Callable[[int, int], Search]
# Keeps a scenario with the real result.
Keep = Callable[[Scenario, Answer], Path]


def option_parser(program: str, description: str | None) -> argparse.ArgumentParser:
    """The options of all searches."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--examples", type=int, default=2000, help="scenarios to draw (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="where to start from (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    return parser


def seeds_of(examples: int, seed: int) -> tuple[list[int], list[int]]:
    """The number of examples and the seed of each search."""
    sizes = [min(CHUNK, examples - start) for start in range(0, examples, CHUNK)]
    return sizes, [seed * SEEDS_APART + number for number in range(len(sizes))]


def run_searches(options: argparse.Namespace, searcher: Searcher, keep: Keep, what: str = "scenarios") -> int:
    """Run the searches for the number of examples, print the results, and keep differences.

    Returns the exit code: 1 if there are differences.
    """
    begun = time.monotonic()
    sizes, seeds = seeds_of(options.examples, options.seed)
    with ProcessPoolExecutor(options.jobs) as pool:
        searches = list(pool.map(searcher, sizes, seeds))
    seconds = time.monotonic() - begun
    outcomes: Counter[str] = sum((each.outcomes for each in searches), Counter())
    count = sum(each.examples for each in searches)
    lines = [
        f"parity: {count} {what} from seed {options.seed} in {seconds:.0f} s",
        "  " + ", ".join(f"{number} {outcome}" for outcome, number in outcomes.most_common()),
    ]
    kept = {keep(found.scenario, found.real): found for each in searches if (found := each.difference)}
    for path, found in kept.items():
        lines += [f"difference, kept as {path}:", *(f"  {line}" for line in found.lines[:MAX_LINES])]
    lines.append(f"{len(kept)} differences" if kept else "no difference")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if kept else 0
