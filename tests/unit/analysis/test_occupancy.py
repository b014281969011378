"""How full nodes are, for those who draw them."""

from __future__ import annotations

import msgspec

from kpreempt.analysis.explain.pods import occupancy_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from tests.factories import decide, make_node, make_pod


def nominated(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node))


def finished(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Succeeded"))


def test_nodes_have_what_their_pods_request_without_those_that_have_finished() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("node-a", cpu="4"), make_node("node-b", cpu="2")],
        pods=[
            make_pod("web-1", node="node-a", cpu="1500m", priority=5),
            make_pod("web-2", node="node-a", cpu="1", priority=5000),
            finished(make_pod("job-1", node="node-a", cpu="1")),
            nominated(make_pod("soon", cpu="1"), "node-b"),
            make_pod("waits", cpu="1"),
        ],
    )
    found = occupancy_of(cluster, [])
    assert list(found.nodes) == ["node-a", "node-b"]
    assert found.nodes["node-a"].allocatable["cpu"] == 4000
    assert (found.nodes["node-a"].used["cpu"], found.nodes["node-a"].used["pods"]) == (2500, 2)
    assert (found.nodes["node-b"].used, found.nodes["node-b"].nominated) == ({}, ["shop/soon"])
    assert found.requests == {}


def test_requests_are_those_of_pods_that_may_go() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("node-a", cpu="2")],
        pods=[
            make_pod("low", node="node-a", cpu="1", priority=5),
            make_pod("high", node="node-a", cpu="1", priority=5000),
        ],
    )
    verdict = decide(cluster, make_pod("api", cpu="1", priority=1000))
    assert list(occupancy_of(cluster, [verdict]).requests) == ["shop/low"]


def test_every_one_of_equal_pods_may_go() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("node-a", cpu="2")],
        pods=[make_pod(name, node="node-a", cpu="1", priority=5) for name in ("one", "other")],
    )
    verdict = decide(cluster, make_pod("api", cpu="1", priority=1000))
    assert sorted(occupancy_of(cluster, [verdict]).requests) == ["shop/one", "shop/other"]
