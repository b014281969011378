"""A recording gone through once: at each decision the cluster just before it, and as it may have been to its scheduler.

A scheduler decides on what it was told by then, and binds and evicts afterwards, while other changes are written. So it
may have decided a few changes earlier than its decision shows, and with pods on nodes that were bound later only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import islice, takewhile
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from kpreempt.model.cluster import ClusterSnapshot, PodOrder
from kpreempt.model.kinds import KINDS
from kpreempt.model.pod import Pod
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.decode import PodDecoder, Record, record_of
from kpreempt.snapshot.kinds import COMPARED, resource_of
from kpreempt.snapshot.recording.as_of import LATE
from kpreempt.snapshot.recording.changes import Change, ChangeType, Key, path_of
from kpreempt.snapshot.recording.orders import NodeOrders
from kpreempt.snapshot.recording.pods import observed_pod
from kpreempt.snapshot.recording.recorder import follow, unread_as
from kpreempt.snapshot.recording.runs import Run, Trace
from kpreempt.snapshot.recording.segments import object_name_of_line
from kpreempt.verdict.verify import DecisionKind

# So long before a decision shows it may have been taken, and so long after it others may show that came before it.
_MEANWHILE = timedelta(seconds=2)
_EVENTS = timedelta(seconds=10)
_REMEMBERED = 64


class _Done(NamedTuple):
    """A change that was applied, and what was there before."""

    kind: str
    key: Key
    before: Record | None
    after: Record | None
    version: int
    seen_at: datetime


class Situation:
    """The cluster just before a decision; it is as long as the replay does not go on."""

    def __init__(self, trace: Trace, replay: Replay) -> None:
        self.trace = trace
        self._replay = replay
        recent = [each for each in replay.done if each.seen_at >= trace.seen_at - _MEANWHILE and _matters(each)]
        own = [
            at
            for at, each in enumerate(recent)
            if each.kind == "Pod" and "/".join(each.key) == trace.decision.pod and each.before is None
        ]
        # Before it was there nobody decided on it.
        self.meanwhile: Sequence[_Done] = recent[own[-1] + 1 :] if own else recent
        near = [each for each in replay.bindings_around(trace) if each.uid != trace.uid]
        # What the scheduler had decided it knew, and it could know nothing of what it decided later.
        self._known = [each for each in near if each.written < trace.version and each.surely_precedes(trace)]
        unsure = [
            each
            for each in near
            if not (each.surely_precedes(trace) if each.written < trace.version else trace.surely_precedes(each))
        ]
        # In the order in which they were written, and in that in which they were tried, with how many come before.
        by_position = sorted(unsure, key=lambda each: each.position)
        self._orders = {
            False: (unsure, sum(each.written < trace.version for each in unsure)),
            True: (by_position, bisect_left([each.position for each in by_position], trace.position)),
        }

    @property
    def gap(self) -> str:
        """The kind that was not watched when it was decided; empty where all were."""
        version = self.trace.version
        return next((each.kind for each in self._replay.gaps if each.since < version <= each.until), "")

    @property
    def leaving(self) -> set[str]:
        """The pods that began to leave about when it was decided: who evicts them then may come too late for that."""
        marks, seen = self._replay.marks, self.trace.seen_at
        first = bisect_left(marks, (seen - _MEANWHILE, ""))
        return {key for _, key in takewhile(lambda mark: mark[0] <= seen + _MEANWHILE, islice(marks, first, None))}

    @property
    def is_near_end(self) -> bool:
        """Whether the recording ends before all is told of what came with the decision, as late events."""
        is_late = self.trace.decision.decision is DecisionKind.NOMINATED
        return self._replay.ends - self.trace.seen_at < (_EVENTS if is_late else _MEANWHILE)

    def bindings(self, *, by_position: bool) -> tuple[int, int]:
        """How many pods were bound around the decision before it and after it, in either order.

        Those of which it is certain whether they were decided before it do not count.
        """
        near, before = self._orders[by_position]
        return before, len(near) - before

    def cluster(self, undone: int = 0, bound: int = 0, *, by_position: bool = False) -> ClusterSnapshot:
        """The cluster without the last changes ``meanwhile``, and with so many more (or fewer) pods bound.

        They are counted in the order in which bindings were written, or the pods were tried (``by_position``).
        """
        pods = dict(self._replay.records["Pod"])
        others: dict[str, dict[Key, Record]] = {}
        doubted: set[str] = set()
        for done in self._last(undone):
            records = pods if done.kind == "Pod" else others.get(done.kind)
            if records is None:
                records = others[done.kind] = dict(self._replay.records[done.kind])
            if done.before is None:
                records.pop(done.key, None)
            else:
                records[done.key] = done.before
            for each in (done.before, done.after):
                if isinstance(each, Pod) and each.spec.node_name:
                    doubted.add(each.spec.node_name)
        known = min((each.version for each in self._last(undone)), default=self.trace.version)
        unsure, before = self._orders[by_position]
        standings = [(each, True) for each in self._known]
        standings += [(each, index < before + bound) for index, each in enumerate(unsure)]
        for each, is_there in standings:
            if is_there != (each.written < known):
                doubted.update(_with_node(pods, each, is_present=is_there))
        return self._replay.snapshot({**others, "Pod": pods}, self.trace.seen_at, doubted)

    def changes(self, undone: int, bound: int, *, by_position: bool) -> list[str]:
        """In words, what lies between the state just before the decision and that of ``cluster``."""
        lines = [_told(done) for done in self._last(undone)]
        unsure, before = self._orders[by_position]
        for index, each in enumerate(unsure):
            was_there = each.written < self.trace.version
            if (index < before + bound) != was_there:
                when = "before" if was_there else "after"
                what = "nominated" if _is_nomination(each) else "bound"
                lines.append(f"pod {each.decision.pod} was {what} to {each.decision.node} {when} it")
        return lines

    def _last(self, undone: int) -> Iterator[_Done]:
        """The last changes but for bindings, the latest first."""
        return reversed(self.meanwhile[len(self.meanwhile) - undone :])


class Replay:
    """The records of a run while its changes are applied."""

    def __init__(self, run: Run, input_limits: InputLimits) -> None:
        self.records: dict[str, dict[Key, Record]] = {kind: {} for kind in KINDS}
        self.done: deque[_Done] = deque(maxlen=_REMEMBERED)
        self.gaps = run.gaps
        self.marks = run.marks
        self.ends = run.ends
        self._bindings = sorted((each for each in run.traces if each.decision.node), key=attrgetter("written"))
        first = run.segments[0]
        self._run = run
        self._orders = NodeOrders(first.end.orders)
        self._holder = first.end.holder
        self._pods = PodDecoder()
        self._header, self.assumptions = first.header_cluster()
        for line in first.base(input_limits):
            named = object_name_of_line(line)
            if named.kind not in KINDS:
                continue
            self.records[named.kind][named.key] = self._decoded(named.kind, line)
            if named.kind == "Pod":
                self._orders.put(observed_pod(line))

    def situations(self) -> Iterator[Situation]:
        """The situation of every decision, in their order, each to be looked at before the next one."""
        traces = iter(self._run.traces)
        trace = next(traces, None)
        for version, change in _by_version(self._run.changes()):
            while trace is not None and trace.version <= version:
                yield Situation(trace, self)
                trace = next(traces, None)
            if trace is None:
                return
            self._apply(change)

    def bindings_around(self, trace: Trace) -> list[Trace]:
        """What was bound a moment before and after, as far as it may have been decided the other way round."""
        at = bisect_left(self._bindings, trace.version, key=attrgetter("written"))
        near = self._bindings[max(0, at - _REMEMBERED) : at + _REMEMBERED]
        return [each for each in near if abs(each.decision.at - trace.seen_at) <= _MEANWHILE]

    def snapshot(
        self, changed: dict[str, dict[Key, Record]], at: datetime, doubted: Iterable[str] = ()
    ) -> ClusterSnapshot:
        """The cluster with the records of these kinds in the place of those at hand.

        Of the nodes that are ``doubted`` no order is known.
        """
        records: dict[str, Any] = {}
        for kind in KINDS.values():
            if kind.name != "Event":
                of_kind = changed.get(kind.name, self.records[kind.name])
                records[kind.field] = [of_kind[key] for key in sorted(of_kind, key=path_of)]
        unsure = set(doubted)
        orders = {
            node: PodOrder(tuple(each.places), frozenset(each.unplaced))
            for node, each in (self._orders.known() if self._holder else ())
            if node not in unsure
        }
        if orders:
            place_of = {key: place for order in orders.values() for place, key in enumerate(order.places) if key}
            records["pods"].sort(key=lambda pod: place_of.get(pod.key, -1))
        return msgspec.structs.replace(self._header, **records, pod_orders=orders, taken_at=at)

    def _apply(self, change: Change) -> None:
        if change.kind in COMPARED:
            return
        if change.what in (ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED) and change.kind != "Event":
            records, key = self.records[change.kind], (change.namespace, change.name)
            before = records.pop(key, None)
            after = None
            if change.what is not ChangeType.DELETED:
                after = records[key] = self._decoded(change.kind, change.object)
            self.done.append(_Done(change.kind, key, before, after, change.version, change.seen))
        elif change.what is ChangeType.UNREAD:
            self.records[change.kind].clear()
            unread = {**self._header.unread, change.kind: unread_as(change)}
            self._header = msgspec.structs.replace(self._header, unread=unread)
        if change.kind == "Pod":
            follow(self._orders, change)
        elif change.what is ChangeType.SCHEDULER:
            self._holder = change.name
            self._orders.forget()

    def _decoded(self, kind: str, line: bytes | msgspec.Raw) -> Record:
        return record_of(KINDS[kind], line, self._pods.decode if kind == "Pod" else None)


def _by_version(changes: Iterable[Change]) -> Iterator[tuple[int, Change]]:
    """The changes in the order of their versions, with these; those without one where they were seen."""
    waiting: list[tuple[int, int, Change]] = []
    latest = 0
    for number, change in enumerate(changes):
        latest = max(latest, change.version)
        heappush(waiting, (change.version or latest, number, change))
        while change.seen - waiting[0][2].seen > LATE:
            version, _, ready = heappop(waiting)
            yield version, ready
    while waiting:
        version, _, ready = heappop(waiting)
        yield version, ready


def _matters(done: _Done) -> bool:
    """Whether more has changed than what no scheduler looks at."""
    before, after = done.before, done.after
    if before is None or after is None:
        return True
    if isinstance(before, Pod) and isinstance(after, Pod):
        return _relevant_pods(before) != _relevant_pods(after)
    metadata = msgspec.structs.replace(after.metadata, resource_version=before.metadata.resource_version)
    return bool(before != msgspec.structs.replace(after, metadata=metadata))


def _relevant_pods(pod: Pod) -> tuple[Any, ...]:
    meta, status = pod.metadata, pod.status
    times = meta.deletion_timestamp, status.start_time
    return (meta.uid, meta.labels, *times, pod.spec, status.nominated_node_name, pod.is_terminal)


def _with_node(pods: dict[Key, Record], trace: Trace, *, is_present: bool) -> Iterator[str]:
    """Put a pod on its node or nominate it there, or undo that; the nodes whose pods change by that."""
    namespace, _, name = trace.decision.pod.partition("/")
    pod = pods.get((namespace, name))
    if not isinstance(pod, Pod) or pod.metadata.uid != trace.uid:
        return
    node = trace.decision.node if is_present else ""
    if _is_nomination(trace):
        if not pod.spec.node_name:
            status = msgspec.structs.replace(pod.status, nominated_node_name=node)
            pods[namespace, name] = msgspec.structs.replace(pod, status=status)
    elif pod.spec.node_name != node:
        pods[namespace, name] = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        yield trace.decision.node


def _is_nomination(trace: Trace) -> bool:
    return trace.decision.decision is DecisionKind.NOMINATED


def _told(done: _Done) -> str:
    """A change in words."""
    namespace, name = done.key
    what = f"{resource_of(KINDS[done.kind])} {f'{namespace}/' if namespace else ''}{name}"
    before, after = done.before, done.after
    if isinstance(before, Pod) and isinstance(after, Pod):
        if after.spec.node_name != before.spec.node_name:
            return f"{what} was bound to {after.spec.node_name}"
        if after.metadata.deletion_timestamp != before.metadata.deletion_timestamp:
            return f"{what} was deleted, and was on its way out"
        if after.status.nominated_node_name != before.status.nominated_node_name:
            nominated = after.status.nominated_node_name
            return f"{what} was nominated to {nominated}" if nominated else f"{what} lost its nomination"
    return f"{what} {'came' if before is None else 'went' if after is None else 'changed'}"
