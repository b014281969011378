"""Which moment of a recording is meant: a time, or just before a pod's scheduler decided on it."""

from __future__ import annotations

from datetime import datetime, timedelta

from kpreempt.errors import InputError, UsageError
from kpreempt.files import name_of
from kpreempt.model.event import PREEMPTED
from kpreempt.snapshot.decode import record_of
from kpreempt.snapshot.kinds import KINDS
from kpreempt.snapshot.recording.changes import What
from kpreempt.snapshot.recording.folder import segments_in
from kpreempt.snapshot.recording.past import Moment
from kpreempt.snapshot.recording.runs import runs_of
from kpreempt.snapshot.recording.segment import Segment
from kpreempt.verdict.verify import DecisionKind

_EXAMPLES = "--at 2026-11-21T03:12:00Z, or --at pod/NAMESPACE/NAME for just before its scheduler decided on it"
_RANK = {DecisionKind.REFUSED: 0, DecisionKind.BOUND: 1, DecisionKind.NOMINATED: 2}


def moment_of(folder: str, text: str | None) -> Moment:
    """The moment that ``--at`` says; the end of the recording for ``None``.

    Raises ``UsageError`` for a text that says none, ``InputError`` where the recording has no such decision.
    """
    if text is None:
        return Moment()
    if text.startswith("pod/"):
        namespace, slash, name = text.removeprefix("pod/").partition("/")
        if not slash or not namespace or not name:
            raise UsageError(f"--at: {text[:300]!r} is not a pod with its namespace", hint=_EXAMPLES)
        return _before_decision(folder, namespace, name)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise UsageError(f"--at: {text[:300]!r} is not a time with its zone", hint=_EXAMPLES)
    return Moment(time)


def time_of_eviction(folder: str, namespace: str, name: str) -> str | None:
    """The time at which the recording has the last event about the eviction of a pod, as ``moment_of`` takes it.

    ``None`` where it has none. Raises ``InputError``.
    """
    found = None
    for path in segments_in(folder):
        for change in Segment(path).changes():
            if change.kind == "Event" and change.what in (What.ADDED, What.MODIFIED):
                event = record_of(KINDS["Event"], change.object)
                if event.reason == PREEMPTED and event.subject.key == f"{namespace}/{name}":
                    found = change.seen
    return found.isoformat() if found is not None else None


def _before_decision(folder: str, namespace: str, name: str) -> Moment:
    """Just before the last decision that nominated the pod, else that bound it, else that refused it."""
    key = f"{namespace}/{name}"
    traces = [trace for run in runs_of(folder) for trace in run.traces if trace.decision.pod == key]
    if not traces:
        raise InputError(f"has no decision of a scheduler about pod {key}", source=name_of(folder))
    last = max(traces, key=lambda trace: (_RANK[trace.decision.decision], trace.written))
    # What was seen up to then is what was seen before it.
    return Moment(last.seen - timedelta(microseconds=1), last.version - 1)
