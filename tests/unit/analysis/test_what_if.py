"""Overrides of the pod and of the cluster."""

from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.analysis.nodes.changes import changed, cordon, recreations, set_budget, without
from kpreempt.analysis.what_if import (
    Assignment,
    Overrides,
    format_path,
    override_pod,
    parse_path,
    pod_document,
    split_assignment,
)
from kpreempt.errors import KpreemptError, NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.quantity import quantity
from tests.factories import NOW, make_node, make_pod, owned

POD: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "shop"},
    "spec": {
        "priorityClassName": "low",
        "priority": 1,
        "nodeSelector": {"disk": "ssd"},
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    },
}


def read(record: type, document: dict[str, Any]) -> Any:
    return msgspec.convert(document, record, dec_hook=lambda _, text: quantity(str(text)))


def set_field(path: str, value: Any) -> dict[str, Any]:
    return override_pod(POD, Overrides(assignments=[Assignment(path, value)]))


@pytest.mark.parametrize(
    ("path", "value", "get", "expected"),
    [
        pytest.param(
            "spec.containers[0].resources.requests.cpu",
            "1500m",
            lambda pod: pod["spec"]["containers"][0]["resources"]["requests"],
            {"cpu": "1500m"},
            id="a value that is there is replaced",
        ),
        pytest.param(
            r"spec.nodeSelector.kubernetes\.io/arch",
            "arm64",
            lambda pod: pod["spec"]["nodeSelector"],
            {"disk": "ssd", "kubernetes.io/arch": "arm64"},
            id="a backslash keeps a dot in a key",
        ),
        pytest.param(
            "spec.containers[0].resources.limits.memory",
            "1Gi",
            lambda pod: pod["spec"]["containers"][0]["resources"]["limits"],
            {"memory": "1Gi"},
            id="mappings on the way are made",
        ),
        pytest.param(
            "spec.tolerations[0].operator",
            "Exists",
            lambda pod: pod["spec"]["tolerations"],
            [{"operator": "Exists"}],
            id="lists on the way are made",
        ),
        pytest.param(
            "spec.containers[1]",
            {"name": "d"},
            lambda pod: [container["name"] for container in pod["spec"]["containers"]],
            ["c", "d"],
            id="one past the end appends",
        ),
        pytest.param(
            "spec.nodeSelector.disk", None, lambda pod: pod["spec"]["nodeSelector"], {}, id="null takes a key away"
        ),
        pytest.param(
            "spec.containers[0]", None, lambda pod: pod["spec"]["containers"], [], id="null takes an entry away"
        ),
        pytest.param(
            "spec.affinity.nodeAffinity",
            None,
            lambda pod: "affinity" in pod["spec"],
            False,
            id="null of what is not there makes nothing",
        ),
    ],
)
def test_set(path: str, value: Any, get: Any, expected: object) -> None:
    before = deepcopy(POD)
    assert get(set_field(path, value)) == expected
    assert before == POD


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        pytest.param(
            "spec.contaners[0].name",
            'spec.contaners[0].name: "contaners" is not a field of spec',
            "containers",
            id="a misspelt field",
        ),
        pytest.param("spec.containers[2].name", "spec.containers has 1 entry", "", id="an index too far"),
        pytest.param("spec.containers.name", "spec.containers is a list", "", id="a list without an index"),
        pytest.param("spec.nodeSelector[0]", "spec.nodeSelector is a mapping", "", id="an index into a mapping"),
        pytest.param("spec.priority.x", "spec.priority is a single value", "", id="a path below a value"),
        pytest.param("spec..x", '"spec..x" is not a path (at character 5)', "", id="two dots"),
        pytest.param("[0]", '"[0]" is not a path (at character 1)', "", id="an index first"),
        pytest.param("spec.containers[x]", '"spec.containers[x]" is not a path (at character 16)', "", id="no number"),
        pytest.param("spec.containers[0]name", "is not a path (at character 19)", "", id="a key right after an index"),
        pytest.param("spec.", '"spec." is not a path (at character 5)', "", id="a dot at the end"),
        pytest.param("", '"" is not a path', "", id="nothing"),
    ],
)
def test_paths_that_lead_nowhere(path: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        set_field(path, "x")
    assert message in caught.value.message
    assert caught.value.hint.startswith(hint)


def test_a_value_may_have_an_equals_sign() -> None:
    assert split_assignment("metadata.labels.a=b=c") == ("metadata.labels.a", "b=c")


@pytest.mark.parametrize("text", ["spec.priority", "=1", ""])
def test_an_assignment_needs_a_path_and_an_equals_sign(text: str) -> None:
    with pytest.raises(UsageError):
        split_assignment(text)


@given(
    st.text(min_size=1).map(lambda key: [key]),
    st.lists(st.one_of(st.text(min_size=1), st.integers(0, 999999)), max_size=5),
)
def test_a_path_reads_back_as_the_steps_that_it_was_made_of(first: list[str], rest: list[str | int]) -> None:
    assert parse_path(format_path([*first, *rest])) == [*first, *rest]


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        pytest.param({"priority": 5}, {"priority": 5, "priorityClassName": "low"}, id="a priority keeps the class"),
        pytest.param({"priority_class": "high"}, {"priorityClassName": "high"}, id="a class drops the old priority"),
        pytest.param(
            {"priority_class": "high", "priority": 0},
            {"priorityClassName": "high", "priority": 0},
            id="a class and a priority, even zero",
        ),
        pytest.param(
            {"preemption_policy": "never"},
            {"priorityClassName": "low", "priority": 1, "preemptionPolicy": "Never"},
            id="a policy in any case",
        ),
    ],
)
def test_priority_overrides(overrides: dict[str, Any], expected: dict[str, Any]) -> None:
    spec = override_pod(POD, Overrides(**overrides))["spec"]
    assert {key: value for key, value in spec.items() if key.startswith(("priority", "preemption"))} == expected


