"""``kpreempt queue``: the scheduling queue, in its order, and what would move its pods; and files of such events."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.algorithms import AUTO, has_queue, is_kube_algorithm, queue_for
from kpreempt.analysis.pending.states import max_backoff_of
from kpreempt.analysis.queue.cluster import EventKind, QueueEvent, TimedEvent
from kpreempt.analysis.queue.state import QueueQuestion, scheduling_queue
from kpreempt.cli.clusters import standard_input
from kpreempt.cli.requests import QueueRequest
from kpreempt.cli.runner import Run
from kpreempt.cli.workers import Spread
from kpreempt.errors import InputError, UsageError
from kpreempt.library.reading import LoadedCluster
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.durations import go_seconds
from kpreempt.scheduler_table import QUEUE_ALGORITHMS
from kpreempt.snapshot.archives import Intake
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.decode import object_decoder
from kpreempt.snapshot.manifest import ManifestObject, read_plain_records

if TYPE_CHECKING:
    from kpreempt.library.schedulers import ConfiguredScheduler
    from kpreempt.schedulers.interface import QueueRules
    from kpreempt.schedulers.queues import SchedulingQueue


def queue(request: QueueRequest) -> int:
    """Answer the request, and return the exit code."""
    named = request.algorithm or AUTO
    if named != AUTO:
        _check_modelled(named)
    run = Run(request)
    asked = run.read_scheduler()
    now = run.now()
    # The cluster; an empty one where only events are given.
    if request.events and not request.snapshots and not request.connection.given():
        loaded = LoadedCluster(ClusterSnapshot(), [])
    else:
        loaded = run.load(run.connect(), Needs(wanted=asked.wanted, with_events=True))
    configured = asked.on(loaded.cluster)
    scheduler = configured.scheduler
    algorithm = scheduler.algorithm
    _check_modelled(algorithm)
    at = run.time_of(loaded.cluster, now)
    question = QueueQuestion(
        algorithm=algorithm,
        make=partial(_make, algorithm, configured),
        scheduler_names=scheduler.scheduler_names,
        # No other queue asks which plugins refused a pod.
        scheduler=scheduler if is_kube_algorithm(algorithm) else None,
        at=at,
    )
    answer = scheduling_queue(
        loaded.cluster,
        question,
        # Read after the cluster, whose time is that of a first event which says none.
        read_events(request.events, at, request.intake) if request.events else [],
        object_decoder(scheduler.wanted),
        assumptions=[*configured.assumptions, *loaded.assumptions],
        spread=Spread(run.stopwatch, request.jobs),
        phases=run.stopwatch,
    )
    run.write_once(answer, answer.at)
    return run.exit_code(answer.assumptions)


def _check_modelled(algorithm: str) -> None:
    """Raise ``UsageError`` for an algorithm whose queue is not modelled."""
    if not has_queue(algorithm):
        raise UsageError(f"the queue of algorithm {algorithm!r} is not modelled", hint=", ".join(QUEUE_ALGORITHMS))


def _make(algorithm: str, configured: ConfiguredScheduler, started: datetime, rules: QueueRules) -> SchedulingQueue:
    initial = (configured.configuration or {}).get("podInitialBackoffSeconds")
    return queue_for(
        algorithm,
        started,
        feature_gates=configured.feature_gates,
        initial_backoff=go_seconds(initial if isinstance(initial, int) and initial > 0 else 1),
        max_backoff=max_backoff_of(configured.configuration),
        rules=rules,
    )


_AFTER = re.compile(r"\+(\d+(?:\.\d+)?)(ms|s|m|h)?")
_YEARS = range(1970, 9000)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, None: 1}


def read_events(path: str, start: datetime, intake: Intake) -> list[TimedEvent]:
    """The events of a file (``-``: standard input) in their order; the first counts from ``start``.

    Raises ``InputError``, also where time goes back.
    """
    events: list[TimedEvent] = []
    for record in read_plain_records(path, stdin=standard_input() if path == "-" else None, intake=intake):
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
