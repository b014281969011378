"""The cluster of a recording at a point in time, from a base and the changes up to then; and a recording's contents.

A point in time is a resource version: versions count the changes of the whole store, so all kinds are consistent.
Events may be in a separate store, and are in the state that was seen. ``point_in_time`` resolves a time, or the state
just before a pod was scheduled.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, takewhile
from typing import NamedTuple

import msgspec

from kpreempt.errors import InputError, UsageError
from kpreempt.files import name_of
from kpreempt.model.cluster import REDACTED_AT, ClusterSnapshot, PodOrder
from kpreempt.model.event import PREEMPTED
from kpreempt.model.kinds import KINDS
from kpreempt.model.terminations import is_about_end, pod_deleted_by
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.batches import Batch
from kpreempt.snapshot.decode import record_of
from kpreempt.snapshot.recording.changes import OBJECT_CHANGES, Change, ChangeType, RecordedObjects
from kpreempt.snapshot.recording.orders import NodeOrders
from kpreempt.snapshot.recording.pods import observed_pod, pod_line
from kpreempt.snapshot.recording.recorder import ALIVE_SECONDS, follow
from kpreempt.snapshot.recording.runs import runs_of
from kpreempt.snapshot.recording.segments import Segment, began, object_name_of_line, segments_in
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import missing_permissions, unreadable_of
from kpreempt.verdict.verify import DecisionKind

# Watches of different kinds report simultaneous changes at different times.
LATE = timedelta(seconds=60)
# A running recording confirms that it is running more often than this.
SILENCE = timedelta(seconds=4 * ALIVE_SECONDS)
# Bindings usually take less than this.
_BINDING = timedelta(seconds=2)
_BATCH = 4096
_NAMES_SHOWN = 3
_EVENT = "Event"
_RECORDING_END = datetime.max.replace(tzinfo=UTC)


class PointInTime(NamedTuple):
    """A time, or the state just after a ``version`` was made. Without either, the end of the recording."""

    time: datetime = _RECORDING_END
    version: int | None = None

    @property
    def is_end(self) -> bool:
        """Whether it is the end of the recording."""
        return self.time == _RECORDING_END


class PastCluster(NamedTuple):
    """A cluster at ``time``, in batches like other sources, with what is known about the order of its pods."""

    batches: list[Batch]
    time: datetime
    assumptions: list[Assumption]
    orders: dict[str, PodOrder]


def state_before(folder: str, moment: PointInTime, input_limits: InputLimits) -> PastCluster:
    """Return the cluster at a point in time. Raises ``InputError`` if the recording does not cover it."""
    segments = _segments_for(folder, moment)
    state = _State(segments[0], input_limits)
    version = moment.version
    if version is None:
        first = takewhile(lambda each: each.seen <= moment.time, segments[0].changes())
        version = max((each.version for each in first if each.kind != _EVENT), default=segments[0].version)
        version = max(version, segments[0].version)
    last_seen = segments[0].end.taken_at
    for change in chain.from_iterable(each.changes() for each in segments):
        if not moment.is_end and change.seen > moment.time + LATE:
            break
        was_seen = change.seen <= moment.time
        if was_seen:
            last_seen = max(last_seen, change.seen)
        if was_seen if change.kind == _EVENT or not change.version else change.version <= version:
            state.apply(change)
        else:
            state.note_later(change, moment, version)
    time = last_seen if moment.is_end else moment.time
    assumptions = [*state.assumptions(), *_unwatched(folder, segments[0], last_seen, time)]
    return PastCluster(state.batches(name_of(folder), time), time, assumptions, state.pod_orders())


def _segments_for(folder: str, moment: PointInTime) -> list[Segment]:
    """Return the segment with the last base before then, and the next one, if nothing was missed in between."""
    paths = segments_in(folder)
    index = max((index for index, path in enumerate(paths) if began(path) <= moment.time), default=-1)
    if index < 0:
        raise InputError(f"the recording begins at {shown(began(paths[0]))}", source=name_of(folder))
    segment = Segment(paths[index])
    # Some kinds of a base may be later than the requested version.
    if moment.version is not None and index and segment.end.continues and segment.version > moment.version:
        return [Segment(paths[index - 1]), segment]
    follower = Segment(paths[index + 1]) if index + 1 < len(paths) else None
    return [segment, follower] if follower is not None and follower.end.continues else [segment]


class _State:
    """The cluster while changes are applied to it."""

    def __init__(self, segment: Segment, input_limits: InputLimits) -> None:
        self.header = segment.header
        self.current = RecordedObjects()
        self._orders = NodeOrders(segment.end.orders)
        self._holder = segment.end.holder
        self._unread: dict[str, int] = {}
        self._gaps: list[str] = []
        self._binding: dict[str, str] = {}
        for line in segment.base(input_limits):
            named = object_name_of_line(line)
            self.current[named.kind][named.key] = line
            if named.kind == "Pod":
                self._orders.add_existing(observed_pod(line))

    def apply(self, change: Change) -> None:
        """Apply a change."""
        self.current.apply(change)
        if change.kind == "Pod":
            follow(self._orders, change)
        elif change.what is ChangeType.SCHEDULER:
            self._holder = change.name
            self._orders.forget()
        if change.what is ChangeType.UNREAD:
            self._unread[change.kind] = change.status

    def note_later(self, change: Change, moment: PointInTime, version: int) -> None:
        """Use a later change for what it reveals about the requested time."""
        if change.what is ChangeType.GAP and change.since < version:
            self._gaps.append(change.kind)
        if change.kind == "Pod" and not moment.is_end and change.what is ChangeType.MODIFIED:
            known = self.current["Pod"].get((change.namespace, change.name))
            pod = pod_line(change.object)
            node, is_close = pod.spec.node_name, pod.has_claims or change.seen <= moment.time + _BINDING
            if is_close and known is not None and node and not pod_line(known).spec.node_name:
                self._binding[f"{change.namespace}/{change.name}"] = node

    def pod_orders(self) -> dict[str, PodOrder]:
        """Return the known orders of pods on nodes; empty if the scheduler is unknown."""
        if not self._holder:
            return {}
        return {
            node: PodOrder(tuple(each.places), frozenset(each.unplaced))
            for node, each in self._orders.known()
            if node not in self._binding.values()
        }

    def batches(self, name: str, time: datetime) -> list[Batch]:
        """Return the header, then the objects, with the header updated to what is known at ``time``."""
        header = msgspec.structs.replace(self.header, source=name)
        unread = {**(msgspec.json.decode(header.unread) if header.unread else {}), **self._unread}
        listed = [kind for kind in (msgspec.json.decode(header.listed) if header.listed else ()) if kind not in unread]
        header = msgspec.structs.replace(
            header,
            taken_at=time.isoformat(),
            unread=msgspec.json.encode(unread).decode() if unread else "",
            listed=msgspec.json.encode(listed).decode() if listed else "",
        )
        lines = list(self.current.lines())
        starts = range(0, len(lines), _BATCH)
        return [header, *(Batch(name, lines[start : start + _BATCH], lambda _: 0, is_own=True) for start in starts)]

    def assumptions(self) -> list[Assumption]:
        """List what is uncertain about the requested time."""
        found = [
            Assumption(
                kind,
                "recording",
                "its watch was interrupted around this time; some objects may be missing or have a later state",
                AssumptionKind.UNCERTAIN,
            )
            for kind in dict.fromkeys(self._gaps)
        ]
        if self._binding:
            names = ", ".join(list(self._binding)[:_NAMES_SHOWN]) + (", …" if len(self._binding) > _NAMES_SHOWN else "")
            message = f"bound soon after this time: {names}; the scheduler may already have assigned their nodes"
            found.append(Assumption("pods", "spec.nodeName", message, AssumptionKind.UNCERTAIN))
        return found


def _unwatched(folder: str, segment: Segment, last_seen: datetime, time: datetime) -> list[Assumption]:
    """Report that nothing was watched before then. Raises ``InputError`` for a time after the end of the recording."""
    if time - last_seen <= SILENCE and segment.damage is None:
        return []
    if time - last_seen > SILENCE and began(segments_in(folder)[-1]) <= time:
        raise InputError(f"the recording ends at {shown(last_seen)}", source=name_of(folder))
    if segment.damage is not None and segment.damage.is_torn and time - last_seen <= SILENCE:
        return []
    why = "is damaged" if segment.damage is not None and not segment.damage.is_torn else "has nothing"
    message = f"{why} after {shown(last_seen)}; later changes are unknown"
    return [Assumption("recording", segment.name, message, AssumptionKind.UNCERTAIN)]


def shown(time: datetime) -> str:
    """Format a time."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_EXAMPLES = "--at 2026-11-21T03:12:00Z, or --at pod/NAMESPACE/NAME for just before its scheduler decided on it"
