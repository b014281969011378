"""Spans of time as kubectl prints ages: two units at most, coarser the longer.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/duration`` ``HumanDuration``.
"""

from __future__ import annotations

from datetime import UTC, datetime

from kpreempt.model.cluster import REDACTED_AT

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY
# What is younger than that counts as of this moment.
_JUST_NOW = 10
# Up to how many seconds: the unit, and the smaller unit that is shown beside it.
_STEPS = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def format_duration(seconds: int) -> str:
    """``45s``, ``5m10s``, ``3h``, ``2d4h``, ``12d``; a negative span is shown as ``0s``."""
    seconds = max(seconds, 0)
    for limit, (size, unit), smaller in _STEPS:
        if seconds >= limit:
            continue
        whole, rest = divmod(seconds, size)
        if smaller and (part := rest // smaller[0]):
            return f"{whole}{unit}{part}{smaller[1]}"
        return f"{whole}{unit}"
    return f"{seconds // _YEAR}y"


def format_reading(seconds: int) -> str:
    """How long ago something was read: ``read just now``, ``read 3h ago``."""
    return f"read {format_duration(seconds)} ago" if seconds >= _JUST_NOW else "read just now"


def format_snapshot(taken_at: datetime | None) -> str:
    """The snapshot of a time; of a redacted one nobody knows which."""
    if taken_at is None:
        return "snapshot"
    return "redacted snapshot" if taken_at == REDACTED_AT else f"snapshot of {format_time(taken_at)}"


def format_time(time: datetime) -> str:
    """A point in time in UTC, to the second."""
    return _in_utc(time).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_since(start: datetime | None, now: datetime | None) -> str:
    """How long ago ``start`` was; the time itself where ``now`` is unknown or earlier, a dash where there is none."""
    if start is None:
        return "-"
    if now is None or (seconds := int((_in_utc(now) - _in_utc(start)).total_seconds())) < 0:
        return f"since {format_time(start)}"
    return format_duration(seconds)


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
