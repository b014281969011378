"""A scheduler's decisions in a recording, and which of them evicted which pods.

A pod's status shows a decision only if it differs from the one before. A pod that preempts again on its nominated node
changes nothing in its own status if the message stays the same. Such a preemption only shows in its victims, which are
marked and deleted, and in events, whose times have microseconds (``pkg/scheduler/framework/preemption/executor.go`` and
``schedule_one.go`` of v1.36.3). A pod is not tried again before all of its victims are deleted, so an attempt that
failed between two evictions separates two preemptions.

A scheduler reports a failed attempt before it writes the pod's status, and an eviction after the API server has
accepted it. These times show in which order it decided, and what it cannot have known.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from operator import attrgetter, itemgetter
from typing import NamedTuple

import msgspec

from kpreempt.model.event import PREEMPTED_TEXT, Event
from kpreempt.model.frozen import NO_ENTRIES
from kpreempt.snapshot.recording.pods import NO_PREEMPTION, PodLine
from kpreempt.verdict.verify import DecisionKind, TakenDecision

# The scheduler marks its victims before or after writing the preemptor's nomination; events are even later.
_EVICTION = timedelta(seconds=60)
# A pod's status is written at once after the event, unless the API server or the recorder is slow.
_REPORT = timedelta(seconds=1)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Trace(NamedTuple):
    """A decision, and where it first shows: it was taken at ``version``, seen at ``seen_at``, and not before.

    ``uid`` is the pod's. ``written`` is the version that says where the pod is, or why it is unschedulable. Pods were
    tried in order of ``position`` if all were waiting: the most important first, then the one that waited longest.
    ``is_first`` means that the pod was seen when it was created and had not been unschedulable; only then is its place
    certain. ``nominated_node`` is the pod's if it stays the same. ``marks`` has the version at which each victim was
    marked for deletion, if that was seen. ``written_by`` is a time at which it was written already, and ``reported_at``
    when the scheduler reported that no node fits, if an event shows that. It was not decided before ``earliest``.
    """

    decision: TakenDecision
    uid: str
    version: int
    seen_at: datetime
    written: int
    position: tuple[int, int]
    is_first: bool
    scheduler: str
    written_by: datetime
    nominated_node: str = ""
    marks: Mapping[str, int] = NO_ENTRIES
    reported_at: datetime | None = None
    earliest: datetime = _LONG_AGO

    def surely_precedes(self, other: Trace) -> bool:
        """Return whether it was decided earlier, so that the scheduler knew of it when deciding on the other.

        A scheduler tries pods one at a time, and assumes its decisions at once. A pod that was created first and is no
        less important is tried first, except for unschedulable pods that wait for their next attempt.
        """
        if self.scheduler != other.scheduler:
            return False
        if self.reported_at is not None and other.reported_at is not None:
            return self.reported_at < other.reported_at
        if self.is_written_before(other) or (self.reported_at is not None and self.reported_at <= other.earliest):
            return True
        (importance, since), (others, others_since) = self.position, other.position
        if self.written < others_since:
            return True
        return self.is_first and other.is_first and since < others_since and importance <= others

    def is_written_before(self, other: Trace) -> bool:
        """Return whether it was written before the scheduler reported the other, whose decision takes no pause."""
        return other.reported_at is not None and (self.reported_at or self.written_by) <= other.reported_at

    @property
    def preempts_on(self) -> str:
        """The node on which the pod preempted, or may have preempted again; empty if it did not."""
        decision = self.decision
        return decision.node if decision.decision is DecisionKind.NOMINATED else self.nominated_node


class Mark(NamedTuple):
    """A pod that has been terminating since a version."""

    version: int
    seen_at: datetime
    uid: str = ""


class Eviction(NamedTuple):
    """The content of an event: the evicted pod, the UID of the preemptor, and the node.

    ``at`` is the scheduler's time, if the event has microseconds. ``in_memory`` means that the victim was not on its
    node yet, and was not deleted.
    """

    victim: str
    uid: str
    preemptor: str
    node: str
    at: datetime | None
    version: int
    seen_at: datetime
    in_memory: bool


def eviction_of(event: Event, version: int, seen_at: datetime) -> Eviction:
    """Return the eviction that an event reports."""
    match = PREEMPTED_TEXT.fullmatch(event.text.strip())
    preemptor = event.related.uid if event.related is not None else ""
    if not preemptor and match is not None:
        preemptor = match["uid"] or match["bare_uid"] or ""
    return Eviction(
        event.subject.key,
        event.subject.uid,
        preemptor,
        match["node"] if match is not None else "",
        event.observed_at,
        version,
        seen_at,
        event.text.rstrip().endswith("(in kube-scheduler memory)."),
    )


class _Victim(NamedTuple):
    """An eviction, and the victim's mark if that was seen; ``is_again`` means that another eviction caused it."""

    eviction: Eviction
    mark: Mark | None
    is_again: bool = False

    @property
    def at(self) -> datetime:
        """The scheduler's time, or else when it was seen."""
        return self.eviction.at or self.seen_at

    @property
    def version(self) -> int:
        """The version from which the eviction shows."""
        return self.eviction.version if self.mark is None or self.is_again else self.mark.version

    @property
    def seen_at(self) -> datetime:
        """When that version was seen."""
        return self.eviction.seen_at if self.mark is None or self.is_again else self.mark.seen_at


