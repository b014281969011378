"""Compares kpreempt with the real scheduler on random scenarios: ``python -m tests.parity --examples N --seed S``.

A tenth as many scenarios have volumes of one size, of which the real scheduler takes any: there each of its answers has
to be among those told. Exit code 1 where they differ; the scenario is then kept under ``fixtures``. Exit code 2 where
the reference cannot be built.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from tests.parity import volume_orders
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
    version = version_of(path)
    code = run_searches(asked, partial(_search, path), partial(keep, version=version))
    asked.examples = -(-asked.examples // 10)
    search_orders = partial(volume_orders.volume_order_search, path)
    what = f"scenarios of equal volumes, each asked {volume_orders.TIMES} times,"
    return code | run_searches(asked, search_orders, partial(volume_orders.keep, version=version), what)


def _search(path: Path, examples: int, start: int) -> Search:
    with Genuine(path) as genuine:
        return search(genuine.answer, examples, start)


if __name__ == "__main__":
    sys.exit(main())