_RANK = {DecisionKind.UNSCHEDULABLE: 0, DecisionKind.BOUND: 1, DecisionKind.NOMINATED: 2}


def point_in_time(folder: str, text: str | None) -> PointInTime:
    """Resolve the value of ``--at``; ``None`` is the end of the recording.

    Raises ``UsageError`` for an invalid value, ``InputError`` if the recording has no such decision.
    """
    if text is None:
        return PointInTime()
    if text.startswith("pod/"):
        namespace, slash, name = text.removeprefix("pod/").partition("/")
        if not slash or not namespace or not name:
            raise UsageError(f"--at: {text[:300]!r} is not a pod with its namespace", hint=_EXAMPLES)
        # Just before the last decision that nominated the pod, else that bound it, else that found it unschedulable.
        key = f"{namespace}/{name}"
        traces = [trace for run in runs_of(folder) for trace in run.traces if trace.decision.pod == key]
        if not traces:
            raise InputError(f"has no scheduling decision about pod {key}", source=name_of(folder))
        last = max(traces, key=lambda trace: (_RANK[trace.decision.decision], trace.written))
        # Everything seen up to then was seen before it.
        return PointInTime(last.seen_at - timedelta(microseconds=1), last.version - 1)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise UsageError(f"--at: {text[:300]!r} is not a time with a time zone", hint=_EXAMPLES)
    return PointInTime(time)


