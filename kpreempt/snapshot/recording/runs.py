"""The decisions of schedulers in a recording, by run: a run is watched without a break from its base on."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from kpreempt.model.event import FAILED_SCHEDULING, PREEMPTED, Event
from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.decode import record_of
from kpreempt.snapshot.recording.changes import Change, ChangeType
from kpreempt.snapshot.recording.decisions import Attempt, Eviction, Evidence, Mark, Trace, eviction_of, with_victims
from kpreempt.snapshot.recording.pods import PodLine, pod_line
from kpreempt.snapshot.recording.segments import Segment, segments_in
from kpreempt.verdict.verify import DecisionKind, TakenDecision

_POD_LINE = b'"kind":"Pod",'
# More than the clocks of a scheduler and a recorder may differ.
_CLOCKS = timedelta(hours=1)


class Gap(NamedTuple):
    """A kind that was not watched between two versions."""

    kind: str
    since: int
    until: int


class Run(NamedTuple):
    """Segments that were watched without a break, with the decisions in the order in which they show.

    ``marks`` has the times at which pods (``namespace/name``) were marked for deletion, in order. ``reports`` are the
    times of the scheduler's events, in order, with the lowest version of this or any later event: what has at least
    that version was written later. ``evicted`` has the time at which each pod's eviction was reported, and ``unbound``
    the deletion of each pod that never got a node, both by UID.
    """

    segments: list[Segment]
    traces: list[Trace]
    gaps: list[Gap]
    marks: list[tuple[datetime, str]]
    reports: list[tuple[datetime, int]]
    evicted: dict[str, datetime]
    unbound: dict[str, Mark]
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


class _Reader:
    """Finds the decisions of a run in its changes."""

    def __init__(self, first: Segment) -> None:
        self._segments: list[Segment] = []
        self._begins = self._ends = first.end.taken_at
        self._base_version = first.end.versions.get("Pod", 0)
        self._traces: list[Trace] = []
        self._gaps: list[Gap] = []
        self._evictions: list[Eviction] = []
        # By the UID of the pod, and by its name.
        self._attempts: defaultdict[str, list[Attempt]] = defaultdict(list)
        self._marks: defaultdict[str, list[Mark]] = defaultdict(list)
        # By UID: pods that waited and the version from which they did, and those at which pods were bound and gone.
        self._preemptors: dict[str, tuple[PodLine, int]] = {}
        self._uids: dict[str, str] = {}
        self._bound: dict[str, int] = {}
        self._gone: dict[str, Mark] = {}
        self._terminating: dict[str, int] = {}
        # Pods without a node, with the version since which each waits; and terminating pods.
        self._waiting: dict[str, PodLine] = {}
        self._since: dict[str, int] = {}
        self._leaving: set[str] = set()
        for line in first.base(InputLimits()):
            if _POD_LINE in line[:60]:
                pod = pod_line(line)
                self._uids[pod.key] = pod.metadata.uid
                if not pod.spec.node_name:
                    self._waiting[pod.key] = pod
                    self._preemptors[pod.metadata.uid] = pod, 0
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
                self._note_event(change, record_of(KINDS["Event"], change.object))
            elif change.kind == "Pod" and change.what is ChangeType.DELETED:
                key = f"{change.namespace}/{change.name}"
                if key not in self._leaving:
                    self._marks[key].append(Mark(change.version, change.seen))
                self._leaving.discard(key)
                self._gone[self._uids.pop(key, "")] = Mark(change.version, change.seen)
                self._forget(key)
            elif change.kind == "Pod" and change.what in (ChangeType.ADDED, ChangeType.MODIFIED):
                self._note_pod(change)

    def run(self) -> Run:
        """Return the run, with victims if events name them."""
        attempts, evictions = self._reports()
        evidence = Evidence(
            evictions,
            attempts,
            self._marks,
            self._preemptors,
            self._bound,
            {uid: mark.version for uid, mark in self._gone.items()},
            self._terminating,
        )
        traces = with_victims(self._traces, evidence)
        leaving = sorted((mark.seen_at, key) for key, of_pod in self._marks.items() for mark in of_pod)
        reports = [(each.at, each.version) for of_pod in attempts.values() for each in of_pod]
        reports += [(each.at, each.version) for each in evictions if each.at is not None]
        if any(version < self._base_version for _, version in reports):
            # Events are in another store, whose versions say nothing about other objects.
            reports = []
        reports.sort(reverse=True)
        lowest = itertools.accumulate((version for _, version in reports), min)
        reports = [(at, version) for (at, _), version in zip(reports, lowest, strict=True)][::-1]
        evicted = {each.uid: each.at for each in reversed(evictions) if each.at is not None and not each.in_memory}
        unbound = {uid: mark for uid, mark in self._gone.items() if uid in self._preemptors and uid not in self._bound}
        return Run(self._segments, traces, self._gaps, leaving, reports, evicted, unbound, self._begins, self._ends)

    def _reports(self) -> tuple[dict[str, list[Attempt]], list[Eviction]]:
        """Return the attempts of each pod and the evictions with their times by the recorder's clock.

        The fastest event took as long as the fastest watch needs, if both clocks agree. Times that are far from when
        the event was seen mean nothing.
        """
        delays = [each.seen_at - each.at for of_pod in self._attempts.values() for each in of_pod]
        delays += [each.seen_at - each.at for each in self._evictions if each.at is not None]
        fastest = min((each for each in delays if abs(each) <= _CLOCKS), default=timedelta())
        attempts = {
            uid: sorted(
                each._replace(at=each.at + fastest) for each in of_pod if abs(each.seen_at - each.at) <= _CLOCKS
            )
            for uid, of_pod in self._attempts.items()
        }
        evictions = []
        for each in self._evictions:
            is_known = each.at is not None and abs(each.seen_at - each.at) <= _CLOCKS
            evictions.append(each._replace(at=each.at + fastest if each.at is not None and is_known else None))
        return attempts, evictions

    def _note_event(self, change: Change, event: Event) -> None:
        if event.reason == PREEMPTED:
            self._evictions.append(eviction_of(event, change.version, change.seen))
        elif event.reason == FAILED_SCHEDULING and event.observed_at is not None:
            attempt = Attempt(event.observed_at, change.version, change.seen)
            self._attempts[event.subject.uid].append(attempt)

    def _note_pod(self, change: Change) -> None:
        pod = pod_line(change.object)
        key = pod.key
        if not pod.is_leaving:
            self._leaving.discard(key)
        elif key not in self._leaving:
            self._leaving.add(key)
            self._marks[key].append(Mark(change.version, change.seen, pod.metadata.uid))
        uid = self._uids[key] = pod.metadata.uid
        if pod.metadata.deletion_timestamp is not None:
            self._terminating.setdefault(uid, change.version)
        before = self._waiting.pop(key, None)
        if before is not None and before.metadata.uid == pod.metadata.uid:
            self._note_decision(change, key, before, pod)
            if before.spec.scheduling_gates and not pod.spec.scheduling_gates:
                self._since[key] = change.version
        else:
            self._since[key] = change.version
        if pod.spec.node_name:
            if uid in self._preemptors:
                self._bound.setdefault(uid, change.version)
            self._forget(key)
        else:
            self._waiting[key] = pod
            since = self._preemptors[uid][1] if uid in self._preemptors else change.version
            self._preemptors[uid] = pod, since

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
                change.seen,
                nominated if kind is DecisionKind.UNSCHEDULABLE and pod.may_have_preempted else "",
            )
        )
        # It waits again.
        self._since[key] = change.version
