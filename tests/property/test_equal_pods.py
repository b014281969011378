"""The reported outcomes of equal pods hold for every order of the scheduler's cache."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain, cycle, permutations, product
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.equal_pods import PossibleResult, reported_outcomes
from tests.factories import make_budget, make_node, make_pod
from tests.strategies import Object, scenarios
from tests.strategies_whole import whole_scenarios

STARTED = datetime(2026, 11, 20, tzinfo=UTC)
LAWS = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def is_running(document: Object) -> bool:
    return document["kind"] == "Pod" and bool(document["spec"].get("nodeName"))


def with_equal_pods(scenario: Object, starts: list[str]) -> Object:
    """The scenario with few start times, like replicas."""
    turns = cycle(starts)
    objects = [
        {**each, "status": {**each.get("status", {}), "startTime": next(turns)}} if is_running(each) else each
        for each in scenario["objects"]
    ]
    return {**scenario, "objects": objects}


def equals(base: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Scenarios in which many pods share priority and start."""
    some = st.lists(
        st.sampled_from(["2026-11-20T01:00:00Z", "2026-11-20T01:00:00Z", "2026-11-20T02:00:00Z"]),
        min_size=1,
        max_size=4,
    )
    return st.builds(with_equal_pods, base, some)


def decide(scenario: Object, cluster: ClusterSnapshot) -> Verdict:
    kube = KubeScheduler(behavior=gates_of(scenario.get("featureGates")))
    prepared = kube.prepare(cluster, now=NOW, is_queued=scenario.get("queued", False))
    return kube.decide(prepared, pod_of(scenario["pod"]))


def as_a_dump(scenario: Object) -> ClusterSnapshot:
    return msgspec.structs.replace(cluster_of(scenario["objects"]), has_scheduler_order=False)


def decided_in(scenario: Object, order: list[Any]) -> set[PossibleResult]:
    """The scheduler's result if its cache has the pods in this order."""
    cluster = msgspec.structs.replace(cluster_of(scenario["objects"]), pods=order, has_scheduler_order=True)
    return reported_outcomes(decide(scenario, cluster))


@LAWS
@given(equals(scenarios(rich=True, max_pods=12)) | equals(whole_scenarios()), st.randoms(use_true_random=False))
def test_any_orders_result_is_among_the_reported_outcomes(scenario: dict[str, Any], chance: Any) -> None:
    cluster = as_a_dump(scenario)
    reported = reported_outcomes(decide(scenario, cluster))
    for _ in range(6):
        order = list(cluster.pods)
        chance.shuffle(order)
        assert decided_in(scenario, order) <= reported


@st.composite
def crowded_nodes(draw: st.DrawFn) -> tuple[ClusterSnapshot, Pod]:
    """One or two nodes full of equal pods of different sizes and labels, some with budgets, and a pod that evicts."""
    pods, nodes = [], []
    for number in range(draw(st.integers(1, 2))):
        sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=5 if number == 0 else 2))
        nodes.append(make_node(f"n{number}", cpu=str(sum(sizes))))
        pods += [
            make_pod(
                f"p{number}-{index}",
                node=f"n{number}",
                cpu=str(size),
                labels={"app": draw(st.sampled_from("aab")), "tier": draw(st.sampled_from("xy"))},
                started=draw(st.sampled_from([STARTED, STARTED, None])),
            )
            for index, size in enumerate(sizes)
        ]
    budgets = [
        make_budget(f"{key}-{value}", {key: value}, draw(st.integers(0, 2)))
        for key, value in draw(st.sets(st.sampled_from([("app", "a"), ("app", "b"), ("tier", "x")]), max_size=2))
    ]
    size = draw(st.integers(1, 4))
    return (
        ClusterSnapshot(nodes=nodes, pods=pods, pod_disruption_budgets=budgets),
        make_pod("incoming", cpu=str(size), priority=10),
    )


@LAWS
@given(crowded_nodes())
def test_reported_outcomes_are_those_of_orders(drawn: tuple[ClusterSnapshot, Pod]) -> None:
    cluster, pod = drawn
    kube = KubeScheduler()

    def reported(cluster: ClusterSnapshot) -> set[PossibleResult]:
        return reported_outcomes(kube.decide(kube.prepare(cluster, now=NOW), pod))

    by_node = [[pod for pod in cluster.pods if pod.spec.node_name == node.metadata.name] for node in cluster.nodes]
    reached = set()
    for orders in product(*map(permutations, by_node)):
        pods = list(chain.from_iterable(orders))
        reached |= reported(msgspec.structs.replace(cluster, pods=pods, has_scheduler_order=True))
    assert reported(cluster) == reached


@LAWS
@given(equals(scenarios(rich=True)))
def test_the_victims_of_the_likely_order_are_among_the_outcomes(scenario: dict[str, Any]) -> None:
    verdict = decide(scenario, as_a_dump(scenario))
    likely = {(node, frozenset(victim.pod for victim in verdict.victims[node])) for node in verdict.nominated_nodes}
    assert likely <= {(node, victims) for node, victims, _ in reported_outcomes(verdict)}
