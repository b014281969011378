"""The scheduling queue of 1.29 to 1.31, which asks no queueing hints: who is tried after what happens."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.analysis.algorithms import queue_for
from kpreempt.analysis.queue.cluster import QueueCluster
from kpreempt.analysis.queue.state import QueueSimulation
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.snapshot.decode import decode_object
from tests.queue_events import START, Event, add, apply, at, fail, node, pop, state, timed, update_node

FIT = "NodeResourcesFit"
FULL = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}]}
PORT = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
TAINT = {"key": "k", "effect": "NoSchedule"}
COMES = at("+20s", add("x", labels={"app": "db"}, nodeName="n"))


def wanting(**term: Any) -> dict[str, Any]:
    """Affinity to pods with the label ``app=db``."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, **term}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def after(version: str, *events: Event) -> str:
    """Where the pods are in the end, in a queue that can ask the scheduler of its version; nothing is assumed."""
    scheduler = KubeScheduler(behavior=behavior(version))
    cluster = QueueCluster(ClusterSnapshot(), decode_object)
    rules = scheduler.queue_rules(lambda: scheduler.prepare(cluster.cluster, now=START))
    queue = queue_for(f"kube-{version}", START, rules=rules)
    steps = list(QueueSimulation(queue, cluster, scheduler.scheduler_names, None).apply(timed(events)))
    assert queue.assumed_hints() == []
    return state(steps[-1])


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((add("a"), pop(), fail(FIT), at("+20s", node("n"))), "active a", id="it fits"),
        pytest.param((add("a", **FULL), pop(), fail(FIT), at("+20s", node("n"))), "unschedulable a", id="no room"),
        pytest.param(
            (add("b", nodeName="n"), add("a", **FULL), pop(), fail(FIT), at("+20s", node("n", cpu="8"))),
            "active a",
            id="room beside others",
        ),
        pytest.param(
            (add("b", nodeName="n", **FULL), add("a", **FULL), pop(), fail(FIT), at("+20s", node("n", cpu="9"))),
            "unschedulable a",
            id="no room beside others",
        ),
        pytest.param(
            (add("a", nodeSelector={"disk": "ssd"}), pop(), fail("NodeAffinity"), at("+20s", node("n"))),
            "unschedulable a",
            id="it selects others",
        ),
        pytest.param(
            (add("b", nodeName="n", **PORT), add("a", **PORT), pop(), fail("NodePorts"), at("+20s", node("n"))),
            "unschedulable a",
            id="its port is taken",
        ),
        pytest.param(
            (add("a"), pop(), fail(FIT), at("+20s", node("n", taints=[TAINT]))), "unschedulable a", id="a taint"
        ),
        pytest.param(
            (
                *(node("n", taints=[TAINT]), add("a"), pop(), fail(FIT)),
                at("+20s", update_node("n", spec={"taints": None})),
            ),
            "active a",
            id="no taint any more, whatever refused the pod",
        ),
        pytest.param(
            (
                *(node("n"), add("a"), pop(), fail("NodeName")),
                at("+20s", update_node("n", status={"allocatable": {"cpu": "5"}})),
            ),
            "active a",
            id="any update counts",
        ),
    ],
)
@pytest.mark.parametrize("version", ["1.29", "1.31"])
def test_pods_are_tried_after_a_node_changed_that_they_fit_on(
    version: str, events: tuple[Event, ...], expected: str
) -> None:
    assert after(version, *events) == expected


def test_with_hints_it_is_the_plugin_that_looks() -> None:
    events = (add("a", nodeSelector={"disk": "ssd"}), pop(), fail(FIT), at("+20s", node("n")))
    assert after("1.31", *events) == "unschedulable a"
    assert after("1.32", *events) == "active a"


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.29", "unschedulable a b"), ("1.30", "unschedulable a b"), ("1.31", "active b, unschedulable a")],
)
def test_a_pod_that_comes_helps_those_that_want_it_and_later_those_that_spread(version: str, expected: str) -> None:
    refused = (add("a"), pop(), fail("InterPodAffinity"), add("b"), pop(), fail("PodTopologySpread"))
    assert after(version, *refused, COMES) == expected
    assert after(version, add("a", affinity=wanting()), pop(), fail("InterPodAffinity"), COMES) == "active a"


def test_before_1_30_only_the_first_change_of_a_node_is_reported() -> None:
    events = (
        *(node("n"), add("a"), pop(), fail("InterPodAffinity")),
        at("+20s", update_node("n", metadata={"labels": {"zone": "a"}}, status={"allocatable": {"cpu": "5"}})),
    )
    assert after("1.29", *events) == "unschedulable a"
    assert after("1.30", *events) == "active a"


@pytest.mark.parametrize(
    ("term", "expected", "assumed"),
    [
        pytest.param({}, "active a", False, id="of the own namespace"),
        pytest.param({"namespaces": ["other"]}, "unschedulable a", False, id="of another"),
        pytest.param({"namespaceSelector": {}}, "active a", False, id="of all"),
        pytest.param({"namespaceSelector": {"matchLabels": {"a": "b"}}}, "active a", True, id="of some"),
    ],
)
def test_pods_selected_by_affinity_are_assumed_if_namespace_labels_decide(
    term: dict[str, Any], expected: str, assumed: bool
) -> None:
    queue = queue_for("kube-1.31", START)
    add_it = add("a", affinity=wanting(**term))
    assert state(apply("", add_it, pop(), fail("InterPodAffinity"), COMES, queue=queue)[-1]) == expected
    assert queue.assumed_hints() == ([("InterPodAffinity", "AssignedPodAdd")] if assumed else [])


def test_without_a_scheduler_to_ask_a_node_is_taken_to_help() -> None:
    queue = queue_for("kube-1.31", START)
    events = (add("a", **FULL), pop(), fail(FIT), at("+20s", node("n")))
    assert state(apply("", *events, queue=queue)[-1]) == "active a"
    assert queue.assumed_hints() == [(FIT, "NodeAdd")]


@pytest.mark.parametrize(("version", "waits"), [("1.31", True), ("1.32", False)])
def test_it_is_reported_which_updates_of_nodes_may_help(version: str, waits: bool) -> None:
    (pod,) = apply(f"kube-{version}", add("a"), pop(), fail(FIT))[-1].pods
    events = next(each.events for each in pod.moved_by if each.events)
    assert ("NodeUpdateNodeCondition" in events) is waits
    assert "NodeUpdateNodeAllocatable" in events
