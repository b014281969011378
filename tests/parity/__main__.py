"""Compares kpreempt with the real scheduler on random scenarios: ``python -m tests.parity --examples N --seed S``.

Exit code 1 where they differ; the scenario is then kept under ``fixtures/parity``. Exit code 2 where the reference
cannot be built.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from tests.parity.kept import keep
from tests.parity.reference import Genuine, UnavailableError, program, version_of
from tests.parity.search import Search, search
from tests.parity.searches import option_parser, run_searches


def main() -> int:
    """Run as many searches as the number of examples asks for, and say what came of them."""
    asked = option_parser("tests.parity", __doc__).parse_args()
    try:
        path = program("reference")
    except UnavailableError as reason:
        sys.stderr.write(f"parity: {reason}\n")
        return 2
    return run_searches(asked, partial(_search, path), partial(keep, version=version_of(path)))


def _search(path: Path, examples: int, start: int) -> Search:
    with Genuine(path) as genuine:
        return search(genuine.answer, examples, start)


if __name__ == "__main__":
    sys.exit(main())
