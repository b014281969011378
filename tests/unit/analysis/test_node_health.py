"""Nodes that are not ready, deleted or being removed are reported, with the reason of their condition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kpreempt.analysis.explain.pods import unhealthy_nodes
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node, NodeCondition
from kpreempt.model.taints import Taint
from kpreempt.report import RenderOptions, render
from kpreempt.report.options import Extent
from kpreempt.verdict.node_report import NodeHealth, NodeState
from tests.factories import make_node, make_pod
from tests.remedies import explain

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)
SINCE = NOW - timedelta(minutes=12)


def with_condition(node: Node, status: str, reason: str = "", message: str = "") -> Node:
    condition = NodeCondition("Ready", status, reason, message, SINCE)
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=[condition]))


def tainted(*keys: str) -> Node:
    return make_node("a", taints=[Taint(key, "", "NoSchedule") for key in keys])


def deleted(node: Node) -> Node:
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, deletion_timestamp=NOW))


@pytest.mark.parametrize(
    ("node", "states"),
    [
        pytest.param(make_node("a"), [], id="no condition"),
        pytest.param(with_condition(make_node("a"), "True"), [], id="ready"),
        pytest.param(with_condition(make_node("a"), "False"), [NodeState.NOT_READY], id="not ready"),
        pytest.param(with_condition(make_node("a"), "Unknown"), [NodeState.UNREACHABLE], id="unknown"),
        pytest.param(tainted("node.kubernetes.io/not-ready"), [NodeState.NOT_READY], id="the taint alone"),
        pytest.param(
            with_condition(tainted("node.kubernetes.io/not-ready"), "Unknown"),
            [NodeState.UNREACHABLE],
            id="the condition is newer than the taint",
        ),
        pytest.param(
            tainted("ToBeDeletedByClusterAutoscaler"),
            [NodeState.REMOVED_BY_CLUSTER_AUTOSCALER],
            id="Cluster Autoscaler removes it",
        ),
        pytest.param(
            tainted("DeletionCandidateOfClusterAutoscaler"),
            [NodeState.REMOVAL_CANDIDATE],
            id="Cluster Autoscaler may remove it",
        ),
        pytest.param(tainted("karpenter.sh/disrupted"), [NodeState.REMOVED_BY_KARPENTER], id="Karpenter removes it"),
        pytest.param(tainted("karpenter.sh/disruption"), [NodeState.REMOVED_BY_KARPENTER], id="an older Karpenter"),
        pytest.param(
            deleted(with_condition(tainted("karpenter.sh/disrupted"), "False")),
            [NodeState.NOT_READY, NodeState.BEING_DELETED, NodeState.REMOVED_BY_KARPENTER],
            id="several",
        ),
        pytest.param(tainted("dedicated"), [], id="another taint"),
        pytest.param(make_node("a", unschedulable=True), [], id="a cordon"),
    ],
)
def test_the_states_of_a_node(node: Node, states: list[NodeState]) -> None:
    assert [each.states for each in unhealthy_nodes([node])] == ([states] if states else [])


def test_the_reason_of_the_condition_is_kept() -> None:
    node = with_condition(make_node("a"), "False", "KubeletNotReady", "runtime is down")
    assert unhealthy_nodes([node]) == [
        NodeHealth(
            node="a", states=[NodeState.NOT_READY], reason="KubeletNotReady", message="runtime is down", since=SINCE
        )
    ]


def screen(cluster: ClusterSnapshot) -> str:
    options = RenderOptions(extent=Extent.SCREEN, now=NOW)
    text = render([explain(cluster, make_pod("new", cpu="1"))], "text", options=options)
    return " ".join(text.split())


def test_a_pod_that_lands_on_a_node_that_is_not_ready_is_said_to_wait() -> None:
    node = with_condition(make_node("a"), "False", "KubeletNotReady", "runtime is down")
    text = screen(ClusterSnapshot(nodes=[node]))
    assert "lands on a; nothing is evicted. a is not ready, so pods neither start nor stop there" in text
    assert "UNHEALTHY a is not ready for 12m: KubeletNotReady (runtime is down)" in text


def test_a_node_that_is_not_ready_is_reported_before_what_it_lacks() -> None:
    node = with_condition(make_node("a", cpu="500m"), "Unknown")
    text = screen(ClusterSnapshot(nodes=[node]))
    assert "unschedulable now: the only node is unreachable and is too small" in text
    assert text.index("UNHEALTHY a is unreachable for 12m") < text.index("REJECTED")


def test_a_healthy_cluster_has_no_such_section() -> None:
    assert "UNHEALTHY" not in screen(ClusterSnapshot(nodes=[with_condition(make_node("a"), "True")]))
