"""NodeDeclaredFeatures: what a pod needs of a node's kubelet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, ContainerRestartRule
from kpreempt.verdict.details import MissingFeatures
from tests.factories import decide, make_node, make_pod

REASON = "node(s) didn't match Pod's required features"
RESTART = "RestartAllContainersOnContainerExits"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"


def declaring(*features: str) -> Node:
    node = make_node("a")
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, declared_features=list(features)))


RESTARTS = {
    "init_containers": [Container(name="i", restart_policy_rules=[ContainerRestartRule("RestartAllContainers")])]
}
BOTH = {**RESTARTS, "host_network": True, "host_users": False}


@pytest.mark.parametrize(
    ("spec", "declared", "missing"),
    [
        pytest.param({}, [], [], id="an ordinary pod needs nothing"),
        pytest.param(RESTARTS, [RESTART], [], id="restarting all containers, declared"),
        pytest.param(RESTARTS, [USER_NAMESPACES], [RESTART], id="restarting all containers, not declared"),
        pytest.param(
            {"host_network": True, "host_users": False}, [], [USER_NAMESPACES], id="a user namespace on host network"
        ),
        pytest.param({"host_network": True}, [], [], id="host network alone needs nothing"),
        pytest.param({"host_users": False}, [], [], id="a user namespace alone needs nothing"),
        pytest.param(BOTH, [], [RESTART, USER_NAMESPACES], id="all that is missing is named"),
        pytest.param(BOTH, ["A", RESTART, "S", USER_NAMESPACES], [], id="unknown features between are passed over"),
        pytest.param(BOTH, [USER_NAMESPACES, RESTART], [RESTART], id="features out of order are not seen"),
    ],
)
def test_features_that_a_pod_needs(spec: dict[str, Any], declared: list[str], missing: list[str]) -> None:
    status = decide(ClusterSnapshot(nodes=[declaring(*declared)]), make_pod("new", **spec)).filter["a"]
    assert status.reasons == ([REASON] if missing else [])
    assert status.detail == (MissingFeatures(missing) if missing else None)
