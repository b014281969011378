"""A simulation's decision from its cache equals the decision from all nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt.analysis.queue.state import rejecting_plugins
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod, PodStatus
from kpreempt.schedulers.kube import scheduler
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.preemption import evaluator, odds
from kpreempt.verdict import Verdict
from tests.factories import NOW, make_budget, make_node, make_pod

APPS = ("a", "b")
# A search that stops at its first candidate, which is the most random.
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "DefaultPreemption",
                    "args": {"minCandidateNodesPercentage": 1, "minCandidateNodesAbsolute": 1},
                }
            ]
        }
    ],
}


def running(name: str, node: str, app: str, priority: int, hours: int | None) -> Pod:
    started = None if hours is None else NOW - timedelta(hours=hours)
    return make_pod(name, node=node, cpu="1", priority=priority, labels={"app": app}, started=started)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    """Full nodes with similar pods, so that many tie."""
    nodes = [make_node(f"n{index}", cpu="3") for index in range(draw(st.integers(3, 6)))]
    hours = st.sampled_from([1, 2, 2, None])
    pods = [
        running(f"{node.name}-{index}", node.name, draw(st.sampled_from(APPS)), draw(st.integers(0, 1)), draw(hours))
        for node in nodes
        for index in range(3)
    ]
    budgets = [make_budget(app, {"app": app}, draw(st.integers(0, 3))) for app in APPS]
    return ClusterSnapshot(nodes=nodes, pods=pods, pod_disruption_budgets=budgets)


def changed(draw: st.DrawFn, cluster: ClusterSnapshot, incoming: Pod) -> ClusterSnapshot:
    """The cluster after one of the events of a simulation."""
    pods, budgets = list(cluster.pods), list(cluster.pod_disruption_budgets)
    index, node = draw(st.integers(0, len(pods) - 1)), draw(st.sampled_from(cluster.nodes)).name
    change = draw(st.sampled_from(["budget", "budget", "budget", "disrupted", "nominate", "itself", "gone", "comes"]))
    if change in ("budget", "disrupted"):
        place, allowed = draw(st.integers(0, len(APPS) - 1)), draw(st.integers(0, 3))
        disrupted = [pods[index].metadata.name] if change == "disrupted" else []
        made = make_budget(APPS[place], {"app": APPS[place]}, allowed, disrupted=disrupted)
        budgets[place] = msgspec.structs.replace(budgets[place], status=made.status)
    elif change == "nominate":
        pods.append(make_pod(f"waits-{len(pods)}", cpu="1", priority=draw(st.integers(9, 11)), nominated=node))
    elif change == "itself":
        pods = [pod for pod in pods if pod.key != incoming.key]
        pods.append(msgspec.structs.replace(incoming, status=PodStatus(phase="Pending", nominated_node_name=node)))
    elif change == "gone":
        del pods[index]
    else:
        pods.append(running(f"comes-{len(pods)}", node, draw(st.sampled_from(APPS)), draw(st.integers(0, 1)), 1))
    return msgspec.structs.replace(cluster, pods=pods, pod_disruption_budgets=budgets)


@settings(max_examples=400, deadline=None)
@given(st.data(), clusters(), st.sampled_from(["2", "3"]), st.sampled_from([0, 10**9]))
def test_cached_data_gives_the_same_decision(
    data: st.DataObject, cluster: ClusterSnapshot, cpu: str, min_pods: int
) -> None:
    kube = scheduler_from_configuration(CONFIGURATION, None)
    incoming = make_pod("asked", cpu=cpu, priority=10)
    prepared: Any = None
    # Small clusters use list order; here any order is used, as in big ones.
    in_any_order = patch.object(odds, "_ENTRIES_IN_ORDER", 0)
    at_once = patch.object(evaluator, "_SMALL_CLUSTER", data.draw(st.sampled_from([0, 4])))
    with patch.object(scheduler, "MIN_PODS_OF_TABLE", min_pods), in_any_order, at_once:
        for number in range(10):
            now = NOW + timedelta(seconds=data.draw(st.sampled_from([0, 0, 0, 60])))
            prepared = kube.prepare(cluster, now=now, before=prepared)
            again = kube.prepare(cluster, now=now)
            own = next((pod for pod in cluster.pods if pod.key == incoming.key), incoming)
            another = msgspec.structs.replace(incoming, metadata=make_pod(f"like-{number}").metadata)
            for pod in (data.draw(st.sampled_from([own, another])), another):
                decided = kube.decide(
                    prepared, pod, records_steps=False, records_scores=False, records_nodes=False, is_popped=True
                )
                expected = kube.decide(again, pod, records_steps=False, is_popped=True)
                assert rejecting_plugins(decided) == rejecting_plugins(expected)
                assert what_counts(decided) == what_counts(expected)
                likely = kube.decide(
                    prepared,
                    pod,
                    records_steps=False,
                    records_scores=False,
                    records_nodes=False,
                    records_odds=False,
                    is_popped=True,
                )
                assert (likely.outcome, likely.message) == (expected.outcome, expected.message)
                assert (likely.nominated_nodes, likely.victims) == (expected.nominated_nodes, expected.victims)
            cluster = changed(data.draw, cluster, incoming)


def what_counts(verdict: Verdict) -> tuple[object, ...]:
    """Everything that a simulation uses."""
    may_win = set(verdict.nominated_nodes)
    if verdict.odds is not None:
        may_win.update(*(each.nodes for each in verdict.odds.outcomes))
    return (
        (verdict.outcome, verdict.reason, verdict.message, verdict.assumptions, verdict.eligibility),
        (verdict.lands_on, verdict.feasible_nodes, verdict.nominated_nodes, verdict.victims, verdict.effects),
        (verdict.odds, verdict.alternatives, verdict.selection and verdict.selection.tied),
        [(each.node, each.victims, each.outcomes) for each in verdict.candidates if each.node in may_win],
    )


@pytest.mark.parametrize("allowed", [(0, 0), (1, 0), (1, 1), (3, 3)], ids=str)
def test_equal_pods_are_reported_the_same_in_bulk_and_one_by_one(allowed: tuple[int, int]) -> None:
    pods = [running(f"n0-{index}", "n0", app, 0, 1) for index, app in enumerate("aba")]
    budgets = [make_budget(app, {"app": app}, number) for app, number in zip(APPS, allowed, strict=True)]
    cluster = ClusterSnapshot(nodes=[make_node("n0", cpu="3")], pods=pods, pod_disruption_budgets=budgets)
    reported: list[object] = []
    for min_pods in (0, 10**9):
        with patch.object(scheduler, "MIN_PODS_OF_TABLE", min_pods):
            kube = scheduler.KubeScheduler()
            verdict = kube.decide(kube.prepare(cluster, now=NOW), make_pod("asked", cpu="2", priority=10))
        (candidate,) = verdict.candidates
        reported.append(candidate.outcomes)
    assert reported[0] == reported[1] != []
