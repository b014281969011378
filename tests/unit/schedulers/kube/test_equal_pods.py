"""What is reported for pods of equal priority and start time, case by case."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from kpreempt.model.affinity import Affinity, PodAffinityTerm, PodAntiAffinity
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.kube import scheduler
from kpreempt.verdict import AssumptionKind, Outcome
from tests.equal_pods import reported_outcomes
from tests.factories import decide, make_budget, make_node, make_pod

STARTED = datetime(2026, 11, 20, tzinfo=UTC)
LATER = datetime(2026, 11, 20, 1, tzinfo=UTC)


def equal(name: str, cpu: str = "1", node: str = "n1", app: str = "", version: str = "", **more: object) -> Pod:
    """A running pod that shares its second with the others."""
    pod = make_pod(name, node=node, cpu=cpu, labels={"app": app} if app else None, started=STARTED, **more)  # type: ignore[arg-type]
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, resource_version=version))


def asking(cpu: str) -> Pod:
    return make_pod("incoming", cpu=cpu, priority=10)


def reported_victims(cluster: ClusterSnapshot, cpu: str) -> set[tuple[str, frozenset[str], int]]:
    """The outcomes reported for a pod with these requests, without the namespace."""
    return {
        (node, frozenset(pod.partition("/")[2] for pod in pods), violations)
        for node, pods, violations in reported_outcomes(decide(cluster, asking(cpu)))
    }


def reported(*outcomes: tuple[str, str, int]) -> set[tuple[str, frozenset[str], int]]:
    """``("n1", "a b", 0)`` and so on."""
    return {(node, frozenset(pods.split()), violations) for node, pods, violations in outcomes}


@pytest.mark.parametrize(
    ("pods", "budgets", "cpu", "expected"),
    [
        pytest.param(
            [equal("a"), equal("b")], [], "1", reported(("n1", "a", 0), ("n1", "b", 0)), id="either of two goes"
        ),
        pytest.param([equal("a"), equal("b")], [], "2", reported(("n1", "a b", 0)), id="where both go nothing is open"),
        pytest.param(
            [equal("a", "2"), equal("b"), equal("c")],
            [],
            "2",
            reported(("n1", "a", 0), ("n1", "b c", 0)),
            id="the large one goes, or both small ones",
        ),
        pytest.param(
            [equal("a", app="web"), equal("b", app="web"), equal("c")],
            [make_budget("web", {"app": "web"}, 1)],
            "2",
            reported(("n1", "a c", 0), ("n1", "b c", 0)),
            id="the budget lets one of its two go, whichever comes first",
        ),
        pytest.param(
            [equal("a", app="web"), equal("b", app="web")],
            [make_budget("web", {"app": "web"}, 0)],
            "1",
            reported(("n1", "a", 1), ("n1", "b", 1)),
            id="a budget that allows nothing is violated either way",
        ),
    ],
)
def test_the_outcomes_that_orders_lead_to(
    pods: list[Pod],
    budgets: list[PodDisruptionBudget],
    cpu: str,
    expected: set[tuple[str, frozenset[str], int]],
) -> None:
    size = sum(int(pod.spec.containers[0].resources.requests["cpu"].value) for pod in pods)
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu=str(size))], pods=pods, pod_disruption_budgets=budgets)
    assert reported_victims(cluster, cpu) == expected


def test_the_last_one_updated_is_the_likely_victim() -> None:
    pods = [equal("a", version="30"), equal("b", version="4"), equal("c", version="29")]
    verdict = decide(ClusterSnapshot(nodes=[make_node("n1", cpu="3")], pods=pods), asking("1"))
    assert [victim.pod for victim in verdict.victims["n1"]] == ["shop/a"]


def test_a_pod_that_no_api_server_has_seen_is_the_latest() -> None:
    pods = [equal("new"), equal("b", version="4")]
    verdict = decide(ClusterSnapshot(nodes=[make_node("n1", cpu="2")], pods=pods), asking("1"))
    assert [victim.pod for victim in verdict.victims["n1"]] == ["shop/new"]


def test_where_the_order_is_the_schedulers_it_decides_alone() -> None:
    pods = [equal("a", version="30"), equal("b", version="4")]
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="2")], pods=pods, has_scheduler_order=True)
    verdict = decide(cluster, asking("1"))
    assert verdict.alternatives is None
    assert [victim.pod for victim in verdict.victims["n1"]] == ["shop/b"]


def test_another_node_wins_where_its_equals_stand_otherwise() -> None:
    pods = [
        equal("big", "2"),
        equal("small-1"),
        equal("small-2"),
        make_pod("late-1", node="n2", cpu="2", started=LATER, priority=1),
    ]
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="4"), make_node("n2", cpu="2")], pods=pods)
    # On n1 one pod goes or two, on n2 one of a higher priority, so that n2 never wins.
    assert {node for node, _, _ in reported_outcomes(decide(cluster, asking("2")))} == {"n1"}
    even = msgspec.structs.replace(cluster, pods=[*pods[:3], make_pod("late-1", node="n2", cpu="2", started=LATER)])
    assert reported_victims(even, "2") == reported(("n2", "late-1", 0))
    earlier = msgspec.structs.replace(
        cluster, pods=[*pods[:3], make_pod("early", node="n2", cpu="2", started=datetime(2026, 11, 19, tzinfo=UTC))]
    )
    # One victim beats two, and of two nodes with one the later start wins.
    assert reported_victims(earlier, "2") == reported(("n1", "big", 0), ("n2", "early", 0))


def test_a_violation_that_only_another_order_brings_is_the_worst_outcome() -> None:
    pods = [equal("a", "2", app="web", version="1"), equal("b", "2", version="2")]
    cluster = ClusterSnapshot(
        nodes=[make_node("n1", cpu="4")], pods=pods, pod_disruption_budgets=[make_budget("web", {"app": "web"}, 1)]
    )
    verdict = decide(cluster, asking("2"))
    assert verdict.outcome == Outcome.PREEMPTS == verdict.worst_outcome
    two = [equal("a", "2", app="web", version="1"), equal("b", "1", app="web", version="2"), equal("c", "1", app="web")]
    both = msgspec.structs.replace(cluster, pods=two)
    verdict = decide(both, asking("2"))
    assert verdict.worst_outcome == Outcome.PREEMPTS_VIOLATING_BUDGETS


def test_if_there_are_too_many_orders_some_are_tried_and_that_is_reported() -> None:
    pods = [equal(f"p{size}", str(size)) for size in range(1, 26)]
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu=str(sum(range(1, 26))))], pods=pods)
    verdict = decide(cluster, asking("40"))
    assert verdict.alternatives is not None
    assert not verdict.alternatives.exact
    assert len(verdict.alternatives.outcomes) > 20
    assert [each.kind for each in verdict.assumptions] == [AssumptionKind.UNCERTAIN]


@pytest.mark.parametrize("num_pods_of_table", [0, 10**9], ids=["on columns", "pod by pod"])
def test_victims_without_a_start_time_stay_in_the_likely_order_where_some_violate_a_budget(
    monkeypatch: pytest.MonkeyPatch, num_pods_of_table: int
) -> None:
    monkeypatch.setattr(scheduler, "MIN_PODS_OF_TABLE", num_pods_of_table)
    pods = [make_pod(name, node="n1", cpu="1", labels={"app": name}, started=None) for name in "abc"]
    cluster = ClusterSnapshot(
        nodes=[make_node("n1", cpu="3")], pods=pods, pod_disruption_budgets=[make_budget("b", {"app": "b"}, 0)]
    )
    (candidate,) = decide(cluster, asking("3")).candidates
    assert (candidate.victims, candidate.num_pdb_violations) == (["shop/c", "shop/b", "shop/a"], 1)


@pytest.mark.parametrize(
    ("looks_at_labels", "certain", "choices"),
    [
        pytest.param(False, [], [(2, 6)], id="none looks at them"),
        pytest.param(True, ["shop/p0"], [(1, 5)], id="one of them may not stay"),
    ],
)
def test_labels_tell_pods_apart_only_where_a_filter_looks_at_them(
    looks_at_labels: bool, certain: list[str], choices: list[tuple[int, int]]
) -> None:
    pods = [equal(f"p{number}", app=f"app-{number}") for number in range(6)]
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="6", labels={"host": "n1"})], pods=pods)
    incoming = asking("2")
    if looks_at_labels:
        selector = LabelSelector(match_labels={"app": "app-0"})
        far = PodAntiAffinity(required=[PodAffinityTerm(label_selector=selector, topology_key="host")])
        spec = msgspec.structs.replace(incoming.spec, affinity=Affinity(pod_anti_affinity=far))
        incoming = msgspec.structs.replace(incoming, spec=spec)
    outcomes = decide(cluster, incoming).alternatives
    assert outcomes is not None
    (outcome,) = outcomes.outcomes
    assert outcome.victims == certain
    assert [(choice.count, len(choice.pods)) for choice in outcome.choices] == choices
