"""The scheduling queue of a cluster, in order, and after events."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.algorithms import has_queue, one_by_one
from kpreempt.analysis.queue.cluster import EventKind, QueueEvent, TimedEvent
from kpreempt.analysis.queue.state import scheduling_queue
from kpreempt.errors import InputError, UsageError
from kpreempt.library.schedulers import Answered, Context
from kpreempt.scheduler_table import QUEUE_ALGORITHMS
from kpreempt.snapshot.decode import object_decoder
from kpreempt.snapshot.manifest import ManifestObject

if TYPE_CHECKING:
    from kpreempt.library.requests import Queue


def queue(context: Context, request: Queue) -> Answered:
    """Return the queue, and what the events do to it. Raises ``UsageError`` and ``InputError``."""
    scheduler = context.configured.scheduler
    check_modeled(scheduler.algorithm)
    found = scheduling_queue(
        context.of(context.loaded.cluster),
        timed_events(request.records, context.at),
        object_decoder(scheduler.extra_fields),
        spread=context.spread or one_by_one,
    )
    return Answered(found, context.loaded.cluster)


def check_modeled(algorithm: str) -> None:
    """Raise ``UsageError`` for an algorithm whose queue is not modeled."""
    if not has_queue(algorithm):
        raise UsageError(f"the queue of algorithm {algorithm!r} is not modeled", hint=", ".join(QUEUE_ALGORITHMS))


_AFTER = re.compile(r"\+(\d+(?:\.\d+)?)(ms|s|m|h)?")
_YEARS = range(1970, 9000)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, None: 1}


def timed_events(records: Iterable[ManifestObject], start: datetime) -> list[TimedEvent]:
    """Parse the events in records, in order; the time of the first counts from ``start``.

    Raises ``InputError``, also if time goes backwards.
    """
    events: list[TimedEvent] = []
    for record in records:
        before = events[-1].time if events else start
        try:
            event = msgspec.convert(record.document, QueueEvent)
        except msgspec.ValidationError as error:
            problem, _, field = str(error).partition(" - at `$.")
            field = field.rstrip("`")
            hint = ", ".join(EventKind) if field == "event" else ""
            raise _bad(record, f"{problem[:1].lower()}{problem[1:]}", path=field, hint=hint) from None
        time = _time_of(event.time, before, record)
        if events and time < before:
            raise _bad(record, f"is earlier than the event before it ({before.isoformat()})", path="time")
        events.append(TimedEvent(event, time, record.source, record.line))
        events[-1].check()
    return events


def _time_of(text: str, before: datetime, record: ManifestObject) -> datetime:
    """Parse a time: RFC 3339, or relative to the previous event."""
    if not text:
        return before
    time: datetime | None
    try:
        if after := _AFTER.fullmatch(text):
            time = before + timedelta(seconds=float(after[1]) * _SECONDS[after[2]])
        else:
            time = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        time = None
    # Queues add durations to times, which must stay within the range of a time.
    if time is None or time.tzinfo is None or time.year not in _YEARS:
        raise _bad(record, f"{text!r} is not a time", path="time", hint="2026-11-21T03:12:00Z or +5s")
    return time


def _bad(record: ManifestObject, problem: str, *, path: str, hint: str = "") -> InputError:
    return InputError(problem, source=record.source, line=record.line, object_name="event", path=path, hint=hint)
