"""What ``--strict`` fails for."""

from __future__ import annotations

from collections.abc import Collection

from kpreempt.cli.process import complain
from kpreempt.verdict import Assumption


def rests_on(assumptions: Collection[Assumption]) -> bool:
    """Whether there are any assumptions; says on standard error which is the first."""
    if not assumptions:
        return False
    first = min(assumptions, key=lambda each: (each.subject, each.field))
    others = f", and {len(assumptions) - 1} more" if len(assumptions) > 1 else ""
    complain(f"--strict: the answer rests on an assumption: {first.subject}: {first.field}: {first.message}{others}")
    return True
