"""Replays a recording: at each decision, the cluster just before it, and the cluster that its scheduler may have seen.

A scheduler decides on the state that it has received, then binds and evicts while other changes are written. So it may
have decided a few changes earlier than its decision shows, and assumed pods on nodes that were only bound later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import islice, takewhile
from math import inf
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import msgspec

from kpreempt.model.cluster import ClusterSnapshot, PodOrder
from kpreempt.model.kinds import KINDS
from kpreempt.model.pod import Pod
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.decode import PodDecoder, Record, record_of
from kpreempt.snapshot.kinds import COMPARED_KINDS, resource_of
from kpreempt.snapshot.recording.as_of import LATE
from kpreempt.snapshot.recording.changes import Change, ChangeType, Key, path_of
from kpreempt.snapshot.recording.decisions import Trace
from kpreempt.snapshot.recording.orders import NodeOrders
from kpreempt.snapshot.recording.pods import observed_pod
from kpreempt.snapshot.recording.recorder import follow, unread_as
from kpreempt.snapshot.recording.runs import Run
from kpreempt.snapshot.recording.segments import object_name_of_line
from kpreempt.verdict.verify import DecisionKind

# How long before it shows a decision may have been taken, and how long after it earlier ones may still show.
_MEANWHILE = timedelta(seconds=2)
_EVENTS = timedelta(seconds=10)
_REMEMBERED = 64
_MAX_VANISHING = 8


class _AppliedChange(NamedTuple):
    """A change that was applied, and the previous object."""

    kind: str
    key: Key
    before: Record | None
    after: Record | None
    version: int
    seen_at: datetime

    @property
    def marked_uid(self) -> str:
        """The UID of the pod that began to terminate, or an empty string."""
        before, after = self.before, self.after
        if not isinstance(after, Pod) or after.metadata.deletion_timestamp is None:
            return ""
        was_terminating = before is not None and before.metadata.deletion_timestamp is not None
        return "" if was_terminating else after.metadata.uid


class Situation:
    """The cluster just before a decision; valid until the replay continues."""

    def __init__(self, trace: Trace, replay: Replay) -> None:
        self.trace = trace
        self._replay = replay
        recent = [
            each for each in replay.done if each.seen_at >= trace.seen_at - _MEANWHILE and _affects_scheduling(each)
        ]
        own = [
            at
            for at, each in enumerate(recent)
            if each.kind == "Pod" and "/".join(each.key) == trace.decision.pod and each.before is None
        ]
        # No decision before the pod was created.
        self.meanwhile: Sequence[_AppliedChange] = recent[own[-1] + 1 :] if own else recent
        near = [each for each in replay.bindings_around(trace) if each.uid != trace.uid]
        # The scheduler knew its own earlier decisions, but not its later ones. Others may be written first.
        self._sure = [(each, True) for each in near if each.surely_precedes(trace)]
        self._sure += [
            (each, False)
            for each in near
            if trace.surely_precedes(each) and (each.written > trace.version or trace.is_written_before(each))
        ]
        sure = {id(each) for each, _ in self._sure}
        unsure = [each for each in near if id(each) not in sure]
        # In the order in which they were written, and in which they were tried, with the number of earlier ones.
        by_position = sorted(unsure, key=lambda each: each.position)
        self._orders = {
            False: (unsure, sum(each.written < trace.version for each in unsure)),
            True: (by_position, bisect_left([each.position for each in by_position], trace.position)),
        }

    @property
    def gap(self) -> str:
        """The kind that was not watched at the time of the decision, or an empty string."""
        version = self.trace.version
        return next((each.kind for each in self._replay.gaps if each.since < version <= each.until), "")

    @property
    def leaving(self) -> set[str]:
        """The pods that began to terminate around the decision: their eviction may be too late for it."""
        marks, seen = self._replay.marks, self.trace.seen_at
        first = bisect_left(marks, (seen - _MEANWHILE, ""))
        return {key for _, key in takewhile(lambda mark: mark[0] <= seen + _MEANWHILE, islice(marks, first, None))}

    @property
    def unknown_changes(self) -> list[int]:
        """How many of the last changes the scheduler did not know: none, what is certain, and as late as the recorder.

        It did not know what was written after it reported the decision, nor evictions that it had not yet completed. It
        evicts no pods that it knows to be terminating.
        """
        at, num_changes = self.trace.reported_at or self.trace.written_by, len(self.meanwhile)
        first_later = self._replay.version_after(at)
        evicted, again = self._replay.evicted, self.trace.decision.already_evicted
        known = next(
            (
                index
                for index, each in enumerate(self.meanwhile)
                if each.version >= first_later
                or (each.marked_uid and (evicted.get(each.marked_uid, at) > at or "/".join(each.key) in again))
            ),
            num_changes,
        )
        received = known
        # A pod that was decided on before was known.
        decided = {each.uid for each, is_known in self._sure if is_known}
        while received and self.meanwhile[received - 1].seen_at > at:
            change = self.meanwhile[received - 1]
            if change.before is None and isinstance(change.after, Pod) and change.after.metadata.uid in decided:
                break
            received -= 1
        return list(dict.fromkeys([0, num_changes - known, num_changes - received]))

    def vanishing(self, cluster: ClusterSnapshot) -> Iterator[tuple[Pod, bool]]:
        """Yield nominated pods that were soon deleted without a node, and whether they may have been gone already."""
        first_later = self._replay.version_after(self.trace.reported_at or self.trace.written_by)
        nominated = (
            pod for pod in cluster.pods if pod.status.nominated_node_name and pod.metadata.uid != self.trace.uid
        )
        gone = ((pod, self._replay.unbound.get(pod.metadata.uid)) for pod in nominated)
        soon = ((pod, mark) for pod, mark in gone if mark and mark.seen_at - self.trace.seen_at <= _MEANWHILE)
        for pod, mark in islice(soon, _MAX_VANISHING):
            yield pod, mark.version < first_later

    @property
    def num_decisions(self) -> int:
        """The number of decisions about the pod that show at about that time, with this one."""
        times = self._replay.decided[self.trace.uid]
        since, until = self.trace.seen_at - _MEANWHILE, self.trace.seen_at + _MEANWHILE
        return bisect_right(times, until) - bisect_left(times, since)

    @property
    def is_near_end(self) -> bool:
        """Whether the recording ends before everything related to the decision arrived, such as late events."""
        is_late = self.trace.decision.decision is DecisionKind.NOMINATED
        return self._replay.ends - self.trace.seen_at < (_EVENTS if is_late else _MEANWHILE)

    def bindings(self, *, by_position: bool) -> tuple[int, int]:
        """Return how many pods were bound around the decision before and after it, in either order.

        Pods that were certainly decided on before or after it do not count.
        """
        near, before = self._orders[by_position]
        return before, len(near) - before

    def cluster_as_written(self) -> ClusterSnapshot:
        """Return the cluster just before the decision, with what was written by then."""
        return self._replay.snapshot({}, self.trace.seen_at)

    def cluster(self, undone: int = 0, bound: int = 0, *, by_position: bool = False) -> ClusterSnapshot:
        """Return the cluster without the last ``undone`` changes, and with ``bound`` more (or fewer) pods bound.

        Pods are counted in the order in which bindings were written, or in which pods were tried (``by_position``).
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
        for each, is_there in self._moved(undone, bound, by_position=by_position):
            doubted.update(_with_node(pods, each, is_present=is_there))
        return self._replay.snapshot({**others, "Pod": pods}, self.trace.seen_at, doubted)

    def differing(self, undone: int, bound: int, *, by_position: bool) -> Hashable:
        """Return a value that is equal if ``cluster`` returns the same cluster."""
        moved: dict[str, tuple[Hashable, ...]] = {}
        for each, is_there in self._moved(undone, bound, by_position=by_position):
            moved[each.uid] = *moved.get(each.uid, ()), (each.written, is_there)
        return undone, frozenset(moved.items())

    def _moved(self, undone: int, bound: int, *, by_position: bool) -> Iterator[tuple[Trace, bool]]:
        """Yield the decisions that are not as in the state without the last changes, and whether they are there."""
        known = min((each.version for each in self._last(undone)), default=self.trace.version)
        unsure, before = self._orders[by_position]
        yield from ((each, is_there) for each, is_there in self._sure if is_there != (each.written < known))
        for index, each in enumerate(unsure):
            is_there = index < before + bound
            if is_there != (each.written < known):
                yield each, is_there

    def changes(self, undone: int, bound: int, *, by_position: bool) -> list[str]:
        """Describe the difference between the state just before the decision and that of ``cluster``."""
        lines = [_describe(done) for done in self._last(undone)]
        unsure, before = self._orders[by_position]
        for index, each in enumerate(unsure):
            was_there = each.written < self.trace.version
            if (index < before + bound) != was_there:
                when = "before" if was_there else "after"
                what = "nominated" if _is_nomination(each) else "bound"
                lines.append(f"pod {each.decision.pod} was {what} to {each.decision.node} {when} it")
        return lines

    def _last(self, undone: int) -> Iterator[_AppliedChange]:
        """Yield the last changes except bindings, the latest first."""
        return reversed(self.meanwhile[len(self.meanwhile) - undone :])


