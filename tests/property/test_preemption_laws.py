"""Laws of preemption that hold on every cluster."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Outcome, Verdict
from tests.conformance.cases import NOW, cluster_of, pod_of
from tests.strategies import scenarios

LAWS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def decide(cluster: ClusterSnapshot, scenario: dict[str, Any]) -> Verdict:
    """The verdict on the scenario's pod in ``cluster``."""
    scheduler = KubeScheduler()
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), pod_of(scenario["pod"]))


def without_pods(cluster: ClusterSnapshot, keys: set[str]) -> ClusterSnapshot:
    """The cluster without these pods."""
    return msgspec.structs.replace(cluster, pods=[pod for pod in cluster.pods if pod.key not in keys])


def has_port_twice(cluster: ClusterSnapshot) -> bool:
    """Whether two pods of a node use the same host port."""
    held = [
        (pod.spec.node_name, port.host_ip or "0.0.0.0", port.protocol, port.host_port)
        for pod in cluster.pods
        if pod.spec.node_name and not pod.is_terminal
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for port in container.ports
        if port.host_port
    ]
    return len(held) != len(set(held))


@LAWS
@given(scenarios())
def test_every_victim_has_a_lower_priority_than_the_preemptor(scenario: dict[str, Any]) -> None:
    cluster = cluster_of(scenario["objects"])
    verdict = decide(cluster, scenario)
    priorities = {pod.key: pod.priority for pod in cluster.pods}
    for candidate in verdict.candidates:
        assert all(priorities[victim] < verdict.pod.priority for victim in candidate.victims)


@LAWS
@given(scenarios())
def test_the_pod_fits_once_the_victims_are_gone(scenario: dict[str, Any]) -> None:
    cluster = cluster_of(scenario["objects"])
    # The scheduler considers a port free once one of two users is gone; in a real cluster no two can use it.
    assume(not has_port_twice(cluster))
    for candidate in decide(cluster, scenario).candidates:
        after = decide(without_pods(cluster, set(candidate.victims)), scenario)
        assert candidate.node in after.feasible_nodes


@LAWS
@given(scenarios(rich=False))
def test_every_victim_is_necessary(scenario: dict[str, Any]) -> None:
    cluster = cluster_of(scenario["objects"])
    for candidate in decide(cluster, scenario).candidates:
        for victim in candidate.victims:
            after = decide(without_pods(cluster, set(candidate.victims) - {victim}), scenario)
            assert candidate.node not in after.feasible_nodes


@LAWS
@given(scenarios())
def test_the_cluster_and_the_pod_are_not_changed(scenario: dict[str, Any]) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    before = copy.deepcopy((cluster, pod))
    scheduler = KubeScheduler()
    prepared = scheduler.prepare(cluster, now=NOW)
    first = scheduler.decide(prepared, pod)
    assert (cluster, pod) == before
    assert scheduler.decide(prepared, pod) == first


@LAWS
@given(scenarios(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_and_budgets_does_not_change_the_verdict(scenario: dict[str, Any], random: Any) -> None:
    verdict = decide(cluster_of(scenario["objects"]), scenario)
    shuffled = {
        kind: [each for each in scenario["objects"] if each["kind"] == kind] for kind in ("Node", "PodDisruptionBudget")
    }
    for objects in shuffled.values():
        random.shuffle(objects)
    others = [each for each in scenario["objects"] if each["kind"] not in shuffled]
    again = decide(cluster_of([*shuffled["Node"], *shuffled["PodDisruptionBudget"], *others]), scenario)
    assert sorted(again.nominated_nodes) == sorted(verdict.nominated_nodes)
    assert sorted(again.chosen_nodes) == sorted(verdict.chosen_nodes)
    assert again.message == verdict.message


@LAWS
@given(scenarios())
def test_the_outcome_says_what_the_evidence_says(scenario: dict[str, Any]) -> None:
    verdict = decide(cluster_of(scenario["objects"]), scenario)
    if verdict.outcome == Outcome.LANDS:
        assert verdict.lands_on and not verdict.candidates
    elif verdict.outcome in (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS):
        assert verdict.selection is not None
        assert verdict.nominated_nodes == verdict.selection.tied
        assert set(verdict.victims) == set(verdict.nominated_nodes)
    else:
        assert verdict.outcome == Outcome.UNSCHEDULABLE
        assert not verdict.feasible_nodes and not verdict.nominated_nodes
