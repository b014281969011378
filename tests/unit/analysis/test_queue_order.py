"""The order of pending pods where an out-of-tree plugin has a say, and which plugins refused a pod."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.at_risk import pods_at_risk
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.analysis.queue.order import FailedAttempts, in_queue_order
from kpreempt.analysis.queue.waiting import queue_of, queue_positions, rejecting_plugins, waiting_pods
from kpreempt.errors import PluginFailedError
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.plugins import (
    SUCCESS,
    FilterPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    Status,
    unresolvable,
    unschedulable,
)
from kpreempt.report.answers import render_answer
from kpreempt.report.options import RenderOptions
from kpreempt.schedulers.interface import Less, QueueRules
from kpreempt.verdict import ExtenderCall, Outcome, PodSummary, Verdict
from kpreempt.verdict.pending import PendingPods
from kpreempt.verdict.status import Code
from kpreempt.verdict.waiting import PendingState
from tests.factories import NOW, make_node, make_pod
from tests.foreign_plugins import Fails, LowestFirst, scheduler_with


def created(pod: Pod, minutes: int) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=NOW - timedelta(minutes=minutes))
    return msgspec.structs.replace(pod, metadata=metadata)


def tried(pod: Pod) -> Pod:
    """The pod, rejected by the scheduler when it was created."""
    rejection = PodCondition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        last_transition_time=pod.metadata.creation_timestamp,
    )
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[rejection]))


class NoBatch(PreEnqueuePlugin):
    def pre_enqueue(self, pod: Pod) -> Status:
        return unschedulable("batch sleeps") if pod.metadata.namespace == "batch" else SUCCESS


PODS = [
    created(make_pod("a", priority=1), 3),
    created(make_pod("b", priority=9), 2),
    created(make_pod("c", priority=9), 5),
    make_pod("d", priority=9),
]


def in_order(pods: Sequence[Pod], is_before: Less | None) -> list[str]:
    """The names of the pods by their position in the queue."""
    scheduler, cluster = scheduler_for(), ClusterSnapshot(nodes=[make_node("n1")], pods=list(pods))
    waiting = waiting_pods(cluster, scheduler, lambda: scheduler.prepare(cluster, now=NOW), NOW)
    positions = queue_positions(queue_of(scheduler, waiting, NOW, QueueRules(is_before=is_before)))
    assert list(positions.values()) == list(range(1, len(pods) + 1))
    return [key.partition("/")[2] for key in positions]


@pytest.mark.parametrize(
    ("is_before", "expected"),
    [
        pytest.param(None, ["c", "b", "d", "a"], id="by priority, then by time, unknown times last"),
        pytest.param(
            lambda one, other: one.pod.priority < other.pod.priority, ["a", "bcd"], id="equal ones in any order"
        ),
        pytest.param(
            lambda one, other: one.timestamp > other.timestamp,
            ["d", "b", "a", "c"],
            id="by time alone, the last first",
        ),
        pytest.param(lambda one, other: False, ["abcd"], id="without any difference in any order"),
    ],
)
@pytest.mark.parametrize("was_tried", [False, True], ids=["never tried", "tried"])
def test_the_order_of_pods(is_before: Less | None, expected: list[str], was_tried: bool) -> None:
    names = in_order([tried(pod) for pod in PODS] if was_tried else PODS, is_before)
    parts = [[names.pop(0) for _ in equal] for equal in expected]
    assert ["".join(sorted(part)) for part in parts] == expected


def test_some_pods_of_the_queue_are_in_its_order() -> None:
    ordered = in_queue_order(PODS, FailedAttempts([]))
    assert [pod.metadata.name for pod in ordered] == in_order(PODS, None) == ["c", "b", "d", "a"]


@pytest.mark.parametrize("was_tried", [False, True], ids=["never tried", "tried"])
def test_a_comparison_that_contradicts_itself_loses_no_pod(was_tried: bool) -> None:
    pods = [make_pod(f"p{index}") for index in range(50)]
    names = in_order([tried(pod) for pod in pods] if was_tried else pods, lambda one, other: True)
    assert sorted(names) == sorted(pod.metadata.name for pod in pods)


def ask(*pods: Pod, plugins: Sequence[type[Plugin]], **options: Any) -> PendingPods:
    cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=list(pods))
    return explain_pending(AnalysisContext(cluster, scheduler_with(*plugins), NOW, at=NOW), draws=DRAWS, **options)


WAITING = [
    created(make_pod("low", priority=1), 1),
    created(make_pod("high", priority=9), 2),
    created(make_pod("job", namespace="batch", priority=5), 3),
]


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param([], {"shop/high": 1, "batch/job": 2, "shop/low": 3}, id="by priority"),
        pytest.param([LowestFirst], {"shop/low": 1, "batch/job": 2, "shop/high": 3}, id="in the plugin's order"),
        pytest.param([NoBatch], {"shop/high": 1, "shop/low": 2, "batch/job": None}, id="without those that are held"),
    ],
)
def test_the_places_of_pending_pods(plugins: list[type[Plugin]], expected: dict[str, int | None]) -> None:
    answer = ask(*WAITING, plugins=plugins)
    assert {item.pod: item.position for item in answer.items} == expected
    assert [item.pod for item in answer.items] == list(expected)
    assert answer.in_queue == sum(place is not None for place in expected.values())


def test_positions_count_pods_that_are_not_selected_but_not_pods_that_are_held() -> None:
    answer = ask(*WAITING, plugins=[NoBatch], is_selected=lambda pod: pod.metadata.name == "low")
    assert [(item.pod, item.position) for item in answer.items] == [("shop/low", 2)]


def test_pending_tells_which_plugin_holds_a_pod_and_why() -> None:
    answer = ask(*WAITING, plugins=[NoBatch])
    item = next(item for item in answer.items if item.pod == "batch/job")
    assert (item.state, item.outcome, item.held_by) == (PendingState.HELD, Outcome.NOT_SCHEDULED, "NoBatch")
    assert (item.reason, item.cause) == ("batch sleeps", "NoBatch: batch sleeps")
    text = render_answer(answer, "text", RenderOptions(width=80, now=NOW, verbose=True))
    assert "HELD          1 pod held out of the queue: NoBatch: batch sleeps" in text
    assert "held by NoBatch: batch sleeps" in text


def test_without_an_order_there_is_no_answer() -> None:
    with pytest.raises(PluginFailedError, match='QueueSort plugin "Fails": Fails raised ValueError: no rank'):
        ask(*WAITING, plugins=[Fails])


def test_pods_at_risk_are_reported_in_the_plugins_order() -> None:
    running = make_pod("old", node="n1", cpu="4")
    waiting = [created(make_pod(name, cpu="4", priority=priority), 1) for name, priority in (("low", 1), ("high", 9))]
    cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=[running, *waiting])
    for plugins, expected in (([], ["shop/high", "shop/low"]), ([LowestFirst], ["shop/low", "shop/high"])):
        answer = pods_at_risk(
            AnalysisContext(cluster, scheduler_with(*plugins), NOW),
            is_selected=lambda _: True,
            limit=5,
            draws=DRAWS,
        )
        (item,) = answer.items
        assert [threat.pod for threat in item.threats] == expected


class OnlyN1(PreFilterPlugin):
    def pre_filter(self, state: Any, pod: Pod, nodes: Any) -> tuple[PreFilterResult | None, Status]:
        return PreFilterResult(frozenset(("n1",))), SUCCESS


class OnlyN2(PreFilterPlugin):
    def pre_filter(self, state: Any, pod: Pod, nodes: Any) -> tuple[PreFilterResult | None, Status]:
        return PreFilterResult(frozenset(("n2",))), SUCCESS


class NoNode(FilterPlugin):
    def filter(self, state: Any, pod: Pod, node_info: Any) -> Status:
        return unresolvable("node(s) were not liked")


class NoPod(PreFilterPlugin):
    def pre_filter(self, state: Any, pod: Pod, nodes: Any) -> tuple[PreFilterResult | None, Status]:
        return None, unschedulable("pod was not liked")


class FailsToFilter(FilterPlugin):
    def filter(self, state: Any, pod: Pod, node_info: Any) -> Status:
        raise ValueError("no idea")


@pytest.mark.parametrize(
    ("plugins", "cpu", "expected"),
    [
        pytest.param([], "9", {"NodeResourcesFit"}, id="one in the tree"),
        pytest.param([NoNode], "1", {"NoNode"}, id="an out-of-tree filter"),
        pytest.param([NoPod], "1", {"NoPod"}, id="a PreFilter that refuses the pod"),
        pytest.param([OnlyN1], "9", {"OnlyN1", "NodeResourcesFit"}, id="a PreFilter that leaves a node which is full"),
        pytest.param([OnlyN1, OnlyN2], "1", {"OnlyN1", "OnlyN2"}, id="two of them that leave no node"),
        pytest.param([FailsToFilter], "1", set(), id="an error is no refusal"),
        pytest.param([NoBatch], "9", {"NodeResourcesFit"}, id="who lets it pass has no part in it"),
    ],
)
def test_which_plugins_refused_a_pod(plugins: list[type[Plugin]], cpu: str, expected: set[str]) -> None:
    scheduler = scheduler_with(*plugins)
    prepared = scheduler.prepare(ClusterSnapshot(nodes=[make_node("n1"), make_node("n2")]), now=NOW)
    assert rejecting_plugins(scheduler.decide(prepared, make_pod("p", cpu=cpu))) == expected


ADDRESS = "http://extender.example"
FIT = Status(Code.UNSCHEDULABLE, ["Insufficient cpu"], plugin="NodeResourcesFit")
BY_EXTENDER = Status(Code.UNSCHEDULABLE, ["no"], plugin=ADDRESS)


@pytest.mark.parametrize(
    ("statuses", "call", "expected"),
    [
        pytest.param(
            {"n1": FIT, "n2": BY_EXTENDER},
            ExtenderCall(ADDRESS, "filter", nodes_sent=1, rejected={"n2": ""}),
            {"NodeResourcesFit", "Extender"},
            id="extenders go by one name",
        ),
        pytest.param(
            {"n1": FIT},
            ExtenderCall(ADDRESS, "filter", nodes_sent=1, rejected={"n2": ""}),
            {"NodeResourcesFit", "Extender"},
            id="also where they do not say why",
        ),
        pytest.param(
            {"n1": FIT},
            ExtenderCall(ADDRESS, "preempt", nodes_sent=1, removed=["n1"]),
            {"NodeResourcesFit"},
            id="a candidate that one drops refuses nobody",
        ),
    ],
)
def test_extenders_among_those_that_refused_a_pod(
    statuses: dict[str, Status], call: ExtenderCall, expected: set[str]
) -> None:
    verdict = Verdict(
        algorithm="kube-1.36",
        outcome=Outcome.UNSCHEDULABLE,
        pod=PodSummary(namespace="shop", name="p"),
        filter=statuses,
        extender_calls=[call],
    )
    assert rejecting_plugins(verdict) == expected
