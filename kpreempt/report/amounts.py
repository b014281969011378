"""Format amounts for people: resources with units, counts with the right plural, and durations.

Amounts are exact or marked with ``~``; nothing is rounded silently. Durations look like kubectl's ages: at most two
units, coarser for longer durations (``HumanDuration`` in ``pkg/util/duration`` of ``k8s.io/apimachinery`` v0.36.3).
"""

from __future__ import annotations

from datetime import UTC, datetime

from kpreempt.model.cluster import REDACTED_AT

_BINARY_UNITS = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
_DECIMAL_UNITS = ("E", "P", "T", "G", "M", "k")
# Whole numbers with at most this many digits are never converted to another unit.
_EASY_DIGITS = 3
# Longer numbers are rounded and marked if no unit shows them with at most this many digits.
_MAX_BINARY_DIGITS = 5
_MAX_DECIMAL_DIGITS = 4
_IRREGULAR_VERBS = {
    "is": "are",
    "has": "have",
    "was": "were",
    "goes": "go",
    "matches": "match",
    "does": "do",
    "its": "their",
}


def is_bytes(resource: str) -> bool:
    """Whether amounts of the resource are bytes; CPU is in milli-CPU and all others are units."""
    return resource in ("memory", "ephemeral-storage", "storage") or resource.startswith("hugepages-")


def format_amount(resource: str, amount: int, *, exact: bool = False) -> str:
    """Format an amount, given in the verdict's unit for the resource, as a quantity: ``500m``, ``1.5``, ``16000Mi``.

    Bytes that are not short in any unit are rounded and marked (``~15.6Gi``), unless ``exact``.
    """
    if amount < 0:
        return f"-{format_amount(resource, -amount, exact=exact)}"
    if resource == "cpu":
        if amount < 1000:
            return f"{amount}m" if amount else "0"
        whole, rest = divmod(amount, 1000)
        return f"{whole:,}" + (f".{rest:03}".rstrip("0") if rest else "")
    return _format_bytes(amount, exact=exact) if is_bytes(resource) else f"{amount:,}"


def _format_bytes(amount: int, *, exact: bool) -> str:
    if not amount:
        return "0"
    number, unit = _whole_units(amount, 1024, _BINARY_UNITS)
    if len(number) <= _EASY_DIGITS:
        return number + unit
    if short := _with_decimals(amount):
        return short
    if len(number) <= _MAX_BINARY_DIGITS:
        return number + unit
    decimal_number, decimal_unit = _whole_units(amount, 1000, _DECIMAL_UNITS)
    if len(decimal_number) <= _MAX_DECIMAL_DIGITS:
        return decimal_number + decimal_unit
    return min(number + unit, decimal_number + decimal_unit, key=len) if exact else _round_bytes(amount)


def _whole_units(amount: int, base: int, units: tuple[str, ...]) -> tuple[str, str]:
    """The amount in the largest unit that divides it."""
    for index, unit in enumerate(units):
        number, rest = divmod(amount, base ** (len(units) - index))
        if not rest:
            return str(number), unit
    return str(amount), ""


def _largest_unit(amount: int) -> tuple[int, str]:
    """The size and name of the largest binary unit that the amount reaches."""
    for index, unit in enumerate(_BINARY_UNITS):
        size: int = 1024 ** (len(_BINARY_UNITS) - index)
        if amount >= size:
            return size, unit
    return 1, ""


def _with_decimals(amount: int) -> str:
    """The amount in its largest unit if two decimals show it exactly, else an empty text."""
    size, unit = _largest_unit(amount)
    hundredths, rest = divmod(amount * 100, size)
    return "" if rest else f"{_decimal(hundredths)}{unit}"


def _round_bytes(amount: int) -> str:
    """Round to about three digits, marked with ``~``."""
    size, unit = _largest_unit(amount)
    precision = 100 if amount < 10 * size else 10 if amount < 100 * size else 1
    return f"~{_decimal((amount * precision + size // 2) // size * (100 // precision))}{unit}"


def _decimal(hundredths: int) -> str:
    whole, rest = divmod(hundredths, 100)
    return f"{whole}.{rest:02}".rstrip("0").rstrip(".") if rest else str(whole)


def count(number: int, noun: str) -> str:
    """A number with its noun: ``1 node``, ``1,189 nodes``."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def name_all(nodes: int) -> str:
    """``both nodes``, ``all 5 nodes``."""
    return "both nodes" if nodes == 2 else f"all {count(nodes, 'node')}"


def plural(noun: str) -> str:
    """The plural of a noun."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def agree(number: int, verb: str) -> str:
    """Conjugate a verb for ``number`` things: ``agree(1, "is")`` is ``is``, ``agree(2, "is")`` is ``are``."""
    return verb if number == 1 else _IRREGULAR_VERBS.get(verb, verb.removesuffix("s"))


def format_lowest_priority(anywhere: int | None, on_node: int | None) -> str:
    """``11`` if a pod that may schedule anywhere evicts the pod, ``(11)`` if only one pinned to its node does."""
    if anywhere is None:
        return "" if on_node is None else f"({on_node:,})"
    return f"{anywhere:,}" if on_node in (None, anywhere) else f"{anywhere:,} ({on_node:,})"


_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY
# Seconds; anything younger counts as just now.
_JUST_NOW = 10
# Upper limit in seconds, the unit, and the smaller unit shown with it.
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
    """A snapshot with its time; the time of a redacted snapshot is unknown."""
    if taken_at is None:
        return "snapshot"
    return "redacted snapshot" if taken_at == REDACTED_AT else f"snapshot of {format_time(taken_at)}"


def format_time(time: datetime) -> str:
    """A point in time in UTC, to the second."""
    return _in_utc(time).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_since(start: datetime | None, now: datetime | None) -> str:
    """How long ago ``start`` was; the time itself if ``now`` is unknown or earlier, and a dash if ``start`` is."""
    if start is None:
        return "-"
    if now is None or (seconds := int((_in_utc(now) - _in_utc(start)).total_seconds())) < 0:
        return f"since {format_time(start)}"
    return format_duration(seconds)


def ago(time: datetime | None, now: datetime | None) -> str:
    """`` 4m ago``; `` at 2026-...`` if ``now`` is unknown or earlier, and nothing if the time is unknown."""
    since = "" if time is None else f" {format_since(time, now)}"
    return since.replace(" since ", " at ") if since.startswith(" since ") else since and f"{since} ago"


def so_long(start: datetime | None, now: datetime | None) -> str:
    """`` for 4m``; `` since 2026-...`` if ``now`` is unknown or earlier, and nothing if the start is unknown."""
    since = "" if start is None else f" {format_since(start, now)}"
    return since if not since or since.startswith(" since ") else f" for{since}"


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
