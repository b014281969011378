"""The scheduling queues of 1.8, 1.13 and 1.36: what events make of them."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.analysis.algorithms import queue_for
from kpreempt.errors import InputError
from tests.queue_events import (
    START,
    Event,
    activate,
    add,
    apply,
    at,
    bind,
    change,
    delete,
    fail,
    move_all,
    node,
    nominate,
    pop,
    popped,
    state,
    update,
    update_node,
    wait,
)

NAMES = ("kube-1.8", "kube-1.13", "kube-1.36")
FIT = "NodeResourcesFit"
RUNNING = {"nodeName": "n1"}
WANTS_DB: dict[str, Any] = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
            ]
        }
    }
}
TOLERANT = {"tolerations": [{"operator": "Exists"}]}
GATES = {"schedulingGates": [{"name": "quota"}]}


def case(name: str, *events: Event, then: str) -> Any:
    return pytest.param(events, then, id=name)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        case("a higher priority does not jump the queue", add("a"), add("b", 9), then="active a b"),
        case("an update keeps the place", add("a"), add("b"), update("a", spec={"priority": 5}), then="active a b"),
        case("a deleted pod is forgotten", add("a"), add("b"), delete("a"), then="active b"),
        case(
            "a pod that is deleted and comes again takes its old place",
            *(add("a"), add("b"), delete("a"), add("a")),
            then="active a b",
        ),
        case("a pod that failed backs off outside of the queue", add("a"), pop(), fail(), then="backoff a"),
        case(
            "after a second it is added at the end",
            *(add("a"), add("b"), pop(), fail(), add("c"), wait("+1s")),
            then="active b c a",
        ),
        case(
            "the second time it waits for two seconds",
            *(add("a"), pop(), fail(), at("+1s", pop()), fail(), wait("+1.9s")),
            then="backoff a",
        ),
        case(
            "which then are over",
            *(add("a"), pop(), fail(), at("+1s", pop()), fail(), wait("+2s")),
            then="active a",
        ),
        case(
            "a minute without a failure makes it wait for one second again",
            *(add("a"), pop(), fail(), at("+1s", pop()), fail(), at("+70s", pop()), fail(), wait("+1s")),
            then="active a",
        ),
        case(
            "an update of its status alone brings it back at once",
            *(add("a"), pop(), fail(), update("a", status={"phase": "Pending"})),
            then="active a",
        ),
        case(
            "no change of the cluster shortens the backoff",
            *(add("a"), pop(), fail(), node("n1"), move_all(), change("Service", "Add"), activate("a")),
            then="backoff a",
        ),
        case(
            "a pod that is gone when its backoff ends stays away",
            add("a"),
            pop(),
            fail(),
            delete("a"),
            wait("+5s"),
            then="empty",
        ),
        case("a pod that got a node leaves", node("n1"), add("a"), pop(), bind("a", "n1"), then="empty"),
        case("nominations are not kept", node("n1"), add("a", nominated="n1"), nominate("a", "n1"), then="active a"),
    ],
)
def test_the_fifo_of_1_8(events: tuple[Event, ...], expected: str) -> None:
    steps = apply("kube-1.8", *events)
    assert state(steps[-1]) == expected
    assert steps[-1].nominated == {}
    assert steps[-1].scheduling_cycle is None


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        case("the highest priority is first", add("low"), add("high", 9), add("mid", 5), then="active high mid low"),
        case("of equal ones the earlier", add("a"), at("+1s", add("b")), then="active a b"),
        case("an unschedulable pod is set aside", add("a"), pop(), fail(FIT), then="unschedulable a"),
        case("a pod whose attempt failed by an error is not", add("a"), pop(), fail(), then="active a"),
        case(
            "a new node moves all", add("a"), add("b"), pop(), fail(FIT), pop(), fail(FIT), node("n"), then="active a b"
        ),
        case(
            "a move request while a pod is tried keeps it active",
            *(add("a"), pop(), move_all(), fail(FIT)),
            then="active a",
        ),
        case(
            "which the next pop resets",
            *(add("a"), move_all(), pop(), fail(FIT)),
            then="unschedulable a",
        ),
        case(
            "a pod of an earlier cycle still counts the request after another was popped",
            *(add("a", 9), add("b"), pop(), move_all(), pop(), fail(FIT, pod="a")),
            then="active a, inflight b",
        ),
        case(
            "leftovers of more than a minute are flushed every 30 seconds",
            *(add("a"), at("+1s", pop()), fail(FIT), wait("+89s")),
            then="active a",
        ),
        case(
            "not before: a minute exactly is not enough",
            *(add("a"), pop(), fail(FIT), wait("+60s")),
            then="unschedulable a",
        ),
        case(
            "a flush is a move request, too",
            *(add("a"), add("b"), pop(), fail(FIT), at("+30s", pop()), at("+60s", fail(FIT))),
            then="active a b",
        ),
        case(
            "a pod that its affinity wants moves a pod, and no other",
            *(add("a", **WANTS_DB), add("b"), pop(), fail(FIT), pop(), fail(FIT)),
            add("db", labels={"app": "db"}, **RUNNING),
            then="active a, unschedulable b",
        ),
        case(
            "so does one that is changed to be wanted",
            *(add("db", **RUNNING), add("a", **WANTS_DB), pop(), fail(FIT)),
            update("db", metadata={"labels": {"app": "db"}}),
            then="active a",
        ),
        case(
            "an assigned pod that nobody wants is a move request all the same",
            *(add("a"), pop(), add("db", **RUNNING), fail(FIT)),
            then="active a",
        ),
        case(
            "a pod that leaves its node moves all",
            *(add("run", **RUNNING), add("a"), pop(), fail(FIT), delete("run")),
            then="active a",
        ),
        case(
            "one that finishes leaves its node",
            *(add("run", **RUNNING), add("a"), pop(), fail(FIT), update("run", status={"phase": "Succeeded"})),
            then="active a",
        ),
        case(
            "a node that leaves moves none",
            *(node("n"), add("a"), pop(), fail(FIT), {"event": "deleteNode", "node": "n"}),
            then="unschedulable a",
        ),
        case(
            "a node that gets more room moves all",
            *(node("n"), add("a"), pop(), fail(FIT), update_node("n", status={"allocatable": {"cpu": "8"}})),
            then="active a",
        ),
        case(
            "a node that is cordoned moves none",
            *(node("n"), add("a"), pop(), fail(FIT), update_node("n", spec={"unschedulable": True})),
            then="unschedulable a",
        ),
        case(
            "an update of a node is a move request where no pod is unschedulable",
            *(node("n"), add("a"), pop(), update_node("n", spec={"unschedulable": True}), fail(FIT)),
            then="active a",
        ),
        case("a Service moves all", add("a"), pop(), fail(FIT), change("Service", "Delete"), then="active a"),
        case("a ConfigMap moves none", add("a"), pop(), fail(FIT), change("ConfigMap", "Add"), then="unschedulable a"),
        case(
            "the pod's own update moves it",
            *(add("a"), pop(), fail(FIT), update("a", spec=TOLERANT)),
            then="active a",
        ),
        case(
            "an update of its status alone does not",
            *(add("a"), pop(), fail(FIT), update("a", status={"nominatedNodeName": "n"})),
            then="unschedulable a",
        ),
        case(
            "an update brings a pod in flight into the queue",
            *(add("a"), pop(), update("a", status={"nominatedNodeName": "n"})),
            then="active a",
        ),
        case(
            "adding one that is there moves nothing twice",
            add("a"),
            pop(),
            fail(FIT),
            delete("a"),
            add("a"),
            then="active a",
        ),
        case(
            "a nominated pod that was tried stands before those that come later",
            *(node("n"), add("a", 5), pop(), nominate("a", "n"), fail(FIT), at("+1s", add("b", 5)), move_all()),
            then="active a b",
        ),
        case(
            "and behind others of its priority that came before it was tried",
            *(node("n"), add("a", 5), at("+1s", pop()), add("b", 5), at("+1s", fail(FIT)), move_all()),
            then="active b a",
        ),
    ],
)
def test_the_priority_queue_of_1_13(events: tuple[Event, ...], expected: str) -> None:
    assert state(apply("kube-1.13", *events)[-1]) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((add("a", nominated="n1"),), {"n1": ["ns/a"]}, id="the status nominates"),
        pytest.param(
            (node("n2"), add("a", nominated="n1"), nominate("a", "n2")),
            {"n2": ["ns/a"]},
            id="what the scheduler decided goes before the status",
        ),
        pytest.param(
            (node("n2"), add("a", nominated="n1"), nominate("a", "n2"), update("a", metadata={"labels": {"x": "y"}})),
            {"n1": ["ns/a"]},
            id="until an update, which falls back to the status",
        ),
        pytest.param(
            (node("n1"), node("n2"), add("a"), nominate("a", "n1"), nominate("a", "n2")),
            {"n2": ["ns/a"]},
            id="a pod is nominated once",
        ),
        pytest.param(
            (node("n1"), add("a"), add("b"), nominate("b", "n1"), nominate("a", "n1")),
            {"n1": ["ns/b", "ns/a"]},
            id="those of a node are in the order of nomination",
        ),
        pytest.param(
            (add("a", nominated="n1"), {"event": "clearNomination", "pod": "ns/a"}),
            {},
            id="a nomination can be taken back, whatever the status says",
        ),
        pytest.param((add("a", nominated="n1"), pop()), {"n1": ["ns/a"]}, id="a pop leaves it"),
        pytest.param((add("a", nominated="n1"), delete("a")), {}, id="a deleted pod has none"),
        pytest.param(
            (add("a", nominated="n1"), update("a", status={"nominatedNodeName": None})),
            {},
            id="nor has one whose status lost it",
        ),
    ],
)
def test_nominations_of_1_13(events: tuple[Event, ...], expected: dict[str, list[str]]) -> None:
    assert apply("kube-1.13", *events)[-1].nominated == expected


def test_today_a_nomination_that_only_the_scheduler_knows_survives_an_update() -> None:
    events = (node("n1"), add("a"), nominate("a", "n1"), update("a", metadata={"labels": {"x": "y"}}))
    assert apply("kube-1.36", *events)[-1].nominated == {"n1": ["ns/a"]}
    assert apply("kube-1.13", *events)[-1].nominated == {}


def test_without_pod_priority_the_queue_of_1_13_is_a_fifo() -> None:
    queue = queue_for("kube-1.13", START, feature_gates={"PodPriority": False})
    assert state(apply("", add("a"), add("b", 9), queue=queue)[-1]) == "active a b"


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        case("the highest priority is first", add("low"), add("high", 9), then="active high low"),
        case("an unschedulable pod is set aside", add("a"), pop(), fail(FIT), then="unschedulable a"),
        case("one whose attempt failed by an error backs off", add("a"), pop(), fail(), then="backoff a"),
        case(
            "an event that may help moves a pod, after its backoff",
            *(add("a"), pop(), fail(FIT), node("n")),
            then="backoff a",
        ),
        case(
            "whole seconds later it is active",
            *(add("a"), pop(), fail(FIT), node("n"), wait("+2s")),
            then="active a",
        ),
        case(
            "a pod that backs off until this second still does",
            *(add("a"), pop(), fail(FIT), node("n"), wait("+1.9s")),
            then="backoff a",
        ),
        case(
            "a pod whose backoff is over is active at once",
            *(add("a"), pop(), fail(FIT), at("+5s", node("n"))),
            then="active a",
        ),
        case(
            "a node that is too small does not help",
            add("a", containers=[{"name": "c", "resources": {"requests": {"cpu": "8"}}}]),
            *(pop(), fail(FIT), at("+5s", node("n", cpu="4"))),
            then="unschedulable a",
        ),
        case(
            "until it grows",
            add("a", containers=[{"name": "c", "resources": {"requests": {"cpu": "8"}}}]),
            *(node("n"), pop(), fail(FIT), at("+5s", update_node("n", status={"allocatable": {"cpu": "8"}}))),
            then="active a",
        ),
        case(
            "an event of another plugin does not help",
            *(add("a"), pop(), fail("NodeAffinity"), add("run", **RUNNING), at("+5s", delete("run"))),
            then="unschedulable a",
        ),
        case(
            "a pod that leaves its node helps where resources are short",
            *(add("run", **RUNNING), add("a"), pop(), fail(FIT), at("+5s", delete("run"))),
            then="active a",
        ),
        case(
            "an event while it was tried helps when it comes back",
            *(add("a"), pop(), node("n"), fail(FIT)),
            then="backoff a",
        ),
        case(
            "an event before it was tried does not",
            *(add("a"), node("n"), pop(), fail(FIT)),
            then="unschedulable a",
        ),
        case(
            "a plugin that waits for something of its own skips the backoff",
            *(add("a"), pop(), fail(FIT, pendingPlugins=[FIT]), node("n")),
            then="active a",
        ),
        case(
            "leftovers of more than five minutes are flushed every 30 seconds",
            *(add("a"), at("+1s", pop()), fail(FIT), wait("+329s")),
            then="active a",
        ),
        case(
            "not after five minutes exactly",
            *(add("a"), pop(), fail(FIT), wait("+300s")),
            then="unschedulable a",
        ),
        case("a move request moves all", add("a"), pop(), fail("NodeAffinity"), at("+5s", move_all()), then="active a"),
        case("a gated pod is held", add("a", **GATES), then="gated a"),
        case("nothing moves it", add("a", **GATES), move_all(), node("n"), wait("+1000s"), then="gated a"),
        case(
            "but the end of its gates", add("a", **GATES), update("a", spec={"schedulingGates": None}), then="active a"
        ),
        case(
            "activation skips the backoff",
            *(add("a"), pop(), fail(), activate("a")),
            then="active a",
        ),
        case(
            "activation of a pod in flight counts when it comes back",
            *(add("a"), pop(), activate("a"), fail(FIT)),
            then="backoff a",
        ),
        case(
            "a new toleration moves a pod that a taint refused",
            *(
                add("a"),
                pop(),
                fail("TaintToleration"),
                at("+5s", update("a", spec=TOLERANT)),
            ),
            then="active a",
        ),
        case(
            "and none that had no room",
            *(add("a"), pop(), fail(FIT), at("+5s", update("a", spec=TOLERANT))),
            then="unschedulable a",
        ),
        case(
            "another label moves a pod that an anti-affinity refused",
            *(add("a"), pop(), fail("InterPodAffinity"), at("+5s", update("a", metadata={"labels": {"x": "y"}}))),
            then="active a",
        ),
        case(
            "a pod that is wanted helps",
            *(add("a", **WANTS_DB), pop(), fail("InterPodAffinity")),
            at("+5s", add("db", labels={"app": "db"}, **RUNNING)),
            then="active a",
        ),
        case(
            "one that is not wanted does not",
            *(add("a", **WANTS_DB), pop(), fail("InterPodAffinity")),
            at("+5s", add("db", labels={"app": "web"}, **RUNNING)),
            then="unschedulable a",
        ),
        case(
            "an untainted node helps where a taint refused",
            *(node("n", taints=[{"key": "k", "effect": "NoSchedule"}]), add("a"), pop(), fail("TaintToleration")),
            at("+5s", update_node("n", spec={"taints": None})),
            then="active a",
        ),
        case(
            "an uncordoned one where it was cordoned",
            *(node("n", unschedulable=True), add("a"), pop(), fail("NodeUnschedulable")),
            at("+5s", update_node("n", spec={"unschedulable": False})),
            then="active a",
        ),
        case(
            "a label where the selector refused",
            *(node("n"), add("a", nodeSelector={"disk": "ssd"}), pop(), fail("NodeAffinity")),
            at("+5s", update_node("n", metadata={"labels": {"disk": "ssd"}})),
            then="active a",
        ),
        case(
            "a nominated pod that goes frees its room for those that had to respect it",
            *(add("big", 9, nominated="n"), add("a", 5), pop(), fail(FIT), pop(), fail(FIT)),
            at("+5s", delete("big")),
            then="active a",
        ),
        case(
            "and for none above it",
            *(add("big", 3, nominated="n"), add("a", 5), pop(), fail(FIT), pop(), fail(FIT)),
            at("+5s", delete("big")),
            then="unschedulable a",
        ),
        case(
            "an update of a pod in flight is remembered",
            *(add("a"), pop(), update("a", metadata={"labels": {"x": "y"}}), fail("InterPodAffinity")),
            then="backoff a",
        ),
    ],
)
def test_the_queue_of_1_36(events: tuple[Event, ...], expected: str) -> None:
    assert state(apply("kube-1.36", *events)[-1]) == expected


def test_a_scheduler_that_has_nothing_else_to_do_takes_a_pod_that_backs_off() -> None:
    events = (add("a"), pop(), fail(FIT), node("n"), pop())
    assert popped(apply("kube-1.36", *events)) == "a a"
    without = queue_for("kube-1.36", START, feature_gates={"SchedulerPopFromBackoffQ": False})
    assert popped(apply("", *events, queue=without)) == "a -"


def test_it_takes_none_whose_attempt_ended_with_an_error() -> None:
    assert popped(apply("kube-1.36", add("a"), pop(), fail(), pop())) == "a -"


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (70, 10)],
    ids=str,
)
def test_backoff_doubles_with_each_failure_up_to_ten_seconds(failures: int, seconds: int) -> None:
    events: list[Event] = [add("a")]
    for _ in range(failures):
        events += [at("+20s", move_all()), pop(), fail(FIT)]
    last = apply("kube-1.36", *events)[-1]
    (pod,) = last.pods
    assert pod.backoff_until is not None
    assert (pod.backoff_until - last.time).total_seconds() == seconds
    assert pod.attempts == failures


def test_timers_are_steps_of_their_own_at_their_own_times() -> None:
    steps = apply("kube-1.36", add("a"), pop(), fail(FIT), wait("+1000s"))
    timers = [step for step in steps if step.event == "timer"]
    assert [(step.time - START).total_seconds() for step in timers] == [330]
    assert [(move.pod, move.before, move.after) for move in timers[0].moves] == [("ns/a", "Unschedulable", "Active")]


def test_time_may_be_long() -> None:
    steps = apply("kube-1.36", add("a", **GATES), add("b"), pop(), wait("+3000000000s"), fail(FIT))
    # A gated pod that the timer looks at is an event for pods in flight.
    assert state(steps[-1]) == "backoff b, gated a"


def test_every_algorithm_counts_its_own_cycles() -> None:
    lasts = [apply(name, add("a"), add("b"), pop(), move_all(), pop())[-1] for name in NAMES]
    assert [(last.scheduling_cycle, last.move_request_cycle) for last in lasts] == [(None, None), (2, 1), (2, 1)]


@pytest.mark.parametrize("algorithm", NAMES)
@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((add("a"), add("a")), "pod ns/a already exists"),
        ((delete("a"),), "pod ns/a does not exist"),
        ((fail(FIT),), "no pod was popped"),
        ((add("a"), fail(FIT, pod="a")), "pod ns/a was not popped"),
        ((add("a"), add("b"), pop(), pop(), fail(FIT)), "2 pods were popped"),
        ((add("a"), bind("a", "n")), "node n does not exist"),
        (({"event": "addPod"},), "pod: is missing"),
        (({"event": "addPod", "pod": "ns/a"},), "expected a complete object"),
        (({"event": "addPod", "pod": {"spec": {}}},), "pod.metadata.name: is missing"),
        ((add("a", priority="high"),), "spec.priority: expected"),
        ((change("Node", "Add"),), "a Node has its own kinds of events"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_happen_is_bad_input(algorithm: str, events: tuple[Event, ...], message: str) -> None:
    with pytest.raises(InputError) as raised:
        apply(algorithm, *events)
    assert message in raised.value.message
    assert f"events:{len(events)}" in raised.value.message