class Attempt(NamedTuple):
    """An attempt to schedule a pod that failed at this time, and the event that reports it."""

    at: datetime
    version: int
    seen_at: datetime


class Evidence(NamedTuple):
    """What a run shows about preemptions.

    ``attempts`` are the failed attempts to schedule a pod (by UID), in order, as far as events report them: repeated
    events only count. ``marks`` are those of each pod. ``waiting`` has the last line of each pod (by UID) that waited
    for a node, with the version at which the pod was created or first seen. ``bound``, ``gone`` and ``terminating``
    have the versions at which pods got their node, were deleted, and began to be deleted.
    """

    evictions: Iterable[Eviction]
    attempts: Mapping[str, Sequence[Attempt]]
    marks: Mapping[str, Sequence[Mark]]
    waiting: Mapping[str, tuple[PodLine, int]]
    bound: Mapping[str, int]
    gone: Mapping[str, int]
    terminating: Mapping[str, int]

    def ended(self, uid: str) -> int:
        """The version from which a pod did not wait for a node any more; 0 if unknown."""
        return self.bound.get(uid, 0) or self.gone.get(uid, 0)


def with_victims(traces: Sequence[Trace], evidence: Evidence) -> list[Trace]:
    """Return the decisions with the pods that were evicted for each, in the order in which they show.

    Every victim belongs to the decision that evicted it first. Preemptions that only their victims show are added.
    """
    of_pod: defaultdict[str, list[int]] = defaultdict(list)
    traces = list(_reported(traces, evidence))
    for index, trace in enumerate(traces):
        of_pod[trace.uid].append(index)
    found: list[Trace] = list(traces)
    reports_failures = any(NO_PREEMPTION in each.decision.message for each in traces)
    for index, trace in enumerate(traces):
        # A scheduler that reports failed preemptions has preempted if its message has no failure.
        if trace.nominated_node and reports_failures:
            found[index] = _preempting(trace, trace.nominated_node)
    for preemptor, victims in _by_preemptor(evidence).items():
        own = [traces[index] for index in of_pod[preemptor]]
        groups = _disentangled(_attempts_of(victims, own, evidence))
        taken: dict[int, list[_Victim]] = {}
        unmatched: list[list[_Victim]] = []
        for group, place in zip(groups, _matches(groups, own, evidence.ended(preemptor)), strict=True):
            if place is None:
                unmatched.append(group)
            else:
                taken.setdefault(of_pod[preemptor][place], []).extend(group)
        for index, group in taken.items():
            found[index] = _evicting(found[index], group)
        if preemptor in evidence.waiting:
            pod, since = evidence.waiting[preemptor]
            # A pod that is only evicted again was evicted by another decision.
            for group in unmatched:
                if not all(each.is_again for each in group):
                    own.append(_hidden(pod, since, own, group, evidence))
                    found.append(own[-1])
    return sorted(found, key=lambda trace: trace.version)


def _reported(traces: Iterable[Trace], evidence: Evidence) -> Iterator[Trace]:
    """Yield the decisions, in their order, with the attempt of each, and the earliest time by which it was written.

    A victim is terminating before the event that reports its eviction, and everything with a lower version is older.
    """
    bounds: list[tuple[int, datetime]] = []
    marks = [(evidence.terminating.get(each.uid, 0), each.at) for each in evidence.evictions if each.at is not None]
    for version, time in sorted(marks, reverse=True):
        if not bounds or time < bounds[-1][1]:
            bounds.append((version, time))
    bounds.reverse()
    reported: dict[str, datetime] = {}
    for trace in traces:
        later = bisect_left(bounds, trace.written, key=itemgetter(0))
        written_by = min([trace.written_by, *(time for _, time in bounds[later : later + 1])])
        earliest = reported.get(trace.uid, _LONG_AGO)
        attempt = None
        if trace.decision.decision is not DecisionKind.BOUND:
            attempt = _attempt_of(trace, evidence.attempts.get(trace.uid, ()), earliest, written_by)
        if attempt is not None:
            reported[trace.uid] = attempt.at
        yield trace._replace(
            written_by=written_by, reported_at=attempt.at if attempt is not None else None, earliest=earliest
        )


