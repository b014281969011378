"""nodeorder of Volcano: the scores of Kubernetes 1.25, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kpreempt.model.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    WeightedPodAffinityTerm,
)
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement, NodeSelectorRequirement
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.node import ContainerImage, Node, NodeCondition
from kpreempt.model.pod import Container, ImageVolume, Pod, ResourceRequirements, TopologySpreadConstraint, Volume
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import Taint, Toleration
from kpreempt.model.workloads import Service, ServiceSpec
from tests.factories import NOW, make_node
from tests.volcano_factories import bound, make_task, play

ALL_OFF = {
    f"{name}.weight": 0
    for name in (
        "leastrequested",
        "balancedresource",
        "nodeaffinity",
        "podaffinity",
        "tainttoleration",
        "imagelocality",
        "podtopologyspread",
    )
}
ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
MIB = 1024 * 1024
WEB = LabelSelector(match_labels={"app": "web"})
UNREADABLE = LabelSelector(match_expressions=[LabelSelectorRequirement("app", "In", [])])


def scores(score: str, nodes: Sequence[Node], *pods: Pod, **objects: Any) -> dict[str, float]:
    """What nodes score for the task ``new`` when the session opens, by one of the scores."""
    session = play(nodes, pods, nodeorder={**ALL_OFF, f"{score}.weight": 1}, **objects)
    assert session.opening is not None
    return session.opening.scores.get(next(pod.key for pod in pods if pod.metadata.name == "new"), {})


def container(image: str = "", **requests: str) -> Container:
    amounts = {name.replace("_", "/"): quantity(amount) for name, amount in requests.items()}
    return Container(image or "main", image=image, resources=ResourceRequirements(requests=amounts))


@pytest.mark.parametrize(
    ("score", "pod", "expected"),
    [
        pytest.param("leastrequested", {"cpu": "1", "memory": "4Gi"}, 62, id="least: the mean of 75 and 50"),
        pytest.param("mostrequested", {"cpu": "1", "memory": "4Gi"}, 37, id="most: the mean of 25 and 50"),
        pytest.param(
            "leastrequested",
            {"containers": [container(cpu="1"), container(memory="1Gi")]},
            78,
            id="least: what a container does not ask for counts as 100m and 200Mi",
        ),
        pytest.param(
            "leastrequested",
            {"containers": [container(cpu="1", memory="0")], "init_containers": [container(cpu="2", memory="0")]},
            75,
            id="least: the largest of containers and init containers; nothing asked for in so many words is nothing",
        ),
        pytest.param(
            "leastrequested",
            {"cpu": "1", "memory": "4Gi", "overhead": {"cpu": quantity("1"), "memory": quantity("4Gi")}},
            37,
            id="least: an overhead of a whole core counts as a thousandth of one",
        ),
        pytest.param(
            "mostrequested",
            {
                "containers": [container(cpu="1", memory="4Gi")],
                "init_containers": [
                    Container("side", resources=container(cpu="1", memory="4Gi").resources, restart_policy="Always")
                ],
            },
            37,
            id="most: a sidecar is an init container like others",
        ),
        pytest.param("balancedresource", {"cpu": "1", "memory": "4Gi"}, 87, id="balance: half of the difference less"),
        pytest.param("balancedresource", {"cpu": "2", "memory": "4Gi"}, 100, id="balance: 100 where parts are equal"),
        pytest.param("balancedresource", {}, 87, id="balance: what is not asked for is nothing"),
    ],
)
def test_how_full_a_node_of_four_cpus_and_8gi_would_be(score: str, pod: dict[str, Any], expected: int) -> None:
    assert scores(score, [make_node("a")], make_task("new", **pod)) == {"a": expected}


def test_gpus_count_in_the_balance_if_they_are_requested() -> None:
    node = make_node("a")
    node.status.allocatable["nvidia.com/gpu"] = quantity("4")
    task = make_task("new", containers=[Container("main", resources=container(cpu="1", memory="2Gi").resources)])
    task.spec.containers[0].resources.requests["nvidia.com/gpu"] = quantity("4")
    # Shares of a quarter, a quarter and all.
    assert scores("balancedresource", [node], task) == {"a": 64}


def with_images(name: str, *images: tuple[str, int], ready: bool = True, **fields: Any) -> Node:
    node = make_node(name, **fields)
    status = msgspec.structs.replace(
        node.status,
        conditions=[NodeCondition("Ready", "True" if ready else "False")],
        images=[ContainerImage([image], size) for image, size in images],
    )
    return msgspec.structs.replace(node, status=status)


@pytest.mark.parametrize(
    ("pod", "nodes", "expected"),
    [
        pytest.param(
            {"containers": [container("app")]},
            [with_images("a", ("app:latest", 500 * MIB)), with_images("b")],
            {"a": 23, "b": 0},
            id="half of its size counts, as half of the nodes have it",
        ),
        pytest.param(
            {"containers": [container("app")], "init_containers": [container("init")]},
            [with_images("a", ("init:latest", 900 * MIB))],
            {"a": 0},
            id="an init container's does not count",
        ),
        pytest.param(
            {"containers": [container("app")], "volumes": [Volume("v", image=ImageVolume("data:1"))]},
            [with_images("a", ("data:1", 900 * MIB))],
            {"a": 0},
            id="a volume's does not count",
        ),
        pytest.param(
            {"containers": [container("app")]},
            [with_images("a", ("app:latest", 500 * MIB)), with_images("b", ("app:latest", 900 * MIB), ready=False)],
            {"a": 100},
            id="a node that is not ready has it, too, and is none of the nodes",
        ),
        pytest.param(
            {"containers": [container("app")]},
            [with_images("a", ("app:latest", 100 * MIB)), with_images("b", ("app:latest", 900 * MIB))],
            {"a": 7, "b": 7},
            id="the first node that has it tells its size",
        ),
    ],
)
def test_images(pod: dict[str, Any], nodes: list[Node], expected: dict[str, float]) -> None:
    assert scores("imagelocality", nodes, make_task("new", **pod)) == expected


def prefers(*terms: tuple[int, NodeSelectorRequirement]) -> Affinity:
    preferred = [PreferredSchedulingTerm(weight, NodeSelectorTerm([requirement])) for weight, requirement in terms]
    return Affinity(node_affinity=NodeAffinity(preferred=preferred))


SSD = NodeSelectorRequirement("disk", "In", ["ssd"])
FAST = NodeSelectorRequirement("speed", "Exists")
NO_NUMBER = NodeSelectorRequirement("speed", "Gt", ["high"])


def test_weights_of_node_preferences_are_not_brought_to_100() -> None:
    nodes = [
        make_node("a", labels={"disk": "ssd", "speed": "1"}),
        make_node("b", labels={"speed": "1"}),
        make_node("c"),
    ]
    task = make_task("new", affinity=prefers((30, SSD), (50, FAST)))
    assert scores("nodeaffinity", nodes, task) == {"a": 80, "b": 50, "c": 0}


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        pytest.param({"nodeaffinity.weight": 1}, 100, id="takes every score of a single node with it"),
        pytest.param({}, 199.5, id="but not where preferences do not count"),
    ],
)
def test_a_preference_that_cannot_be_read(weight: dict[str, int], expected: float) -> None:
    task = make_task("new", memory="4Gi", affinity=prefers((30, SSD), (50, NO_NUMBER)))
    on = {"leastrequested.weight": 1, "tainttoleration.weight": 1}
    # With binpack, which scores a quarter of the CPUs and half of the memory.
    session = play([make_node("a")], [task], nodeorder={**ALL_OFF, **on, **weight}, others=["binpack"])
    assert session.opening is not None
    assert session.opening.scores == {"shop/new": {"a": expected}}


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], {"a": 0, "b": 50, "c": 100}, id="fewer soft taints are better"),
        pytest.param([Toleration("t1", "Exists")], {"a": 0, "b": 100, "c": 100}, id="but for those tolerated"),
    ],
)
def test_soft_taints(tolerations: list[Toleration], expected: dict[str, float]) -> None:
    t1, t2 = Taint("t1", "", "PreferNoSchedule"), Taint("t2", "", "PreferNoSchedule")
    nodes = [make_node("a", taints=[t1, t2]), make_node("b", taints=[t1]), make_node("c")]
    assert scores("tainttoleration", nodes, make_task("new", tolerations=tolerations)) == expected


def test_without_soft_taints_all_nodes_have_the_most() -> None:
    nodes = [make_node("a"), make_node("b", taints=[Taint("t", "", "NoSchedule")])]
    assert scores("tainttoleration", nodes, make_task("new")) == {"a": 100, "b": 100}


def wants(weight: int = 10) -> Affinity:
    term = WeightedPodAffinityTerm(weight, PodAffinityTerm("kubernetes.io/hostname", WEB))
    return Affinity(pod_affinity=PodAffinity(preferred=[term]))


def needs() -> Affinity:
    return Affinity(pod_affinity=PodAffinity(required=[PodAffinityTerm("kubernetes.io/hostname", WEB)]))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({"labels": {"app": "web"}}, {"affinity": wants()}, {"a": 100, "b": 0}, id="a pod that it wants"),
        pytest.param({"affinity": wants()}, {"labels": {"app": "web"}}, {"a": 100, "b": 0}, id="a pod that wants it"),
        pytest.param({"affinity": needs()}, {"labels": {"app": "web"}}, {"a": 0, "b": 0}, id="not one that needs it"),
        pytest.param({}, {}, {"a": 0, "b": 0}, id="nothing to say"),
    ],
)
def test_pods_next_to_each_other(old: dict[str, Any], new: dict[str, Any], expected: dict[str, float]) -> None:
    nodes = [make_node("a"), make_node("b")]
    assert scores("podaffinity", nodes, make_task("old", node="a", **old), make_task("new", **new)) == expected


@pytest.mark.parametrize(
    ("others", "node"),
    [
        pytest.param([], "a", id="not where nobody stated any affinity when the session opened"),
        pytest.param([make_task("old", node="b", affinity=wants())], "b", id="where somebody did"),
    ],
)
def test_a_pod_that_just_came_is_followed_by_those_it_wants(others: list[Pod], node: str) -> None:
    first = make_task("first", job="a", affinity=wants(), node_selector={"kubernetes.io/hostname": "b"})
    second = make_task("second", job="b", labels={"app": "web"})
    nodes = [make_node("a"), make_node("b")]
    session = play(nodes, [*others, first, second], nodeorder={**ALL_OFF, "podaffinity.weight": 1})
    assert bound(session) == {"first": "b", "second": node}


def spread(selector: LabelSelector | None, key: str = "kubernetes.io/hostname") -> list[TopologySpreadConstraint]:
    return [TopologySpreadConstraint(1, key, "ScheduleAnyway", selector)]


def web_service(namespace: str = "shop") -> Service:
    return Service(metadata=ObjectMeta(name="web", namespace=namespace), spec=ServiceSpec(selector={"app": "web"}))


@pytest.mark.parametrize(
    ("constraints", "services", "expected"),
    [
        pytest.param(spread(WEB), [], {"a": 0, "b": 100}, id="a soft constraint"),
        pytest.param(spread(LabelSelector()), [], {"a": 0, "b": 100}, id="an empty selector counts every pod"),
        pytest.param(spread(None), [], {"a": 100, "b": 100}, id="no selector counts no pod"),
        pytest.param(spread(WEB, ZONE), [], {"a": 0, "b": 0}, id="nodes without the label have nothing"),
        pytest.param([], [web_service()], {"a": 0, "b": 100}, id="the system's constraints for a service's pods"),
        pytest.param([], [], {"a": 100, "b": 100}, id="no constraint, no service"),
    ],
)
def test_topology_spread(constraints: Any, services: list[Service], expected: dict[str, float]) -> None:
    # Four pods, so that the system's skew of three does not hide them.
    old = [make_task(f"old{index}", node="a", cpu="100m", labels={"app": "web"}) for index in range(4)]
    new = make_task("new", labels={"app": "web"}, topology_spread_constraints=constraints)
    found = scores("podtopologyspread", [make_node("a"), make_node("b")], *old, new, services=services)
    if not constraints and services:
        assert found["a"] < found["b"] == 100
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("nodes", "panics"),
    [
        pytest.param([make_node("a"), make_node("b")], True, id="the scheduler dies where there is a choice"),
        pytest.param([make_node("a")], False, id="and does not where there is none"),
    ],
)
def test_a_soft_constraint_that_cannot_be_read_leaves_no_scores(nodes: list[Node], panics: bool) -> None:
    session = play(nodes, [make_task("new", topology_spread_constraints=spread(UNREADABLE))])
    assert session.panics is panics
    assert session.opening is not None
    assert session.opening.scores == {}
    assert bound(session) == ({} if panics else {"new": "a"})


def test_without_scores_a_node_that_will_be_free_is_taken_where_it_is_the_only_one() -> None:
    going = make_task("going", job="a", cpu="4", node="c")
    going = msgspec.structs.replace(going, metadata=msgspec.structs.replace(going.metadata, deletion_timestamp=NOW))
    new = make_task("new", job="b", cpu="4", topology_spread_constraints=spread(UNREADABLE))
    session = play([make_node("a"), make_node("b"), make_node("c")], [going, new])
    assert [(each.task, each.node) for each in session.actions[0].pipelined] == [("shop/new", "c")]


def test_preempt_has_no_node_to_try_without_scores() -> None:
    task = make_task("new", job="b", cpu="4", topology_spread_constraints=spread(UNREADABLE))
    old = make_task("old", job="a", cpu="4", node="a")
    session = play([make_node("a")], [old, task], actions="preempt")
    assert [action.evictions for action in session.actions] == [[]]


@pytest.mark.parametrize(
    ("zones", "fields", "expected"),
    [
        pytest.param({}, {}, {"a": 0, "b": 50, "c": 100}, id="by node, where there are no zones"),
        pytest.param(
            {"a": {ZONE: "x"}, "b": {ZONE: "y"}, "c": {ZONE: "x"}},
            {},
            {"a": 0, "b": 50, "c": 33},
            id="a third by node and two thirds by zone",
        ),
        pytest.param(
            {"a": {BETA_ZONE: "x", ZONE: "y"}, "b": {ZONE: "y"}},
            {},
            {"a": 0, "b": 50, "c": 100},
            id="the old label of a zone comes first, and a node without zone counts by itself",
        ),
        pytest.param(
            {},
            {"topology_spread_constraints": spread(WEB)},
            {"a": 0, "b": 0, "c": 0},
            id="not for pods with constraints of their own",
        ),
        pytest.param({}, {"namespace": "lab"}, {"a": 100, "b": 100, "c": 100}, id="not for pods of another namespace"),
        pytest.param({}, {"labels": {}}, {"a": 100, "b": 100, "c": 100}, id="all alike where no service selects it"),
    ],
)
def test_selector_spread(zones: dict[str, dict[str, str]], fields: dict[str, Any], expected: dict[str, float]) -> None:
    nodes = [make_node(name, labels=zones.get(name)) for name in "abc"]
    old = [make_task(f"old{name}", node=name[0], labels={"app": "web"}) for name in ("a1", "a2", "b1")]
    new = make_task("new", **{"labels": {"app": "web"}, **fields})
    in_lab = web_service("lab")
    assert scores("selectorspread", nodes, *old, new, services=[web_service(), in_lab]) == expected


def test_selector_spread_leaves_out_pods_that_are_going() -> None:
    old = [make_task("old", node="a", labels={"app": "web"}), make_task("going", node="b", labels={"app": "web"})]
    old[1] = msgspec.structs.replace(old[1], metadata=msgspec.structs.replace(old[1].metadata, deletion_timestamp=NOW))
    new = make_task("new", labels={"app": "web"})
    nodes = [make_node("a"), make_node("b")]
    assert scores("selectorspread", nodes, *old, new, services=[web_service()]) == {"a": 0, "b": 100}


def test_a_node_that_got_a_task_is_scored_again_for_one_that_is_alike() -> None:
    tasks = [make_task(name, memory="1Gi") for name in ("first", "second")]
    session = play([make_node("a"), make_node("b")], tasks, nodeorder={**ALL_OFF, "leastrequested.weight": 1})
    assert bound(session) == {"first": "a", "second": "b"}
