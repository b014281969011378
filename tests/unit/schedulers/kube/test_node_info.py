"""A node with its pods: which of them are looked at closely, and that each has one record."""

from __future__ import annotations

import pytest

from kpreempt.model.affinity import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    WeightedPodAffinityTerm,
)
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.schedulers.kube import scheduler
from kpreempt.schedulers.kube.framework import node_info
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.versions import Behavior
from tests.factories import decide, make_node, make_pod

HOSTNAME = "kubernetes.io/hostname"
ALONE = Affinity(pod_anti_affinity=PodAntiAffinity(required=[PodAffinityTerm(HOSTNAME)]))


def test_a_look_for_affinity_makes_records_of_no_other_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    class Noted(PodInfo):
        def __init__(self, pod: Pod, behavior: Behavior) -> None:
            looked_at.append(pod.metadata.name)
            super().__init__(pod, behavior)

    monkeypatch.setattr(node_info, "PodInfo", Noted)
    node = NodeInfo(make_node("a"), [make_pod("web"), make_pod("db", affinity=ALONE), make_pod("job")])
    (choosy,) = node.pods_with_required_anti_affinity
    assert (choosy.key, looked_at) == ("shop/db", ["db"])
    assert [info.key for info in node.pods] == ["shop/web", "shop/db", "shop/job"]
    assert looked_at == ["db", "web", "job"]
    node.remove_pod(choosy)
    assert (len(node.pods), node.pods_with_affinity) == (2, [])


def test_scores_on_big_clusters_take_a_close_look_at_no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    web = LabelSelector(match_labels={"app": "web"})
    near = PodAffinity(preferred=[WeightedPodAffinityTerm(10, PodAffinityTerm(HOSTNAME, web))])
    far = PodAntiAffinity(preferred=[WeightedPodAffinityTerm(3, PodAffinityTerm("zone", web))])
    nodes = [make_node(name, labels={"zone": zone}) for name, zone in (("a", "z0"), ("b", "z0"), ("c", "z1"))]
    pods = [make_pod(f"web-{index}", node=node, labels={"app": "web"}) for index, node in enumerate("aab")]
    cluster = ClusterSnapshot(nodes=nodes, pods=[*pods, make_pod("web-x", node="c", labels={"app": "batch"})])
    pod = make_pod(
        "api",
        labels={"app": "web"},
        affinity=Affinity(pod_affinity=near, pod_anti_affinity=far),
        topology_spread_constraints=[TopologySpreadConstraint(1, HOSTNAME, "ScheduleAnyway", web)],
    )
    plain = decide(cluster, pod)
    monkeypatch.setattr(scheduler, "MIN_PODS_OF_TABLE", 0)
    monkeypatch.setattr(NodeInfo, "_list_pods", lambda _: pytest.fail("all pods of a node were looked at"))
    assert decide(cluster, pod) == plain
