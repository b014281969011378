"""What a snapshot shows of the scheduler's queue: which pods are in it, since when, and how surely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import decide_pending, pending_pods, scheduler_for
from kpreempt.analysis.queue.waiting import UNKNOWN_PLUGIN, UnknownTimes, Waiting, queue_of, waiting_pods
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import Event, EventSeries, ObjectReference
from kpreempt.model.meta import replace_in
from kpreempt.model.pod import Pod, PodCondition, PodSchedulingGate
from kpreempt.schedulers.interface import QueueRules
from kpreempt.verdict.queue import QueueName
from tests.factories import NOW, make_node, make_pod

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)
FIT = frozenset(("NodeResourcesFit",))
UNKNOWN = frozenset((UNKNOWN_PLUGIN,))
SCHEDULER = scheduler_for()


def seen(pod: Pod, *, created: datetime | None = NOW - 60 * MINUTE, version: str = "") -> Pod:
    """The pod as the API server has it."""
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=created, resource_version=version)
    return msgspec.structs.replace(pod, metadata=metadata)


def tried(
    pod: Pod, first: datetime, *, probed: datetime | None = None, created: datetime | None = NOW - 60 * MINUTE
) -> Pod:
    """The pod with a condition since its first failed attempt."""
    condition = PodCondition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        last_transition_time=first,
        last_probe_time=probed,
    )
    status = msgspec.structs.replace(pod.status, conditions=[condition])
    return msgspec.structs.replace(seen(pod, created=created), status=status)


def failed(pod: Pod, at: datetime, *, until: datetime | None = None) -> Event:
    """The event about a failed attempt, or about several up to a time."""
    subject = ObjectReference("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
    series = EventSeries(until) if until is not None else None
    return Event(reason="FailedScheduling", regarding=subject, event_time=at, series=series)


def failed_in_core(pod: Pod, at: datetime) -> Event:
    """The event in its older form, which shows the last time only."""
    return Event(reason="FailedScheduling", involved_object=failed(pod, at).regarding, last_timestamp=at)


def cluster_of(*pods: Pod, events: Sequence[Event] = (), is_what_if: bool = False) -> ClusterSnapshot:
    """One node of 4 CPUs."""
    return ClusterSnapshot(nodes=[make_node("node-a")], pods=list(pods), events=list(events), is_what_if=is_what_if)


def found_in(cluster: ClusterSnapshot, *, knows_verdicts: bool = True) -> list[Waiting]:
    prepared = SCHEDULER.prepare(cluster, now=NOW)
    known = {}
    if knows_verdicts:
        known = {pod.key: verdict for pod, verdict in decide_pending(pending_pods(cluster), SCHEDULER, prepared)}
    return waiting_pods(cluster, SCHEDULER, lambda: prepared, NOW, known=known)


IT, HUGE = make_pod("it", cpu="2"), make_pod("it", cpu="5")
OLD, YOUNG = NOW - 60 * MINUTE, NOW - 10 * SECOND


@pytest.mark.parametrize(
    ("pod", "events", "between"),
    [
        pytest.param(seen(IT, created=YOUNG), [], (YOUNG, YOUNG), id="never tried: since it was created"),
        pytest.param(seen(IT, created=None), [], (NOW, NOW), id="without a creation time: since now"),
        pytest.param(
            seen(IT, created=NOW + MINUTE), [], (NOW, NOW), id="created later than now, by another clock: since now"
        ),
        pytest.param(
            tried(HUGE, OLD), [failed(HUGE, YOUNG)], (YOUNG, YOUNG), id="tried, with one event: when the event says"
        ),
        pytest.param(
            tried(HUGE, OLD),
            [failed(HUGE, NOW - 330 * SECOND)],
            (NOW - 330 * SECOND, NOW),
            id="with one event that is older than the longest wait: it must have been tried since",
        ),
        pytest.param(
            tried(HUGE, OLD),
            [failed(HUGE, OLD, until=NOW - MINUTE)],
            (NOW - MINUTE, NOW),
            id="with a repeated event: perhaps again since, which is not always recorded",
        ),
        pytest.param(
            tried(HUGE, OLD),
            [failed_in_core(HUGE, NOW - MINUTE)],
            (NOW - MINUTE, NOW),
            id="with an event in its older form, which does not say whether it is repeated",
        ),
        pytest.param(
            tried(HUGE, OLD), [], (OLD, NOW), id="with a condition only, which shows the first attempt: any time since"
        ),
        pytest.param(
            tried(HUGE, OLD, probed=NOW - 2 * MINUTE),
            [],
            (NOW - 2 * MINUTE, NOW),
            id="with a condition that older schedulers update at each attempt",
        ),
        pytest.param(
            tried(HUGE, OLD, probed=NOW - MINUTE),
            [failed(HUGE, NOW - 2 * MINUTE)],
            (NOW - MINUTE, NOW - MINUTE),
            id="with such a condition that is newer than the event",
        ),
        pytest.param(
            seen(HUGE), [failed(HUGE, YOUNG)], (YOUNG, YOUNG), id="with an event, but no condition yet: it was tried"
        ),
    ],
)
def test_since_when_a_pod_waits(pod: Pod, events: list[Event], between: tuple[datetime, datetime]) -> None:
    (waiting,) = found_in(cluster_of(pod, events=events))
    # The time of a snapshot has whole seconds.
    is_open = between[0] < between[1] == NOW
    assert (waiting.time, waiting.latest) == (between[0], NOW + SECOND - MICROSECOND if is_open else between[1])
    assert waiting.is_time_known is (between[0] == between[1])


@pytest.mark.parametrize(
    ("versions", "is_known"),
    [
        pytest.param(["12", "9", "100"], True, id="with resource versions: in their order"),
        pytest.param(["", "", ""], False, id="without: in any order"),
        pytest.param(["12", "", "9"], False, id="with some of them"),
        pytest.param(["7", "7", "9"], False, id="with equal ones"),
        pytest.param(["a", "b", "c"], False, id="with versions that are no numbers"),
    ],
)
def test_pods_that_were_created_in_the_same_second(versions: list[str], is_known: bool) -> None:
    pods = [seen(make_pod(name), created=YOUNG, version=version) for name, version in zip("abc", versions, strict=True)]
    waiting = found_in(cluster_of(*pods))
    if is_known:
        assert [each.pod.metadata.name for each in waiting] == ["b", "a", "c"]
        assert [each.time for each in waiting] == [YOUNG, YOUNG + MICROSECOND, YOUNG + 2 * MICROSECOND]
        assert all(each.is_time_known for each in waiting)
    else:
        assert [(each.pod.metadata.name, each.time, each.latest) for each in waiting] == [
            (name, YOUNG, YOUNG + SECOND - MICROSECOND) for name in "abc"
        ]


def test_nothing_was_created_after_now() -> None:
    waiting = found_in(cluster_of(*(seen(make_pod(name), created=NOW) for name in "ab")))
    assert {each.latest for each in waiting} == {NOW}


@pytest.mark.parametrize(
    ("pod", "others", "plugins"),
    [
        pytest.param(seen(HUGE, created=YOUNG), [], None, id="never tried: by none"),
        pytest.param(tried(HUGE, YOUNG), [], FIT, id="tried: by those that reject it now"),
        pytest.param(tried(IT, YOUNG), [], UNKNOWN, id="tried, and it fits now: by unknown ones"),
        pytest.param(
            tried(make_pod("it", cpu="2", priority=5), YOUNG),
            [make_pod("low", node="node-a", cpu="3")],
            FIT,
            id="tried, and it would preempt: by those that reject it now",
        ),
    ],
)
def test_which_plugins_rejected_a_pod(pod: Pod, others: list[Pod], plugins: frozenset[str] | None) -> None:
    (waiting,) = found_in(cluster_of(pod, *others))
    assert waiting.plugins == plugins
    assert waiting.unseen is None


@pytest.mark.parametrize(
    ("pod", "seconds", "is_what_if", "is_moved", "may_be_moved"),
    [
        pytest.param(IT, 60, True, True, False, id="a what-if moves a pod that fits now"),
        pytest.param(HUGE, 60, True, False, False, id="but none that still does not fit"),
        pytest.param(IT, 10, False, False, False, id="tried after its last move: its backoff would be over"),
        pytest.param(IT, 9, False, False, True, id="backing off: it may have been moved since"),
        pytest.param(HUGE, 9, False, False, False, id="backing off, and nothing has helped it"),
        pytest.param(IT, 331, False, False, True, id="it must have been tried since, perhaps a moment ago"),
    ],
)
def test_which_pods_an_event_has_moved(
    pod: Pod, seconds: int, is_what_if: bool, is_moved: bool, may_be_moved: bool
) -> None:
    pod = tried(pod, OLD)
    cluster = cluster_of(pod, events=[failed(pod, NOW - seconds * SECOND)], is_what_if=is_what_if)
    (waiting,) = found_in(cluster)
    assert (waiting.is_moved, waiting.may_be_moved) == (is_moved, may_be_moved)


@pytest.mark.parametrize(
    ("pod", "unseen"),
    [
        pytest.param(seen(HUGE, created=NOW - MINUTE), None, id="a minute old: it may not have been tried yet"),
        pytest.param(
            seen(HUGE, created=NOW - MINUTE - SECOND),
            FIT,
            id="older: it may have been rejected, as it is now",
        ),
        pytest.param(seen(IT), UNKNOWN, id="older, and it fits: for unknown reasons"),
    ],
)
def test_a_pod_that_should_have_been_tried_long_ago(pod: Pod, unseen: frozenset[str] | None) -> None:
    (waiting,) = found_in(cluster_of(pod))
    assert (waiting.plugins, waiting.unseen, waiting.is_moved) == (None, unseen, False)
    # If it was, only the flush or an event that the snapshot does not show lets it be tried again.
    assert waiting.finds_node is waiting.may_be_moved is (unseen == UNKNOWN)


def test_a_what_if_moves_a_pod_that_should_have_been_tried_long_ago_if_it_was() -> None:
    (waiting,) = found_in(cluster_of(seen(IT), is_what_if=True))
    assert (waiting.plugins, waiting.unseen, waiting.is_moved, waiting.may_be_moved) == (None, UNKNOWN, True, False)


def test_a_what_if_moves_pods_into_the_active_queue_and_the_others_wait() -> None:
    pods = [tried(make_pod("it", cpu="2"), OLD), tried(make_pod("huge", cpu="5"), OLD)]
    for is_what_if, places in (
        (False, {"shop/it": QueueName.UNSCHEDULABLE, "shop/huge": QueueName.UNSCHEDULABLE}),
        (True, {"shop/it": QueueName.ACTIVE, "shop/huge": QueueName.UNSCHEDULABLE}),
    ):
        waiting = found_in(cluster_of(*pods, is_what_if=is_what_if))
        queue = queue_of(SCHEDULER, waiting, NOW, QueueRules())
        assert {each.pod: each.queue for each in queue.pods()} == places


def test_a_moved_pod_waits_for_the_end_of_its_backoff() -> None:
    pod = tried(IT, OLD)
    waiting = found_in(cluster_of(pod, events=[failed(pod, NOW - 4 * SECOND)], is_what_if=True))
    (queued,) = queue_of(SCHEDULER, waiting, NOW, QueueRules()).pods()
    assert (queued.queue, queued.backoff_until) == (QueueName.BACKOFF, NOW + 6 * SECOND)


def test_pods_of_other_schedulers_and_deleted_ones_are_not_in_the_queue_but_gated_ones_are() -> None:
    deleted = seen(make_pod("deleted"))
    pods = [
        seen(make_pod("a", node="node-a")),
        seen(make_pod("b", phase="Succeeded")),
        seen(make_pod("c", scheduler_name="volcano")),
        msgspec.structs.replace(
            deleted, metadata=msgspec.structs.replace(deleted.metadata, deletion_timestamp=NOW + MINUTE)
        ),
        seen(make_pod("gated", scheduling_gates=[PodSchedulingGate("example.com/quota")])),
        seen(make_pod("z")),
    ]
    waiting = found_in(cluster_of(*pods))
    assert [each.pod.metadata.name for each in waiting] == ["gated", "z"]
    queue = queue_of(SCHEDULER, waiting, NOW, QueueRules())
    assert [(each.pod, each.queue) for each in queue.pods()] == [
        ("shop/z", QueueName.ACTIVE),
        ("shop/gated", QueueName.GATED),
    ]


def test_they_are_in_the_order_in_which_they_entered_the_queue() -> None:
    pods = [
        tried(make_pod("a"), NOW - 2 * MINUTE),
        seen(make_pod("b"), created=NOW - 3 * MINUTE),
        seen(make_pod("c"), created=NOW - MINUTE),
        seen(make_pod("d"), created=NOW - MINUTE),
    ]
    assert [each.pod.metadata.name for each in found_in(cluster_of(*pods))] == ["b", "a", "c", "d"]


def test_what_is_found_does_not_depend_on_which_verdicts_are_known() -> None:
    pods = [
        seen(make_pod("never", cpu="5"), created=YOUNG),
        tried(make_pod("tried", cpu="5"), OLD),
        tried(make_pod("fits", cpu="1"), OLD),
    ]
    cluster = cluster_of(*pods)
    assert found_in(cluster, knows_verdicts=False) == found_in(cluster)


@pytest.mark.parametrize("cpu", ["1", "5"], ids=["it fits", "it does not"])
def test_nor_does_what_is_found_of_a_pod_that_should_have_been_tried(cpu: str) -> None:
    cluster = cluster_of(seen(make_pod("old", cpu=cpu)))
    assert found_in(cluster, knows_verdicts=False) == found_in(cluster)


# The times that a snapshot does not show.


def waits(name: str, time: datetime, latest: datetime | None = None, **fields: Any) -> Waiting:
    return Waiting(replace_in(make_pod(name), "metadata", creation_timestamp=OLD), time, latest or time)._replace(
        **fields
    )


def always(number: float) -> Callable[[], float]:
    return lambda: number


@pytest.mark.parametrize(
    ("waiting", "are_known"),
    [
        pytest.param([], True, id="no pods"),
        pytest.param([waits("a", OLD, NOW)], True, id="one pod has one order"),
        pytest.param([waits("a", OLD), waits("b", YOUNG)], True, id="exact times"),
        pytest.param([waits("a", OLD), waits("b", OLD, NOW)], False, id="one time that is not exact"),
        pytest.param([waits("a", OLD), waits("b", OLD, may_be_moved=True)], False, id="a pod that may be moved"),
        pytest.param([waits("a", OLD), waits("b", OLD, unseen=FIT)], False, id="a pod that may have been tried"),
    ],
)
def test_whether_all_times_are_known(waiting: list[Waiting], are_known: bool) -> None:
    assert UnknownTimes(waiting, NOW).are_all_known is are_known


DRAWS = [0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 0.999]


@pytest.mark.parametrize("number", DRAWS)
def test_known_times_are_never_changed(number: float) -> None:
    waiting = [waits("a", OLD), waits("b", YOUNG, plugins=FIT), waits("c", NOW, plugins=UNKNOWN, is_moved=True)]
    assert UnknownTimes(waiting, NOW).drawn(always(number)) == waiting


@pytest.mark.parametrize("number", DRAWS)
def test_drawn_times_lie_within_what_is_known(number: float) -> None:
    waiting = [
        waits("a", OLD, NOW, plugins=FIT),
        waits("b", NOW - 2 * MINUTE, NOW, plugins=FIT),
        waits("c", YOUNG, YOUNG + SECOND),
        waits("d", NOW - 4 * MINUTE, NOW - MINUTE, plugins=UNKNOWN),
        waits("e", NOW - 10 * MINUTE, unseen=FIT),
    ]
    drawn = {each.pod.key: each for each in UnknownTimes(waiting, NOW).drawn(always(number))}
    for each in waiting:
        latest = each.latest if drawn[each.pod.key].plugins == each.plugins else NOW
        assert each.time <= drawn[each.pod.key].time <= latest
        assert drawn[each.pod.key].plugins in (each.plugins, each.unseen)


def test_pods_that_the_same_plugins_rejected_keep_their_order() -> None:
    waiting = [
        waits("a", OLD, NOW, plugins=FIT),
        waits("x", OLD + MINUTE, NOW, plugins=UNKNOWN),
        waits("b", NOW - 3 * MINUTE, NOW, plugins=FIT),
        waits("y", NOW - 2 * MINUTE, NOW, plugins=UNKNOWN),
        waits("c", NOW - MINUTE, NOW, plugins=FIT),
    ]
    orders = set()
    for first in DRAWS:
        for second in DRAWS:
            # The shift of each kind is the first of three numbers that are drawn for it.
            drawn = UnknownTimes(waiting, NOW).drawn(iter([first, 0.0, 0.0, second, 0.0, 0.0]).__next__)
            order = "".join(each.pod.metadata.name for each in drawn)
            assert [name for name in order if name in "abc"] == list("abc")
            assert [name for name in order if name in "xy"] == list("xy")
            orders.add(order)
    assert len(orders) > 1


def test_pods_of_one_second_that_were_never_tried_may_be_in_any_order() -> None:
    waiting = [waits(name, YOUNG, YOUNG + SECOND) for name in "ab"]
    orders = set()
    for first, second in ((0.1, 0.9), (0.9, 0.1)):
        # Three numbers for the kind, then one for each pod.
        drawn = UnknownTimes(waiting, NOW).drawn(iter([0.0, 0.0, 0.0, first, second]).__next__)
        orders.add("".join(each.pod.metadata.name for each in drawn))
    assert orders == {"ab", "ba"}


def test_each_kind_is_once_the_first_and_once_the_last_of_its_second() -> None:
    waiting = [
        waits("old", OLD, plugins=FIT),
        waits("a-1", YOUNG, YOUNG + SECOND),
        waits("b-1", YOUNG, YOUNG + SECOND),
        waits("a-2", YOUNG, YOUNG + SECOND),
        waits("known", YOUNG + 5 * SECOND),
    ]
    found = UnknownTimes(waiting, NOW).extremes(lambda pod: pod.metadata.name[0])
    orders = [" ".join(each.pod.metadata.name for each in order) for order in found]
    assert orders == [
        "old a-1 a-2 b-1 known",
        "old b-1 a-1 a-2 known",
        "old b-1 a-1 a-2 known",
        "old a-1 a-2 b-1 known",
    ]
    # Pods of one kind are interchangeable, and other times are known or drawn.
    assert list(UnknownTimes(waiting, NOW).extremes(lambda _: "")) == []


@pytest.mark.parametrize(
    ("number", "expected"),
    [pytest.param(0.0, (True, FIT), id="moved and tried"), pytest.param(0.9, (False, None), id="neither")],
)
def test_a_pod_may_have_been_tried_or_moved_or_not(number: float, expected: tuple[bool, frozenset[str] | None]) -> None:
    waiting = [
        waits("a", YOUNG, plugins=FIT, finds_node=True, may_be_moved=True),
        waits("b", NOW - 10 * MINUTE, unseen=FIT),
    ]
    drawn = {each.pod.metadata.name: each for each in UnknownTimes(waiting, NOW).drawn(always(number))}
    assert (drawn["a"].is_moved, drawn["b"].plugins) == expected
