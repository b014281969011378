"""Files of events: JSON lines or YAML to events at their times."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import msgspec

from kpreempt.analysis.queue.cluster import EventKind, QueueEvent, TimedEvent
from kpreempt.cli.clusters import standard_input
from kpreempt.errors import InputError
from kpreempt.snapshot import ManifestObject, read_plain_records
from kpreempt.snapshot.archives import Intake

_AFTER = re.compile(r"\+(\d+(?:\.\d+)?)(ms|s|m|h)?")
_YEARS = range(1970, 9000)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, None: 1}


def read_events(path: str, start: datetime, intake: Intake) -> list[TimedEvent]:
    """The events of a file (``-``: standard input) in their order; the first counts from ``start``.

    Raises ``InputError``, also where time goes back.
    """
    events: list[TimedEvent] = []
    stdin = standard_input() if path == "-" else None
    for record in read_plain_records(path, stdin=stdin, intake=intake):
        before = events[-1].time if events else start
        event = _decoded(record)
        time = _time_of(event.time, before, record)
        if events and time < before:
            raise _bad(record, f"is earlier than the event before it ({before.isoformat()})", path="time")
        events.append(TimedEvent(event, time, record.source, record.line))
        events[-1].check()
    return events


def _decoded(record: ManifestObject) -> QueueEvent:
    try:
        return msgspec.convert(record.document, QueueEvent)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$.")
        path = path.rstrip("`")
        hint = ", ".join(EventKind) if path == "event" else ""
        raise _bad(record, f"{problem[:1].lower()}{problem[1:]}", path=path, hint=hint) from None


def _time_of(text: str, before: datetime, record: ManifestObject) -> datetime:
    """The time that a text means: RFC 3339, or so long after the event before."""
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
    # Queues compute with times, which must not leave what a time can hold.
    if time is None or time.tzinfo is None or time.year not in _YEARS:
        raise _bad(record, f"{text!r} is no time", path="time", hint="2026-11-21T03:12:00Z or +5s")
    return time


def _bad(record: ManifestObject, problem: str, *, path: str, hint: str = "") -> InputError:
    return InputError(problem, source=record.source, line=record.line, object_name="event", path=path, hint=hint)
