"""``python -m tests.fuzz [--cases N] [--seed SEED] [--only NUMBER]``: mutated input for every command."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.cases import case_of
from tests.fuzz.run import run_case, run_cases


def main() -> int:
    """Print how the cases ended; return 1 if one did not end as it should."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this case alone, and print all of it")
    arguments = parser.parse_args()
    if arguments.only is not None:
        case = case_of(arguments.seed, arguments.only)
        outcome = run_case(case)
        print(case.words, {name: content[:3000] for name, content in case.files.items()}, case.stdin[:3000], sep="\n")
        print(outcome.code, outcome.problems, outcome.stderr, sep="\n")
        return bool(outcome.problems)
    codes, wrong = run_cases(arguments.seed, range(arguments.cases))
    for number, outcome in wrong.items():
        print(f"case {number}: {'; '.join(outcome.problems)}\n{outcome.stderr[-600:]!a}")
    counts = ", ".join(f"{code}: {count:,}" for code, count in sorted(codes.items()))
    print(f"seed {arguments.seed}, {arguments.cases:,} cases; exit codes {counts}; {len(wrong):,} with problems")
    return bool(wrong)


sys.exit(main())