class Replay:
    """The records of a run while its changes are applied."""

    def __init__(
        self, run: Run, input_limits: InputLimits, complete: Callable[[Record], Record] = lambda record: record
    ) -> None:
        """``complete`` adds the defaults that lines do not have, once to each object."""
        self._complete = complete
        # The records of each kind in order, until one changes.
        self._in_order: dict[str, list[Record]] = {}
        self.records: dict[str, dict[Key, Record]] = {kind: {} for kind in KINDS}
        self.done: deque[_AppliedChange] = deque(maxlen=_REMEMBERED)
        self.gaps = run.gaps
        self.marks = run.marks
        self.ends = run.ends
        self.evicted = run.evicted
        self.unbound = run.unbound
        self._reports = run.reports
        # A pod that is nominated to the same node again changes nothing.
        bindings = (each for each in run.traces if each.decision.node and not each.nominated_node)
        self._bindings = sorted(bindings, key=attrgetter("written"))
        # When the decisions about each pod (by UID) were seen.
        self.decided: defaultdict[str, list[datetime]] = defaultdict(list)
        for trace in sorted(run.traces, key=attrgetter("seen_at")):
            self.decided[trace.uid].append(trace.seen_at)
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
                self._orders.add_existing(observed_pod(line))

    def situations(self) -> Iterator[Situation]:
        """Yield the situation of every decision, in order; each is valid until the next."""
        traces = iter(self._run.traces)
        trace = next(traces, None)
        for version, change in _by_version(self._run.changes()):
            while trace is not None and trace.version <= version:
                yield Situation(trace, self)
                trace = next(traces, None)
            if trace is None:
                return
            self._apply(change)

    def version_after(self, at: datetime) -> float:
        """Return a version from which on everything was written after a time."""
        later = bisect_right(self._reports, at, key=itemgetter(0))
        return self._reports[later][1] if later < len(self._reports) else inf

    def bindings_around(self, trace: Trace) -> list[Trace]:
        """Return the bindings shortly before and after that may have been decided in the opposite order."""
        at = bisect_left(self._bindings, trace.version, key=attrgetter("written"))
        near = self._bindings[max(0, at - _REMEMBERED) : at + _REMEMBERED]
        return [each for each in near if abs(each.decision.at - trace.seen_at) <= _MEANWHILE]

    def snapshot(
        self, changed: dict[str, dict[Key, Record]], at: datetime, doubted: Iterable[str] = ()
    ) -> ClusterSnapshot:
        """Return the cluster with these records in place of the current ones.

        The order of pods on nodes in ``doubted`` is unknown.
        """
        records: dict[str, Any] = {}
        for kind in KINDS.values():
            if kind.name in changed:
                records[kind.field] = _in_order(changed[kind.name])
            elif kind.name != "Event":
                if kind.name not in self._in_order:
                    self._in_order[kind.name] = _in_order(self.records[kind.name])
                records[kind.field] = self._in_order[kind.name]
        unsure = set(doubted)
        orders = {
            node: PodOrder(tuple(each.places), frozenset(each.unplaced))
            for node, each in (self._orders.known() if self._holder else ())
            if node not in unsure
        }
        if orders:
            place_of = {key: place for order in orders.values() for place, key in enumerate(order.places) if key}
            records["pods"] = sorted(records["pods"], key=lambda pod: place_of.get(pod.key, -1))
        return msgspec.structs.replace(self._header, **records, pod_orders=orders, taken_at=at)

    def _apply(self, change: Change) -> None:
        if change.kind in COMPARED_KINDS:
            return
        if change.what in (ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED) and change.kind != "Event":
            self._in_order.pop(change.kind, None)
            records, key = self.records[change.kind], (change.namespace, change.name)
            before = records.pop(key, None)
            after = None
            if change.what is not ChangeType.DELETED:
                after = records[key] = self._decoded(change.kind, change.object)
            self.done.append(_AppliedChange(change.kind, key, before, after, change.version, change.seen))
        elif change.what is ChangeType.UNREAD:
            self._in_order.pop(change.kind, None)
            self.records[change.kind].clear()
            unread = {**self._header.unread, change.kind: unread_as(change)}
            self._header = msgspec.structs.replace(self._header, unread=unread)
        if change.kind == "Pod":
            follow(self._orders, change)
        elif change.what is ChangeType.SCHEDULER:
            self._holder = change.name
            self._orders.forget()

    def _decoded(self, kind: str, line: bytes | msgspec.Raw) -> Record:
        return self._complete(record_of(KINDS[kind], line, self._pods.decode if kind == "Pod" else None))


