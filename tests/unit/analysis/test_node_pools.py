"""New nodes of a node pool of Karpenter's, and what of them is an assumption."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.analysis.nodes.changes import with_changed_nodes
from kpreempt.errors import KpreemptError, NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.node import Node, NodePool
from kpreempt.model.quantity import quantity
from kpreempt.verdict import Assumption, AssumptionKind
from tests.factories import NOW, make_node

TYPE, ZONE, POOL = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/nodepool"
CPU, MEMORY = "karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/instance-memory"


def requirement(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def pool(*requirements: dict[str, Any], **spec: Any) -> NodePool:
    template = {
        "metadata": {"labels": {"team": "web"}},
        "spec": {"requirements": list(requirements), "taints": [{"key": "web", "effect": "NoSchedule"}]},
    }
    document = {
        "metadata": {"name": "web"},
        "spec": {"template": template, **spec},
        "status": {"resources": {"cpu": "6"}},
    }
    return msgspec.convert(document, NodePool, dec_hook=lambda _, text: quantity(str(text)))


def add(text: str, cluster: ClusterSnapshot) -> tuple[list[Node], list[Assumption]]:
    after, said = with_changed_nodes(cluster, pools=[text], read_file=lambda _: cluster, now=NOW)
    return after.nodes[len(cluster.nodes) :], said


def test_a_node_of_the_pool_is_the_pattern_the_smallest_first() -> None:
    labels = {POOL: "web", TYPE: "m5.large"}
    nodes = [
        make_node("other", cpu="1"),
        make_node("big", cpu="8", labels=labels),
        make_node("small", cpu="2", labels=labels),
        make_node("drifted", cpu="1", labels={POOL: "web", TYPE: "t3.micro"}),
    ]
    found, said = add(
        "web=2", ClusterSnapshot(nodes=nodes, node_pools=[pool(requirement(TYPE, "m5.large", "m5.xlarge"))])
    )
    assert [node.name for node in found] == ["small-new-1", "small-new-2"]
    (assumed,) = said
    assert (assumed.subject, assumed.kind) == ("NodePool web", AssumptionKind.UNMODELED)
    assert "like small" in assumed.message


def test_a_size_that_the_pool_states_is_taken_with_its_labels_and_taints() -> None:
    stated = pool(
        requirement(CPU, "4"), requirement(MEMORY, "8192"), requirement(ZONE, "a", "b"), requirement("arch", "arm")
    )
    (node,), said = add("web", ClusterSnapshot(nodes=[make_node("x")], node_pools=[stated]))
    allocatable = node.status.allocatable
    assert (str(allocatable["cpu"]), allocatable["memory"].nano) == ("4", 8 * 2**30 * 10**9)
    assert node.labels == {
        POOL: "web",
        "kubernetes.io/hostname": node.name,
        "team": "web",
        "arch": "arm",
        CPU: "4",
        MEMORY: "8192",
    }
    assert [taint.key for taint in node.spec.taints] == ["web"]
    assert ["kubelet" in each.message for each in said] == [True]


def test_a_machine_of_a_type_that_the_pool_names_is_taken_from_another_pool() -> None:
    other = make_node("x", cpu="3", labels={POOL: "other", TYPE: "m5.large", ZONE: "a", "team": "x"})
    (node,), said = add("web", ClusterSnapshot(nodes=[other], node_pools=[pool(requirement(TYPE, "m5.large"))]))
    assert node.labels == {POOL: "web", TYPE: "m5.large", ZONE: "a", "team": "web", "kubernetes.io/hostname": node.name}
    assert node.status.allocatable == other.status.allocatable
    assert "m5.large" in said[0].message


@pytest.mark.parametrize(("number", "over"), [(1, False), (2, True)])
def test_the_limits_of_a_pool_are_reported_if_they_are_passed(number: int, over: bool) -> None:
    stated = pool(requirement(CPU, "4"), requirement(MEMORY, "8192"), limits={"cpu": "10"})
    _, said = add(f"web={number}", ClusterSnapshot(nodes=[make_node("x")], node_pools=[stated]))
    assert any(each.field == "spec.limits" and each.kind is AssumptionKind.UNCERTAIN for each in said) is over


UNREAD = {"NodePool": Unread(403, "nodepools.karpenter.sh")}


@pytest.mark.parametrize(
    ("cluster", "text", "expected"),
    [
        pytest.param(ClusterSnapshot(node_pools=[pool()]), "wep", NotFoundError, id="another name"),
        pytest.param(ClusterSnapshot(), "web", NotFoundError, id="no Karpenter"),
        pytest.param(
            ClusterSnapshot(unread={"NodePool": Unread(403, "nodepools.karpenter.sh")}),
            "web",
            NotFoundError,
            id="unread",
        ),
        pytest.param(ClusterSnapshot(node_pools=[pool()]), "web", UsageError, id="a pool that says nothing"),
        pytest.param(
            ClusterSnapshot(node_pools=[pool(requirement(CPU, "4", "8"), requirement(MEMORY, "8192"))]),
            "web",
            UsageError,
            id="a pool of several sizes",
        ),
        pytest.param(
            ClusterSnapshot(node_pools=[pool(requirement(CPU, "x"), requirement(MEMORY, "8192"))]),
            "web",
            UsageError,
            id="a size that is no number",
        ),
    ],
)
def test_what_is_not_known_of_a_pool_is_an_error(
    cluster: ClusterSnapshot, text: str, expected: type[KpreemptError]
) -> None:
    with pytest.raises(expected):
        add(text, cluster)