def namespaces_in(folder: str, kind: str, name: str) -> set[str]:
    """Return the namespaces in which a recording has, or once had, the object. Raises ``InputError``."""
    found = set()
    for path in segments_in(folder):
        segment = Segment(path)
        named = (object_name_of_line(line) for line in segment.base(InputLimits()))
        found |= {each.key[0] for each in named if each.kind == kind and each.key[1] == name}
        found |= {each.namespace for each in segment.changes() if (each.kind, each.name) == (kind, name)}
    return found


def time_of_eviction(folder: str, namespace: str, name: str) -> str | None:
    """Return when a recording last shows that a pod ends, as an argument for ``point_in_time``.

    That is the last state of the pod that ends, or the last event about its end if that is the scheduler's, or if the
    recording does not have the pod. ``None`` if nothing shows it. Raises ``InputError``.
    """
    key, found, exists = f"{namespace}/{name}", None, False
    for path in segments_in(folder):
        for change in Segment(path).changes():
            is_update = change.what in (ChangeType.ADDED, ChangeType.MODIFIED)
            if change.kind == "Pod" and (change.namespace, change.name) == (namespace, name):
                exists = is_update
                if is_update and pod_line(change.object).is_ending:
                    found = change.seen
            elif change.kind == _EVENT and is_update:
                event = record_of(KINDS[_EVENT], change.object)
                subject = pod_deleted_by(event) or event.subject.key
                if subject != key or not is_about_end(event):
                    continue
                if event.reason == PREEMPTED or exists or found is None:
                    found = change.seen
    return found.isoformat() if found is not None else None


