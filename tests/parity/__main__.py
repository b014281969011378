"""Compare kpreempt with the real scheduler on random scenarios: ``python -m tests.parity --examples N --seed S``.

``--version 1.33`` compares with that version, and may be given more than once; ``--all-versions`` is each of them.
``--feature devices`` gives every scenario this feature, among others. For the newest version, a tenth as many scenarios
have volumes of one size, of which the real scheduler takes any: its results must then be among the reported ones. Exit
code 1 if they differ; the scenario is then kept under ``fixtures``. Exit code 2 if the reference of a version cannot be
built; the others are compared all the same.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from kpreempt.scheduler_table import DEFAULT_VERSION, RELEASES
from tests.parity import volume_orders
from tests.parity.kept import keep
from tests.parity.reference import Genuine, UnavailableError, program, version_of
from tests.parity.search import Search, search
from tests.parity.searches import option_parser, run_searches
from tests.strategies_whole import DEVICES, FEATURES


def main() -> int:
    """Run the searches for the number of examples, and print the results."""
    parser = option_parser("tests.parity", __doc__)
    parser.add_argument(
        "--version", action="append", choices=list(RELEASES), help=f"of kube-scheduler (default: {DEFAULT_VERSION})"
    )
    parser.add_argument("--all-versions", action="store_true", help="one after the other")
    parser.add_argument(
        "--feature", action="append", choices=(*FEATURES, DEVICES), default=[], help="that all scenarios have"
    )
    options = parser.parse_args()
    versions = list(RELEASES) if options.all_versions else options.version or [DEFAULT_VERSION]
    return max([_compare(options, version) for version in versions])


def _compare(options: argparse.Namespace, version: str) -> int:
    try:
        path = program("reference", version)
    except UnavailableError as reason:
        sys.stderr.write(f"parity: {version} is not compared: {reason}\n")
        return 2
    release = version_of(path)
    what = "scenarios" if version == DEFAULT_VERSION else f"scenarios for {release}"
    searcher = partial(_search, path, version, frozenset(options.feature))
    code = run_searches(options, searcher, partial(keep, version=release), what)
    if version == DEFAULT_VERSION:
        fewer = argparse.Namespace(**{**vars(options), "examples": -(-options.examples // 10)})
        search_orders = partial(volume_orders.volume_order_search, path)
        what = f"scenarios of equal volumes, each asked {volume_orders.TIMES} times,"
        code |= run_searches(fewer, search_orders, partial(volume_orders.keep, version=release), what)
    return code


def _search(path: Path, version: str, always: frozenset[str], examples: int, start: int) -> Search:
    with Genuine(path) as real:
        return search(real.answer, examples, start, version, always)


if __name__ == "__main__":
    sys.exit(main())
