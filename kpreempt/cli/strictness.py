"""What ``--strict`` fails for."""

from __future__ import annotations

from collections.abc import Collection

from kpreempt.cli.process import EXIT_GATE, complain
from kpreempt.verdict import Assumption


def strict_exit_code(assumptions: Collection[Assumption], *, is_strict: bool) -> int:
    """``EXIT_GATE`` where an answer that is to be strict rests on assumptions, else 0.

    Says on standard error which is the first of them.
    """
    if not is_strict or not assumptions:
        return 0
    first = min(assumptions, key=lambda each: (each.subject, each.field))
    others = f", and {len(assumptions) - 1} more" if len(assumptions) > 1 else ""
    complain(f"--strict: the answer rests on an assumption: {first.subject}: {first.field}: {first.message}{others}")
    return EXIT_GATE
