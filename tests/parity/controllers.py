"""Compare our controllers' next actions with those of the real ones: ``python -m tests.parity.controllers``.

Exit code 1 if they differ; the first differing states are printed with both results. Exit code 2 if the program with
the real controllers cannot be built.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from tests.parity.controllers_search import DRAWS, ControllerSearch, controller_search
from tests.parity.reference import Reference, UnavailableError, program

MAX_SHOWN = 3


def main() -> int:
    """Draw states of each controller for the number of examples, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.controllers", description=__doc__)
    parser.add_argument("--examples", type=int, default=2000, help="states to draw of each (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="where to start from (default: 1)")
    parser.add_argument("--controller", choices=DRAWS, action="append", help="this one only, repeatable")
    options = parser.parse_args()
    try:
        real = Reference(program("controllers"))
    except UnavailableError as reason:
        sys.stderr.write(f"parity: {reason}\n")
        return 2
    begun = time.monotonic()
    try:
        names = options.controller or DRAWS
        searches = [controller_search(real.ask, name, options.examples, options.seed) for name in names]
    finally:
        real.close()
    return _report(searches, options.seed, time.monotonic() - begun)


def _report(searches: list[ControllerSearch], seed: int, seconds: float) -> int:
    count = sum(each.examples for each in searches)
    lines = [f"parity: {count} states from seed {seed} in {seconds:.0f} s"]
    for each in searches:
        outcomes = ", ".join(f"{number} {outcome}" for outcome, number in each.outcomes.most_common())
        lines.append(f"  {each.controller}: {outcomes}")
    for each in searches:
        for request, compared in each.differences[:MAX_SHOWN]:
            lines += [
                f"difference: {json.dumps(request)}",
                f"  real: {compared.real}",
                f"  ours:    {compared.ours}",
            ]
    differences = sum(len(each.differences) for each in searches)
    lines.append(f"{differences} differences" if differences else "no difference")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