@pytest.mark.parametrize("overrides", [{"priority": 2**31}, {"preemption_policy": "Sometimes"}])
def test_overrides_that_the_field_cannot_have(overrides: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        override_pod(POD, Overrides(**overrides))


def test_a_typed_pod_goes_to_plain_data_and_back() -> None:
    spec = {
        **POD["spec"],
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}},
    }
    status = {"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Ready", "status": "True"}]}
    pod = read(Pod, {**POD, "spec": spec, "status": status})
    assert read(Pod, pod_document(pod)) == pod


def make_cluster() -> ClusterSnapshot:
    return ClusterSnapshot(
        nodes=[read(Node, {"metadata": {"name": name}}) for name in ("node-a", "node-b")],
        pods=[
            read(Pod, {"metadata": {"name": "web", "namespace": namespace}, "spec": {"nodeName": "node-a"}})
            for namespace in ("default", "shop")
        ],
        pod_disruption_budgets=[
            read(PodDisruptionBudget, {"metadata": {"name": "web", "namespace": "shop"}}),
        ],
    )


@pytest.mark.parametrize(
    ("target", "left"),
    [
        pytest.param("pod/web", ["shop/web", "node-a", "node-b", "pdb"], id="a pod of the given namespace"),
        pytest.param("web", ["shop/web", "node-a", "node-b", "pdb"], id="a bare name is a pod"),
        pytest.param("po/shop/web", ["default/web", "node-a", "node-b", "pdb"], id="a pod with its namespace"),
        pytest.param("shop/web", ["default/web", "node-a", "node-b", "pdb"], id="a namespace and a name are a pod"),
        pytest.param("node/node-a", ["default/web", "shop/web", "node-b", "pdb"], id="a node, whose pods stay"),
        pytest.param("pdb/shop/web", ["default/web", "shop/web", "node-a", "node-b"], id="a budget"),
    ],
)
def test_without(target: str, left: list[str]) -> None:
    cluster = make_cluster()
    result = without(cluster, target)
    names = [pod.key for pod in result.pods] + [node.name for node in result.nodes]
    assert names + ["pdb" for _ in result.pod_disruption_budgets] == left
    assert cluster == make_cluster()


OWNED = [
    owned(make_pod("web-1", node="node-a", cpu="1"), "ReplicaSet", "web"),
    owned(make_pod("web-2", node="node-a", cpu="1"), "ReplicaSet", "web"),
    owned(make_pod("db-0", node="node-a", cpu="1"), "StatefulSet", "db"),
    owned(make_pod("agent-1", node="node-a", cpu="1"), "DaemonSet", "agent"),
    owned(make_pod("static", node="node-a", cpu="1"), "Node", "node-a"),
    owned(make_pod("waits-1", cpu="1"), "ReplicaSet", "waits"),
    owned(make_pod("done-1", node="node-a", phase="Succeeded"), "Job", "done"),
    make_pod("bare", node="node-a", cpu="1"),
]


