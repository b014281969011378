"""Nodes that come and go in a what-if: what a new one has of its pattern, and what becomes of the pods of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.nodes.changes import MAX_NODES, is_file, with_changed_nodes
from kpreempt.errors import KpreemptError, NotFoundError, UsageError
from kpreempt.model.affinity import tied_to
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.devices import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from kpreempt.model.meta import AnnotatedMeta, ObjectMeta
from kpreempt.model.node import ContainerImage, Node, NodeCondition
from kpreempt.model.pod import Pod
from kpreempt.model.storage import CSINode, CSINodeDriver, CSINodeSpec
from kpreempt.model.taints import Taint, Toleration
from kpreempt.model.workloads import DaemonSet
from kpreempt.verdict import Assumption, AssumptionKind
from tests.factories import NOW, make_node, make_pod, owned


def daemon(name: str, node: str, **spec: Any) -> Pod:
    """A DaemonSet's pod as its controller ties it to its node."""
    return owned(
        make_pod(f"{name}-on-{node}", node=node, cpu="1", affinity=tied_to(None, node), **spec), "DaemonSet", name
    )


def changed(
    cluster: ClusterSnapshot,
    *,
    added: Sequence[str] = (),
    removed: Sequence[str] = (),
    file: ClusterSnapshot | None = None,
) -> tuple[ClusterSnapshot, list[Assumption]]:
    return with_changed_nodes(
        cluster, added=added, removed=removed, read_file=lambda _: file or ClusterSnapshot(), now=NOW
    )


def added_nodes(cluster: ClusterSnapshot, *texts: str, file: ClusterSnapshot | None = None) -> list[Node]:
    return changed(cluster, added=texts, file=file)[0].nodes[len(cluster.nodes) :]


def test_a_copy_has_what_all_nodes_like_it_have_and_nothing_that_befell_that_one() -> None:
    taints = [
        Taint("dedicated", "web", "NoSchedule"),
        Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),
        Taint("node.kubernetes.io/disk-pressure", "", "NoSchedule"),
        Taint("startup-taint.cluster-autoscaler.kubernetes.io/x", "", "NoSchedule"),
        Taint("ToBeDeletedByClusterAutoscaler", "1", "NoSchedule"),
    ]
    labels = {"pool": "b", "topology.kubernetes.io/zone": "z", "team": "a"}
    labels |= {"topology.csi.example/node": "a", "node.kubernetes.io/instance-id": "i-7"}
    node = make_node("a", labels=labels, taints=taints, unschedulable=True)
    status = msgspec.structs.replace(
        node.status,
        images=[ContainerImage(["x"], 10)],
        conditions=[NodeCondition("Ready", "Unknown"), NodeCondition("DiskPressure", "True")],
    )
    cluster = ClusterSnapshot(nodes=[msgspec.structs.replace(node, status=status)])
    first, second = added_nodes(cluster, "a=2")
    assert (first.name, second.name) == ("a-new-1", "a-new-2")
    assert first.labels == {
        "kubernetes.io/hostname": "a-new-1",
        "pool": "b",
        "topology.kubernetes.io/zone": "z",
        "team": "a",
        "topology.csi.example/node": "a-new-1",
    }
    assert [taint.key for taint in first.spec.taints] == ["dedicated"]
    assert not first.spec.unschedulable
    assert first.status.images == []
    assert [(each.type, each.status) for each in first.status.conditions] == [("Ready", "True")]
    assert first.status.allocatable == node.status.allocatable


def test_names_are_fresh_and_short_enough_for_the_label() -> None:
    long = "n" * 80
    cluster = ClusterSnapshot(nodes=[make_node("a"), make_node("a-new-1"), make_node(long)])
    names = [node.name for node in added_nodes(cluster, "a", "node/a", f"{long}=2")]
    assert names[:2] == ["a-new-2", "a-new-3"]
    assert len(set(names)) == 4
    assert all(len(name) <= 63 for name in names)


