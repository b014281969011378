"""The scheduling queue where out-of-tree plugins order it and hold pods back."""

from __future__ import annotations

import pytest

from kpreempt.analysis.algorithms import queue_for
from kpreempt.model.pod import Pod
from kpreempt.schedulers.interface import QueuedPodInfo, QueueRules
from kpreempt.schedulers.queues import SchedulingQueue
from kpreempt.verdict.queue import MoverKind, QueuedPod
from tests.queue_events import (
    START,
    Event,
    activate,
    add,
    apply,
    at,
    change,
    delete,
    fail,
    move_all,
    node,
    pop,
    popped,
    state,
    update,
    update_node,
    wait,
)

FIT = "NodeResourcesFit"
QUOTA = "Quota"
GATED = {"schedulingGates": [{"name": "example.com/quota"}]}


def lowest_first(one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
    return one.pod.priority < other.pod.priority


def fewest_attempts_first(one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
    return one.attempts < other.attempts


def newest_first(one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
    return one.timestamp > other.timestamp


def always(_one: QueuedPodInfo, _other: QueuedPodInfo) -> bool:
    return True


def holds_labelled(pod: Pod) -> str:
    """Hold pods that say so back."""
    return QUOTA if pod.metadata.labels.get("held") == "yes" else ""


def queue_with(rules: QueueRules, *, pops: bool = True) -> SchedulingQueue:
    return queue_for("kube-1.36", START, feature_gates={"SchedulerPopFromBackoffQ": pops}, rules=rules)


HELD = QueueRules(blocked_pods=holds_labelled, awaits_everything=True)


def held(name: str) -> Event:
    return add(name, labels={"held": "yes"})


@pytest.mark.parametrize(
    ("rules", "events", "expected"),
    [
        pytest.param(
            QueueRules(), (add("a", 1), add("b", 9), pop(), pop()), "b a", id="without rules the highest priority first"
        ),
        pytest.param(
            QueueRules(lowest_first), (add("a", 1), add("b", 9), pop(), pop()), "a b", id="the plugin turns it round"
        ),
        pytest.param(
            QueueRules(newest_first),
            (add("a"), at("+1s", add("b")), at("+1s", add("c")), pop(), pop(), pop()),
            "c b a",
            id="it sees since when pods wait",
        ),
        pytest.param(
            QueueRules(fewest_attempts_first),
            (add("a", 9), pop(), fail(FIT), at("+9s", move_all()), wait("+9s"), add("b"), pop(), pop()),
            "a b a",
            id="and how often they were tried",
        ),
        pytest.param(
            QueueRules(lowest_first),
            (add("a", 1), add("b", 9), pop(), fail(FIT), pop(), fail(FIT), move_all(), pop(), pop()),
            "a b a b",
            id="pods whose backoff ends in one second are in its order",
        ),
        pytest.param(
            QueueRules(lowest_first),
            (add("a", 1), pop(), fail(FIT), move_all(), at("+1s", add("b", 0)), pop(), fail(FIT), move_all(), pop()),
            "a b a",
            id="backoff that ends earlier goes first, whatever the plugin says",
        ),
        pytest.param(
            QueueRules(always),
            (add("a"), add("b"), add("c"), delete("b"), update("c", status={}), pop(), pop(), pop()),
            "a c -",
            id="a plugin that contradicts itself ends in some order",
        ),
    ],
)
def test_the_order_is_the_plugins(rules: QueueRules, events: tuple[Event, ...], expected: str) -> None:
    assert popped(apply("", *events, queue=queue_with(rules))) == expected


@pytest.mark.parametrize("pops", [True, False], ids=["pods are popped from backoff", "they are not"])
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((held("a"), add("b")), "active b, gated a", id="a pod that is held back is not a candidate"),
        pytest.param((held("a"), wait("+3600s")), "gated a", id="no timer moves it"),
        pytest.param((held("a"), change("StorageClass", "Add")), "gated a", id="it stays while the plugin says so"),
        pytest.param(
            (held("a"), update("a", metadata={"labels": {"held": None}})), "active a", id="its own update frees it"
        ),
        pytest.param((held("a"), activate("a")), "gated a", id="nor is it activated"),
        pytest.param((held("a"), delete("a")), "empty", id="it can be deleted"),
        pytest.param(
            (add("a", labels={"held": "yes"}, **GATED), update("a", spec={"schedulingGates": []})),
            "gated a",
            id="a gate that goes leaves it to the plugin",
        ),
        pytest.param(
            (add("a"), pop(), fail(FIT), update("a", metadata={"labels": {"held": "yes"}}), at("+20s", move_all())),
            "gated a",
            id="one that was tried is held when it would come back",
        ),
    ],
)
def test_a_pod_waits_until_the_plugin_lets_it_pass(events: tuple[Event, ...], expected: str, *, pops: bool) -> None:
    assert state(apply("", *events, queue=queue_with(HELD, pops=pops))[-1]) == expected


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(change("PersistentVolume", "Delete"), id="another object goes"),
        pytest.param(
            update_node("n", status={"conditions": [{"type": "Ready", "status": "False"}]}), id="a node's condition"
        ),
        pytest.param(add("other", nodeName="n"), id="a pod comes to a node"),
        pytest.param(delete("there"), id="a pod leaves its node"),
    ],
)
def test_every_event_asks_the_plugin_again(event: Event) -> None:
    requested: list[str] = []

    def first_no_then_yes(pod: Pod) -> str:
        requested.append(pod.metadata.name)
        return QUOTA if requested.count("a") == 1 else ""

    rules = QueueRules(blocked_pods=first_no_then_yes, awaits_everything=True)
    steps = apply("", node("n"), add("there", nodeName="n"), add("a"), event, queue=queue_with(rules))
    assert [state(step) for step in steps[-2:]] == ["gated a", "active a"]


NOT_REGISTERED = change("PersistentVolume", "Delete")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(QueueRules(), "unschedulable a", id="no plugin waits for it"),
        pytest.param(QueueRules(awaits_everything=True), "active a", id="one runs that waits for everything"),
    ],
)
def test_events_that_no_plugin_waits_for_are_passed_over(rules: QueueRules, expected: str) -> None:
    events = (add("a"), pop(), fail("Rack"), at("+20s", NOT_REGISTERED))
    assert state(apply("", *events, queue=queue_with(rules))[-1]) == expected


def test_the_queue_says_which_plugin_holds_a_pod_and_that_anything_may_free_it() -> None:
    by_plugin, by_gate = described(held("a")), described(add("a", **GATED))
    assert (by_plugin.held_by, by_plugin.rejected_by) == (QUOTA, [QUOTA])
    assert [mover.kind for mover in by_plugin.moved_by] == [MoverKind.CLUSTER_EVENT, MoverKind.OWN_UPDATE]
    assert (by_gate.held_by, [mover.kind for mover in by_gate.moved_by]) == ("", [MoverKind.GATES_REMOVED])


def described(event: Event) -> QueuedPod:
    (pod,) = apply("", event, queue=queue_with(HELD))[-1].pods
    return pod


@pytest.mark.parametrize("algorithm", ["kube-1.8", "kube-1.13"])
def test_old_queues_take_no_rules(algorithm: str) -> None:
    events = (add("a", 1), held("b"), pop(), pop())
    rules = HELD._replace(is_before=lowest_first)
    assert popped(apply("", *events, queue=queue_for(algorithm, START, rules=rules))) == popped(
        apply(algorithm, *events)
    )