@pytest.mark.parametrize(
    ("name", "recreated"),
    [
        pytest.param("web-1", "shop/web-new", id="a ReplicaSet creates a pod with a new name"),
        pytest.param("db-0", "shop/db-0", id="a StatefulSet creates the same one again"),
        pytest.param("agent-1", "shop/agent-new", id="a DaemonSet creates one for the same node"),
        pytest.param("waits-1", "shop/waits-new", id="a pod that is pending is recreated as well"),
        pytest.param("static", "", id="the pod of a kubelet is not recreated"),
        pytest.param("done-1", "", id="nor one that has finished"),
        pytest.param("bare", "", id="nor one without an owner"),
    ],
)
def test_the_owner_of_a_removed_pod_recreates_it(name: str, recreated: str) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("node-a")], pods=OWNED)
    after = changed(cluster, "shop", removed=[f"pod/{name}"], now=NOW)
    left = [pod for pod in OWNED if pod.metadata.name != name]
    assert after.pods[: len(left)] == left
    made = after.pods[len(left) :]
    assert [pod.key for pod in made] == [recreated] * bool(recreated)
    for pod in made:
        assert (pod.spec.node_name, pod.status.phase, pod.status.conditions) == ("", "Pending", [])
        assert pod.metadata.creation_timestamp == NOW
        assert pod.metadata.uid != f"uid-shop-{name}"
    assert after.is_what_if
    # Where nothing says when it happens, as in a library function about one change, it just stays away.
    assert without(cluster, f"pod/{name}", "shop").pods == left


def test_each_removed_pod_is_recreated_even_if_they_have_the_same_owner() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("node-a")], pods=OWNED[:2])
    after = changed(cluster, "shop", removed=["pod/web-1", "pod/web-2"], now=NOW)
    assert len({pod.key for pod in after.pods}) == 2
    assert [pod.spec.node_name for pod in after.pods] == ["", ""]


@pytest.mark.parametrize("name", ["web-1", "db-0"])
def test_it_is_stated_that_a_removed_pod_is_recreated(name: str) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("node-a")], pods=OWNED)
    after = changed(cluster, "shop", removed=[f"pod/{name}"], now=NOW)
    (assumption,) = recreations(cluster, after)
    assert assumption.subject == f"Pod {after.pods[-1].key}"
    assert "creates it in place of a removed pod; it is pending" in assumption.message


def test_a_change_that_removes_no_pod_states_nothing() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("node-a")], pods=OWNED)
    assert recreations(cluster, changed(cluster, edits=[cordon("node-a")], now=NOW)) == []


def test_cordon_marks_and_taints_the_node_once() -> None:
    cluster = make_cluster()
    once = changed(cluster, edits=[cordon("node-a")])
    node = once.nodes[0]
    assert node.spec.unschedulable
    assert [str(taint) for taint in node.spec.taints] == ["node.kubernetes.io/unschedulable:NoSchedule"]
    assert changed(once, edits=[cordon("node-a")]) == once
    assert cluster == make_cluster()


def test_a_budget_without_a_status_takes_a_number() -> None:
    cluster = make_cluster()
    status = set_budget(cluster, "shop/web=3").pod_disruption_budgets[0].status
    assert status is not None
    assert status.disruptions_allowed == 3
    assert cluster == make_cluster()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        pytest.param(
            lambda cluster: without(cluster, "pod/wbe"),
            NotFoundError,
            'pod "default/wbe" not found',
            id="no such pod",
        ),
        pytest.param(
            lambda cluster: without(cluster, "pdb/web"),
            NotFoundError,
            'PodDisruptionBudget "default/web" not found',
            id="no such budget",
        ),
        pytest.param(
            lambda cluster: without(cluster, "node/a/b"),
            UsageError,
            '"node/a/b" is not an object name',
            id="no shape",
        ),
        pytest.param(
            lambda cluster: changed(cluster, edits=[cordon("node-c")]),
            NotFoundError,
            'node "node-c" not found',
            id="no such node",
        ),
        pytest.param(
            lambda cluster: set_budget(cluster, "shop/web=-1"),
            UsageError,
            '"shop/web=-1" is not NS/NAME=ALLOWED',
            id="a negative number",
        ),
        pytest.param(
            lambda cluster: set_budget(cluster, "web=1"),
            UsageError,
            '"web=1" is not NS/NAME=ALLOWED',
            id="a budget without a namespace",
        ),
        pytest.param(
            lambda cluster: set_budget(cluster, "shop/wbe=1"),
            NotFoundError,
            'PodDisruptionBudget "shop/wbe" not found',
            id="no such budget to change",
        ),
    ],
)
def test_changes_that_cannot_be_made(change: Any, error: type[KpreemptError], message: str) -> None:
    with pytest.raises(error) as caught:
        change(make_cluster())
    assert caught.value.message == message