def _in_order(records: dict[Key, Record]) -> list[Record]:
    """Return the records as an API server lists them."""
    return [records[key] for key in sorted(records, key=path_of)]


def _by_version(changes: Iterable[Change]) -> Iterator[tuple[int, Change]]:
    """Yield the changes in order of their versions; those without one, in the order in which they were seen."""
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


def _affects_scheduling(done: _AppliedChange) -> bool:
    """Return whether anything changed that a scheduler reads."""
    before, after = done.before, done.after
    if before is None or after is None:
        return True
    if isinstance(before, Pod) and isinstance(after, Pod):
        return _scheduling_fields(before) != _scheduling_fields(after)
    metadata = msgspec.structs.replace(after.metadata, resource_version=before.metadata.resource_version)
    return bool(before != msgspec.structs.replace(after, metadata=metadata))


def _scheduling_fields(pod: Pod) -> tuple[Any, ...]:
    meta, status = pod.metadata, pod.status
    times = meta.deletion_timestamp, status.start_time
    return (meta.uid, meta.labels, *times, pod.spec, status.nominated_node_name, pod.is_terminal)


def _with_node(pods: dict[Key, Record], trace: Trace, *, is_present: bool) -> Iterator[str]:
    """Put a pod on its node or nominate it there, or undo that; yields the nodes whose pods change."""
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


def _describe(done: _AppliedChange) -> str:
    """Describe a change."""
    namespace, name = done.key
    what = f"{resource_of(KINDS[done.kind])} {f'{namespace}/' if namespace else ''}{name}"
    before, after = done.before, done.after
    if isinstance(before, Pod) and isinstance(after, Pod):
        if after.spec.node_name != before.spec.node_name:
            return f"{what} was bound to {after.spec.node_name}"
        if after.metadata.deletion_timestamp != before.metadata.deletion_timestamp:
            return f"{what} was deleted while terminating"
        if after.status.nominated_node_name != before.status.nominated_node_name:
            nominated = after.status.nominated_node_name
            return f"{what} was nominated to {nominated}" if nominated else f"{what} lost its nomination"
    return f"{what} {'was created' if before is None else 'was deleted' if after is None else 'changed'}"
