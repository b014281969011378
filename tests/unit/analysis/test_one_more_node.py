"""Whether one more node like those of the cluster would place a pod, and how many place all that wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain import pods as module
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.nodes.changes import with_changed_nodes
from kpreempt.analysis.nodes.copies import kinds_of
from kpreempt.analysis.pending import pods as search
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.model.affinity import Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity, tied_to
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.labels import LabelSelector
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import Taint
from kpreempt.report.explain.changes import describe_one_more_node
from kpreempt.report.pending.summary import more_nodes_in_words
from kpreempt.report.quoting import plain
from kpreempt.verdict import Outcome
from kpreempt.verdict.node_report import NodeKind, OneMoreNode
from kpreempt.verdict.pending import MoreNodes, PendingPods
from tests.factories import NOW, make_node, make_pod, owned

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
X = LabelSelector(match_labels={"app": "x"})
TERM = PodAffinityTerm(topology_key=HOST, label_selector=X)
APART = Affinity(pod_anti_affinity=PodAntiAffinity(required=[TERM]))
BESIDE = Affinity(pod_affinity=PodAffinity(required=[TERM]))


def with_gpu(node: Node) -> Node:
    status = msgspec.structs.replace(node.status, allocatable={**node.status.allocatable, "gpu": quantity("1")})
    return msgspec.structs.replace(node, status=status)


def of(cluster: ClusterSnapshot, pod: Pod) -> OneMoreNode | None:
    return explain_pods(AnalysisContext(cluster, scheduler_for(), NOW), [ExplainInput(pod=pod)], proposes=True)[
        0
    ].one_more_node


def likes(found: OneMoreNode | None) -> list[str]:
    assert found is not None
    return [kind.like for kind in found.kinds]


BIG, SMALL = make_node("big", cpu="8", labels={"pool": "big"}), make_node("small", cpu="2", labels={"pool": "small"})
FULL = [make_pod("on-big", node="big", cpu="8"), make_pod("on-small", node="small", cpu="2", priority=-1)]
CLUSTER = ClusterSnapshot(nodes=[BIG, SMALL], pods=FULL)


@pytest.mark.parametrize(
    ("cpu", "outcome", "expected"),
    [
        pytest.param("1", Outcome.PREEMPTS, ["small", "big"], id="a pod that evicts: the smallest kind first"),
        pytest.param("3", Outcome.UNSCHEDULABLE, ["big"], id="a pod that lands nowhere, and is too big for one kind"),
        pytest.param("9", Outcome.UNSCHEDULABLE, [], id="a pod that is too big for all"),
    ],
)
def test_the_kinds_that_would_place_a_pod(cpu: str, outcome: Outcome, expected: list[str]) -> None:
    pod = make_pod("new", cpu=cpu)
    verdict = explain_pods(AnalysisContext(CLUSTER, scheduler_for(), NOW), [ExplainInput(pod=pod)], proposes=True)[0]
    assert verdict.outcome == outcome
    found = verdict.one_more_node
    assert likes(found) == expected
    assert found is not None
    assert (found.num_kinds, found.untried, found.not_searched) == (2, 0, "")
    assert found.options == ([f"--add-node={expected[0]}"] if expected else [])
    assert found.nodes == ([f"{expected[0]}-new-1"] if expected else [])


def test_nothing_is_reported_for_a_pod_that_lands() -> None:
    assert of(ClusterSnapshot(nodes=[BIG]), make_pod("new", cpu="1")) is None


@pytest.mark.parametrize(
    ("pods", "pod", "expected"),
    [
        pytest.param(
            [owned(make_pod("d", node="a", cpu="2", affinity=tied_to(None, "a")), "DaemonSet", "d")],
            make_pod("new", cpu="3"),
            [],
            id="what a DaemonSet takes of the new node is not free",
        ),
        pytest.param(
            [make_pod("x", node="a", labels={"app": "x"})],
            make_pod("new", labels={"app": "x"}, affinity=APART),
            ["a"],
            id="a pod that keeps away from its like",
        ),
        pytest.param(
            [make_pod("x", node="a", cpu="4", labels={"app": "x"})],
            make_pod("new", cpu="1", affinity=BESIDE),
            [],
            id="a pod that wants the company of one on another node",
        ),
        pytest.param([], make_pod("new", affinity=tied_to(None, "gone")), [], id="a pod that is tied to a node"),
        pytest.param([], make_pod("new", node_selector={HOST: "b"}), [], id="a pod that selects a host by its name"),
    ],
)
def test_what_the_whole_cluster_has_to_say(pods: Sequence[Pod], pod: Pod, expected: list[str]) -> None:
    assert likes(of(ClusterSnapshot(nodes=[make_node("a", cpu="4")], pods=list(pods)), pod)) == expected


def test_what_was_not_read_is_reported_with_the_node() -> None:
    unread = {"DaemonSet": Unread(403, "daemonsets.apps")}
    found = of(msgspec.structs.replace(CLUSTER, unread=unread), make_pod("new", cpu="1"))
    assert found is not None
    assert found.assumed == [
        "DaemonSet: list: cannot be listed (403): DaemonSet pods are identified only by their owner references; "
        "missing permission: list daemonsets.apps"
    ]


def test_a_cluster_that_is_too_big_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NODES", 1)
    found = of(CLUSTER, make_pod("new", cpu="1"))
    assert found == OneMoreNode(not_searched="the cluster is too large; try a node with --add-node NODE")


def test_kinds_are_distinguished_by_what_decides_and_the_smallest_comes_first() -> None:
    bytes_less = make_node("a2", memory=str(8 * 2**30 - 4096), labels={"pool": "a"})
    nodes = [
        with_gpu(make_node("gpu", cpu="1")),
        make_node("master", cpu="1", labels={"node-role.kubernetes.io/control-plane": ""}),
        make_node("big", cpu="16"),
        make_node("a1", labels={"pool": "a"}, taints=[Taint("node.kubernetes.io/not-ready", "", "NoExecute")]),
        bytes_less,
        make_node("a3", labels={"pool": "a", ZONE: "z"}),
        make_node("tainted", labels={"pool": "a"}, taints=[Taint("x", "", "NoSchedule")]),
    ]
    found = [(kind.like.name, kind.number) for kind in kinds_of(ClusterSnapshot(nodes=nodes))]
    # The memory of two machines of a type differs by a little, and one of them is not ready.
    assert found == [("a2", 2), ("a3", 1), ("tainted", 1), ("big", 1), ("gpu", 1)]


def test_a_cluster_of_control_planes_alone_has_their_kind() -> None:
    node = make_node("kind", labels={"node-role.kubernetes.io/control-plane": ""})
    assert [kind.like.name for kind in kinds_of(ClusterSnapshot(nodes=[node]))] == ["kind"]


def pending(*pods: Pod, nodes: Sequence[Node] = (BIG, SMALL), others: Sequence[Pod] = FULL) -> PendingPods:
    cluster = ClusterSnapshot(nodes=list(nodes), pods=[*others, *pods])
    return explain_pending(AnalysisContext(cluster, scheduler_for(), NOW, at=NOW), seeks_nodes=True)


def waiting(number: int, cpu: str, **spec: Any) -> list[Pod]:
    return [make_pod(f"w-{cpu}-{each}", cpu=cpu, priority=-5, labels={"app": "x"}, **spec) for each in range(number)]


@pytest.mark.parametrize(
    ("pods", "nodes", "placed", "unplaced", "words"),
    [
        pytest.param(
            waiting(5, "1"),
            {"small": 3},
            5,
            0,
            "3 more nodes like small would be enough for all 5 pods waiting for capacity.",
            id="as few of the smallest kind as it takes",
        ),
        pytest.param(
            [*waiting(2, "1"), *waiting(1, "4")],
            {"small": 1, "big": 1},
            3,
            0,
            "1 more node like small and 1 like big would be enough for all 3 pods waiting for capacity.",
            id="each pod on the smallest kind that could take it",
        ),
        pytest.param(
            [*waiting(1, "2"), *waiting(1, "9")],
            {"small": 1},
            1,
            1,
            "1 more node like small would be enough for 1 of 2 pods waiting for capacity.",
            id="one that no node could take is told apart",
        ),
        pytest.param(
            waiting(1, "1"),
            {"small": 1},
            1,
            0,
            "1 more node like small would be enough for the pod waiting for capacity.",
            id="one",
        ),
        pytest.param(
            waiting(3, "100m", affinity=APART),
            {"small": 3},
            3,
            0,
            "3 more nodes like small would be enough for all 3 pods waiting for capacity.",
            id="pods that keep away from each other",
        ),
        pytest.param(
            waiting(2, "9"),
            {},
            0,
            2,
            "No new node like those in the cluster would help a pending pod (2 kinds tried).",
            id="none of them",
        ),
    ],
)
def test_how_many_nodes_place_all_that_wait(
    pods: list[Pod], nodes: dict[str, int], placed: int, unplaced: int, words: str
) -> None:
    answer = pending(*pods)
    more = answer.more_nodes
    assert isinstance(more, MoreNodes)
    assert {each.kind.like: each.count for each in more.nodes} == nodes
    assert (len(more.pods), len(more.unplaced)) == (placed, unplaced)
    assert plain(more_nodes_in_words(answer)) == words
    # The options keep their word: with these nodes every one of the pods lands.
    cluster = ClusterSnapshot(nodes=[BIG, SMALL], pods=[*FULL, *pods])
    texts = [option.removeprefix("--add-node=") for option in more.options]
    after, _ = with_changed_nodes(cluster, added=texts, read_file=lambda _: cluster, now=NOW)
    again = explain_pending(AnalysisContext(after, scheduler_for(), NOW, at=NOW))
    assert {item.pod for item in again.items if item.outcome != Outcome.LANDS} == set(more.unplaced)


def test_pods_that_are_spread_get_nodes_of_each_zone() -> None:
    zones = [make_node(f"in-{zone}", cpu="2", labels={ZONE: zone}) for zone in "abc"]
    full = [make_pod(f"on-{node.name}", node=node.name, cpu="2") for node in zones]
    spread = TopologySpreadConstraint(
        max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=X
    )
    answer = pending(*waiting(6, "2", topology_spread_constraints=[spread]), nodes=zones, others=full)
    more = answer.more_nodes
    assert isinstance(more, MoreNodes)
    assert sorted((each.kind.like, each.count) for each in more.nodes) == [("in-a", 2), ("in-b", 2), ("in-c", 2)]


def test_nothing_is_reported_where_all_land() -> None:
    assert not pending(make_pod("lands", cpu="1"), others=()).more_nodes


def test_pods_that_are_not_selected_may_take_the_capacity() -> None:
    cluster = ClusterSnapshot(nodes=[BIG, SMALL], pods=[*FULL, *waiting(2, "2")])
    answer = explain_pending(
        AnalysisContext(cluster, scheduler_for(), NOW, at=NOW),
        seeks_nodes=True,
        is_selected=lambda pod: pod.metadata.name == "w-2-0",
    )
    assert isinstance(answer.more_nodes, MoreNodes)
    assert answer.more_nodes.assumed == ["other pending pods (1) do not use this capacity"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        pytest.param("_MAX_PODS", 1, "too large: 2 pods on 2 nodes", id="too many pods"),
        pytest.param("_MAX_EVALUATIONS", 3, "too large: 2 pods on 2 nodes", id="too many nodes for each of them"),
        pytest.param("_MAX_NODES", 1, "needs more than 1 nodes like small", id="too many new nodes"),
    ],
)
def test_what_is_not_sought_is_said(monkeypatch: pytest.MonkeyPatch, name: str, value: int, said: str) -> None:
    monkeypatch.setattr(search, name, value)
    answer = pending(*waiting(2, "2"))
    assert isinstance(answer.more_nodes, MoreNodes)
    assert answer.more_nodes.not_searched == said
    assert plain(more_nodes_in_words(answer)) == f"More nodes: {said}."


KIND = NodeKind("a", 2, {"cpu": 3500, "memory": 2**33, "pods": 110, "ephemeral-storage": 10, "nvidia.com/gpu": 8})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param(
            OneMoreNode([KIND], ["--add-node=a"], "a-new-1", ["a-new-1"]),
            "add 1 node like a (3.5 cpu, 8Gi memory, 8 nvidia.com/gpu): the pod lands there",
            id="on the new node",
        ),
        pytest.param(
            OneMoreNode([KIND], ["--add-node=a"], "a-new-1", ["b", "a-new-1"]),
            "add 1 node like a (3.5 cpu, 8Gi memory, 8 nvidia.com/gpu): the pod lands on b or a-new-1",
            id="on another one as well, since domains are counted anew",
        ),
        pytest.param(
            OneMoreNode(num_kinds=42, untried=2),
            "adding 1 node like those in the cluster would not help (40 kinds tried; 2 not tried)",
            id="on none, as far as was tried",
        ),
        pytest.param(OneMoreNode(not_searched="not here"), "1 more node: not here", id="not sought"),
    ],
)
def test_one_more_node_in_words(more: OneMoreNode, words: str) -> None:
    assert plain(describe_one_more_node(more)) == words
