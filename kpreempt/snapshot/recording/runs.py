"""The decisions of schedulers in a recording, by run: a run is watched without a break from its base on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from kpreempt.model.event import PREEMPTED, PREEMPTED_TEXT
from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.decode import record_of
from kpreempt.snapshot.recording.changes import Change, ChangeType
from kpreempt.snapshot.recording.pods import PodLine, pod_line
from kpreempt.snapshot.recording.segments import Segment, segments_in
from kpreempt.verdict.verify import DecisionKind, TakenDecision

# The scheduler marks its victims before or after writing the preemptor's nomination; events are even later.
_EVICTION = timedelta(seconds=60)
# The scheduler did not try to preempt.
_NOT_ELIGIBLE = "preemption: not eligible"
_POD_LINE = b'"kind":"Pod",'


class Trace(NamedTuple):
    """A decision, and where it first shows: it was taken at ``version``, seen at ``seen_at``, and not before.

    ``uid`` is the pod's. ``written`` is the version that says where the pod is, or why it is unschedulable. Pods were
    tried in order of ``position`` if all were waiting: the most important first, then the one that waited longest.
    ``is_first`` means that the pod was seen when it was created and had not been unschedulable; only then is its place
    certain. ``nominated_node`` is the pod's if it stays the same.
    """

    decision: TakenDecision
    uid: str
    version: int
    seen_at: datetime
    written: int
    position: tuple[int, int]
    is_first: bool
    scheduler: str
    nominated_node: str = ""

    def surely_precedes(self, other: Trace) -> bool:
        """Return whether it was decided earlier, so that the scheduler knew of it when deciding on the other.

        A scheduler tries pods one at a time, and assumes its decisions at once. A pod that was created first and is no
        less important is tried first, except for unschedulable pods that wait for their next attempt.
        """
        if self.scheduler != other.scheduler:
            return False
        (importance, since), (others, others_since) = self.position, other.position
        if self.written < others_since:
            return True
        return self.is_first and other.is_first and since < others_since and importance <= others


class Gap(NamedTuple):
    """A kind that was not watched between two versions."""

    kind: str
    since: int
    until: int


class Run(NamedTuple):
    """Segments that were watched without a break, with the decisions in the order in which they show.

    ``marks`` has the times at which pods (``namespace/name``) were marked for deletion, in order.
    """

    segments: list[Segment]
    traces: list[Trace]
    gaps: list[Gap]
    marks: list[tuple[datetime, str]]
    begins: datetime
    ends: datetime

    def changes(self) -> Iterator[Change]:
        """Yield all changes after the base of the first segment, in the order in which they were seen."""
        for segment in self.segments:
            yield from segment.changes()


def runs_of(folder: str) -> Iterator[Run]:
    """Yield the runs of a recording, oldest first. Raises ``InputError``."""
    reader: _Reader | None = None
    for path in segments_in(folder):
        segment = Segment(path)
        if reader is None or not segment.end.continues or reader.is_damaged:
            if reader is not None:
                yield reader.run()
            reader = _Reader(segment)
        reader.read(segment)
    if reader is not None:
        yield reader.run()


class _Eviction(NamedTuple):
    """The content of an event: the evicted pod, and the UID of the preemptor."""

    victim: str
    preemptor: str
    seen_at: datetime


class _Mark(NamedTuple):
    """A pod that has been terminating since a version."""

    version: int
    seen_at: datetime


class _Reader:
    """Finds the decisions of a run in its changes."""

    def __init__(self, first: Segment) -> None:
        self._segments: list[Segment] = []
        self._begins = self._ends = first.end.taken_at
        self._traces: list[Trace] = []
        self._gaps: list[Gap] = []
        self._evictions: dict[tuple[str, str], _Eviction] = {}
        self._marks: defaultdict[str, list[_Mark]] = defaultdict(list)
        # Pods without a node, with the version since which each waits; and terminating pods.
        self._waiting: dict[str, PodLine] = {}
        self._since: dict[str, int] = {}
        self._leaving: set[str] = set()
        for line in first.base(InputLimits()):
            if _POD_LINE in line[:60]:
                pod = pod_line(line)
                if not pod.spec.node_name:
                    self._waiting[pod.key] = pod
                elif pod.is_leaving:
                    self._leaving.add(pod.key)

    @property
    def is_damaged(self) -> bool:
        """Whether the last segment is cut off, so that what follows is unknown."""
        return self._segments[-1].damage is not None

    def read(self, segment: Segment) -> None:
        """Process the changes of the next segment."""
        self._segments.append(segment)
        for change in segment.changes():
            self._ends = max(self._ends, change.seen)
            if change.what is ChangeType.GAP:
                self._gaps.append(Gap(change.kind, change.since, change.version))
            elif change.kind == "Event" and change.what in (ChangeType.ADDED, ChangeType.MODIFIED):
                event = record_of(KINDS["Event"], change.object)
                if event.reason == PREEMPTED:
                    if event.related is not None and event.related.uid:
                        preemptor = event.related.uid
                    else:
                        match = PREEMPTED_TEXT.fullmatch(event.text.strip())
                        preemptor = (match["uid"] or match["bare_uid"] or "") if match is not None else ""
                    # A repeated event is about the same eviction.
                    self._evictions.setdefault(
                        (event.subject.uid or f"{event.subject.key} {change.seen}", preemptor),
                        _Eviction(event.subject.key, preemptor, change.seen),
                    )
            elif change.kind == "Pod" and change.what is ChangeType.DELETED:
                key = f"{change.namespace}/{change.name}"
                if key not in self._leaving:
                    self._marks[key].append(_Mark(change.version, change.seen))
                self._leaving.discard(key)
                self._forget(key)
            elif change.kind == "Pod" and change.what in (ChangeType.ADDED, ChangeType.MODIFIED):
                self._note_pod(change)

    def run(self) -> Run:
        """Return the run, with victims if events name them."""
        nominations: defaultdict[str, list[int]] = defaultdict(list)
        for index, trace in enumerate(self._traces):
            # If a pod preempts again on its nominated node, only its message changes.
            if trace.decision.decision is DecisionKind.NOMINATED or trace.nominated_node:
                nominations[trace.uid].append(index)
        evicted: defaultdict[int, dict[str, _Mark | None]] = defaultdict(dict)
        marked: set[tuple[str, _Mark | None]] = set()
        for eviction in sorted(self._evictions.values(), key=lambda each: each.seen_at):
            # The first mark of the victim that the event is about, among all pods of that name.
            marks = self._marks.get(eviction.victim, ())
            mark = min(marks, key=lambda each: abs(each.seen_at - eviction.seen_at), default=None)
            # The mark is closer to the decision than the event.
            time = mark.seen_at if mark is not None else eviction.seen_at
            near = [
                (abs(self._traces[index].seen_at - time), index)
                for index in nominations[eviction.preemptor]
                if abs(self._traces[index].seen_at - eviction.seen_at) <= _EVICTION
            ]
            if near:
                # If the pod is already terminating because of another pod, it is not marked again.
                is_first = (eviction.victim, mark) not in marked
                evicted[min(near)[1]][eviction.victim] = mark if is_first else None
                marked.add((eviction.victim, mark))
        traces = list(self._traces)
        for index, victims in evicted.items():
            trace = traces[index]
            version, seen = min([_Mark(trace.version, trace.seen_at), *(each for each in victims.values() if each)])
            decision = msgspec.structs.replace(trace.decision, victims=sorted(victims))
            if trace.nominated_node:
                decision = msgspec.structs.replace(decision, decision=DecisionKind.NOMINATED, node=trace.nominated_node)
            traces[index] = trace._replace(decision=decision, version=version, seen_at=seen)
        traces.sort(key=lambda trace: trace.version)
        leaving = sorted((mark.seen_at, key) for key, of_pod in self._marks.items() for mark in of_pod)
        return Run(self._segments, traces, self._gaps, leaving, self._begins, self._ends)

    def _note_pod(self, change: Change) -> None:
        pod = pod_line(change.object)
        key = pod.key
        if not pod.is_leaving:
            self._leaving.discard(key)
        elif key not in self._leaving:
            self._leaving.add(key)
            self._marks[key].append(_Mark(change.version, change.seen))
        before = self._waiting.pop(key, None)
        if before is not None and before.metadata.uid == pod.metadata.uid:
            self._note_decision(change, key, before, pod)
            if before.spec.scheduling_gates and not pod.spec.scheduling_gates:
                self._since[key] = change.version
        else:
            self._since[key] = change.version
        if pod.spec.node_name:
            self._forget(key)
        else:
            self._waiting[key] = pod

    def _forget(self, key: str) -> None:
        self._waiting.pop(key, None)
        self._since.pop(key, None)

    def _note_decision(self, change: Change, key: str, before: PodLine, pod: PodLine) -> None:
        nominated, message = pod.status.nominated_node_name, ""
        if pod.spec.node_name:
            kind, node = DecisionKind.BOUND, pod.spec.node_name
        elif nominated not in ("", before.status.nominated_node_name):
            kind, node, message = DecisionKind.NOMINATED, nominated, pod.rejection
        elif pod.rejection not in ("", before.rejection):
            kind, node, message = DecisionKind.UNSCHEDULABLE, "", pod.rejection
        else:
            return
        decision = TakenDecision(decision=kind, pod=key, at=change.seen, node=node, message=message)
        since = self._since.get(key, 0)
        self._traces.append(
            Trace(
                decision,
                pod.metadata.uid,
                change.version,
                change.seen,
                change.version,
                (-pod.spec.priority, since),
                since > 0 and not before.rejection and not before.status.nominated_node_name,
                pod.spec.scheduler_name,
                nominated if kind is DecisionKind.UNSCHEDULABLE and _NOT_ELIGIBLE not in message else "",
            )
        )
        # It waits again.
        self._since[key] = change.version