def test_pods_that_are_there_for_their_node_come_with_each_copy_and_no_others() -> None:
    static = owned(make_pod("kube-proxy-a", node="a", namespace="kube-system"), "Node", "a")
    ended = owned(make_pod("old", node="a", phase="Failed"), "DaemonSet", "gone")
    pods = [
        daemon("agent", "a"),
        daemon("agent", "b"),
        daemon("other", "b"),
        daemon("here", "a", node_selector={"kubernetes.io/hostname": "a"}),
        owned(make_pod("waiting", affinity=tied_to(None, "a")), "DaemonSet", "late"),
        owned(make_pod("web", node="a"), "ReplicaSet", "web"),
        static,
        ended,
        make_pod("bare", node="a"),
    ]
    cluster = ClusterSnapshot(nodes=[make_node("a"), make_node("b")], pods=pods)
    after, said = changed(cluster, added=["a=2"])
    new = after.pods[len(pods) :]
    assert after.pods[: len(pods)] == pods
    assert sorted((pod.metadata.name, pod.spec.node_name) for pod in new) == [
        ("agent-a-new-1", "a-new-1"),
        ("agent-a-new-2", "a-new-2"),
        ("kube-proxy-a-new-1", "a-new-1"),
        ("kube-proxy-a-new-2", "a-new-2"),
        ("late-a-new-1", "a-new-1"),
        ("late-a-new-2", "a-new-2"),
    ]
    assert len({pod.metadata.uid for pod in new}) == 6
    assert said == []


def test_what_drivers_say_of_a_node_they_say_of_its_copies() -> None:
    csi_node = CSINode(AnnotatedMeta(name="a"), CSINodeSpec([CSINodeDriver("disk.csi", "i-7")]))
    devices = ResourceSlice(
        ObjectMeta(name="a-gpu"),
        ResourceSliceSpec(driver="gpu.example", pool=ResourcePool(name="a"), node_name="a", devices=[Device(name="0")]),
    )
    cluster = ClusterSnapshot(nodes=[make_node("a")], csi_nodes=[csi_node], resource_slices=[devices])
    after, _ = changed(cluster, added=["a"])
    assert [each.metadata.name for each in after.csi_nodes] == ["a", "a-new-1"]
    assert after.csi_nodes[1].spec.drivers[0].name == "disk.csi"
    copied = after.resource_slices[1]
    assert (copied.spec.node_name, copied.spec.pool.name, copied.spec.devices[0].name) == ("a-new-1", "a-new-1", "0")
    assert copied.metadata.name != "a-gpu"


def test_daemon_sets_that_could_not_be_read_are_an_assumption() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a")], unread={"DaemonSet": Unread(403, "daemonsets.apps")})
    _, said = changed(cluster, added=["a"])
    assert [(each.subject, each.kind) for each in said] == [("DaemonSet", AssumptionKind.UNREADABLE)]


def test_a_node_of_a_file_keeps_its_name_and_gets_the_daemon_sets_that_select_it() -> None:
    nodes = [make_node("a", labels={"os": "linux"}), make_node("b", labels={"os": "linux"})]
    pods = [
        daemon("agent", "a", node_selector={"os": "linux"}),
        daemon("agent", "b", node_selector={"os": "linux"}),
        daemon("windows", "a", node_selector={"os": "windows"}),
        daemon("choosy", "b"),
    ]
    unseen = DaemonSet(metadata=ObjectMeta(name="unseen", namespace="shop"))
    cluster = ClusterSnapshot(nodes=nodes, pods=pods, daemon_sets=[unseen])
    file = ClusterSnapshot(nodes=[make_node("c", cpu="9", labels={"os": "linux"})])
    after, said = changed(cluster, added=["c.yaml"], file=file)
    assert after.nodes[-1].name == "c"
    # "choosy" runs on b alone, so that its template requires what its pods do not show.
    assert [pod.metadata.name for pod in after.pods[len(pods) :]] == ["agent-c", "choosy-c"]
    assert [(each.subject, each.field) for each in said] == [
        ("DaemonSet shop/choosy", "spec.template.spec.affinity"),
        ("DaemonSet shop/unseen", "spec.template"),
    ]
    assert [node.name for node in added_nodes(cluster, "c.yaml=3", file=file)] == ["c", "c-new-1", "c-new-2"]
    taken = ClusterSnapshot(nodes=[make_node("a", cpu="9")])
    assert [node.name for node in added_nodes(cluster, "c.yaml=1", file=taken)] == ["a-new-1"]


