"""What a reader finds in the terminal report, for verdicts of the default scheduler."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod, PodSchedulingGate
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.taints import Taint
from kpreempt.report import RenderOptions, render
from kpreempt.report.explain.chance import percent
from kpreempt.verdict import (
    Assumption,
    Candidate,
    Code,
    DefaultedField,
    Odds,
    OddsOutcome,
    Outcome,
    PodSummary,
    Sampling,
    SearchOrder,
    Status,
    Verdict,
)
from tests.factories import NOW, decide, make_budget, make_node, make_pod

STARTED = NOW - timedelta(days=12)


def report(verdict: Verdict, **options: Any) -> str:
    return render([verdict], "text", options=msgspec.convert({"now": NOW, **options}, RenderOptions))


def first_sentences(verdict: Verdict) -> str:
    """The paragraph at the top, on one line."""
    return report(verdict, width=1000).splitlines()[0]


def running(name: str, node: str, *, cpu: str = "1", priority: int = 10, **more: Any) -> Pod:
    return make_pod(name, node=node, cpu=cpu, priority=priority, started=STARTED, **more)


def incoming(cpu: str = "2", **more: Any) -> Pod:
    return make_pod("api", **{"cpu": cpu, "priority": 1000, **more})


def two_full_nodes(*budgets: PodDisruptionBudget, equal: bool = False) -> ClusterSnapshot:
    return ClusterSnapshot(
        nodes=[make_node("node-a", cpu="2"), make_node("node-b", cpu="2")],
        pods=[
            running("web-1", "node-a", labels={"app": "web"}),
            running("web-2", "node-b", priority=10 if equal else 20, labels={"app": "web"}),
        ],
        pod_disruption_budgets=list(budgets),
    )


@pytest.mark.parametrize(
    ("cluster", "pod", "expected"),
    [
        pytest.param(
            ClusterSnapshot(nodes=[make_node("node-a")]),
            incoming(),
            "shop/api lands on node-a; nothing is evicted.",
            id="it fits",
        ),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("node-a"), make_node("node-b")]),
            incoming(),
            "shop/api lands on node-a or node-b; nothing is evicted. Both have the best score; the scheduler "
            "picks one at random.",
            id="it fits on tied nodes",
        ),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("node-a"), make_node("node-b")]),
            incoming(nominated="node-b"),
            "shop/api lands on its nominated node, node-b; nothing is evicted.",
            id="it fits where it is nominated",
        ),
        pytest.param(
            two_full_nodes(),
            incoming(),
            "shop/api preempts 1 pod on node-a and lands there; no budget is violated.",
            id="it preempts",
        ),
        pytest.param(
            two_full_nodes(equal=True),
            incoming(),
            "shop/api preempts 1 pod on node-a or node-b and lands there; no budget is violated. Both are tied under "
            "every rule; the scheduler picks one at random.",
            id="it preempts on one of tied nodes",
        ),
        pytest.param(
            two_full_nodes(make_budget("web", {"app": "web"}, 0)),
            incoming(),
            "shop/api preempts 1 pod on node-a and lands there; this violates budget shop/web.",
            id="it violates a budget",
        ),
        pytest.param(
            two_full_nodes(),
            incoming("64"),
            "shop/api is unschedulable now: both nodes are too small; "
            "preemption doesn't help, because these nodes reject the pod even when empty.",
            id="it is too large for every node",
        ),
        pytest.param(
            ClusterSnapshot(
                nodes=[
                    make_node("node-a", taints=[Taint("gpu", "", "NoSchedule")]),
                    make_node("node-b", cpu="1"),
                    make_node("node-c", cpu="1"),
                ]
            ),
            incoming(),
            "shop/api is unschedulable now: of 3 nodes, 2 are too small and 1 has an untolerated taint; preemption "
            "doesn't help.",
            id="nodes refuse it for several reasons",
        ),
        pytest.param(
            two_full_nodes(),
            incoming(preemption_policy="Never"),
            "shop/api is unschedulable now: both nodes are too full; the pod can't preempt: preemptionPolicy=Never.",
            id="it can't preempt",
        ),
        pytest.param(
            ClusterSnapshot(),
            incoming(),
            "shop/api is unschedulable now: the cluster has no nodes.",
            id="there are no nodes",
        ),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("node-a")]),
            incoming(scheduling_gates=[PodSchedulingGate(name="example.com/quota")]),
            "shop/api is not scheduled: waiting for scheduling gates: [example.com/quota].",
            id="a gate blocks it",
        ),
    ],
)
def test_the_first_sentence_is_the_answer(cluster: ClusterSnapshot, pod: Pod, expected: str) -> None:
    assert first_sentences(decide(cluster, pod)) == expected


def test_an_uncertain_answer_says_so_and_what_it_would_be() -> None:
    verdict = msgspec.structs.replace(
        decide(two_full_nodes(), incoming()), outcome=Outcome.UNCERTAIN, reason="claim shop/gpu is not evaluated"
    )
    assert first_sentences(verdict) == (
        "The outcome for shop/api is uncertain: claim shop/gpu is not evaluated. If that has no effect, "
        "shop/api preempts pods on node-a."
    )


def test_a_violation_that_the_scheduler_only_counts_is_distinguished_from_a_real_one() -> None:
    # Both pods are counted against the budget before web-1 is given back; only web-2 really goes.
    cluster = ClusterSnapshot(
        nodes=[make_node("node-a", cpu="3")],
        pods=[
            running("web-1", "node-a", priority=10, labels={"app": "web"}),
            running("web-2", "node-a", cpu="2", priority=5, labels={"app": "web"}),
        ],
        pod_disruption_budgets=[make_budget("web", {"app": "web"}, 1)],
    )
    assert "counts this as violating budget shop/web, although evicting this victim stays within" in first_sentences(
        decide(cluster, incoming())
    )


def test_the_victims_table_has_age_owner_and_what_is_left_of_the_budget() -> None:
    text = report(decide(two_full_nodes(make_budget("web", {"app": "web"}, 2)), incoming()))
    row = next(line for line in text.splitlines() if line.startswith("  shop/web-1"))
    assert row.split() == ["shop/web-1", "10", "-", "12d", "web", "(2→1)"]


def test_without_a_time_the_start_is_shown_instead_of_an_age() -> None:
    text = render([decide(two_full_nodes(), incoming())], "text")
    assert "since 2026-11-09T00:00:00Z" in text


def test_the_event_is_the_scheduler_s_message_word_for_word() -> None:
    verdict = decide(two_full_nodes(), incoming("64"))
    text = report(verdict)
    event = text.partition("EVENT")[2].partition("\n\n")[0]
    assert " ".join(event.split()) == verdict.message


def test_what_was_filled_in_and_what_is_assumed_is_said() -> None:
    verdict = msgspec.structs.replace(
        decide(two_full_nodes(), incoming()),
        admission=[DefaultedField("spec.priority", "1000", "PriorityClass high")],
        assumptions=[Assumption("Pod shop/api", "spec.resourceClaims", "is not evaluated")],
    )
    text = report(verdict)
    assert "DEFAULTED     spec.priority = 1000  (PriorityClass high)" in text
    assert "ASSUMED       Pod shop/api spec.resourceClaims: is not evaluated" in text


def a_thousand_nodes() -> ClusterSnapshot:
    nodes = [make_node(f"node-{number:04}") for number in range(900)]
    nodes += [make_node(f"gpu-{number:02}", taints=[Taint("gpu", "", "NoSchedule")]) for number in range(60)]
    nodes += [make_node(f"small-{number:02}", cpu="1") for number in range(40)]
    pods = [
        make_pod(
            f"work-{number}",
            node=f"node-{number:04}",
            cpu="3500m",
            priority=number % 7 * 10,
            started=STARTED + timedelta(minutes=number),
            labels={"app": f"a{number % 5}"},
        )
        for number in range(900)
    ]
    return ClusterSnapshot(nodes=nodes, pods=pods, pod_disruption_budgets=[make_budget("a1", {"app": "a1"}, 0)])


@pytest.mark.parametrize("cpu", [pytest.param("2", id="that preempts"), pytest.param("64", id="that never lands")])
@pytest.mark.parametrize("width", [80, 120])
def test_for_a_thousand_nodes_the_report_stays_on_one_screen(cpu: str, width: int) -> None:
    lines = report(decide(a_thousand_nodes(), incoming(cpu)), width=width).splitlines()
    assert len(lines) <= 48
    assert max(len(line) for line in lines) <= width


def test_for_a_pod_that_fits_on_a_thousand_nodes_too() -> None:
    text = report(decide(a_thousand_nodes(), incoming("250m")))
    assert len(text.splitlines()) <= 48
    assert "more nodes (-v -v)" in text


def test_verbose_shows_every_node_and_every_step() -> None:
    cluster = a_thousand_nodes()
    text = report(decide(cluster, incoming()), verbose=True)
    assert all(node.metadata.name in text for node in cluster.nodes)
    assert all(pod.metadata.name in text for pod in cluster.pods)
    assert "more" not in text.partition("4 CHOICE")[2].partition("5 VICTIMS")[2]


def test_where_the_search_is_random_the_odds_are_said_at_the_top_and_at_the_choice() -> None:
    verdict = msgspec.structs.replace(
        decide(two_full_nodes(), incoming()),
        odds=Odds(SearchOrder.ANY, 100, [OddsOutcome(["node-b"], 0.75), OddsOutcome(["node-a"], 0.25)], 16, 15),
    )
    said = "it picks this node 25% of the time, node-b 75%."
    assert said in first_sentences(verdict)
    assert "node-b  wins 75% of the time" in report(verdict)
    assert "the scheduler tries 16 nodes at a time, so slower nodes win less often" in " ".join(report(verdict).split())
    assert "no choice is random" not in report(verdict)


@pytest.mark.parametrize(
    ("probability", "reported"),
    [(0.25, "25%"), (1 / 3, "~33%"), (0.001, "less than 1%"), (0.9999, "more than 99%"), (1.0, "100%")],
)
def test_an_uncertain_outcome_is_never_reported_as_certain(probability: float, reported: str) -> None:
    assert percent(probability) == reported


def test_where_only_some_nodes_are_scored_that_is_said() -> None:
    verdict = msgspec.structs.replace(
        decide(ClusterSnapshot(nodes=[make_node("node-a"), make_node("node-b", cpu="2")]), incoming("1")),
        sampling=Sampling(nodes=2000, nodes_to_find=680, percentage=34),
    )
    said = "starts its search where the last one ended and stops once 680 nodes fit, so it may"
    assert said in first_sentences(verdict)


def test_a_pod_that_is_refused_before_any_node_is_looked_at() -> None:
    refused = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ["claim shop/data is not bound"], plugin="VolumeBinding")
    verdict = Verdict(
        algorithm="kube-1.36",
        outcome=Outcome.UNSCHEDULABLE,
        pod=PodSummary("shop", "api"),
        pre_filter=refused,
        filter={"node-a": refused, "node-b": refused},
    )
    text = report(verdict)
    assert first_sentences(verdict) == (
        "shop/api is unschedulable now: claim shop/data is not bound; preemption doesn't help."
    )
    assert "1 FILTER      the pod is rejected before any node is checked" in text


def test_verdicts_without_codes_or_details_are_shown_as_they_are() -> None:
    # The schedulers of 1.8 and 1.13 give reasons only; a node without any fits.
    verdict = Verdict(
        algorithm="kube-1.13",
        outcome=Outcome.PREEMPTS,
        pod=PodSummary("shop", "api"),
        filter={"node-a": Status(Code.NONE, ["Insufficient cpu"]), "node-b": Status(Code.NONE)},
        candidates=[Candidate("node-a", ["shop/web-1"])],
        nominated_nodes=["node-a"],
    )
    text = report(verdict)
    assert "1  Insufficient cpu" in text
    assert "1 of 2 nodes fits" in text


def test_several_pods_end_with_a_table_of_all() -> None:
    verdicts = [decide(two_full_nodes(), incoming()), decide(two_full_nodes(), incoming("64"))]
    summary = render(verdicts, "text").splitlines()[-3:]
    assert [line.split() for line in summary] == [
        ["POD", "NODE", "OUTCOME"],
        ["shop/api", "node-a", "preempts", "1", "pod"],
        ["shop/api", "-", "unschedulable"],
    ]


def test_colour_is_off_by_default_and_repeats_only_what_words_say() -> None:
    verdict = decide(two_full_nodes(), incoming())
    assert "\x1b" not in report(verdict)
    assert "\x1b[" in report(verdict, color=True)


def test_the_age_of_the_dump_and_the_version_are_shown() -> None:
    verdict = decide(two_full_nodes(), incoming())
    cluster = msgspec.structs.replace(
        verdict.cluster, version="v1.36.3", taken_at=datetime(2026, 11, 20, tzinfo=UTC), age_seconds=3 * 3600
    )
    text = report(msgspec.structs.replace(verdict, cluster=cluster))
    assert "2 nodes · 2 pods · v1.36.3 · read 3h ago · kube-1.36" in text