class RecordingInfo(msgspec.Struct, frozen=True, kw_only=True):
    """``size`` is in bytes. ``gaps`` has the times between which nothing was watched, ``changes`` are by kind.

    ``missing`` are sentences about what could not be read when it began.
    """

    begins: datetime
    ends: datetime
    segments: int
    size: int
    changes: dict[str, int]
    gaps: list[tuple[datetime, datetime]]
    relisted: dict[str, int]
    unread: list[str]
    missing: list[str]
    damaged: list[str]

    def lines(self, folder: str) -> Iterator[str]:
        """Describe it in lines of text."""
        total = sum(self.changes.values())
        files = "1 segment" if self.segments == 1 else f"{self.segments:,} segments"
        how = "redacted, " if self.ends <= REDACTED_AT else ""
        units = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
        size = next((f"{self.size / factor:.1f} {unit}" for unit, factor in units if self.size >= factor), "")
        yield f"{name_of(folder)}: {how}{shown(self.begins)} to {shown(self.ends)}, {files}, {size or f'{self.size} B'}"
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.changes.items())
        yield f"  {total:,} change{'' if total == 1 else 's'}{': ' if kinds else ''}{kinds}"
        for begin, end in self.gaps:
            yield f"  nothing was watched from {shown(begin)} to {shown(end)}"
        for kind, count in self.relisted.items():
            yield f"  {kind} was listed again {'once' if count == 1 else f'{count:,} times'}: changes were missed"
        for kind in self.unread:
            yield f"  {kind} could not be read"
        yield from (f"  {each}" for each in self.missing)
        yield from (f"  {each}" for each in self.damaged)


def missing_from(cluster: ClusterSnapshot) -> Iterator[str]:
    """Yield sentences with the permissions that a recording of the cluster lacks, and what it does not answer then."""
    if permissions := missing_permissions(unreadable_of(cluster, cluster.unread)):
        yield permissions
    unread = cluster.unread
    namespace = unread["Pod"].namespace if "Pod" in unread else ""
    if namespace:
        yield f"Only namespace {namespace} is recorded."
    if unreadable_of(cluster, ("Node", "Pod")):
        yield "history and who-evicted answer from it; verify, and commands with --at, can't predict from it."


def info_of(folder: str) -> RecordingInfo:
    """Describe the contents of a directory. Raises ``InputError`` if it is not a recording."""
    paths = segments_in(folder)
    if not paths:
        raise InputError("not a recording", source=name_of(folder), hint="use kpreempt record --to DIR")
    changes: Counter[str] = Counter()
    relisted: Counter[str] = Counter()
    unread: dict[str, None] = {}
    missing: dict[str, None] = {}
    gaps, damaged = [], []
    begins = ends = None
    for path in paths:
        segment = Segment(path)
        if ends is not None and not segment.end.continues:
            gaps.append((ends, segment.end.taken_at))
        ends = segment.end.taken_at
        begins = begins or ends
        missing.update(dict.fromkeys(missing_from(segment.header_cluster()[0])))
        # Damage within a base would otherwise only be found when it is needed.
        deque(segment.base(InputLimits()), maxlen=0)
        for change in segment.changes():
            ends = max(ends, change.seen)
            changes[change.kind] += change.what in OBJECT_CHANGES
            relisted[change.kind] += change.what is ChangeType.GAP
            if change.what is ChangeType.UNREAD:
                unread[change.kind] = None
        if segment.damage is not None:
            what = "its last record is torn and ignored" if segment.damage.is_torn else "is damaged"
            damaged.append(f"{path.name}: {what} (byte {segment.damage.offset:,})")
    assert begins is not None
    assert ends is not None
    return RecordingInfo(
        begins=begins,
        ends=ends,
        segments=len(paths),
        size=sum(path.stat().st_size for path in paths),
        changes={kind: count for kind, count in changes.most_common() if count},
        gaps=gaps,
        relisted={kind: count for kind, count in relisted.items() if count},
        unread=list(unread),
        missing=list(missing),
        damaged=damaged,
    )
