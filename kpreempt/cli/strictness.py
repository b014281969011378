"""What ``--strict`` fails for, and what no gate passes over."""

from __future__ import annotations

from collections.abc import Collection

from kpreempt.cli.process import EXIT_GATE, complain
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.records import FEATURE_GATE, SETTING_NOT_MODELLED
from kpreempt.verdict.unread import LIST


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


def is_unfounded(assumptions: Collection[Assumption], option: str) -> bool:
    """Whether an answer lacks the ground on which ``option`` could let something pass.

    That is where a kind that matters could not be read, or a feature gate is set of which nothing is modelled. Says on
    standard error which is the first.
    """
    lacking = [each for each in assumptions if _takes_the_ground(each)]
    if not lacking:
        return False
    first = min(lacking, key=lambda each: (each.subject, each.field))
    others = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    what = f"{first.subject}: {first.field}" if first.field != LIST else first.subject
    complain(f"{option}: the answer is not certain: {what}: {first.message}{others}")
    return True


def _takes_the_ground(assumption: Assumption) -> bool:
    if assumption.kind is AssumptionKind.UNREADABLE:
        return True
    return assumption.field.startswith(FEATURE_GATE) and assumption.message == SETTING_NOT_MODELLED
