"""The pods in a scheduler's queue at the time of a snapshot, and how a queue is filled with them.

The queue is in the scheduler's memory. A pod's condition and events show whether it was tried, and with what precision
they show when. A pod that was tried is assumed to have been rejected for the current reasons, and to wait for an event
or for the periodic flush, at most five minutes. If a what-if has changed the cluster, this moves the pods that would
find a node now: they are tried again after their backoff.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise, product
from typing import Any, NamedTuple

from kpreempt.analysis.algorithms import (
    Scheduler,
    Spread,
    decide_pending,
    has_queue,
    one_by_one,
    pending_pods,
    queue_for,
)
from kpreempt.analysis.queue.order import FailedAttempts, queue_time, rejection_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.scheduler_table import DEFAULT_ALGORITHM
from kpreempt.schedulers.interface import QueueRules
from kpreempt.schedulers.kube.queue.backoff import DEFAULT_MAX_BACKOFF
from kpreempt.schedulers.queues import Attempt, SchedulingQueue
from kpreempt.verdict import Verdict
from kpreempt.verdict.queue import QueueName

# Stands for the unknown plugins that rejected a pod which no plugin rejects now; it is assumed to wait for any event.
UNKNOWN_PLUGIN = "unknown"
# Stands for all extenders, as in upstream's queue.
EXTENDER = "Extender"
# A pod that stays unschedulable is tried every five minutes, at the next run of a timer with a period of 30 seconds.
_LONGEST_SINCE_ATTEMPT = timedelta(minutes=5, seconds=30)
_HALF = 0.5
# A scheduler that runs tries a new pod within this time.
_SOON_TRIED = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
# A scheduler tries many pods within this time.
_PAUSE = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)
# The earliest and the latest time.
_Interval = tuple[datetime, datetime]


class Waiting(NamedTuple):
    """A pod in the queue.

    It entered the queue, or was last tried, between ``time``, which is assumed, and ``latest``. ``plugins`` rejected
    it; ``None`` if it was never tried. It ``finds_node`` if it would find one now. It ``is_moved`` if an event has
    helped it since, and ``may_be_moved`` if this is unknown: it would find a node now, and would not have been tried
    since if its backoff is not over. A pod that should have been tried long ago, of which nothing shows this, may have
    been rejected by the ``unseen`` plugins.
    """

    pod: Pod
    time: datetime
    latest: datetime
    plugins: frozenset[str] | None = None
    finds_node: bool = False
    is_moved: bool = False
    may_be_moved: bool = False
    unseen: frozenset[str] | None = None

    @property
    def is_time_known(self) -> bool:
        """Whether the time is exact."""
        return self.time == self.latest


def waiting_pods(
    cluster: ClusterSnapshot,
    scheduler: Scheduler,
    prepared: Callable[[], Any],
    at: datetime,
    *,
    known: Mapping[str, Verdict] | None = None,
    decides: bool = True,
    spread: Spread = one_by_one,
    phases: Phases = NO_PHASES,
) -> list[Waiting]:
    """The pods in the scheduler's queue at a time, in the order in which they entered it.

    Pods of other schedulers and pods that are being deleted are left out; gated pods are included. ``known`` are
    verdicts on pods of the current cluster, by key; the others are computed with the ``prepared`` cluster, unless it
    neither ``decides`` about pods nor is a what-if: then the plugins are unknown, which does not change the order.
    Equal times keep the order of the snapshot.
    """
    attempts = FailedAttempts(cluster.events)
    max_backoff = scheduler.settings.max_backoff or DEFAULT_MAX_BACKOFF
    pods = [
        pod
        for pod in pending_pods(cluster)
        if pod.spec.scheduler_name in scheduler.scheduler_names and pod.metadata.deletion_timestamp is None
    ]
    attempted = {pod.key for pod in pods if rejection_of(pod) is not None or attempts.last_of(pod) is not None}
    verdicts = dict(known or {})
    created = _times_of_creation([pod for pod in pods if pod.key not in attempted], at)
    # Nothing shows that these were tried, although they should have been.
    old = {key for key, (_, latest) in created.items() if at - latest > _SOON_TRIED}
    unknown = [pod for pod in pods if (pod.key in attempted or pod.key in old) and pod.key not in verdicts]
    if unknown and (decides or cluster.is_what_if):
        decided = decide_pending(unknown, scheduler, prepared(), spread=spread, phases=phases)
        verdicts |= {pod.key: verdict for pod, verdict in decided}
    found = []
    # Equivalent pods share the statuses of nodes.
    rejecting: dict[int, frozenset[str]] = {}
    for pod in pods:
        verdict = verdicts.get(pod.key)
        plugins = frozenset[str]()
        if verdict is not None:
            plugins = rejecting.get(id(verdict.filter)) or rejecting_plugins(verdict)
            rejecting[id(verdict.filter)] = plugins
        if not plugins or (verdict is not None and verdict.feasible_nodes):
            plugins = frozenset((UNKNOWN_PLUGIN,))
        finds_node = verdict is not None and verdict.outcome.finds_node
        if pod.key not in attempted:
            earliest, latest = created[pod.key]
            each = Waiting(pod, earliest, latest, finds_node=finds_node)
            if pod.key in old:
                is_moved = finds_node and cluster.is_what_if
                each = each._replace(is_moved=is_moved, may_be_moved=finds_node and not is_moved, unseen=plugins)
            found.append(each)
            continue
        earliest, latest = _times_of_attempt(pod, attempts, at)
        is_moved = finds_node and cluster.is_what_if
        may_be_moved = finds_node and not cluster.is_what_if and at - latest < max_backoff
        found.append(Waiting(pod, earliest, latest, plugins, finds_node, is_moved, may_be_moved))
    return sorted(found, key=lambda each: each.time)


def queue_of(scheduler: Scheduler, waiting: Iterable[Waiting], at: datetime, rules: QueueRules) -> SchedulingQueue:
    """The queue of a scheduler with these pods, under the ``rules`` of out-of-tree plugins.

    If the scheduler's own queue is not modeled, it is the current version's. Raises ``PluginFailedError`` if a plugin
    cannot order the pods.
    """
    settings = scheduler.settings
    queue = queue_for(
        scheduler.algorithm if has_queue(scheduler.algorithm) else DEFAULT_ALGORITHM,
        at,
        feature_gates=settings.gates,
        initial_backoff=settings.initial_backoff,
        max_backoff=settings.max_backoff,
        rules=rules,
    )
    for each in waiting:
        if each.plugins is None:
            queue.add(each.pod, each.time)
        else:
            queue.restore(each.pod, Attempt(plugins=each.plugins), each.time, at if each.is_moved else None)
    queue.advance(at)
    return queue


def queue_positions(queue: SchedulingQueue) -> dict[str, int]:
    """The position of every pod that is not gated in the queue, by ``namespace/name``, from 1."""
    ordered = [each.pod for each in queue.pods() if each.queue is not QueueName.GATED]
    return {key: position for position, key in enumerate(ordered, start=1)}


def rejecting_plugins(verdict: Verdict) -> frozenset[str]:
    """The plugins that rejected nodes or the pod itself, including those that restricted the nodes.

    All extenders that reject nodes share one name (``schedule_one.go`` of v1.36.3).
    """
    statuses = [*verdict.filter.values(), *([verdict.pre_filter] if verdict.pre_filter else [])]
    rejecting = {status.plugin for status in statuses if status.plugin and status.is_rejected}
    rejecting -= {call.extender for call in verdict.extender_calls}
    if any(call.rejected for call in verdict.extender_calls if call.verb == "filter"):
        rejecting.add(EXTENDER)
    return frozenset(rejecting.union(verdict.restricted_by))


def _times_of_creation(pods: Sequence[Pod], at: datetime) -> dict[str, _Interval]:
    """When pods that were never tried entered the queue: the earliest and the latest time, by key.

    Creation times have whole seconds. The resource versions of pods that were not changed since have the order in which
    the pods of a second were created, and of two requests at the end of a second.
    """
    by_second: dict[datetime, list[Pod]] = {}
    for pod in pods:
        by_second.setdefault(min(pod.metadata.creation_timestamp or at, at), []).append(pod)
    times: dict[str, _Interval] = {}
    ordered: list[tuple[int, datetime, str]] = []
    for created, together in by_second.items():
        versions = {pod.metadata.resource_version for pod in together}
        is_ordered = len(versions) == len(together) and all(map(str.isdecimal, versions))
        if len(together) > 1 and not is_ordered:
            latest = min(created + _SECOND - _MICROSECOND, max(at, created))
            times |= {pod.key: (created, latest) for pod in together}
        else:
            ordered += [(int(pod.metadata.resource_version) if is_ordered else 0, created, pod.key) for pod in together]
    last = datetime.min.replace(tzinfo=UTC)
    for _, created, key in sorted(ordered):
        # A pod that is older than that was changed later, and its version is that of the change.
        time = last + _MICROSECOND if created <= last < created + 2 * _SECOND else created
        times[key] = (time, time)
        last = max(last, time)
    return times


def _times_of_attempt(pod: Pod, attempts: FailedAttempts, at: datetime) -> _Interval:
    """Between which times a pod was last tried.

    The condition only has the time of the first failure, and repeated events are not always recorded. The time of a
    snapshot has whole seconds, so that events of its last second seem to be later.
    """
    rejection = rejection_of(pod)
    reported = [queue_time(pod, attempts).time, rejection.last_probe_time if rejection else None]
    end = at if at.microsecond else at + _SECOND - _MICROSECOND
    last = min(max((time for time in reported if time is not None), default=at), end)
    return last, last if attempts.is_exact(pod) and at - last < _LONGEST_SINCE_ATTEMPT else end


class UnknownTimes:
    """Draws the times that a snapshot does not show; ``chance`` returns random numbers from 0 to 1."""

    def __init__(self, waiting: Sequence[Waiting], at: datetime) -> None:
        self._waiting = waiting
        self._at = at
        # The pods are in order of time: a pause separates attempts at different occasions. Pods that have been pending
        # for longer all have the same backoff, and have settled into one order.
        times = [each.time for each in waiting]
        pauses = (later - earlier > _PAUSE for earlier, later in pairwise(times))
        self._rounds = [
            0 if at - (each.pod.metadata.creation_timestamp or at) > _SOON_TRIED else number
            for each, number in zip(waiting, accumulate(pauses, initial=1), strict=False)
        ]
        self.are_all_known = len(waiting) < 2 or not any(
            each.may_be_moved or each.unseen is not None or not each.is_time_known for each in waiting
        )

    def extremes(self, kind_of: Callable[[Pod], Hashable]) -> Iterator[list[Waiting]]:
        """Orders in which all pods of one kind come before, or after, the others that were created in the same second.

        Draws rarely have these orders if there are many pods.
        """
        unknown = {each.pod.key for each in self._waiting if each.plugins is None and not each.is_time_known}
        kinds = {each.pod.key: kind_of(each.pod) for each in self._waiting if each.pod.key in unknown}
        different = list(dict.fromkeys(kinds.values()))
        for kind, is_first in product(different if len(different) > 1 else (), (True, False)):
            late = {key for key in unknown if (kinds[key] == kind) is not is_first}
            found = (each._replace(time=each.latest) if each.pod.key in late else each for each in self._waiting)
            yield sorted(found, key=lambda each: each.time)

    def drawn(self, chance: Callable[[], float]) -> list[Waiting]:
        """The pods in another possible order.

        Pods that the same plugins rejected one after the other are tried together again and again, so they keep their
        order. Their last attempt is the known one in half of all cases, and otherwise at any time since. New pods whose
        known attempts are further apart have been tried together since, perhaps, in any order.
        """
        shifts: dict[tuple[frozenset[str], bool, int], tuple[float, bool, bool]] = {}
        found = []
        for number, each in enumerate(self._waiting):
            time, is_moved, plugins = each.time, each.is_moved, each.plugins
            kind = plugins or each.unseen or frozenset(), each.may_be_moved, self._rounds[number]
            if kind not in shifts:
                shifts[kind] = max(2 * chance() - 1, 0.0), chance() < _HALF, chance() < _HALF
            shift, move, was_tried = shifts[kind]
            if plugins is None and each.unseen is not None and was_tried:
                plugins = each.unseen
            if plugins is None:
                time += (each.latest - each.time) * chance()
            else:
                is_moved |= each.may_be_moved and move
                latest = each.latest if each.plugins is not None else self._at
                if shift and time < latest:
                    earliest = max(time, self._at - _LONGEST_SINCE_ATTEMPT)
                    time = min(earliest + (latest - earliest) * shift + number * _MICROSECOND, latest)
            found.append(each._replace(time=time, is_moved=is_moved, plugins=plugins))
        return sorted(found, key=lambda each: each.time)
