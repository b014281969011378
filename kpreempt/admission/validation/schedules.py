"""Validate the schedules and time zones of CronJobs.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/batch/validation/validation.go`` (``validateScheduleFormat``,
``validateTimeZone``) and ``github.com/robfig/cron/v3`` ``parser.go``. Each function returns why a value is invalid, or
an empty string. ``time_zones.txt`` has the names that the API server contains (``lib/time/zoneinfo.zip`` of Go).
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_MACROS = frozenset({"@annually", "@daily", "@hourly", "@midnight", "@monthly", "@weekly", "@yearly"})
_EVERY = "@every "
_DURATION = re.compile(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
# Longer numbers are out of range.
_NUMBER = re.compile(r"\+?0*[0-9]{1,18}")
_ZONE_PART = re.compile(r"[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,13}")
_ZONE_PREFIXES = ("TZ=", "CRON_TZ=")
# Other files and folders of time zones. The machine of an API server may have them.
_VARIANTS = ("localtime", "posix/", "posixrules", "right/")


class _Field(NamedTuple):
    least: int
    greatest: int
    names: Mapping[str, int]


def _names(text: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(text.split(), first)}


_FIELDS = (
    _Field(0, 59, {}),
    _Field(0, 23, {}),
    _Field(1, 31, {}),
    _Field(1, 12, _names("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Field(0, 6, _names("sun mon tue wed thu fri sat", 0)),
)


def schedule(text: str) -> str:
    """Check a schedule in the form of cron: five fields, or a macro. A time zone before them is skipped."""
    if text.startswith(_ZONE_PREFIXES):
        zone, space, text = text.partition(" ")
        name = zone.partition("=")[2]
        if not space:
            return "invalid schedule format: the schedule is missing"
        if name not in ("", "Local") and not _is_zone(name):
            return f"provided bad location {name}: unknown time zone {name}"
        text = text.strip()
    if text.startswith("@"):
        return _macro(text)
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    return _first(_list(each, field) for each, field in zip(fields, _FIELDS, strict=True))


def _macro(text: str) -> str:
    if text.startswith(_EVERY):
        duration = text.removeprefix(_EVERY)
        return "" if _DURATION.fullmatch(duration) else f"failed to parse duration {text}: invalid duration"
    return "" if text in _MACROS else f"unrecognized descriptor: {text}"


def _first(problems: Iterable[str]) -> str:
    return next(filter(None, problems), "")


def _list(text: str, field: _Field) -> str:
    """Check a list of ranges; empty ones are skipped."""
    return _first(_range(each, field) for each in text.split(",") if each)


def _range(text: str, field: _Field) -> str:
    bounds, *steps = text.split("/")
    low, *high = bounds.split("-")
    if low in ("*", "?"):
        start, end = field.least, field.greatest
    else:
        if len(high) > 1:
            return f"too many hyphens: {text}"
        limits = [_number(each, field.names) for each in (low, *high)]
        if problem := _first(each for each in limits if isinstance(each, str)):
            return problem
        start, end = int(limits[0]), int(limits[-1])
    if len(steps) > 1:
        return f"too many slashes: {text}"
    step = _number(steps[0], {}) if steps else 1
    if isinstance(step, str):
        return step
    if steps and not high:
        end = field.greatest
    return _bounds(start, end, step, text, field)


def _bounds(start: int, end: int, step: int, text: str, field: _Field) -> str:
    if start < field.least:
        return f"beginning of range ({start}) below minimum ({field.least}): {text}"
    if end > field.greatest:
        return f"end of range ({end}) above maximum ({field.greatest}): {text}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {text}"
    return "" if step else f"step of range should be a positive number: {text}"


def _number(text: str, names: Mapping[str, int]) -> int | str:
    """Return a number or the number of a name, or why it is neither."""
    known = names.get(text.lower())
    if known is not None:
        return known
    return (
        int(text.lstrip("+0") or 0) if _NUMBER.fullmatch(text) else f"failed to parse int from {text}: invalid syntax"
    )


def time_zone(name: str) -> str:
    """Check the name of a time zone."""
    if not name:
        return "timeZone must be nil or non-empty string"
    if name.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return "" if _is_zone(name) else f"unknown time zone {name}"


def _is_zone(name: str) -> bool:
    if not all(_ZONE_PART.fullmatch(each) and each not in (".", "..") for each in name.split("/")):
        return False
    # Zones may be newer than the known names, so those of this machine count, too.
    return name.startswith(_VARIANTS) or name in _known_zones() or name in zoneinfo.available_timezones()


@cache
def _known_zones() -> frozenset[str]:
    return frozenset((files(__package__) / "time_zones.txt").read_text(encoding="ascii").split())
