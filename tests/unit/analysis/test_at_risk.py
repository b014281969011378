"""Who would evict running pods: pending ones, and new ones of which size from which priority on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.at_risk import pods_at_risk
from kpreempt.analysis.hypothetical_pods import HIGHEST_PRIORITY, free_amounts_on, priorities_to_try, typical_requests
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.report import RenderOptions
from kpreempt.report.answers import render_answer
from kpreempt.report.options import Extent
from kpreempt.verdict import Outcome
from kpreempt.verdict.at_risk import PodAtRisk, PodsAtRisk, SizeName, Threshold
from tests.factories import NOW, make_budget, make_node, make_pod

DAY = timedelta(days=1)


def ask(*pods: Pod, nodes: int = 1, limit: int = 10, **cluster: Any) -> PodsAtRisk:
    """The answer about all running pods on nodes of 4 CPUs."""
    named = [make_node(f"node-{letter}") for letter in "abc"[:nodes]]
    snapshot = ClusterSnapshot(nodes=named, pods=list(pods), **cluster)
    return pods_at_risk(
        AnalysisContext(snapshot, scheduler_for(), NOW), draws=DRAWS, is_selected=lambda _: True, limit=limit
    )


def about(answer: PodsAtRisk, name: str) -> PodAtRisk:
    return next(item for item in answer.items if item.pod == f"shop/{name}")


def threshold(item: PodAtRisk, size: SizeName) -> Threshold:
    return next(each for each in item.thresholds if each.size is size)


LOW = make_pod("low", node="node-a", cpu="2", priority=10, started=NOW - DAY)
HIGH = make_pod("high", node="node-a", cpu="2", priority=100, started=NOW - DAY)


def test_a_pending_pod_that_would_evict_a_pod_threatens_it() -> None:
    answer = ask(LOW, HIGH, make_pod("api", cpu="1", priority=50))
    assert [(each.pod, each.node, each.position, each.is_certain) for each in about(answer, "low").threats] == [
        ("shop/api", "node-a", 1, True)
    ]
    assert about(answer, "high").threats == []
    assert (answer.matching, answer.threatened, answer.pending) == (2, 1, 1)


def test_where_nodes_tie_the_threat_is_not_certain() -> None:
    same = [make_pod(f"low-{letter}", node=f"node-{letter}", cpu="4", started=NOW - DAY) for letter in "ab"]
    answer = ask(*same, make_pod("api", cpu="1", priority=50), nodes=2)
    assert [[each.is_certain for each in item.threats] for item in answer.items] == [[False], [False]]


def test_where_the_search_stops_early_the_threat_is_not_certain() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}],
    }
    pods = [make_pod(f"low-{index}", node=f"n{index}", cpu="4", priority=index, started=NOW - DAY) for index in (0, 1)]
    cluster = ClusterSnapshot(
        nodes=[make_node("n0"), make_node("n1")], pods=[*pods, make_pod("api", cpu="1", priority=50)]
    )
    answer = pods_at_risk(
        AnalysisContext(cluster, scheduler_for("", configuration), NOW),
        draws=DRAWS,
        is_selected=lambda _: True,
        limit=10,
    )
    assert [each.is_certain for each in about(answer, "low-0").threats] == [False]


def test_the_priority_is_the_lowest_that_evicts() -> None:
    answer = ask(LOW, HIGH)
    assert threshold(about(answer, "low"), SizeName.OWN).anywhere == 11
    assert threshold(about(answer, "high"), SizeName.OWN).anywhere is None
    # For a pod of its size the other goes first, and that is enough.
    assert threshold(about(answer, "high"), SizeName.OWN).outcome == Outcome.PREEMPTS


def test_a_pod_that_may_go_elsewhere_evicts_no_pod_and_one_that_may_not_does() -> None:
    found = threshold(about(ask(LOW, HIGH, nodes=2), "low"), SizeName.OWN)
    assert (found.anywhere, found.on_node, found.outcome, found.nodes) == (None, 11, Outcome.LANDS, ["node-b"])


def test_tied_pods_tolerate_the_taints_of_the_node() -> None:
    answer = ask(LOW, HIGH, make_pod("x"), nodes=1)
    tainted = make_node("node-a", unschedulable=True)
    cluster = ClusterSnapshot(nodes=[tainted], pods=[LOW, HIGH])
    closed = pods_at_risk(
        AnalysisContext(cluster, scheduler_for(), NOW), draws=DRAWS, is_selected=lambda _: True, limit=10
    )
    assert threshold(about(answer, "low"), SizeName.OWN).on_node == 11
    assert threshold(about(closed, "low"), SizeName.OWN).on_node == 11
    assert threshold(about(closed, "low"), SizeName.OWN).anywhere is None


def test_a_spent_budget_puts_a_pod_last_though_it_is_less_important() -> None:
    protected = make_pod("web", node="node-a", cpu="1", priority=1, labels={"app": "web"}, started=NOW - DAY)
    others = [LOW, make_pod("mid", node="node-a", cpu="1", priority=5, started=NOW - DAY)]
    answer = ask(protected, *others, pod_disruption_budgets=[make_budget("web", {"app": "web"}, 0)])
    order = answer.nodes[0]
    assert [standing.pod for standing in order.pods] == ["shop/mid", "shop/low", "shop/web"]
    standing = about(answer, "web").eviction_order
    assert standing is not None
    assert (standing.rank, standing.violates_budget, standing.budgets[0].remaining) == (3, True, -1)


def test_of_equal_pods_the_one_that_started_last_goes_first() -> None:
    old = make_pod("old", node="node-a", cpu="1", started=NOW - 2 * DAY)
    new = make_pod("new", node="node-a", cpu="1", started=NOW - DAY)
    assert [each.pod for each in ask(old, new).nodes[0].pods] == ["shop/new", "shop/old"]


def test_system_pods_are_left_out_of_the_order_as_no_pod_of_a_user_evicts_them() -> None:
    system = make_pod("dns", node="node-a", priority=2_000_000_000, namespace="kube-system")
    order = ask(LOW, system, limit=1).nodes[0]
    assert [each.pod for each in order.pods] == ["shop/low"]


def test_pods_beyond_the_limit_that_are_preempted_now_are_named() -> None:
    low = [make_pod(f"low-{number}", node="node-a", cpu="1", priority=1) for number in range(4)]
    answer = ask(*low, make_pod("urgent", cpu="4", priority=100), limit=1)
    shown = [*answer.items, *answer.more_threatened]
    assert (len(answer.items), len(shown)) == (1, answer.threatened)
    assert {threat.pod for item in shown for threat in item.threats if threat.in_turn} == {"shop/urgent"}
    assert all(item.evicted_runs and not item.thresholds for item in answer.more_threatened)
    for extent in (Extent.SCREEN, Extent.REPORT):
        text = render_answer(answer, "text", options=RenderOptions(extent=extent))
        assert all(item.pod in text for item in shown)


def test_the_limit_keeps_the_pods_at_the_highest_risk() -> None:
    answer = ask(HIGH, LOW, limit=1)
    assert [item.pod for item in answer.items] == ["shop/low"]
    assert answer.matching == 2


@pytest.mark.parametrize(
    ("priorities", "above", "tried"),
    [
        pytest.param([0, 10, 100], 10, [11, 101], id="just above each that is not lower"),
        pytest.param([0], 10, [], id="none is as high"),
        pytest.param([HIGHEST_PRIORITY], 10, [], id="no pod can be above the highest"),
        pytest.param(range(1000), 0, list(range(1, 33)), id="only so many are tried"),
    ],
)
def test_priorities_that_make_a_difference_are_tried(priorities: list[int], above: int, tried: list[int]) -> None:
    assert priorities_to_try(priorities, above) == tried


def test_sizes_come_from_the_cluster() -> None:
    pods = [make_pod("a", cpu="1", memory="1Gi"), make_pod("b", cpu="3"), make_pod("c"), make_pod("d", cpu="5")]
    assert typical_requests(pods) == {"cpu": 3000, "memory": 2**30}
    first, second = make_pod("a", node="n", cpu="1"), make_pod("b", node="n", cpu="1500m", memory="1Gi")
    assert free_amounts_on(first, make_node("n", cpu="4", memory="2Gi"), [first, second]) == {
        "cpu": 2500,
        "memory": 2**30,
    }
