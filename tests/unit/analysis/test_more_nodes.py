"""New nodes like those of the cluster: one for a pod, and as many as all waiting pods need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain import remedies as module
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.nodes.changes import with_changed_nodes
from kpreempt.analysis.nodes.copies import kinds_of
from kpreempt.analysis.pending import pods as search
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.library.draws import DRAWS
from kpreempt.model.affinity import Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity, tied_to
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.labels import LabelSelector
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import Taint
from kpreempt.report.pending.summary import more_nodes_in_words
from kpreempt.report.quoting import plain
from kpreempt.verdict import ChangeKind, Outcome, Verdict
from kpreempt.verdict.pending import MoreNodes, PendingPods
from kpreempt.verdict.remedies import Remedy
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


def explain(cluster: ClusterSnapshot, pod: Pod) -> Verdict:
    context = AnalysisContext(cluster, scheduler_for(), NOW)
    return explain_pods(context, [ExplainInput(pod=pod)], proposes=True)[0]


def new_node(cluster: ClusterSnapshot, pod: Pod) -> Remedy | None:
    """The remedy that adds a node."""
    remedies = explain(cluster, pod).remedies
    return next((each for each in remedies if each.changes[0].kind is ChangeKind.ADD_NODE), None)


def like(found: Remedy | None) -> str:
    """The node that the new one is like; empty if there is none."""
    return found.changes[0].subject if found is not None else ""


BIG, SMALL = make_node("big", cpu="8", labels={"pool": "big"}), make_node("small", cpu="2", labels={"pool": "small"})
FULL = [make_pod("on-big", node="big", cpu="8"), make_pod("on-small", node="small", cpu="2", priority=-1)]
CLUSTER = ClusterSnapshot(nodes=[BIG, SMALL], pods=FULL)


@pytest.mark.parametrize(
    ("cpu", "outcome", "expected"),
    [
        pytest.param("1", Outcome.PREEMPTS, "small", id="a pod that preempts: the smallest kind"),
        pytest.param("3", Outcome.UNSCHEDULABLE, "big", id="an unschedulable pod that is too large for one kind"),
        pytest.param("9", Outcome.UNSCHEDULABLE, "", id="a pod that is too large for all"),
    ],
)
def test_the_smallest_kind_with_which_a_pod_lands(cpu: str, outcome: Outcome, expected: str) -> None:
    pod = make_pod("new", cpu=cpu)
    verdict = explain(CLUSTER, pod)
    assert verdict.outcome == outcome
    assert verdict.remedy_search is not None
    assert (verdict.remedy_search.kinds, verdict.remedy_search.untried_kinds) == (2, 0)
    found = new_node(CLUSTER, pod)
    assert like(found) == expected
    if found is not None:
        assert (found.options, found.nodes) == ([f"--add-node={expected}"], [f"{expected}-new-1"])


def test_large_kinds_are_tried_although_many_small_ones_come_first() -> None:
    small = [make_node(f"small-{index}", cpu="1", labels={"pool": str(index)}) for index in range(60)]
    cluster = ClusterSnapshot(nodes=[*small, BIG], pods=FULL[:1])
    verdict = explain(cluster, make_pod("new", cpu="3"))
    assert verdict.remedy_search is not None and not verdict.remedy_search.untried_kinds
    assert like(new_node(cluster, make_pod("new", cpu="3"))) == "big"


def test_nothing_is_reported_for_a_pod_that_lands() -> None:
    assert explain(ClusterSnapshot(nodes=[BIG]), make_pod("new", cpu="1")).remedies == []


@pytest.mark.parametrize(
    ("pods", "pod", "expected"),
    [
        pytest.param(
            [owned(make_pod("d", node="a", cpu="2", affinity=tied_to(None, "a")), "DaemonSet", "d")],
            make_pod("new", cpu="3"),
            "",
            id="what a DaemonSet takes of the new node is not free",
        ),
        pytest.param(
            [make_pod("x", node="a", labels={"app": "x"})],
            make_pod("new", labels={"app": "x"}, affinity=APART),
            "a",
            id="a pod that keeps away from its like",
        ),
        pytest.param(
            [make_pod("x", node="a", cpu="4", labels={"app": "x"})],
            make_pod("new", cpu="1", affinity=BESIDE),
            "",
            id="a pod that wants the company of one on another node",
        ),
        pytest.param([], make_pod("new", affinity=tied_to(None, "gone")), "", id="a pod that is tied to a node"),
        pytest.param([], make_pod("new", node_selector={HOST: "b"}), "", id="a pod that selects a host by its name"),
    ],
)
def test_a_new_node_is_tried_in_the_cluster(pods: Sequence[Pod], pod: Pod, expected: str) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a", cpu="4")], pods=list(pods))
    assert like(new_node(cluster, pod)) == expected


def test_what_was_not_read_is_reported_with_the_node() -> None:
    unread = {"DaemonSet": Unread(403, "daemonsets.apps")}
    found = new_node(msgspec.structs.replace(CLUSTER, unread=unread), make_pod("new", cpu="1"))
    assert found is not None
    assert found.assumed == [
        "DaemonSet: list: cannot be listed (403): DaemonSet pods are identified only by their owner references; "
        "missing permission: list daemonsets.apps (cluster-wide)"
    ]


def test_no_new_node_is_tried_in_a_very_large_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_NODES", 1)
    assert new_node(CLUSTER, make_pod("new", cpu="1")) is None


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
    return explain_pending(AnalysisContext(cluster, scheduler_for(), NOW, at=NOW), draws=DRAWS, seeks_nodes=True)


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
            "No new node like those in the cluster would help a pending pod (2 kinds).",
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
    again = explain_pending(AnalysisContext(after, scheduler_for(), NOW, at=NOW), draws=DRAWS)
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
        draws=DRAWS,
        seeks_nodes=True,
        is_selected=lambda pod: pod.metadata.name == "w-2-0",
    )
    assert isinstance(answer.more_nodes, MoreNodes)
    assert answer.more_nodes.assumed == ["other pending pods (1) do not use this capacity"]


TOO_MANY = (
    "too many pods and nodes to place all 2 together; the FIX section says for each kind of pod"
    " whether a new node helps"
)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        pytest.param("_MAX_PODS", 1, TOO_MANY, id="too many pods"),
        pytest.param("_MAX_EVALUATIONS", 3, TOO_MANY, id="too many nodes for each of them"),
        pytest.param("_MAX_NODES", 1, "needs more than 1 nodes like small", id="too many new nodes"),
    ],
)
def test_what_is_not_sought_is_said(monkeypatch: pytest.MonkeyPatch, name: str, value: int, said: str) -> None:
    monkeypatch.setattr(search, name, value)
    answer = pending(*waiting(2, "2"))
    assert isinstance(answer.more_nodes, MoreNodes)
    assert answer.more_nodes.not_searched == said
    assert plain(more_nodes_in_words(answer)) == f"More nodes: {said}."
