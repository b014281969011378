"""A cluster prepared from a previous one has the same decisions as one prepared from scratch, with any cache."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.analysis.queue.state import rejecting_plugins
from kpreempt.errors import KpreemptError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, Pod, PodStatus
from kpreempt.schedulers.kube import scheduler
from kpreempt.schedulers.kube.bulk import node_amounts
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.preemption import evaluator, odds
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.strategies import Object, scenarios
from tests.strategies_whole import whole_scenarios

MANY = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# The number of pods from which columns are used: never, always, and when a cluster grows or shrinks.
TABLES = pytest.mark.parametrize("min_pods", [10**9, 0, 3], ids=["no columns", "columns", "columns of three pods on"])
# The first cluster has no cache, and a new pod is only recorded.
UNTIL_REMEMBERED = 3
CLUSTERS = 4
# What is recorded: steps, scores, and node details.
RECORDED = ((True, True, True), (False, True, True), (False, False, True), (False, False, False))
# Other parts of a cluster that plugins read.
REST = (
    *("namespaces", "services", "replica_sets", "stateful_sets", "device_classes", "volume_attachments"),
    *("persistent_volume_claims", "persistent_volumes", "storage_classes", "csi_nodes", "csi_storage_capacities"),
)


def moved(draw: st.DrawFn, pods: list[Pod], nodes: list[str]) -> list[Pod]:
    """Some of the pods, possibly on other nodes, with other labels, or in another order."""
    changes = {
        "stays": lambda pod: pod,
        "moves": lambda pod: on_node(pod, draw(st.sampled_from(nodes))) if pod.spec.node_name else pod,
        "is relabelled": relabeled,
        # An equal pod whose parts are separate objects, some of which are gone before the next cluster.
        "is copied": copy.deepcopy,
    }
    kinds = st.sampled_from(["is gone", "stays", *changes])
    drawn = [(pod, draw(kinds)) for pod in (draw(st.permutations(pods)) if draw(st.booleans()) else pods)]
    return [changes[change](pod) for pod, change in drawn if change != "is gone"]


def on_node(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def relabeled(pod: Pod) -> Pod:
    labels = pod.metadata.labels | {"moved": "yes"}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels))


def named(pod: Pod, name: str) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=name, uid=name))


def bound(pod: Pod, node: str, name: str) -> Pod:
    """A running pod like this one."""
    return msgspec.structs.replace(on_node(named(pod, name), node), status=PodStatus(phase="Running", start_time=NOW))


def leaving(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=NOW + timedelta(seconds=30))
    return msgspec.structs.replace(pod, metadata=metadata)


def nominated(pod: Pod, node: str, name: str) -> Pod:
    """A nominated pod like this one."""
    return msgspec.structs.replace(named(pod, name), status=PodStatus(phase="Pending", nominated_node_name=node))


def with_budget_changed(
    cluster: ClusterSnapshot, index: int, allowed: int, disrupted: Iterable[str]
) -> ClusterSnapshot:
    budgets = list(cluster.pod_disruption_budgets)
    budget = budgets[index]
    if budget.status is not None:
        disrupted = dict.fromkeys(disrupted, NOW)
        status = msgspec.structs.replace(budget.status, disruptions_allowed=allowed, disrupted_pods=disrupted)
        budgets[index] = msgspec.structs.replace(budget, status=status)
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets)


def next_cluster(draw: st.DrawFn, cluster: ClusterSnapshot, pod: Pod, name: str) -> ClusterSnapshot:
    """The cluster after one or more events of a simulation, or after an unrelated change."""
    pods, nodes = list(cluster.pods), [node.name for node in cluster.nodes]
    changes = ["nothing", "bind", "bind", "nominate", "many", "rest", *["leave", "remove", "move"] * bool(pods)]
    change = draw(st.sampled_from([*changes, *["budget"] * bool(cluster.pod_disruption_budgets)]))
    index = draw(st.integers(0, max(len(pods) - 1, 0)))
    if change == "bind":
        pods.insert(draw(st.sampled_from([index, len(pods)])), bound(pod, draw(st.sampled_from(nodes)), name))
    elif change == "nominate":
        pods.insert(index, nominated(pod, draw(st.sampled_from(nodes)), name))
    elif change == "leave":
        pods[index] = leaving(pods[index])
    elif change == "remove":
        del pods[index]
    elif change == "move":
        pods[index] = on_node(pods[index], draw(st.sampled_from(nodes)))
    elif change == "many":
        pods = moved(draw, pods, nodes)
    elif change == "budget":
        budget = draw(st.integers(0, len(cluster.pod_disruption_budgets) - 1))
        names = [pod.metadata.name for pod in pods]
        disrupted = draw(st.lists(st.sampled_from(names), max_size=2)) if names else []
        return with_budget_changed(cluster, budget, draw(st.integers(0, 2)), disrupted)
    elif change == "rest":
        kind = draw(st.sampled_from(REST))
        return msgspec.structs.replace(cluster, **{kind: list(getattr(cluster, kind))[1:]})
    return msgspec.structs.replace(cluster, pods=pods)


def unlike(pod: Pod) -> list[Pod]:
    """Pods that differ from this one in one field that some plugin reads."""
    metadata, spec = pod.metadata, pod.spec
    changes: list[dict[str, Any]] = [
        {"metadata": msgspec.structs.replace(metadata, labels=metadata.labels | {"app": "web"})},
        {"metadata": msgspec.structs.replace(metadata, labels=metadata.labels | {"app": "db"})},
        {"metadata": msgspec.structs.replace(metadata, namespace="other")},
        {"metadata": msgspec.structs.replace(metadata, owner_references=[])},
        {"metadata": msgspec.structs.replace(metadata, name="another", uid="another")},
        {"spec": msgspec.structs.replace(spec, priority=0)},
        {"spec": msgspec.structs.replace(spec, tolerations=[])},
        {"spec": msgspec.structs.replace(spec, affinity=None, topology_spread_constraints=[])},
        {"spec": msgspec.structs.replace(spec, containers=spec.containers * 2)},
        {"spec": msgspec.structs.replace(spec, containers=[with_image(each, "other") for each in spec.containers])},
        {"status": PodStatus(phase="Pending", nominated_node_name="n0")},
    ]
    return [msgspec.structs.replace(pod, **change) for change in changes]


def with_image(container: Container, image: str) -> Container:
    return msgspec.structs.replace(container, image=image)


def assert_same_verdicts(data: st.DataObject, scenario: Object, min_pods: int) -> None:
    cluster = cluster_of(scenario["objects"])
    kube = scheduler_of(scenario)
    pod, is_queued = pod_of(scenario["pod"]), scenario.get("queued", False)
    prepared: Any = None
    # Small clusters use list order, unless random map order is requested.
    in_order = patch.object(odds, "_ENTRIES_IN_ORDER", data.draw(st.sampled_from([0, 8])))
    # Bulk paths, which big clusters use.
    at_once = patch.object(evaluator, "_SMALL_CLUSTER", data.draw(st.sampled_from([0, 4])))
    in_columns = patch.object(node_amounts, "MIN_NODES", data.draw(st.sampled_from([1, 100])))
    with patch.object(scheduler, "MIN_PODS_OF_TABLE", min_pods), in_order, at_once, in_columns:
        for _ in range(UNTIL_REMEMBERED):
            prepared = kube.prepare(cluster, now=NOW, is_queued=is_queued, before=prepared)
            kube.decide(prepared, pod, records_steps=False)
        for number in range(CLUSTERS):
            # Time advances, also past future start times; it replaces missing ones.
            now = NOW + timedelta(seconds=data.draw(st.sampled_from([0, 0, 60, -3600, 86400])))
            prepared = kube.prepare(cluster, now=now, is_queued=is_queued, before=prepared)
            fresh = kube.prepare(cluster, now=now, is_queued=is_queued)
            for incoming in [pod, *data.draw(st.lists(st.sampled_from([pod, *unlike(pod)]), max_size=2))]:
                steps, scores, nodes = data.draw(st.sampled_from(RECORDED))
                again = kube.decide(prepared, incoming, records_steps=steps, records_scores=scores, records_nodes=nodes)
                expected = kube.decide(fresh, incoming, records_steps=steps)
                assert not nodes or again.filter == expected.filter
                if not nodes:
                    assert rejecting_plugins(again) == rejecting_plugins(expected)
                    again, expected = map(without_nodes, (again, expected))
                if not scores:
                    again, expected = map(brief, (again, expected))
                assert again == expected
                likely = kube.decide(
                    prepared,
                    incoming,
                    records_steps=False,
                    records_scores=False,
                    records_nodes=False,
                    records_odds=False,
                )
                assert result(likely) == result(expected)
            cluster = data.draw(st.composite(next_cluster)(cluster, pod, f"next-{number}"))


def without_nodes(verdict: Verdict) -> Verdict:
    """Without node details if these are not requested; a single node that fits is not scored then."""
    scores = verdict.scores if len(verdict.scores) > 1 else {}
    return msgspec.structs.replace(verdict, filter={}, dry_run={}, potential_nodes=[], scores=scores)


def brief(verdict: Verdict) -> Verdict:
    """The verdict's fields if only the outcome counts: the candidates that may be chosen."""
    may_win = set(verdict.nominated_nodes)
    if verdict.odds is not None:
        may_win.update(*(each.nodes for each in verdict.odds.outcomes))
    if verdict.alternatives is not None:
        may_win.update(each.node for each in verdict.alternatives.outcomes)
    candidates = [msgspec.structs.replace(each, steps=[]) for each in verdict.candidates if each.node in may_win]
    selection = verdict.selection and msgspec.structs.replace(verdict.selection, rounds=[])
    return msgspec.structs.replace(verdict, plugin_scores={}, candidates=candidates, selection=selection)


