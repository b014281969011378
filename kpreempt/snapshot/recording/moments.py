"""Which moment of a recording is meant: a time, or just before a pod's scheduler decided on it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from kpreempt.errors import InputError, UsageError
from kpreempt.files import name_of
from kpreempt.model.event import PREEMPTED, PREEMPTED_TEXT, Event
from kpreempt.snapshot.decode import decoder_of
from kpreempt.snapshot.recording.changes import OBJECT_CHANGES, Change, What
from kpreempt.snapshot.recording.folder import segments_in
from kpreempt.snapshot.recording.past import Moment
from kpreempt.snapshot.recording.pods import PodLine, pod_line
from kpreempt.snapshot.recording.segment import Segment

_EXAMPLES = "--at 2026-11-21T03:12:00Z, or --at pod/NAMESPACE/NAME for just before its scheduler decided on it"
# The scheduler marks its victims before the preemptor's nomination is written, or after it.
_EVICTION = timedelta(seconds=60)
_EVENT = decoder_of(Event)


class _Decision(NamedTuple):
    """What a scheduler decided on a pod: the change that tells it, and how the pod was after it."""

    change: Change
    pod: PodLine
    is_preemption: bool


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
            if change.kind == "Event" and change.what is not What.DELETED:
                event = _EVENT.decode(change.object)
                if event.reason == PREEMPTED and event.subject.key == f"{namespace}/{name}":
                    found = change.seen
    return found.isoformat() if found is not None else None


def _before_decision(folder: str, namespace: str, name: str) -> Moment:
    """Just before the last decision that nominated the pod, else that bound it, else that refused it."""
    decisions = []
    before: PodLine | None = None
    segments = [Segment(path) for path in segments_in(folder)]
    for segment in segments:
        for change in segment.changes():
            if (change.kind, change.namespace, change.name) != ("Pod", namespace, name):
                continue
            pod = None if change.what is What.DELETED else pod_line(change.object)
            if pod is not None and _is_decision(before, pod):
                nominated = pod.status.nominated_node_name
                is_new = nominated and (before is None or before.status.nominated_node_name != nominated)
                decisions.append(_Decision(change, pod, bool(is_new)))
            before = pod
    if not decisions:
        raise InputError(f"has no decision of a scheduler about pod {namespace}/{name}", source=name_of(folder))
    preemptions = [each for each in decisions if each.is_preemption]
    bound = [each for each in decisions if each.pod.spec.node_name]
    decision = (preemptions or bound or decisions)[-1]
    version, seen = decision.change.version, decision.change.seen
    for change in _evictions(segments, decision) if decision.is_preemption else ():
        version, seen = min((version, seen), (change.version, change.seen))
    # What was seen up to then is what was seen before it.
    return Moment(seen - timedelta(microseconds=1), version - 1)


def _is_decision(before: PodLine | None, pod: PodLine) -> bool:
    if before is not None and before.metadata.uid != pod.metadata.uid:
        before = None
    if pod.spec.node_name:
        return before is not None and not before.spec.node_name
    if before is None:
        return False
    is_nominated = pod.status.nominated_node_name not in ("", before.status.nominated_node_name)
    return is_nominated or pod.refusal not in ("", before.refusal)


def _evictions(segments: list[Segment], decision: _Decision) -> list[Change]:
    """The first change of each pod that was evicted for the one that was nominated."""
    around = [
        change
        for segment in segments
        for change in segment.changes()
        if abs(change.seen - decision.change.seen) <= _EVICTION and change.what in OBJECT_CHANGES
    ]
    events = [_EVENT.decode(each.object) for each in around if each.kind == "Event" and each.what is not What.DELETED]
    victims = {event.subject.key for event in events if _is_eviction_for(event, decision.pod)}
    return [
        each for each in around if each.kind == "Pod" and f"{each.namespace}/{each.name}" in victims and _is_gone(each)
    ]


def _is_eviction_for(event: Event, pod: PodLine) -> bool:
    if event.reason != PREEMPTED:
        return False
    if event.related is not None and event.related.uid:
        return event.related.uid == pod.metadata.uid
    said = PREEMPTED_TEXT.fullmatch(event.text.strip())
    return said is not None and pod.metadata.uid in (said["uid"], said["bare_uid"])


def _is_gone(change: Change) -> bool:
    if change.what is What.DELETED:
        return True
    pod = pod_line(change.object)
    return pod.metadata.deletion_timestamp is not None or pod.condition("DisruptionTarget") is not None
