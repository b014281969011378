"""Parts of moments and durations, as in cel-go v0.26.0 ``common/stdlib``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone, tzinfo

from kpreempt.cel.functions import declare
from kpreempt.cel.libraries.time_texts import civil
from kpreempt.cel.values import SECOND, Duration, Failure, Timestamp, Value

# What a year is on average, over 400 of them.
_YEAR = 146097 * 24 * 3600 * SECOND // 400
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def _quotient(unit: int) -> Callable[[Duration], int]:
    def run(duration: Duration) -> int:
        whole = abs(duration.nanoseconds) // unit
        return whole if duration.nanoseconds >= 0 else -whole

    return run


def _zone(name: str) -> tzinfo | int | Failure:
    """A zone, or the seconds east of UTC."""
    if ":" not in name:
        return _named_zone(name)
    hours, minutes = name.split(":", 1)
    for part in (hours, minutes):
        if not _NUMBER.fullmatch(part):
            return Failure(f'strconv.Atoi: parsing "{part}": invalid syntax')
    offset = int(hours) * 60 + (-int(minutes) if name[0] == "-" else int(minutes))
    return offset * 60


def _named_zone(name: str) -> tzinfo | Failure:
    if name in ("", "UTC"):
        return timezone.utc  # noqa: UP017
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return Failure(f"unknown time zone {name}")


def _part(of: Callable[[datetime], int]) -> Callable[..., Value]:
    def run(moment: Timestamp, zone: str = "") -> Value:
        found = _zone(zone)
        if isinstance(found, Failure):
            return found
        try:
            return of(_clock(moment, found))
        except OverflowError:
            # Python's clock ends with the year 9999, and begins with 1: the calendar is the same 400 years away.
            away = -400 if moment.nanoseconds > 0 else 400
            moved = Timestamp(moment.nanoseconds + away * _YEAR, moment.offset)
            return of(_clock(moved, found)) - (away if of is _year else 0)

    return run


def _clock(moment: Timestamp, zone: tzinfo | int) -> datetime:
    if isinstance(zone, int):
        return civil(moment, zone)
    return civil(moment, 0).replace(tzinfo=timezone.utc).astimezone(zone)  # noqa: UP017


def _year(clock: datetime) -> int:
    return clock.year


def _milliseconds(moment: Timestamp, zone: str = "") -> Value:
    found = _zone(zone)
    return found if type(found) is Failure else moment.nanoseconds % SECOND // 1_000_000


_PARTS: dict[str, Callable[..., Value]] = {
    "getFullYear": _part(_year),
    "getMonth": _part(lambda clock: clock.month - 1),
    "getDate": _part(lambda clock: clock.day),
    "getDayOfMonth": _part(lambda clock: clock.day - 1),
    "getDayOfWeek": _part(lambda clock: clock.isoweekday() % 7),
    "getDayOfYear": _part(lambda clock: clock.timetuple().tm_yday - 1),
    "getHours": _part(lambda clock: clock.hour),
    "getMinutes": _part(lambda clock: clock.minute),
    "getSeconds": _part(lambda clock: clock.second),
    "getMilliseconds": _milliseconds,
}
for _name, _run in _PARTS.items():
    declare(_name, "timestamp.() -> int", _run)
    declare(_name, "timestamp.(string) -> int", _run)
declare("getHours", "duration.() -> int", _quotient(3600 * SECOND))
declare("getMinutes", "duration.() -> int", _quotient(60 * SECOND))
declare("getSeconds", "duration.() -> int", _quotient(SECOND))
declare("getMilliseconds", "duration.() -> int", _quotient(1_000_000))