def result(verdict: Verdict) -> list[object]:
    """What remains of a verdict if neither odds nor details are requested."""
    return [
        *(verdict.outcome, verdict.message, verdict.error, verdict.eligibility),
        *(verdict.chosen_nodes, verdict.lands_on, verdict.nominated_nodes, verdict.victims),
    ]


def scheduler_of(scenario: Object) -> KubeScheduler:
    gates = scenario.get("featureGates")
    try:
        return scheduler_from_configuration(scenario.get("config"), gates)
    except KpreemptError:
        # Drawn pods may be invalid.
        return KubeScheduler(behavior=gates_of(gates))


@TABLES
@MANY
@given(scenarios(rich=True), st.data())
def test_affinity_and_spread_equal_a_fresh_preparation(
    min_pods: int, scenario: dict[str, Any], data: st.DataObject
) -> None:
    assert_same_verdicts(data, scenario, min_pods)


@TABLES
@MANY
@given(whole_scenarios(), st.data())
def test_any_features_equal_a_fresh_preparation(min_pods: int, scenario: dict[str, Any], data: st.DataObject) -> None:
    assert_same_verdicts(data, scenario, min_pods)


@MANY
@given(scenarios(rich=True), st.data())
def test_other_nodes_equal_a_fresh_preparation(scenario: dict[str, Any], data: st.DataObject) -> None:
    cluster, kube, pod = cluster_of(scenario["objects"]), scheduler_of(scenario), pod_of(scenario["pod"])
    nodes = data.draw(st.permutations(cluster.nodes))
    left = nodes[data.draw(st.integers(0, 1)) :]
    new = [renamed(each, f"{each.name}-new") for each in nodes[:1]]
    names = [each.name for each in (*new, *nodes)] or [""]
    pods = data.draw(st.composite(moved)(list(cluster.pods), names))
    other = msgspec.structs.replace(cluster, nodes=[*new, *left], pods=pods)
    with patch.object(scheduler, "MIN_PODS_OF_TABLE", 0):
        again = kube.prepare(other, now=NOW, before=kube.prepare(cluster, now=NOW))
        fresh = kube.prepare(other, now=NOW)
        assert kube.decide(again, pod) == kube.decide(fresh, pod)


def renamed(node: Node, name: str) -> Node:
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, name=name))
