"""Formats names and numbers for sentences."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 3


def some_of(names: Sequence[str]) -> str:
    """``a, b, c, 4 more``."""
    rest = len(names) - _SHOWN
    return ", ".join([*names[:_SHOWN], *([f"{rest:,} more"] if rest > 0 else [])])


def counted(number: int, noun: str) -> str:
    """``1 pod``, ``1,189 pods``."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
