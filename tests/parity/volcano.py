"""Compares kpreempt with the genuine Volcano scheduler on random sessions: ``python -m tests.parity.volcano``.

Exit code 1 where they differ; the scenario is then kept under ``fixtures/parity-volcano``. Exit code 2 where the
program of genuine sessions cannot be built.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from tests.parity.reference import CHECKOUT, Answer, Reference, Scenario, UnavailableError
from tests.parity.search import Search
from tests.parity.volcano_reference import volcano_program
from tests.parity.volcano_scenarios import SLOW_FEATURES
from tests.parity.volcano_search import volcano_search

FOLDER = CHECKOUT / "fixtures" / "parity-volcano"
# Each search ends with its first difference, so several are made, with seeds that follow from the one that is given.
CHUNK = 250
SEEDS_APART = 1_000_003


def main() -> int:
    """Run as many searches as the number of examples asks for, and say what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.volcano", description=__doc__)
    parser.add_argument("--examples", type=int, default=2000, help="scenarios to draw (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="where to start from (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--slow", action="store_true", help=f"with {', '.join(SLOW_FEATURES)}, too")
    asked = parser.parse_args()
    try:
        path = volcano_program()
    except UnavailableError as reason:
        sys.stderr.write(f"parity: {reason}\n")
        return 2
    begun = time.monotonic()
    sizes = [min(CHUNK, asked.examples - start) for start in range(0, asked.examples, CHUNK)]
    seeds = [asked.seed * SEEDS_APART + number for number in range(len(sizes))]
    without = frozenset(() if asked.slow else SLOW_FEATURES)
    with ProcessPoolExecutor(asked.jobs) as pool:
        searches = list(pool.map(_search, repeat(path), sizes, seeds, repeat(without)))
    return _report(searches, _version(path), asked.seed, time.monotonic() - begun)


def keep(scenario: Scenario, genuine: Answer, version: str, folder: Path = FOLDER) -> Path:
    """Write the scenario, named after its content, with the answer of the scheduler of that version."""
    scenario = {key: value for key, value in scenario.items() if key in ("algorithm", "conf", "objects")}
    name = hashlib.sha256(json.dumps(scenario, sort_keys=True).encode()).hexdigest()[:12]
    expect = {"error": genuine["error"]} if "error" in genuine else {"verdict": genuine["verdict"]}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    kept = {"name": name, **scenario, "recordedFrom": f"Volcano {version}", "expect": expect}
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return path


def kept_sessions(folder: Path = FOLDER) -> Iterator[dict[str, Any]]:
    """All kept scenarios with their answers, in the order of their names."""
    for path in sorted(folder.glob("*.json")):
        scenario: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        yield scenario


def _version(path: Path) -> str:
    return subprocess.run([path, "-version"], capture_output=True, text=True, check=True).stdout.strip()


def _search(path: Path, examples: int, start: int, without: frozenset[str]) -> Search:
    reference = Reference(path)
    try:
        return volcano_search(reference.ask, examples, start, without=without)
    finally:
        reference.close()


def _report(searches: list[Search], version: str, start: int, seconds: float) -> int:
    outcomes: Counter[str] = sum((each.outcomes for each in searches), Counter())
    count = sum(each.examples for each in searches)
    lines = [
        f"parity: {count} sessions from seed {start} in {seconds:.0f} s",
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
