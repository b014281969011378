"""Durations as configurations write them (``1h15m30.5s``) and as messages show them, like Go's ``time`` package."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
SECOND = _UNITS["s"]
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)", re.ASCII)
_MAX_LENGTH = 200


def parse_duration(text: str) -> int | None:
    """Parse a duration into nanoseconds; ``None`` for invalid text."""
    if len(text) > _MAX_LENGTH or not _WHOLE.fullmatch(text):
        return None
    nanoseconds = sum(int(Fraction(f"0{number}") * _UNITS[unit]) for number, unit in _PART.findall(text))
    if nanoseconds >= 2**63:
        return None
    return -nanoseconds if text.startswith("-") else nanoseconds


def go_seconds(seconds: int) -> timedelta:
    """Compute Go's ``time.Duration(seconds) * time.Second``: more than 292 years wrap around in 64 bits."""
    return timedelta(microseconds=((seconds * SECOND + 2**63) % 2**64 - 2**63) // 1000)


def format_duration(nanoseconds: int) -> str:
    """Format a duration as hours, minutes and seconds, or with one smaller unit below a second."""
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if rest < SECOND:
        for unit in ("ms", "µs", "ns"):
            if rest >= _UNITS[unit]:
                return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
        return "0s"
    hours, rest = divmod(rest, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    seconds = f"{_decimal(rest, SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    digits = str(fraction).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
