"""Labels, taints and amounts of nodes that options change, and what follows from that."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.nodes.edits import node_edits, with_edits
from kpreempt.errors import KpreemptError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import Taint, Toleration
from kpreempt.verdict import AssumptionKind
from tests.factories import NOW, make_node, make_pod, owned

CLUSTER = ClusterSnapshot(
    nodes=[
        make_node("node-a", labels={"zone": "a"}, taints=[Taint("dedicated", "gpu", "NoSchedule")]),
        make_node("node-b", labels={"zone": "b"}),
    ]
)


def edited(cluster: ClusterSnapshot = CLUSTER, **texts: list[str]) -> tuple[ClusterSnapshot, list[str]]:
    """The cluster, and the requested changes as the answer lists them."""
    found, assumptions = with_edits(cluster, node_edits(**texts), NOW)
    return found, [each.message for each in assumptions if each.kind is AssumptionKind.WHAT_IF]


def node_a(**texts: list[str]) -> Node:
    return edited(**texts)[0].nodes[0]


@pytest.mark.parametrize(
    ("text", "labels", "note"),
    [
        pytest.param("node-a=disk=ssd", {"zone": "a", "disk": "ssd"}, "label disk=ssd added", id="a new label"),
        pytest.param("node-a=zone=c", {"zone": "c"}, "label zone=c instead of zone=a", id="another value"),
        pytest.param("node/node-a=zone=a", {"zone": "a"}, "label zone=a, as before", id="the same value"),
        pytest.param("node-a=zone=", {"zone": ""}, "label zone= instead of zone=a", id="an empty value"),
        pytest.param("node-a=zone-", {}, "label zone=a removed", id="no label"),
        pytest.param(
            "node-a=example.com/gpu-model=a100",
            {"zone": "a", "example.com/gpu-model": "a100"},
            "label example.com/gpu-model=a100 added",
            id="a key with a domain and a dash",
        ),
    ],
)
def test_a_label_is_set_or_removed(text: str, labels: dict[str, str], note: str) -> None:
    cluster, notes = edited(node_labels=[text])
    assert cluster.nodes[0].labels == {"kubernetes.io/hostname": "node-a", **labels}
    assert notes == [note]
    assert cluster.is_what_if


@pytest.mark.parametrize(
    ("text", "taints", "note"),
    [
        pytest.param(
            "node-a=spot=true:NoSchedule",
            ["spot=true:NoSchedule", "dedicated=gpu:NoSchedule"],
            "taint spot=true:NoSchedule added",
            id="a new taint comes first",
        ),
        pytest.param(
            "node-a=spot:PreferNoSchedule",
            ["spot:PreferNoSchedule", "dedicated=gpu:NoSchedule"],
            "taint spot:PreferNoSchedule added",
            id="without a value",
        ),
        pytest.param(
            "node-a=dedicated=x:NoSchedule",
            ["dedicated=x:NoSchedule"],
            "taint dedicated=x:NoSchedule instead of dedicated=gpu:NoSchedule",
            id="another value",
        ),
        pytest.param(
            "node-a=dedicated=gpu:NoExecute",
            ["dedicated=gpu:NoExecute", "dedicated=gpu:NoSchedule"],
            "taint dedicated=gpu:NoExecute added",
            id="another effect is another taint",
        ),
        pytest.param("node-a=dedicated:NoSchedule-", [], "taint dedicated=gpu:NoSchedule removed", id="removed"),
        pytest.param(
            "node-a=dedicated=gpu:NoSchedule-",
            [],
            "taint dedicated=gpu:NoSchedule removed",
            id="removed with its value",
        ),
        pytest.param("node-a=dedicated-", [], "taint dedicated=gpu:NoSchedule removed", id="removed with every effect"),
    ],
)
def test_a_taint_is_set_or_removed(text: str, taints: list[str], note: str) -> None:
    cluster, notes = edited(node_taints=[text])
    assert [str(each) for each in cluster.nodes[0].spec.taints] == taints
    assert notes == [note]


def test_an_amount_is_set_or_removed() -> None:
    node = node_a(node_settings=["node-a:status.allocatable.cpu=8", "node-a:status.allocatable.memory-"])
    assert node.status.allocatable == {"cpu": quantity("8"), "pods": quantity("110")}
    with_dots = ["node-a:status.allocatable.nvidia.com/gpu=4", r"node-b:status.allocatable.nvidia\.com/gpu=2"]
    cluster, notes = edited(node_settings=with_dots)
    assert [str(node.status.allocatable["nvidia.com/gpu"]) for node in cluster.nodes] == ["4", "2"]
    assert notes == ["resource nvidia.com/gpu: 4 added", "resource nvidia.com/gpu: 2 added"]


def test_a_node_is_cordoned_by_its_field() -> None:
    assert node_a(node_settings=["node-a:spec.unschedulable=true"]) == node_a(cordons=["node-a"])
    cordoned = edited(cordons=["node-a"])[0]
    for text in ("node-a:spec.unschedulable=false", "node-a:spec.unschedulable-"):
        assert edited(cordoned, node_settings=[text])[0].nodes == CLUSTER.nodes


@pytest.mark.parametrize(
    "text",
    [
        *("node-a=zone=c", "node-a=zone-", "node-a=zone="),
    ],
)
def test_an_edit_knows_the_option_that_makes_it(text: str) -> None:
    [edit] = node_edits(node_labels=[text])
    assert edit.argument == f"--label-node={text}"


@pytest.mark.parametrize("text", ["node-a=a=b:NoSchedule", "node-a=a:NoExecute", "node-a=a:NoExecute-", "node-a=a-"])
def test_a_taint_knows_the_option_that_makes_it(text: str) -> None:
    [edit] = node_edits(node_taints=[text])
    assert edit.argument == f"--taint-node={text}"


@pytest.mark.parametrize(
    ("texts", "problem", "hint"),
    [
        pytest.param(
            {"node_labels": ["zone=b"]},
            "expected NODE=KEY=VALUE or NODE=KEY-",
            "--label-node node-a=zone=b",
            id="a label without a node",
        ),
        pytest.param({"node_labels": ["node-a"]}, "expected NODE=KEY=VALUE", "node-a=zone-", id="only a node"),
        pytest.param({"node_labels": ["node-a=-"]}, "expected NODE=KEY=VALUE", "", id="nothing to remove"),
        pytest.param({"node_labels": ["node-a=zo ne=b"]}, 'invalid label key "zo ne"', "", id="a key with a space"),
        pytest.param(
            {"node_labels": ["node-a=zone=b@c"]}, 'invalid label value "b@c"', "", id="a value with an at sign"
        ),
        pytest.param({"node_labels": ["node-a=zone=" + "x" * 64]}, "must be no more than 63", "", id="a long value"),
        pytest.param(
            {"node_taints": ["node-a=a=b"]}, "a taint needs an effect", "dedicated=gpu:NoSchedule", id="no effect"
        ),
        pytest.param(
            {"node_taints": ["node-a=a=b:NoShedule"]},
            '"NoShedule" is not a taint effect',
            "NoSchedule",
            id="a misspelled effect",
        ),
        pytest.param(
            {"node_taints": ["node-a=a:NoExec-"]},
            "is not a taint effect",
            "NoExecute",
            id="a misspelled effect to remove",
        ),
        pytest.param({"node_taints": ["node-a=:NoSchedule"]}, "invalid taint key", "", id="no key"),
        pytest.param(
            {"node_taints": ["node-a=node.kubernetes.io/unschedulable:NoSchedule"]},
            "part of a cordon",
            "--cordon node-a",
            id="the taint of a cordon",
        ),
        pytest.param(
            {"node_taints": ["node-a=node.kubernetes.io/unschedulable-"]},
            "part of a cordon",
            "--uncordon node-a",
            id="the taint of a cordon, removed",
        ),
        pytest.param(
            {"node_settings": ["node-a"]}, "expected NODE:PATH=VALUE", "status.allocatable.cpu=8", id="no path"
        ),
        pytest.param(
            {"node_settings": ["node-a:spec.unschedulable=yes"]}, "expected true or false", "", id="not a Boolean"
        ),
        pytest.param(
            {"node_settings": ["node-a:metadata.labels.zone=b"]},
            "use --label-node",
            "spec.unschedulable",
            id="a label as a field",
        ),
        pytest.param({"node_settings": ["node-a:spec.taints=x"]}, "use --taint-node", "", id="taints as a field"),
        pytest.param({"node_settings": ["node-a:metadata.name=b"]}, "cannot be changed", "", id="the name"),
        pytest.param(
            {"node_settings": ["node-a:status.conditions[0].status=True"]},
            "no effect on the scheduler",
            "",
            id="a condition",
        ),
        pytest.param(
            {"node_settings": ["node-a:status.capacity.cpu=8"]}, "reads only status.allocatable", "", id="the capacity"
        ),
        pytest.param(
            {"node_settings": ["node-a:cpu=8"]},
            "expected NODE:status.allocatable.RESOURCE",
            "status.allocatable.cpu",
            id="a resource without its field",
        ),
        pytest.param(
            {"node_settings": ["node-a:status.allocatable=8"]},
            "expected NODE:status.allocatable.RESOURCE",
            "status.allocatable.cpu",
            id="a field without its resource",
        ),
        pytest.param(
            {"node_settings": ["node-a:spec.providerID=x"]},
            "unknown what that would affect",
            "status.allocatable.RESOURCE",
            id="another field",
        ),
        pytest.param(
            {"node_settings": ["node-a:status.allocatable.memroy=8Gi"]},
            'invalid resource "memroy"',
            "memory",
            id="a misspelled resource",
        ),
        pytest.param(
            {"node_settings": ["node-a:status.allocatable.cpu=8 cores"]}, "is not a quantity", "", id="not a quantity"
        ),
        pytest.param(
            {"node_settings": ["node-a:status.allocatable.cpu=-1"]},
            "greater than or equal to 0",
            "",
            id="a negative amount",
        ),
        pytest.param(
            {"node_settings": ["node-a:status.allocatable.nvidia.com/gpu=1500m"]},
            "must be an integer",
            "",
            id="half a device",
        ),
        pytest.param(
            {"node_settings": ["node-a:status.allocatable.pods=1500m"]}, "must be an integer", "", id="half a pod"
        ),
        pytest.param(
            {"node_labels": ["node-a=zone=b", "node-a=zone=c"]},
            "--label-node node-a=zone=b and --label-node node-a=zone=c contradict",
            "",
            id="two values",
        ),
        pytest.param({"node_labels": ["node-a=zone=b", "node-a=zone-"]}, "contradict", "", id="set and removed"),
        pytest.param(
            {"node_taints": ["node-a=a:NoSchedule", "node-a=a-"]}, "contradict", "", id="a taint set and removed"
        ),
        pytest.param(
            {"cordons": ["node-a"], "uncordons": ["node-a"]},
            "--cordon node-a and --uncordon node-a contradict",
            "",
            id="cordoned and uncordoned",
        ),
        pytest.param(
            {"cordons": ["node-a"], "node_settings": ["node-a:spec.unschedulable=false"]},
            "contradict",
            "",
            id="cordoned and set to schedulable",
        ),
    ],
)
def test_a_mistake_is_explained(texts: dict[str, list[str]], problem: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        node_edits(**texts)
    assert problem in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param({"node_labels": ["node-a=zone=c", "node-b=zone=c"]}, id="the same label of two nodes"),
        pytest.param({"node_labels": ["node-a=zone=c", "node-a=zone=c"]}, id="the same edit twice"),
        pytest.param({"node_taints": ["node-a=a:NoSchedule", "node-a=a:NoExecute"]}, id="two effects"),
        pytest.param({"node_taints": ["node-a=a:NoSchedule", "node-a=a:NoExecute-"]}, id="another effect removed"),
    ],
)
def test_edits_that_do_not_contradict(texts: dict[str, list[str]]) -> None:
    assert [each.node for each in node_edits(**texts)]


@pytest.mark.parametrize(
    ("texts", "problem", "hint"),
    [
        pytest.param({"node_labels": ["node-c=zone=b"]}, 'node "node-c" not found', "node-", id="an unknown node"),
        pytest.param(
            {"node_labels": ["node-a=zonee-"]}, 'node "node-a" has no label "zonee"', "zone", id="an unknown label"
        ),
        pytest.param(
            {"node_taints": ["node-a=dedicatd-"]}, 'has no taint "dedicatd"', "dedicated", id="an unknown taint"
        ),
        pytest.param(
            {"node_taints": ["node-a=dedicated:NoExecute-"]},
            'has no taint "dedicated" with effect NoExecute',
            "dedicated",
            id="a taint with another effect",
        ),
        pytest.param(
            {"node_taints": ["node-b=dedicated-"]}, 'has no taint "dedicated"', "", id="a node without taints"
        ),
        pytest.param(
            {"node_settings": ["node-a:status.allocatable.nvidia.com/gpu-"]},
            'has no resource "nvidia.com/gpu"',
            "cpu",
            id="an unknown resource",
        ),
    ],
)
def test_what_does_not_exist_is_reported(texts: dict[str, list[str]], problem: str, hint: str) -> None:
    with pytest.raises(KpreemptError) as caught:
        edited(**texts)
    assert problem in caught.value.message
    assert hint in caught.value.hint


TOLERATION = Toleration(key="spot", operator="Exists")
RUNNING = [
    owned(make_pod("web", node="node-b", phase="Running"), "ReplicaSet", "web"),
    owned(make_pod("proxy", node="node-b", phase="Running"), "DaemonSet", "proxy"),
    make_pod("bare", node="node-b", phase="Running"),
    make_pod("tolerant", node="node-b", phase="Running", tolerations=[TOLERATION]),
    make_pod(
        "patient",
        node="node-b",
        phase="Running",
        tolerations=[msgspec.structs.replace(TOLERATION, toleration_seconds=300)],
    ),
    make_pod("elsewhere", node="node-a", phase="Running"),
    make_pod("done", node="node-b", phase="Succeeded"),
]


def test_a_taint_with_no_execute_evicts_the_pods_that_do_not_tolerate_it() -> None:
    before = msgspec.structs.replace(CLUSTER, pods=RUNNING)
    cluster, assumptions = with_edits(before, node_edits(node_taints=["node-b=spot:NoExecute"]), NOW)
    assert {pod.metadata.name: pod.spec.node_name for pod in cluster.pods} == {
        "web": "",
        "tolerant": "node-b",
        "patient": "node-b",
        "elsewhere": "node-a",
        "done": "node-b",
    }
    evicted, waiting = (each.message for each in assumptions if each.field == "pods")
    assert evicted == (
        "3 pods are evicted by its new taints: 1 recreated by their controllers and pending, under their old names; "
        "1 of DaemonSets or static, which do not run there anymore; 1 that no controller recreates: shop/bare"
    )
    assert waiting == "not evicted yet, because they tolerate the new taints for a time: shop/patient for 300s"


@pytest.mark.parametrize("text", ["node-b=spot:NoSchedule", "node-b=spot:PreferNoSchedule"])
def test_other_taints_evict_no_pod(text: str) -> None:
    before = msgspec.structs.replace(CLUSTER, pods=RUNNING)
    assert with_edits(before, node_edits(node_taints=[text]), NOW)[0].pods == RUNNING


def daemon(name: str, node: str, **spec: Any) -> Pod:
    return owned(make_pod(name, node=node, phase="Running", **spec), "DaemonSet", name)


@pytest.mark.parametrize(
    ("pods", "texts", "message"),
    [
        pytest.param(
            [daemon("gpu", "node-b", node_selector={"zone": "b"})],
            {"node_labels": ["node-a=zone=b"], "node_taints": ["node-a=dedicated-"]},
            "its controller would create a pod on node-a, which is not simulated",
            id="a DaemonSet that selects the node now",
        ),
        pytest.param(
            [daemon("agent", "node-b")],
            {"node_taints": ["node-a=dedicated-"]},
            "its controller would create a pod on node-a, which is not simulated",
            id="a DaemonSet that tolerates the node now",
        ),
        pytest.param(
            [daemon("agent", "node-a", tolerations=[Toleration(operator="Exists")])],
            {"node_labels": ["node-b=zone=a"]},
            "it is unknown whether its node affinity matches node-b; assumed that it does not",
            id="a DaemonSet with an unknown affinity",
        ),
    ],
)
def test_what_a_daemon_set_would_do_is_listed(pods: list[Pod], texts: dict[str, list[str]], message: str) -> None:
    before = msgspec.structs.replace(CLUSTER, pods=pods)
    cluster, assumptions = with_edits(before, node_edits(**texts), NOW)
    assert cluster.pods == pods
    assert [each.message for each in assumptions if each.kind is AssumptionKind.UNMODELED] == [message]


def test_a_daemon_set_deletes_its_pod_from_a_node_that_it_no_longer_selects() -> None:
    pods = [daemon("gpu", "node-b", node_selector={"zone": "b"}), daemon("proxy", "node-b")]
    before = msgspec.structs.replace(CLUSTER, pods=pods)
    cluster, assumptions = with_edits(before, node_edits(node_labels=["node-b=zone-"]), NOW)
    assert [pod.metadata.name for pod in cluster.pods] == ["proxy"]
    assert assumptions[-1].message.startswith("1 pod is deleted, because their DaemonSets no longer select the node")


def test_a_taint_of_a_controller_may_not_last() -> None:
    broken = make_node("node-a", taints=[Taint("node.kubernetes.io/not-ready", "", "NoExecute")])
    edits = node_edits(node_taints=["node-a=node.kubernetes.io/not-ready-"])
    cluster, assumptions = with_edits(ClusterSnapshot(nodes=[broken]), edits, NOW)
    assert not cluster.nodes[0].spec.taints
    assert "a controller sets and removes the taint" in assumptions[-1].message


def test_many_edits_of_many_nodes_are_made_in_a_moment() -> None:
    nodes = [make_node(f"node-{number}") for number in range(3000)]
    agents = (make_pod(f"agent-{number}", node=f"node-{number}", phase="Running") for number in range(3000))
    pods = [owned(pod, "DaemonSet", "agent") for pod in agents]
    texts = [f"node-{number}=zone=z{number % 3}" for number in range(3000)]
    cluster = ClusterSnapshot(nodes=nodes, pods=pods)
    started = time.process_time()
    edited, _ = with_edits(cluster, node_edits(node_labels=texts), NOW)
    assert time.process_time() - started < 20
    assert [node.labels["zone"] for node in edited.nodes] == [f"z{number % 3}" for number in range(3000)]
