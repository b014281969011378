"""A cluster prepared from one with other pods is decided as one prepared anew."""

from __future__ import annotations

import copy
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube import KubeScheduler, scheduler
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.strategies import Object, scenarios
from tests.strategies_whole import whole_scenarios

MANY = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
# From which number of pods on columns are used: never, always, and when a cluster grows or shrinks.
TABLES = pytest.mark.parametrize("min_pods", [10**9, 0, 3], ids=["no columns", "columns", "columns of three pods on"])


def moved(draw: st.DrawFn, pods: list[Pod], nodes: list[str]) -> list[Pod]:
    """Some of the pods, perhaps on other nodes or with other labels, in perhaps another order."""
    changes = {
        "stays": lambda pod: pod,
        "moves": lambda pod: on_node(pod, draw(st.sampled_from(nodes))) if pod.spec.node_name else pod,
        "is relabelled": relabelled,
        # An equal pod whose parts are objects of their own, some of which are gone before the next cluster.
        "is copied": copy.deepcopy,
    }
    kinds = st.sampled_from(["is gone", "stays", *changes])
    drawn = [(pod, draw(kinds)) for pod in (draw(st.permutations(pods)) if draw(st.booleans()) else pods)]
    return [changes[change](pod) for pod, change in drawn if change != "is gone"]


def on_node(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def relabelled(pod: Pod) -> Pod:
    labels = pod.metadata.labels | {"moved": "yes"}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels))


def assert_same_verdict(data: st.DataObject, scenario: Object, min_pods: int) -> None:
    cluster = cluster_of(scenario["objects"])
    kube = KubeScheduler(features=gates_of(scenario.get("featureGates")))
    pod, is_queued = pod_of(scenario["pod"]), scenario.get("queued", False)
    nodes = [node.name for node in cluster.nodes]
    prepared: Any = None
    with patch.object(scheduler, "MIN_PODS_OF_TABLE", min_pods):
        for number in range(3):
            pods = cluster.pods if number == 2 else data.draw(st.composite(moved)(cluster.pods, nodes))
            after = msgspec.structs.replace(cluster, pods=pods)
            prepared = kube.prepare(after, now=NOW, is_queued=is_queued, before=prepared)
            anew = kube.prepare(after, now=NOW, is_queued=is_queued)
            records_steps = data.draw(st.booleans())
            again = kube.decide(prepared, pod, records_steps=records_steps)
            assert again == kube.decide(anew, pod, records_steps=records_steps)


@TABLES
@MANY
@given(scenarios(rich=True), st.data())
def test_affinity_and_spread_are_decided_as_when_prepared_anew(
    min_pods: int, scenario: dict[str, Any], data: st.DataObject
) -> None:
    assert_same_verdict(data, scenario, min_pods)


@TABLES
@MANY
@given(whole_scenarios(), st.data())
def test_any_mix_of_features_is_decided_as_when_prepared_anew(
    min_pods: int, scenario: dict[str, Any], data: st.DataObject
) -> None:
    assert_same_verdict(data, scenario, min_pods)
