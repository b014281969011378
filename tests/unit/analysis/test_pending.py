"""Why pods are still pending, in which order the queue would try them, and what becomes of each."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.pending.pods import changes_since, explain_pending
from kpreempt.analysis.pending.states import max_backoff_of
from kpreempt.analysis.queue.waiting import UnknownTimes, Waiting, waiting_pods
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import Event, EventSeries, ObjectReference
from kpreempt.model.pod import Pod, PodCondition, PodSchedulingGate
from kpreempt.model.taints import Taint
from kpreempt.report.answers import render_answer
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.pending.summary import changes_in_words, summary
from kpreempt.report.quoting import plain
from kpreempt.verdict import Outcome
from kpreempt.verdict.pending import Agreement, PendingPod, PendingPods, QueueTimeSource
from kpreempt.verdict.waiting import PendingState
from tests.factories import NOW, make_node, make_pod

MINUTE = timedelta(minutes=1)
PREEMPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


def seen(pod: Pod, *, created: datetime = NOW - 60 * MINUTE, refused: datetime | None = None, message: str = "") -> Pod:
    """The pod as the cluster has it: created, and perhaps refused by the scheduler."""
    conditions = [
        PodCondition(
            type="PodScheduled", status="False", reason="Unschedulable", message=message, last_transition_time=refused
        )
    ]
    status = msgspec.structs.replace(pod.status, conditions=conditions if refused else [])
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=created)
    return msgspec.structs.replace(pod, metadata=metadata, status=status)


def going(pod: Pod, *, until: datetime, grace: int = 30, **changes: Any) -> Pod:
    """The pod on its way out."""
    metadata = msgspec.structs.replace(
        pod.metadata, deletion_timestamp=until, deletion_grace_period_seconds=grace, **changes
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def preempted(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[PREEMPTED]))


def failed(pod: Pod, at: datetime) -> Event:
    subject = ObjectReference("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
    return Event(reason="FailedScheduling", regarding=subject, event_time=at - MINUTE, series=EventSeries(at))


def ask(*pods: Pod, events: list[Event] | None = None, **options: Any) -> PendingPods:
    """The answer on a cluster of one node of 4 CPUs."""
    cluster = ClusterSnapshot(nodes=[make_node("node-a")], pods=list(pods), events=events or [])
    return explain_pending(AnalysisContext(cluster, scheduler_for(), NOW, at=NOW), draws=DRAWS, **options)


def only(*pods: Pod, **options: Any) -> PendingPod:
    """What is said of the one pod that is called ``it``."""
    return next(item for item in ask(*pods, **options).items if item.pod == "shop/it")


LOW = make_pod("low", node="node-a", cpu="3", priority=1)
IT = make_pod("it", cpu="2", priority=10)
NOMINATED = make_pod("it", cpu="2", priority=10, nominated="node-a")
LEAVING = preempted(going(LOW, until=NOW + MINUTE / 2, finalizers=["example.com/hold"]))
GATES = [PodSchedulingGate("example.com/quota")]
NODES = [make_node("node-a")]
SCREEN = RenderOptions(extent=Extent.SCREEN)


@pytest.mark.parametrize(
    ("pod", "others", "state"),
    [
        pytest.param(seen(IT), [LOW], PendingState.NEVER_ATTEMPTED, id="no condition: it has not been tried"),
        pytest.param(
            seen(make_pod("it", cpu="2", scheduling_gates=GATES)), [], PendingState.GATED, id="held back by a gate"
        ),
        pytest.param(
            seen(make_pod("it", cpu="2", scheduler_name="volcano")),
            [],
            PendingState.NO_SCHEDULER,
            id="of a scheduler that is not in the configuration",
        ),
        pytest.param(going(seen(IT), until=NOW), [], PendingState.BEING_DELETED, id="deleted before it had a node"),
        pytest.param(
            seen(NOMINATED, refused=NOW - MINUTE), [LEAVING], PendingState.WAITS_FOR_VICTIMS, id="its victims terminate"
        ),
        pytest.param(
            seen(NOMINATED, refused=NOW - MINUTE),
            [LOW],
            PendingState.NOMINATED,
            id="nominated, and its victims are not told to go yet",
        ),
        pytest.param(
            seen(make_pod("it", cpu="2", priority=10, nominated="node-z"), refused=NOW - MINUTE),
            [LOW],
            PendingState.STALE_NOMINATION,
            id="nominated to a node that is gone",
        ),
        pytest.param(
            seen(make_pod("it", cpu="5", priority=10, nominated="node-a"), refused=NOW - MINUTE),
            [LOW],
            PendingState.STALE_NOMINATION,
            id="nominated to a node that is too small now",
        ),
        pytest.param(
            seen(NOMINATED, refused=NOW - MINUTE), [], PendingState.FITS_NOW, id="nominated, and the victims are gone"
        ),
        pytest.param(
            seen(IT, refused=NOW - timedelta(seconds=9)), [LOW], PendingState.BACKING_OFF, id="tried 9 seconds ago"
        ),
        pytest.param(
            seen(IT, refused=NOW - timedelta(seconds=10)),
            [LOW],
            PendingState.WAITS_FOR_CHANGE,
            id="tried 10 seconds ago, which is the longest backoff",
        ),
        pytest.param(seen(IT, refused=NOW - MINUTE), [], PendingState.FITS_NOW, id="refused, and now there is room"),
    ],
)
def test_why_a_pod_is_still_pending(pod: Pod, others: list[Pod], state: PendingState) -> None:
    assert only(pod, *others).state is state


def test_a_waiting_pod_shows_its_victims_when_they_end_and_what_holds_them() -> None:
    item = only(seen(NOMINATED, refused=NOW - MINUTE), LEAVING)
    assert [(each.pod, each.finalizers, each.is_preempted) for each in item.waiting_for] == [
        ("shop/low", ["example.com/hold"], True)
    ]
    # The deletion time is when the grace period ends; it began that much before.
    assert (item.waiting_for[0].since, item.waiting_for[0].until) == (NOW, NOW + MINUTE / 2)
    assert (item.since, item.until) == (NOW, NOW + MINUTE / 2)


def test_the_scheduler_waits_for_those_only_that_it_evicted_itself() -> None:
    drained = going(LOW, until=NOW + MINUTE / 2)
    item = only(seen(NOMINATED, refused=NOW - MINUTE), drained)
    assert item.outcome == Outcome.PREEMPTS
    assert [each.is_preempted for each in item.waiting_for] == [False]


def test_backoff_counts_from_the_last_attempt_that_was_reported_and_ends_at_the_limit() -> None:
    pod = seen(IT, refused=NOW - 60 * MINUTE)
    item = only(pod, LOW, events=[failed(pod, NOW - timedelta(seconds=4))])
    assert item.state is PendingState.BACKING_OFF
    assert item.until == NOW + timedelta(seconds=6)
    longer = only(
        pod,
        LOW,
        events=[failed(pod, NOW - timedelta(seconds=40))],
        max_backoff=max_backoff_of({"podMaxBackoffSeconds": 60}),
    )
    assert (longer.state, longer.until) == (PendingState.BACKING_OFF, NOW + timedelta(seconds=20))


@pytest.mark.parametrize(
    ("pods", "events_of", "order"),
    [
        pytest.param(
            [seen(make_pod("low")), seen(make_pod("high", priority=5))], {}, ["high", "low"], id="the higher priority"
        ),
        pytest.param(
            [seen(make_pod("new"), created=NOW - MINUTE), seen(make_pod("old"), created=NOW - 2 * MINUTE)],
            {},
            ["old", "new"],
            id="then who was there first",
        ),
        pytest.param(
            [seen(make_pod("tried"), refused=NOW - MINUTE), seen(make_pod("fresh"), created=NOW - 2 * MINUTE)],
            {},
            ["fresh", "tried"],
            id="an attempt puts a pod behind, however old it is",
        ),
        pytest.param(
            [seen(make_pod("a"), refused=NOW - 9 * MINUTE), seen(make_pod("b"), refused=NOW - 8 * MINUTE)],
            {"a": NOW - MINUTE, "b": NOW - 2 * MINUTE},
            ["b", "a"],
            id="the last attempt counts, which an event tells of",
        ),
        pytest.param(
            [seen(make_pod("gated", priority=9, scheduling_gates=GATES)), seen(make_pod("free"))],
            {},
            ["free", "gated"],
            id="those outside the queue come last",
        ),
    ],
)
def test_the_order_is_that_of_the_queue(pods: list[Pod], events_of: dict[str, datetime], order: list[str]) -> None:
    events = [failed(pod, events_of[pod.metadata.name]) for pod in pods if pod.metadata.name in events_of]
    answer = ask(*pods, events=events)
    assert [item.pod.partition("/")[2] for item in answer.items] == order


def test_pods_that_are_not_selected_keep_their_positions() -> None:
    first, second = seen(make_pod("a", priority=9)), seen(make_pod("it"))
    answer = ask(first, second, is_selected=lambda pod: pod.metadata.name == "it")
    assert [(item.pod, item.position) for item in answer.items] == [("shop/it", 2)]
    assert answer.in_queue == 2


def test_where_the_queue_time_is_from_is_said() -> None:
    tried = seen(IT, refused=NOW - MINUTE)
    assert only(seen(IT)).queue_time_source is QueueTimeSource.CREATION
    assert only(tried).queue_time_source is QueueTimeSource.CONDITION
    assert only(tried, events=[failed(tried, NOW)]).queue_time_source is QueueTimeSource.EVENT


def test_an_event_about_a_pod_of_the_same_name_before_it_does_not_count() -> None:
    before = msgspec.structs.replace(IT, metadata=msgspec.structs.replace(IT.metadata, uid="another"))
    assert only(seen(IT), events=[failed(before, NOW)]).state is PendingState.NEVER_ATTEMPTED


def test_the_schedulers_words_stand_next_to_what_is_expected() -> None:
    theirs = "0/7 nodes are available: 7 Insufficient cpu."
    item = only(seen(IT, refused=NOW - MINUTE, message=theirs), LOW)
    assert (item.scheduler_message, item.agreement) == (theirs, Agreement.SAME_REASONS_DIFFERENT_COUNTS)
    assert item.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_pods_are_grouped_by_what_keeps_them_and_each_is_counted() -> None:
    many = [seen(make_pod(f"web-{number}", cpu="9", priority=10)) for number in range(3)]
    answer = ask(*many, seen(make_pod("fits", cpu="1")), LOW)
    groups = [(group.outcome, group.cause, len(group.pods)) for group in answer.groups]
    assert groups == [(Outcome.UNSCHEDULABLE, "Insufficient cpu", 3), (Outcome.LANDS, "", 1)]


def test_nothing_pending_is_said_in_a_line() -> None:
    assert render_answer(ask(LOW), "text", SCREEN) == "No pod is pending.\n"


@pytest.mark.parametrize("number", [1, 3, 400])
def test_the_summary_fits_a_chat_message_whatever_the_names(number: int) -> None:
    pods = [
        seen(make_pod(f"{'n' * 240}-{index}", namespace="s" * 63, cpu=f"{5 + index}", priority=index))
        for index in range(number)
    ]
    answer = ask(*pods, LOW)
    assert len(plain(summary(answer, is_short=True))) <= 400
    assert len(render_answer(answer, "text", SCREEN).splitlines()) <= 22


def test_names_from_the_cluster_cannot_drive_the_terminal() -> None:
    hostile = seen(make_pod("\x1b[2Jit", cpu="9"), refused=NOW - MINUTE, message="\x1b]0;title\x07")
    texts = [render_answer(ask(hostile), "text", options) for options in (RenderOptions(verbose=True), SCREEN)]
    text = "".join(texts)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_remedies_are_searched_for_unschedulable_pods_as_long_as_there_is_time() -> None:
    pods = [seen(make_pod("huge", cpu="5", priority=9)), seen(make_pod("wide", cpu="6", priority=1))]
    cluster = ClusterSnapshot(nodes=NODES, pods=pods)
    times = iter([True, False])
    answer = explain_pending(
        AnalysisContext(cluster, scheduler_for(), NOW, at=NOW), draws=DRAWS, has_time=lambda: next(times)
    )
    huge, wide = answer.items
    assert (huge.outcome, huge.remedies[0].nodes) == (Outcome.UNSCHEDULABLE, ["node-a"])
    assert (wide.outcome, wide.remedies, wide.remedy_search) == (Outcome.UNSCHEDULABLE, [], None)
    rows = render_answer(answer, "wide", RenderOptions()).splitlines()
    assert "request 4 cpu instead of 5: lands on node-a" in rows[3]
    assert rows[4].endswith("not searched: time limit reached")
    assert "1 Insufficient cpu" in rows[3]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        pytest.param([IT], [make_pod("it", node="node-a")], "landed shop/it on node-a.", id="a pod landed"),
        pytest.param([IT], [], "gone shop/it.", id="a pod was deleted"),
        pytest.param([], [IT], "newly pending shop/it.", id="another pod"),
        pytest.param(
            [IT], [make_pod("it", scheduling_gates=GATES)], "changed shop/it gated (was: lands).", id="another outcome"
        ),
        pytest.param([IT], [IT], "no change.", id="nothing"),
    ],
)
def test_a_look_says_what_changed_since_the_one_before(before: list[Pod], after: list[Pod], words: str) -> None:
    first, cluster = ask(*before), ClusterSnapshot(nodes=NODES, pods=after)
    second = explain_pending(AnalysisContext(cluster, scheduler_for(), NOW, at=NOW), draws=DRAWS)
    changed = msgspec.structs.replace(second, changes=changes_since(first, second, cluster))
    assert plain(changes_in_words(changed)).removeprefix("Since 00:00:00: ") == words


def test_a_pod_that_the_selector_no_longer_matches_has_neither_landed_nor_gone() -> None:
    cluster = ClusterSnapshot(nodes=NODES, pods=[IT])
    now = explain_pending(
        AnalysisContext(cluster, scheduler_for(), NOW, at=NOW), draws=DRAWS, is_selected=lambda _: False
    )
    assert changes_since(ask(IT), now, cluster).items == []


def queued(*pods: Pod, events: list[Event] | None = None) -> list[Waiting]:
    """The queue at ``NOW``."""
    cluster, scheduler = ClusterSnapshot(nodes=NODES, pods=list(pods), events=events or []), scheduler_for()
    return waiting_pods(cluster, scheduler, lambda: scheduler.prepare(cluster, now=NOW), NOW)


def test_attempts_of_the_second_of_the_snapshot_keep_their_order() -> None:
    first, second = (seen(make_pod(name, cpu="8", priority=1), refused=NOW) for name in ("first", "second"))
    events = [
        msgspec.structs.replace(failed(pod, NOW), event_time=NOW + MINUTE / 600 * number, series=None)
        for number, pod in ((2, second), (1, first))
    ]
    waiting = queued(second, first, events=events)
    assert [each.pod.key for each in waiting] == ["shop/first", "shop/second"]
    assert all(each.is_time_known for each in waiting)


def made(name: str, version: str, seconds: int) -> Pod:
    """A pod that was never tried."""
    pod = seen(make_pod(name), created=NOW + timedelta(seconds=seconds))
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, resource_version=version))


@pytest.mark.parametrize(
    ("pods", "order"),
    [
        pytest.param([("b", "11", -1), ("a", "10", -1)], ["a", "b"], id="of one second: by version"),
        pytest.param([("b", "11", -2), ("a", "10", -1)], ["a", "b"], id="at the end of a second: by version"),
        pytest.param([("b", "10", -1), ("a", "11", -9)], ["a", "b"], id="changed later: by time"),
    ],
)
def test_new_pods_are_in_the_order_of_their_creation(pods: list[tuple[str, str, int]], order: list[str]) -> None:
    assert [each.pod.metadata.name for each in queued(*(made(*each) for each in pods))] == order


@pytest.mark.parametrize(
    ("minutes", "orders"),
    [
        pytest.param(0.8, {("early", "late"), ("late", "early")}, id="new pods back off for different times"),
        pytest.param(9, {("early", "late")}, id="all others back off for as long"),
    ],
)
def test_pods_of_which_not_every_attempt_is_known(minutes: float, orders: set[tuple[str, str]]) -> None:
    created = NOW - minutes * MINUTE
    early, late = (seen(make_pod(name, cpu="8"), created=created, refused=created) for name in ("early", "late"))
    waiting = queued(early, late, events=[failed(early, NOW - MINUTE / 2), failed(late, NOW - MINUTE / 4)])
    times = UnknownTimes(waiting, NOW)
    drawn = (times.drawn(Random(seed).random) for seed in range(20))
    assert {tuple(each.pod.metadata.name for each in order) for order in drawn} == orders


def test_the_nodes_that_reject_a_pod_are_listed_with_what_they_lack() -> None:
    nodes = [make_node("a"), make_node("b"), make_node("c", taints=[Taint("dedicated", "gpu", "NoSchedule")])]
    full = [make_pod(f"on-{name}", node=name, cpu=cpu) for name, cpu in (("a", "3500m"), ("b", "3"))]
    cluster = ClusterSnapshot(nodes=nodes, pods=[*full, seen(make_pod("new", cpu="2"))])
    answer = explain_pending(AnalysisContext(cluster, scheduler_for(), NOW, at=NOW), draws=DRAWS)
    [item] = answer.items
    assert [(each.count, each.nodes, each.status.plugin) for each in item.rejections] == [
        (2, ["b", "a"], "NodeResourcesFit"),
        (1, ["c"], "TaintToleration"),
    ]
    words = "1 stays pending (of 3 nodes, 2 are too full and 1 has an untolerated taint)"
    assert words in plain(summary(answer, is_short=True))
    text = " ".join(render_answer(answer, "text", RenderOptions(extent=Extent.SCREEN, width=120)).split())
    assert "2 are too full: b needs 1 more cpu; c has an untolerated taint" in text


def test_a_pod_that_lands_has_no_rejections() -> None:
    answer = ask(seen(make_pod("new", cpu="2")))
    assert answer.items[0].rejections == []
