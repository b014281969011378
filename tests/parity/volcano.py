"""Compare kpreempt with the real Volcano scheduler on random sessions: ``python -m tests.parity.volcano``.

Exit code 1 if they differ; the scenario is then kept under ``fixtures/parity-volcano``. Exit code 2 if the program with
real sessions cannot be built.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.parity.kept import kept_scenarios, write
from tests.parity.reference import CHECKOUT, Answer, Reference, Scenario, UnavailableError, version_of
from tests.parity.search import Search
from tests.parity.searches import option_parser, run_searches
from tests.parity.volcano_reference import volcano_program
from tests.parity.volcano_scenarios import SLOW_FEATURES
from tests.parity.volcano_search import volcano_search

FOLDER = CHECKOUT / "fixtures" / "parity-volcano"


def main() -> int:
    """Run the searches for the number of examples, and print the results."""
    parser = option_parser("tests.parity.volcano", __doc__)
    parser.add_argument("--slow", action="store_true", help=f"with {', '.join(SLOW_FEATURES)}, too")
    options = parser.parse_args()
    try:
        path = volcano_program()
    except UnavailableError as reason:
        sys.stderr.write(f"parity: {reason}\n")
        return 2
    without = frozenset(() if options.slow else SLOW_FEATURES)
    return run_searches(options, partial(_search, path, without), partial(keep, version=version_of(path)), "sessions")


def keep(scenario: Scenario, real: Answer, version: str, folder: Path = FOLDER) -> Path:
    """Write the scenario, named after its content, with the result of the scheduler of that version."""
    scenario = {key: value for key, value in scenario.items() if key in ("algorithm", "conf", "objects")}
    expect = {"error": real["error"]} if "error" in real else {"verdict": real["verdict"]}
    return write(scenario, expect, f"Volcano {version}", folder)


def kept_sessions(folder: Path = FOLDER) -> Iterator[dict[str, Any]]:
    """All kept scenarios with their results, by name."""
    return kept_scenarios(folder)


def _search(path: Path, without: frozenset[str], examples: int, start: int) -> Search:
    reference = Reference(path)
    try:
        return volcano_search(reference.ask, examples, start, without=without)
    finally:
        reference.close()


if __name__ == "__main__":
    sys.exit(main())
