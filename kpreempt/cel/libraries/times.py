"""Parts of timestamps and durations, like cel-go v0.26.0 ``common/stdlib``, and their text, like Go's ``time``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from functools import partial

from kpreempt.cel.functions import Overload, declare
from kpreempt.cel.values import SECOND, Duration, Failure, Timestamp, Value

# The average length of a year over 400 years.
_YEAR = 146097 * 24 * 3600 * SECOND // 400
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def _quotient(unit: int, duration: Duration) -> int:
    whole = abs(duration.nanoseconds) // unit
    return whole if duration.nanoseconds >= 0 else -whole


def _zone(name: str) -> tzinfo | int | Failure:
    """Return a time zone, or the offset from UTC in seconds."""
    if name in ("", "UTC"):
        return timezone.utc  # noqa: UP017
    if ":" not in name:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415

        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return Failure(f"unknown time zone {name}")
    hours, minutes = name.split(":", 1)
    for part in (hours, minutes):
        if not _NUMBER.fullmatch(part):
            return Failure(f'strconv.Atoi: parsing "{part}": invalid syntax')
    return (int(hours) * 60 + (-int(minutes) if name[0] == "-" else int(minutes))) * 60


def _part(part: str, moment: Timestamp, zone: str = "") -> Value:
    found = _zone(zone)
    if isinstance(found, Failure):
        return found
    if part == "getMilliseconds":
        return moment.nanoseconds % SECOND // 1_000_000
    try:
        return _PARTS[part](_clock(moment, found))
    except OverflowError:
        # Python's calendar covers the years 1 to 9999; it repeats every 400 years.
        away = -400 if moment.nanoseconds > 0 else 400
        moved = Timestamp(moment.nanoseconds + away * _YEAR, moment.offset)
        return _PARTS[part](_clock(moved, found)) - (away if part == "getFullYear" else 0)


def _clock(moment: Timestamp, zone: tzinfo | int) -> datetime:
    if isinstance(zone, int):
        return civil(moment, zone)
    return civil(moment, 0).replace(tzinfo=timezone.utc).astimezone(zone)  # noqa: UP017


_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda clock: clock.year,
    "getMonth": lambda clock: clock.month - 1,
    "getDate": lambda clock: clock.day,
    "getDayOfMonth": lambda clock: clock.day - 1,
    "getDayOfWeek": lambda clock: clock.isoweekday() % 7,
    "getDayOfYear": lambda clock: clock.timetuple().tm_yday - 1,
    "getHours": lambda clock: clock.hour,
    "getMinutes": lambda clock: clock.minute,
    "getSeconds": lambda clock: clock.second,
}
declare(
    *(
        Overload(_name, _signature, partial(_part, _name))
        for _name in (*_PARTS, "getMilliseconds")
        for _signature in ("timestamp.() -> int", "timestamp.(string) -> int")
    ),
    Overload("getHours", "duration.() -> int", partial(_quotient, 3600 * SECOND)),
    Overload("getMinutes", "duration.() -> int", partial(_quotient, 60 * SECOND)),
    Overload("getSeconds", "duration.() -> int", partial(_quotient, SECOND)),
    Overload("getMilliseconds", "duration.() -> int", partial(_quotient, 1_000_000)),
)


_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_PART = re.compile(r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_DURATION = re.compile(rf"([+-]?)(0|(?:{_PART.pattern})+)", re.ASCII)
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
_MAX_LENGTH = 1000


def parse_duration(text: str) -> int | None:
    """Parse a duration like ``1h30m`` to nanoseconds, or return ``None``."""
    match = _DURATION.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    total = 0
    for whole, fraction, only, unit in _PART.findall(match[2]):
        # Fractions are truncated, and digits beyond an int64 are ignored.
        digits = (fraction or only)[:18]
        total += int(whole or "0") * _UNITS[unit]
        total += int(float(int(digits or "0")) * (float(_UNITS[unit]) / 10 ** len(digits)))
    negative = match[1] == "-"
    if total > 2**63 - (0 if negative else 1):
        return None
    return -total if negative else total


def parse_timestamp(text: str) -> Timestamp | None:
    """Parse an RFC 3339 timestamp, or return ``None``."""
    match = _RFC3339.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    offset = 0
    if match[9]:
        hours, minutes = int(match[10]), int(match[11])
        if hours > 24 or minutes > 60:
            return None
        offset = (hours * 60 + minutes) * 60 * (-1 if match[9] == "-" else 1)
    # Python has no year 0, which is a leap year like 400.
    try:
        shifted = datetime(year or 400, month, day, hour, minute, second, tzinfo=_EPOCH.tzinfo) - _EPOCH
    except ValueError:
        return None
    seconds = shifted.days * 86400 + shifted.seconds - (146097 * 86400 if year == 0 else 0)
    fraction = int(((match[7] or "") + "0" * 9)[:9])
    return Timestamp((seconds - offset) * SECOND + fraction, offset)


def civil(moment: Timestamp, offset: int) -> datetime:
    """Return local time at an offset from UTC in seconds, truncated to microseconds.

    Raises ``OverflowError`` outside the years 1 to 9999.
    """
    return _EPOCH.replace(tzinfo=None) + timedelta(seconds=moment.nanoseconds // SECOND + offset)


def timestamp_text(moment: Timestamp) -> str:
    """Format as RFC 3339 with the necessary digits of a second, in the zone in which the timestamp was written."""
    try:
        clock = civil(moment, moment.offset)
    except OverflowError:
        clock = civil(moment, 0)
    text = f"{clock.year:04d}" + clock.strftime("-%m-%dT%H:%M:%S")
    fraction = f"{moment.nanoseconds % SECOND:09d}".rstrip("0")
    minutes = abs(moment.offset) // 60
    zone = f"{'-' if moment.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if moment.offset else "Z"
    return text + (f".{fraction}" if fraction else "") + zone
