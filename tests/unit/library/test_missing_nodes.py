"""Inputs with a part of the nodes or pods, or none: answers are uncertain, and say what the input lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpreempt import Cluster
from kpreempt.library.reading import missing_nodes, missing_pods
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report.answers import render_answer
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import AssumptionKind
from tests.factories import make_node, make_pod

ADD = "add all nodes to the dump (kubectl get nodes -o json)"
REFUSED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2 nodes are available: 2 Insufficient cpu.",
}


def pod(name: str, node: str = "", *conditions: dict[str, Any]) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    status = {"phase": "Running" if node else "Pending", "conditions": list(conditions)}
    metadata = {"name": name, "namespace": "shop"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, "nodeName": node},
        "status": status,
    }


def node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}


def written(path: Path, *objects: dict[str, Any]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


ON_ANOTHER = [node("n1"), pod("a", "n1"), pod("b", "n2"), pod("new")]
COUNTED = [node("n1"), pod("a", "n1"), pod("new", "", REFUSED)]
COMPLETE = [node("n1"), node("n2"), pod("a", "n1"), pod("b", "n2"), pod("new", "", REFUSED)]


@pytest.mark.parametrize(
    ("objects", "outcome", "reason"),
    [
        pytest.param(
            ON_ANOTHER, "Uncertain", f"1 pod runs on a node that is not in the input (n2): shop/b; {ADD}",
            id="a pod on n2",
        ),
        pytest.param(
            COUNTED, "Uncertain", f"the condition of shop/new counts 2 nodes, but the input has 1; {ADD}",
            id="2 nodes counted",
        ),
        pytest.param(COMPLETE, "Lands", "", id="all nodes"),
    ],
)  # fmt: skip
def test_a_part_of_the_nodes_makes_answers_uncertain(
    objects: list[dict[str, Any]], outcome: str, reason: str, tmp_path: Path
) -> None:
    cluster = Cluster.load(written(tmp_path / "dump.json", *objects))
    verdict = cluster.explain("new", namespace="shop")
    absent = [each for each in verdict.assumptions if each.kind is AssumptionKind.ABSENT]
    messages = [each.message for each in absent if each.subject == "Node"]
    assert (verdict.outcome, messages) == (outcome, [reason] if reason else [])
    pending = cluster.pending()
    assert pending.items[0].outcome == outcome
    assert (pending.items[0].in_turn is None) is (outcome == "Uncertain")


def test_without_nodes_pending_serves_no_queue(tmp_path: Path) -> None:
    item = Cluster.load(written(tmp_path / "dump.json", pod("a", "n1"), pod("new", "", REFUSED))).pending().items[0]
    assert (item.outcome, item.in_turn, item.message) == ("Uncertain", None, "")


def test_a_cluster_whose_nodes_were_all_listed_lacks_none() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=[make_pod("b", node="n2")], listed=("Node",))
    assert missing_nodes(cluster) == []


def test_which_pods_are_at_risk_is_unknown_if_nodes_are_missing(tmp_path: Path) -> None:
    found = Cluster.load(written(tmp_path / "dump.json", *ON_ANOTHER)).at_risk()
    assert (found.matching, found.items) == (0, [])
    assert "Which pods are at risk is unknown: not all nodes are in the input." in render_answer(
        found, "text", RenderOptions()
    )


PODS = "add the pods of all namespaces to the dump (kubectl get pods -A -o json)"
PROXY = "registry.k8s.io/kube-proxy:v1.36.1"


def stored_node(*images: str) -> dict[str, Any]:
    """A node as an API server returns it, with the images that its kubelet reports."""
    stored = {**node("n1"), "metadata": {"name": "n1", "resourceVersion": "7"}}
    stored["status"] = {**stored["status"], "images": [{"names": [image], "sizeBytes": 1} for image in images]}
    return stored


def elsewhere(kind: str, status: dict[str, int], namespace: str = "data") -> dict[str, Any]:
    version = "policy/v1" if kind == "PodDisruptionBudget" else "apps/v1"
    spec = {"selector": {"matchLabels": {"app": "db"}}}
    meta = {"name": "db", "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec, "status": status}


OWN = [pod("a", "n1"), pod("new")]
SYSTEM = pod("proxy", "n1")
SYSTEM["metadata"]["namespace"] = "kube-system"


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param(
            [node("n1"), elsewhere("PodDisruptionBudget", {"expectedPods": 3})],
            f"no pod of namespace data is in the input, but PodDisruptionBudget data/db counts 3; {PODS}",
            id="a budget of another namespace has pods",
        ),
        pytest.param(
            [node("n1"), elsewhere("StatefulSet", {"replicas": 2}), elsewhere("ReplicaSet", {"replicas": 1}, "api")],
            f"no pod of 2 namespaces: api, data is in the input, but ReplicaSet api/db counts 1; {PODS}",
            id="workloads of other namespaces have pods",
        ),
        pytest.param(
            [stored_node(PROXY)],
            f"the input has only pods of namespace shop, but node n1 also has images of others ({PROXY}); {PODS}, or"
            " pass --assume-none pods if there are no others",
            id="a kubelet has images of other pods",
        ),
    ],
)
def test_a_dump_of_one_namespace_makes_answers_uncertain(
    objects: list[dict[str, Any]], reason: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "dump.json", *objects, *OWN)
    cluster = Cluster.load(path)
    verdict = cluster.explain("new", namespace="shop")
    assert verdict.outcome == "Uncertain"
    assert [each.message for each in verdict.assumptions if each.subject == "Pod"] == [reason]
    assert cluster.pending().items[0].in_turn is None
    found = cluster.at_risk()
    assert (found.matching, found.items) == (0, [])
    assert "Which pods are at risk is unknown: not all pods are in the input." in render_answer(
        found, "text", RenderOptions()
    )
    check = cluster.check([{**elsewhere("Deployment", {}), "spec": {"replicas": 0}}])
    assert not check.passed
    assert any(each.rule == "absent-kinds" and reason in each.detail for each in check.findings)


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([node("n1")], id="written by hand"),
        pytest.param([node("n1"), elsewhere("StatefulSet", {"replicas": 0})], id="without pods elsewhere"),
        pytest.param([stored_node(PROXY), SYSTEM], id="with pods of the system"),
        pytest.param([stored_node()], id="without images"),
    ],
)
def test_a_small_cluster_has_all_its_pods(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    verdict = Cluster.load(written(tmp_path / "dump.json", *objects, *OWN)).explain("new", namespace="shop")
    assert verdict.outcome == "Lands"
    assert all(each.kind is AssumptionKind.INFORMATIONAL for each in verdict.assumptions if each.subject == "Pod")


def test_pods_that_were_all_listed_or_are_assumed_to_be_all_are_complete(tmp_path: Path) -> None:
    cluster = Cluster.load(written(tmp_path / "dump.json", stored_node(PROXY), *OWN), assume_none=["pods"])
    assert cluster.explain("new", namespace="shop").outcome == "Lands"
    listed = ClusterSnapshot(nodes=[make_node("n1")], pods=[make_pod("b", node="n1")], listed=("Pod",))
    assert missing_pods(listed) == []