def test_a_daemon_set_that_does_not_tolerate_a_taint_of_a_file_s_node_does_not_run_there() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("a")],
        pods=[daemon("agent", "a"), daemon("all", "a", tolerations=[Toleration(operator="Exists")])],
    )
    file = ClusterSnapshot(nodes=[make_node("c", taints=[Taint("gpu", "", "NoSchedule")])])
    after, _ = changed(cluster, added=["c.yaml"], file=file)
    assert [pod.metadata.name for pod in after.pods[2:]] == ["all-c"]


@pytest.mark.parametrize(
    ("text", "expected", "hint"),
    [
        pytest.param("aa", NotFoundError, "a", id="a node that there is not"),
        pytest.param("=2", UsageError, "--add-node pool-b-7=2", id="no name"),
        pytest.param("a=0", UsageError, "--add-node pool-b-7=2", id="none of them"),
        pytest.param("a=-1", UsageError, "--add-node pool-b-7=2", id="less than none"),
        pytest.param("a=two", UsageError, "--add-node pool-b-7=2", id="no number"),
        pytest.param(f"a={MAX_NODES + 1}", UsageError, "", id="more than are made"),
        pytest.param("a=9999999999", UsageError, "", id="far more than are made"),
        pytest.param("a.yaml", UsageError, "a.yaml=1", id="a node of a file that the cluster has"),
    ],
)
def test_what_cannot_be_added(text: str, expected: type[KpreemptError], hint: str) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a")])
    with pytest.raises(expected) as raised:
        changed(cluster, added=[text], file=cluster)
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(ClusterSnapshot(), id="no node in it"),
        pytest.param(ClusterSnapshot(nodes=[Node(metadata=AnnotatedMeta(name="c"))]), id="a node without resources"),
    ],
)
def test_a_file_has_to_have_nodes_that_say_what_they_offer(file: ClusterSnapshot) -> None:
    with pytest.raises(UsageError):
        changed(ClusterSnapshot(nodes=[make_node("a")]), added=["c.yaml"], file=file)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a", False), ("node/a", False), ("a.yaml", True), ("x/a", True), ("-", True), ("n.json", True), ("a.b", False)],
)
def test_what_is_a_file(name: str, expected: bool) -> None:
    assert is_file(name) is expected


def test_the_pods_of_a_node_that_is_gone_come_again_or_are_lost() -> None:
    pods = [
        owned(make_pod("web-1", node="a", cpu="1", priority=7), "ReplicaSet", "web"),
        owned(make_pod("db-0", node="a"), "StatefulSet", "db"),
        daemon("agent", "a"),
        owned(make_pod("proxy-a", node="a"), "Node", "a"),
        owned(make_pod("clone", node="a"), "CloneSet", "clone"),
        make_pod("bare", node="a"),
        owned(make_pod("done", node="a", phase="Succeeded"), "ReplicaSet", "web"),
        make_pod("there", node="b"),
    ]
    csi_nodes = [CSINode(AnnotatedMeta(name=name)) for name in "ab"]
    cluster = ClusterSnapshot(nodes=[make_node("a"), make_node("b")], pods=pods, csi_nodes=csi_nodes)
    after, said = changed(cluster, removed=["node/a"])
    assert [node.name for node in after.nodes] == ["b"]
    assert [each.metadata.name for each in after.csi_nodes] == ["b"]
    assert [(pod.metadata.name, pod.spec.node_name, pod.status.phase) for pod in after.pods] == [
        ("web-1", "", "Pending"),
        ("db-0", "", "Pending"),
        ("there", "b", "Running"),
    ]
    assert (after.pods[0].priority, after.pods[0].spec.containers) == (7, pods[0].spec.containers)
    (reported,) = said
    assert (reported.subject, reported.kind) == ("Node a", AssumptionKind.INFORMATIONAL)
    assert reported.message == (
        "6 pods are removed with it: 2 recreated by their controllers and pending, under their old names; "
        "2 of DaemonSets or static, deleted with the node; 2 that no controller recreates: shop/clone, shop/bare"
    )
    with pytest.raises(NotFoundError):
        changed(cluster, removed=["c"])


def test_nodes_are_copied_as_they_are_before_any_goes() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a")], pods=[daemon("agent", "a")])
    after, _ = changed(cluster, added=["a"], removed=["a"])
    assert [node.name for node in after.nodes] == ["a-new-1"]
    assert [pod.metadata.name for pod in after.pods] == ["agent-a-new-1"]
    assert cluster.nodes[0].name == "a"
