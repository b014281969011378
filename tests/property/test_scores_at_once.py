"""Nodes scored in bulk have the same scores as one by one."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.schedulers.kube import scheduler
from kpreempt.schedulers.kube.bulk import node_amounts
from kpreempt.schedulers.kube.bulk.node_amounts import amounts_of, columns_of
from kpreempt.schedulers.kube.bulk.score_columns import scores_at_once
from kpreempt.schedulers.kube.framework.resource_scoring import (
    ResourceScorer,
    ResourceWeight,
    UsageScore,
    WeightedMean,
    balance_afterwards,
    balanced_allocation,
    least_allocated,
    most_allocated,
    requested_to_capacity_ratio,
)
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.strategies import Object, scenarios
from tests.strategies_whole import whole_scenarios

_AMOUNTS = st.one_of(st.integers(0, 20), st.integers(0, 10**12), st.sampled_from([0, 1, 2**52, 2**53 - 1]))


class Node:
    """The parts of a node that scores read."""

    def __init__(self, amounts: list[int]) -> None:
        cpu, memory, used_cpu, used_memory, counted_cpu, counted_memory = amounts
        self.allocatable = _Amounts(cpu, memory)
        self.requested = _Amounts(used_cpu, used_memory)
        self.non_zero_milli_cpu, self.non_zero_memory = counted_cpu, counted_memory
        self.num_pods = 0


class _Amounts:
    def __init__(self, milli_cpu: int, memory: int) -> None:
        self.milli_cpu = milli_cpu
        self.memory = memory
        self.ephemeral_storage = self.allowed_pod_number = 0


def scorer_of(score: Any, weights: list[ResourceWeight], *, use_requested: bool) -> ResourceScorer:
    made: UsageScore = WeightedMean(weights, score) if score in (least_allocated, most_allocated) else score
    return ResourceScorer(weights, made, counts_pod_level=True, use_requested=use_requested)


@given(
    score=st.sampled_from([least_allocated, most_allocated, balanced_allocation, balance_afterwards]),
    weights=st.lists(st.integers(1, 100), min_size=1, max_size=2),
    use_requested=st.booleans(),
    requests=st.lists(_AMOUNTS, min_size=2, max_size=2),
    nodes=st.lists(st.lists(_AMOUNTS, min_size=6, max_size=6), min_size=1, max_size=8),
)
def test_nodes_at_once_score_as_one_by_one(
    score: Any, weights: list[int], use_requested: bool, requests: list[int], nodes: list[list[int]]
) -> None:
    named = [ResourceWeight(name, weight) for name, weight in zip(("cpu", "memory"), weights, strict=False)]
    scorer = scorer_of(score, named, use_requested=use_requested)
    incoming, cluster = requests[: len(named)], [Node(each) for each in nodes]
    found = scores_at_once(scorer, incoming, columns_of(amounts_of(cluster)))  # type: ignore[arg-type]
    expected = [scorer.score(incoming, each) for each in cluster]  # type: ignore[arg-type]
    is_huge = any(
        used + request >= 2**53
        for (name, _), request in zip(named, incoming, strict=True)
        for _, used in (scorer.on_node(name, each) for each in cluster)  # type: ignore[arg-type]
    )
    assert found == (None if is_huge else expected)


@pytest.mark.parametrize(
    ("score", "resource"),
    [
        (least_allocated, "nvidia.com/gpu"),
        (balanced_allocation, "ephemeral-storage"),
        (requested_to_capacity_ratio([ResourceWeight("cpu", 1)], [(0, 0), (100, 100)]), "cpu"),
    ],
)
def test_plugins_without_bulk_scores_are_listed(score: Any, resource: str) -> None:
    scorer = scorer_of(score, [ResourceWeight(resource, 1)], use_requested=True)
    assert scores_at_once(scorer, [1], columns_of(amounts_of([Node([4] * 6)]))) is None  # type: ignore[list-item]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.one_of(scenarios(), whole_scenarios()))
def test_columns_do_not_change_decisions(scenario: Object) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    kube = KubeScheduler(behavior=gates_of(scenario.get("featureGates")))
    expected = kube.decide(kube.prepare(cluster, now=NOW), pod)
    with patch.object(node_amounts, "MIN_NODES", 1), patch.object(scheduler, "MIN_PODS_OF_TABLE", 0):
        assert kube.decide(kube.prepare(cluster, now=NOW), pod) == expected
        # Nodes with cached scores are not scored again.
        remembering = kube.prepare(cluster, now=NOW, expects_equivalent_pods=True)
        assert [kube.decide(remembering, pod) for _ in range(2)] == [expected] * 2