def _attempt_of(trace: Trace, attempts: Sequence[Attempt], earliest: datetime, latest: datetime) -> Attempt | None:
    """Return the attempt that a pod's status shows, of those after ``earliest`` and shortly before ``latest``.

    Its event is written shortly before or after the status; others may be of attempts that changed nothing.
    """
    earlier = (attempts[index] for index in range(_before(attempts, latest) - 1, -1, -1))
    near = takewhile(lambda each: each.at > earliest and latest - each.at <= _REPORT, earlier)
    return min(near, key=lambda each: abs(each.version - trace.written), default=None)


def _by_preemptor(evidence: Evidence) -> dict[str, list[_Victim]]:
    """Return the victims of each preemptor in the order of their evictions."""
    victims = sorted((_victim(each, evidence) for each in evidence.evictions), key=lambda each: (each.at, each.version))
    found: defaultdict[str, list[_Victim]] = defaultdict(list)
    evicted: set[tuple[str, str, int]] = set()
    for victim in victims:
        eviction, mark = victim.eviction, victim.mark
        key = eviction.victim, eviction.uid, mark.version if mark is not None else 0
        found[eviction.preemptor].append(victim._replace(is_again=key in evicted))
        if not eviction.in_memory:
            evicted.add(key)
    return found


def _victim(eviction: Eviction, evidence: Evidence) -> _Victim:
    """Return an eviction with the mark of the victim that the event is about, among all pods of that name."""
    marks = [
        each
        for each in evidence.marks.get(eviction.victim, ())
        if (not eviction.uid or each.uid in ("", eviction.uid)) and abs(each.seen_at - eviction.seen_at) <= _EVICTION
    ]
    mark = min(marks, key=lambda each: abs(each.seen_at - eviction.seen_at), default=None)
    return _Victim(eviction, None if eviction.in_memory else mark)


def _attempts_of(victims: list[_Victim], own: list[Trace], evidence: Evidence) -> Iterator[list[_Victim]]:
    """Yield the victims of each attempt of one pod, in order; ``own`` are the decisions that its status shows."""
    group: list[_Victim] = []
    for victim in victims:
        if group and _is_later(victim, group, own, evidence):
            yield group
            group = []
        group.append(victim)
    if group:
        yield group


def _disentangled(groups: Iterable[list[_Victim]]) -> list[list[_Victim]]:
    """Return the victims of each attempt if attempts overlap: a repeated attempt evicts the same pods once more.

    A pod may be tried again as soon as its last victim is terminating, while its requests are still being answered.
    """
    found: list[list[_Victim]] = []
    for group in groups:
        repeated = {each.eviction.victim for each in group if each.is_again}
        if len(found) > 1 and len(repeated) == len(group):
            first, second = found[-2:]
            of_first = [each for each in second if not each.is_again and each.eviction.victim in repeated]
            overlaps = {each.eviction.victim for each in second if each.is_again} & {
                each.eviction.victim for each in first
            }
            if overlaps and len(of_first) == len(group):
                found[-2:] = [[*first, *of_first], [*(each for each in second if each not in of_first), *group]]
                continue
        found.append(group)
    return found


def _is_later(victim: _Victim, group: list[_Victim], own: list[Trace], evidence: Evidence) -> bool:
    """Return whether the pod was tried again between the victims of a group and this one."""
    eviction, last = victim.eviction, group[-1]
    if eviction.node != last.eviction.node or eviction.victim in {each.eviction.victim for each in group}:
        return True
    attempts = evidence.attempts.get(eviction.preemptor, ())
    if _before(attempts, last.at) < _before(attempts, victim.at):
        return True
    begins = min(each.version for each in group)
    if any(begins < each.version < victim.version and not each.preempts_on for each in own):
        return True
    # A pod that had no node yet was not chosen.
    if evidence.bound.get(eviction.uid, 0) > begins:
        return True
    # The pod waits until the API server accepts all evictions, but not until the victims are gone.
    return all(0 < evidence.gone.get(each.eviction.uid, 0) < victim.version for each in group)


