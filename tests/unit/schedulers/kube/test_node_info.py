"""A node with its pods: which of them are looked at closely, and that each has one record."""

from __future__ import annotations

import pytest

from kpreempt.model.affinity import Affinity, PodAffinityTerm, PodAntiAffinity
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework import node_info
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.versions import Behaviour
from tests.factories import make_node, make_pod

ALONE = Affinity(pod_anti_affinity=PodAntiAffinity(required=[PodAffinityTerm("kubernetes.io/hostname")]))


def test_a_look_for_affinity_makes_records_of_no_other_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    class Noted(PodInfo):
        def __init__(self, pod: Pod, behaviour: Behaviour) -> None:
            looked_at.append(pod.metadata.name)
            super().__init__(pod, behaviour)

    monkeypatch.setattr(node_info, "PodInfo", Noted)
    node = NodeInfo(make_node("a"), [make_pod("web"), make_pod("db", affinity=ALONE), make_pod("job")])
    (choosy,) = node.pods_with_required_anti_affinity
    assert (choosy.key, looked_at) == ("shop/db", ["db"])
    assert [info.key for info in node.pods] == ["shop/web", "shop/db", "shop/job"]
    assert looked_at == ["db", "web", "job"]
    node.remove_pod(choosy)
    assert (len(node.pods), node.pods_with_affinity) == (2, [])
