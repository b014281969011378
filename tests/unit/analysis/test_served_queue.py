"""The whole queue, served: which pods get scheduled, which preempt, which stay pending, and what is open."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, Scheduler, scheduler_for
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.analysis.queue import serving
from kpreempt.analysis.simulation.engine import Limits
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod, PodCondition, PodSchedulingGate
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.plugins import SUCCESS, PreemptionPlugin, PreEnqueuePlugin, Status, unschedulable
from kpreempt.report.pending.served import after_in_words
from kpreempt.report.pending.summary import summary
from kpreempt.report.quoting import plain
from kpreempt.verdict.pending import PendingPods
from kpreempt.verdict.served import OpenPods, ServedQueue, TurnOutcome
from kpreempt.verdict.simulation import SimulationEnd
from tests.factories import NOW, make_budget, make_node, make_pod, owned
from tests.foreign_plugins import scheduler_with

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
SCHEDULED, PENDING, OPEN = TurnOutcome.SCHEDULED, TurnOutcome.LEFT_PENDING, TurnOutcome.OPEN


def seen(pod: Pod, minutes: float = 0.1, *, version: str = "") -> Pod:
    """The pod, created so long ago."""
    metadata = msgspec.structs.replace(
        pod.metadata, creation_timestamp=NOW - minutes * MINUTE, resource_version=version
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def tried(pod: Pod, minutes: float) -> Pod:
    """The pod, created so long ago and rejected at once, as its condition says."""
    pod = seen(pod, minutes)
    rejection = PodCondition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        last_transition_time=pod.metadata.creation_timestamp,
    )
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[rejection]))


def terminating(pod: Pod, until: datetime, finalizers: Sequence[str] = ()) -> Pod:
    metadata = msgspec.structs.replace(
        pod.metadata, deletion_timestamp=until, deletion_grace_period_seconds=30, finalizers=list(finalizers)
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def ask(*pods: Pod, cpu: str = "2", nodes: int = 1, scheduler: Scheduler | None = None, **parts: Any) -> PendingPods:
    cluster = ClusterSnapshot(
        nodes=[make_node(f"n{number}", cpu=cpu) for number in range(1, nodes + 1)], pods=list(pods), **parts
    )
    return explain_pending(AnalysisContext(cluster, scheduler or scheduler_for(), NOW, at=NOW), draws=DRAWS)


def outcomes(served: ServedQueue) -> dict[str, TurnOutcome]:
    return {key.partition("/")[2]: turn.outcome for key, turn in served.in_turn.items()}


def sentence(answer: PendingPods) -> str:
    return plain(summary(answer))


# Five pods, room for three: sched-46 and sched-54.

RUNNERS = [owned(make_pod(f"runner-{number}", cpu="600m"), "ReplicaSet", "runner") for number in range(4)]
AGENT = seen(owned(make_pod("agent", cpu="500m"), "DaemonSet", "agent"), 0.9)


def test_of_five_pods_that_fit_alone_three_get_scheduled() -> None:
    answer = ask(*(tried(pod, 10 - number) for number, pod in enumerate(RUNNERS)), AGENT)
    served = answer.served
    assert {item.outcome for item in answer.items} == {"Lands"}
    assert (served.scheduled_min, served.scheduled_max) == (3, 3)
    assert outcomes(served) == {
        "runner-0": SCHEDULED,
        "runner-1": SCHEDULED,
        # The new pod is tried now, the others after an event or the flush, unless this has moved them already.
        "runner-2": OPEN,
        "agent": OPEN,
        "runner-3": PENDING,
    }
    assert sentence(answer) == (
        "5 pods pending: served in queue order, 2 get scheduled (shop/runner-0 and shop/runner-1), 2 are open"
        " (shop/agent and shop/runner-2), 1 stays pending (Insufficient cpu). Of shop/runner-2 and shop/agent, 1 gets"
        " scheduled."
    )


@pytest.mark.parametrize("minutes", [0.5, 10], ids=["seconds old", "minutes old"])
def test_pods_that_were_never_tried_get_scheduled_in_the_order_of_creation(minutes: float) -> None:
    pods = [seen(pod, minutes - number / 100) for number, pod in enumerate(RUNNERS)]
    for order in itertools.islice(itertools.permutations(pods), 0, None, 5):
        answer = ask(*order)
        assert outcomes(answer.served) == {
            "runner-0": SCHEDULED,
            "runner-1": SCHEDULED,
            "runner-2": SCHEDULED,
            "runner-3": PENDING,
        }
        assert [item.pod for item in answer.items] == [pod.key for pod in pods]
    assert sentence(answer) == (
        "4 pods pending: served in queue order, 3 get scheduled (shop/runner-0, shop/runner-1 and shop/runner-2),"
        " 1 stays pending (Insufficient cpu)."
    )


def test_of_equal_pods_of_one_second_it_is_open_which_get_scheduled() -> None:
    answer = ask(*(seen(make_pod(name, cpu="1")) for name in "abc"))
    assert outcomes(answer.served) == dict.fromkeys("abc", OPEN)
    assert answer.served.open == [OpenPods(pods=["shop/a", "shop/b", "shop/c"], at_least=2, at_most=2)]
    words = sentence(answer)
    assert words.startswith("3 pods pending: served in queue order, 3 are open (")
    assert words.endswith(". Of shop/a, shop/b and shop/c, 2 get scheduled.")


def test_resource_versions_show_the_order_of_one_second() -> None:
    answer = ask(*(seen(make_pod(name, cpu="1"), version=version) for name, version in zip("abc", "312", strict=True)))
    assert outcomes(answer.served) == {"b": SCHEDULED, "c": SCHEDULED, "a": PENDING}
    assert (answer.served.runs, answer.served.is_complete, answer.served.open) == (1, True, [])


def test_pods_created_in_one_second_are_before_those_of_the_next() -> None:
    earlier = [seen(make_pod(f"earlier-{number}", cpu="1"), 6 / 60) for number in range(2)]
    later = [seen(make_pod(f"later-{number}", cpu=cpu), 5 / 60) for number, cpu in enumerate("121")]
    large = seen(make_pod("large", cpu="3", priority=10), 5 / 60)
    became = outcomes(ask(earlier[0], *reversed(later), earlier[1], large).served)
    assert [became[pod.metadata.name] for pod in earlier] == [SCHEDULED] * 2
    assert [became[pod.metadata.name] for pod in (*later, large)] == [PENDING] * 4


def test_equal_pods_that_all_get_scheduled_are_certain() -> None:
    answer = ask(*(seen(make_pod(name, cpu="500m")) for name in "abc"))
    assert outcomes(answer.served) == dict.fromkeys("abc", SCHEDULED)


@pytest.mark.parametrize("number", [2, 3, 5, 8])
def test_no_pod_of_several_equal_ones_is_certain_if_one_is_not(number: int) -> None:
    # The more pods, the less likely it is that all orders are drawn.
    names = [f"p{index}" for index in range(number)]
    answer = ask(*(seen(make_pod(name, cpu="2")) for name in names))
    assert outcomes(answer.served) == dict.fromkeys(names, OPEN)
    assert [(each.at_least, each.at_most) for each in answer.served.open] == [(1, 1)]


def test_pods_of_different_kinds_of_one_second_are_named_by_kind() -> None:
    big = [seen(make_pod(f"big-{index}", cpu="2")) for index in range(2)]
    small = [seen(make_pod(f"small-{index}", cpu="1")) for index in range(2)]
    answer = ask(*big, *small)
    assert outcomes(answer.served) == dict.fromkeys(["big-0", "big-1", "small-0", "small-1"], OPEN)
    assert answer.served.open == [
        OpenPods(pods=["shop/big-0", "shop/big-1"], at_least=0, at_most=1),
        OpenPods(pods=["shop/small-0", "shop/small-1"], at_least=0, at_most=2),
    ]
    assert (answer.served.scheduled_min, answer.served.scheduled_max) == (1, 2)
    assert sentence(answer).endswith(
        ", 1 or 2 get scheduled: 0 or 1 of shop/big-0 and shop/big-1; 0 to 2 of shop/small-0 and shop/small-1."
    )


@pytest.mark.parametrize("number", [6, 9, 14, 24])
def test_an_order_that_is_unlikely_is_possible(number: int) -> None:
    small = [seen(make_pod(f"small-{index}", cpu=f"{4000 // number}m")) for index in range(number)]
    served = ask(*small, seen(make_pod("big", cpu="4")), cpu="4").served
    assert outcomes(served) == dict.fromkeys([*(pod.metadata.name for pod in small), "big"], OPEN)
    assert (served.scheduled_min, served.scheduled_max) == (1, number)


# Which pods are asked about.

TWO = [seen(make_pod("early", cpu="2"), 0.9), tried(make_pod("late", cpu="2"), 8), seen(make_pod("batch", cpu="2"))]


def selected(*names: str, pods: Sequence[Pod]) -> PendingPods:
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="2")], pods=list(pods))
    context = AnalysisContext(cluster, scheduler_for(), NOW, at=NOW)
    return explain_pending(context, draws=DRAWS, is_selected=lambda pod: pod.metadata.name in names)


@pytest.mark.parametrize("name", ["early", "late", "batch"])
def test_what_becomes_of_a_pod_does_not_depend_on_which_are_asked_about(name: str) -> None:
    everything = selected("early", "late", "batch", pods=TWO)
    one = selected(name, pods=TWO)
    assert outcomes(one.served) == outcomes(everything.served)
    assert one.served.open == everything.served.open
    (item,) = one.items
    assert item == next(each for each in everything.items if each.pod == item.pod)


def test_nor_does_it_if_pods_should_have_been_tried_long_ago() -> None:
    pods = [seen(make_pod("early", cpu="2"), 9), seen(make_pod("late", cpu="2"), 8)]
    assert outcomes(selected("early", pods=pods).served) == outcomes(selected("early", "late", pods=pods).served)


# Preemption.

LOW = owned(make_pod("low", node="n1", cpu="2"), "ReplicaSet", "low")
HIGH = seen(make_pod("high", cpu="2", priority=10))


def test_a_pod_of_higher_priority_preempts_and_the_replacement_stays_pending() -> None:
    answer = ask(LOW, HIGH)
    turn = answer.served.in_turn["shop/high"]
    assert (turn.outcome, turn.nodes, turn.victims, turn.seconds) == (SCHEDULED, ["n1"], ["shop/low"], 30)
    assert [each.pod for each in answer.served.displaced] == ["shop/low"]
    (replacement,) = answer.served.pending
    assert (replacement.owner, replacement.was_running) == ("ReplicaSet low", True)
    assert sentence(answer).startswith(
        "1 pod pending: served in queue order, 1 gets scheduled by preempting 1 pod (shop/high)"
    )


def test_equal_pods_that_wait_for_what_victims_leave_are_open_together() -> None:
    low = [
        owned(make_pod(f"low-{number}", node=f"n{number // 2 + 1}", cpu=cpu), "ReplicaSet", "low")
        for number, cpu in enumerate(["1750m", "950m", "1750m", "1750m"])
    ]
    patient = [make_pod(f"patient-{number}", cpu="620m", priority=50) for number in range(6)]
    large = make_pod("large", cpu="1750m", priority=50)
    specs = [msgspec.structs.replace(pod.spec, preemption_policy="Never") for pod in (*patient, large)]
    pods = [
        *(make_pod(f"preemptor-{number}", cpu="1300m", priority=10) for number in range(3)),
        *(msgspec.structs.replace(pod, spec=spec) for pod, spec in zip((*patient, large), specs, strict=True)),
    ]
    served = ask(*low, *(seen(pod, version=str(version)) for version, pod in enumerate(pods)), cpu="4", nodes=2).served
    turns = [served.in_turn[pod.key] for pod in patient]
    # Pods that fit at once are certain; one of the others is left pending in few runs.
    assert [turn.outcome for turn in turns] == [OPEN if turn.seconds else SCHEDULED for turn in turns]
    late = [turn for turn in turns if turn.seconds]
    assert {turn.scheduled_runs == served.runs for turn in late} == {True, False}


def test_a_pod_that_waits_behind_a_preemptor_stays_pending_with_the_replacement() -> None:
    answer = ask(LOW, seen(make_pod("first", cpu="1"), 9), HIGH)
    assert outcomes(answer.served) == {"first": PENDING, "high": SCHEDULED}
    # It is first in the queue of its priority, and alone it would stay pending as well.
    assert [item.pod for item in answer.items] == ["shop/high", "shop/first"]


def test_a_pod_that_is_scheduled_and_then_preempted_is_not_counted_as_scheduled() -> None:
    # The pod of higher priority is held back until its backoff is over, so the other is scheduled first.
    late = tried(make_pod("late", cpu="2", priority=10), 20)
    answer = ask(seen(make_pod("early", cpu="2")), late)
    found = outcomes(answer.served)
    assert found["late"] is SCHEDULED
    assert found["early"] is not SCHEDULED
    assert answer.served.scheduled_max == 1


def test_two_preemptors_do_not_evict_the_same_pod() -> None:
    answer = ask(LOW, HIGH, seen(make_pod("other", cpu="2", priority=10), 0.05))
    assert outcomes(answer.served) == {"high": SCHEDULED, "other": PENDING}
    assert [item.outcome for item in answer.items] == ["Preempts", "Preempts"]
    assert answer.served.in_turn["shop/other"].reasons == {"Insufficient cpu": 1}
    assert "1 gets scheduled by preempting 1 pod (shop/high), 1 stays pending (Insufficient cpu)" in sentence(answer)


def test_all_results_of_a_tie_are_simulated() -> None:
    equal = [owned(make_pod(name, node=node, cpu="2"), "ReplicaSet", name) for name, node in (("x", "n1"), ("y", "n2"))]
    answer = ask(*equal, HIGH, nodes=2)
    turn = answer.served.in_turn["shop/high"]
    assert turn.outcome is SCHEDULED
    assert sorted(turn.nodes) == ["n1", "n2"]
    assert {*turn.victims, *turn.other_victims} == {"shop/x", "shop/y"}
    assert len(turn.victims) == 1


def budget(allowed: int) -> PodDisruptionBudget:
    return make_budget("low", {"app": "low"}, allowed=allowed)


@pytest.mark.parametrize(("allowed", "violated"), [(1, []), (0, ["shop/low"])], ids=["allowed", "violated"])
def test_violated_budgets_are_named(allowed: int, violated: list[str]) -> None:
    low = make_pod("low", node="n1", cpu="2", labels={"app": "low"})
    answer = ask(low, HIGH, pod_disruption_budgets=[budget(allowed)])
    turn = answer.served.in_turn["shop/high"]
    assert (turn.outcome, turn.violated) == (SCHEDULED, violated)
    text = ", violating shop/low" if violated else ""
    assert f"1 gets scheduled by preempting 1 pod{text} (shop/high)" in sentence(answer)


# Pods that the scheduler does not try, and pods that stay.


def test_gated_pods_are_not_served_and_take_no_room() -> None:
    gated = seen(make_pod("gated", cpu="2", priority=9, scheduling_gates=[PodSchedulingGate("example.com/quota")]), 9)
    answer = ask(gated, seen(make_pod("free", cpu="2")))
    assert outcomes(answer.served) == {"gated": TurnOutcome.NOT_SERVED, "free": SCHEDULED}
    assert answer.served.scheduled_max == 1
    assert sentence(answer) == (
        "2 pods pending: served in queue order, 1 gets scheduled (shop/free), 1 gated (example.com/quota)."
    )


class NoBatch(PreEnqueuePlugin):
    """Holds pods of one namespace out of the queue."""

    def pre_enqueue(self, pod: Any) -> Status:
        return unschedulable("batch sleeps") if pod.metadata.namespace == "batch" else SUCCESS


def test_a_pod_that_a_plugin_holds_is_not_served_and_counted_once() -> None:
    held = seen(make_pod("job", namespace="batch", cpu="2", priority=9), 9)
    answer = ask(held, seen(make_pod("free", cpu="2")), scheduler=scheduler_with(NoBatch))
    assert outcomes(answer.served) == {"job": TurnOutcome.NOT_SERVED, "free": SCHEDULED}
    assert sentence(answer) == (
        "2 pods pending: served in queue order, 1 gets scheduled (shop/free), 1 held by NoBatch."
    )


def test_pods_of_other_schedulers_are_not_in_the_queue() -> None:
    answer = ask(seen(make_pod("other", scheduler_name="volcano")), seen(make_pod("free", cpu="2")))
    assert outcomes(answer.served) == {"free": SCHEDULED}
    assert next(item for item in answer.items if item.pod == "shop/other").in_turn is None


@pytest.mark.parametrize(
    ("until", "finalizers", "outcome", "seconds"),
    [
        pytest.param(NOW + 20 * SECOND, [], SCHEDULED, 20, id="it ends after the rest of its grace period"),
        pytest.param(NOW - 5 * SECOND, [], SCHEDULED, 0, id="its kubelet is about to delete it"),
        pytest.param(NOW - 3 * MINUTE, [], PENDING, None, id="its kubelet seems to be gone"),
        pytest.param(NOW - 5 * SECOND, ["example.com/upload"], PENDING, None, id="a finalizer holds it"),
        pytest.param(
            NOW - 5 * SECOND,
            ["batch.kubernetes.io/job-tracking"],
            SCHEDULED,
            0,
            id="its Job removes its finalizer",
        ),
    ],
)
def test_a_pod_that_waits_for_a_terminating_one(
    until: datetime, finalizers: list[str], outcome: TurnOutcome, seconds: float | None
) -> None:
    answer = ask(terminating(LOW, until, finalizers), seen(make_pod("it", cpu="2")))
    turn = answer.served.in_turn["shop/it"]
    assert (turn.outcome, turn.seconds is None) == (outcome, seconds is None)
    if seconds is not None:
        assert turn.seconds is not None
        assert seconds <= turn.seconds <= seconds + 1
    assert any("assumed to stay" in each.message for each in answer.assumptions) is (outcome is PENDING)


# The end.


def test_it_is_stopped_after_thirty_minutes() -> None:
    leaving = terminating(LOW, NOW + 31 * MINUTE)
    answer = ask(leaving, seen(make_pod("it", cpu="2")))
    served = answer.served
    assert (served.ended, served.is_out_of_time) == (SimulationEnd.ABORTED, True)
    assert served.in_turn["shop/it"].outcome is not SCHEDULED
    assert "Stopped after 30 minutes." in after_in_words(served)


MANY = [seen(make_pod(f"p{index}", cpu="1"), 0.9 - index / 100) for index in range(9)]


def test_it_is_stopped_after_the_maximum_number_of_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LIMITS", Limits(attempts=3, seconds=1800))
    served = ask(*MANY, cpu="9").served
    assert served.ended is SimulationEnd.ABORTED
    assert "Stopped after 4 attempts." in after_in_words(served)
    assert [outcomes(served)[f"p{index}"] for index in range(4)] == [SCHEDULED] * 4


def test_pods_that_the_limit_leaves_out_are_not_said_to_stay_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LIMITS", Limits(attempts=3, seconds=1800))
    assert PENDING not in outcomes(ask(*MANY, cpu="9").served).values()


class AnyVictim(PreemptionPlugin):
    """Any pod may evict any other."""

    def may_evict(self, state: Any, pod: Any, victim: Any, node_info: Any) -> bool:
        return True


ONE = owned(make_pod("one-1", node="n1", cpu="2"), "ReplicaSet", "one")
OTHER = seen(owned(make_pod("other-1", cpu="2"), "ReplicaSet", "other"))


def test_workloads_that_keep_displacing_each_other_are_reported() -> None:
    served = ask(ONE, OTHER, scheduler=scheduler_with(AnyVictim)).served
    assert (served.ended, served.scheduled_max) == (SimulationEnd.LOOP, 0)
    assert "ReplicaSet shop/one" in served.loop
    assert any(each.startswith("The queue never settles: ") for each in after_in_words(served))
    assert outcomes(served) == {"other-1": TurnOutcome.REMOVED}


def test_all_workloads_of_a_loop_are_named() -> None:
    served = ask(ONE, OTHER, scheduler=scheduler_with(AnyVictim)).served
    assert sorted(served.loop) == ["ReplicaSet shop/one", "ReplicaSet shop/other"]
