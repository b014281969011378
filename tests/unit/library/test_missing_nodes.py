"""Inputs with a part of the nodes, or none: answers are uncertain, and say what the input lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpreempt import Cluster
from kpreempt.library.reading import missing_nodes
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