def _before(attempts: Sequence[Attempt], time: datetime) -> int:
    """Return the number of attempts before a time."""
    return bisect_right(attempts, time, key=attrgetter("at"))


def _matches(groups: list[list[_Victim]], own: list[Trace], ended: int) -> list[int | None]:
    """Return the decision of each group among the pod's ``own``, or ``None`` if its status does not show it."""
    places: list[int | None] = [None] * len(groups)
    near: list[tuple[bool, timedelta, int, int]] = []
    for number, group in enumerate(groups):
        first = min(group, key=lambda each: each.version)
        for index, trace in enumerate(own):
            if trace.preempts_on and trace.preempts_on == (first.eviction.node or trace.preempts_on):
                between = sorted((trace.version, first.version))
                is_next = not any(between[0] < each.version < between[1] for each in own)
                distance = abs(trace.seen_at - first.seen_at)
                is_early = False
                if trace.reported_at is not None and group[0].eviction.at is not None:
                    # The scheduler reports the attempt before evictions, unless they are very fast.
                    distance = abs(group[0].at - trace.reported_at)
                    is_early = group[0].at < trace.reported_at
                if is_next and distance <= _EVICTION:
                    near.append((is_early, distance, number, index))
    used: set[int] = set()
    for _, _, number, index in sorted(near):
        if places[number] is None and index not in used:
            places[number] = index
            used.add(index)
    for number, group in enumerate(groups):
        # The last victims may be deleted when the pod is already bound or gone: it has not been tried since.
        first = min(group, key=lambda each: each.version)
        if places[number] is None and 0 < ended <= first.version:
            earlier = [index for index, trace in enumerate(own) if trace.preempts_on == first.eviction.node]
            places[number] = earlier[-1] if earlier else None
    return places


def _preempting(trace: Trace, node: str) -> Trace:
    decision = msgspec.structs.replace(trace.decision, decision=DecisionKind.NOMINATED, node=node)
    return trace._replace(decision=decision)


def _evicting(trace: Trace, group: list[_Victim]) -> Trace:
    """Return the decision with its victims; it shows when the first of them is marked, if that is earlier."""
    trace = _preempting(trace, trace.preempts_on or group[0].eviction.node)
    marks = {each.eviction.victim: each.mark for each in group if each.mark is not None and not each.is_again}
    version, seen, _ = min([Mark(trace.version, trace.seen_at), *marks.values()])
    victims = {each.eviction.victim for each in group if not each.is_again}
    decision = msgspec.structs.replace(
        trace.decision,
        victims=sorted(victims),
        already_evicted=sorted({each.eviction.victim for each in group} - victims),
    )
    return trace._replace(
        decision=decision,
        version=version,
        seen_at=seen,
        marks={victim: mark.version for victim, mark in marks.items()},
    )


def _hidden(pod: PodLine, since: int, own: list[Trace], group: list[_Victim], evidence: Evidence) -> Trace:
    """Return a preemption that changed nothing in the pod's status; its message is unknown.

    It was taken before the event that reports the attempt and before the pod was deleted, but after its victims were
    bound.
    """
    uid = pod.metadata.uid
    first = min(group, key=lambda each: each.version)
    attempts = evidence.attempts.get(uid, ())
    reported = {each.reported_at for each in own}
    earlier = reversed(attempts[: _before(attempts, group[0].at)])
    attempt = next((each for each in earlier if each.at not in reported), None)
    shown = [(first.version, first.seen_at), *([(attempt.version, attempt.seen_at)] if attempt is not None else [])]
    shown += [(each.version, each.seen_at) for each in evidence.marks.get(pod.key, ()) if each.uid in ("", uid)]
    begins = max(since, *(evidence.bound.get(each.eviction.uid, 0) for each in group))
    version, seen = min(each for each in shown if each[0] > begins or each == shown[0])
    before = [each for each in own if each.version < version]
    decision = TakenDecision(
        decision=DecisionKind.NOMINATED, pod=pod.key, at=seen, node=first.eviction.node, message=""
    )
    trace = Trace(
        decision,
        uid,
        version,
        seen,
        first.version,
        (-pod.spec.priority, before[-1].written if before else since),
        is_first=False,
        scheduler=pod.spec.scheduler_name,
        written_by=min(seen, group[0].at),
        earliest=max((each.reported_at or _LONG_AGO for each in before), default=_LONG_AGO),
        reported_at=attempt.at if attempt is not None else None,
        nominated_node=first.eviction.node,
    )
    return _evicting(trace, group)
