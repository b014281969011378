"""The served queue in words."""

from __future__ import annotations

import pytest

from kpreempt.report.blocks import text_of
from kpreempt.report.pending.served import (
    about_runs,
    after_in_words,
    open_in_words,
    scheduled_parts,
    turn_in_brief,
    turn_in_words,
    turn_section,
)
from kpreempt.verdict import Outcome, PodSummary, Verdict
from kpreempt.verdict.pending import PendingPod
from kpreempt.verdict.served import InTurn, OpenPods, ServedQueue, TurnInQueue, TurnOutcome
from kpreempt.verdict.simulation import SimulationEnd, UnscheduledPod
from kpreempt.verdict.waiting import PendingState

SCHEDULED, PENDING, OPEN = TurnOutcome.SCHEDULED, TurnOutcome.LEFT_PENDING, TurnOutcome.OPEN
NO_TURN = InTurn(outcome=TurnOutcome.NOT_SERVED)
VERDICT = Verdict(algorithm="kube-1.36", outcome=Outcome.UNSCHEDULABLE, pod=PodSummary("shop", "new"))


def item(name: str, turn: InTurn | None) -> PendingPod:
    return PendingPod(pod=f"shop/{name}", state=PendingState.NEVER_ATTEMPTED, outcome=Outcome.LANDS, in_turn=turn)


def evicting(*victims: str, **fields: object) -> InTurn:
    return InTurn(outcome=SCHEDULED, nodes=["n1"], victims=[f"shop/{each}" for each in victims], **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        pytest.param(InTurn(outcome=SCHEDULED, nodes=["n1"], seconds=0.0), "gets scheduled on n1", id="at once"),
        pytest.param(
            InTurn(outcome=SCHEDULED, nodes=["n1", "n2"], seconds=30.4),
            "gets scheduled on n1 or n2 after 30s",
            id="later, on one of two nodes",
        ),
        pytest.param(
            InTurn(outcome=SCHEDULED, nodes=["n1", "n2", "n3", "n4", "n5"], seconds=0.0),
            "gets scheduled on n1, n2, n3 or 2 more",
            id="on one of many nodes",
        ),
        pytest.param(
            evicting("a", "b", violated=["shop/pdb"]),
            "gets scheduled on n1, preempting shop/a and shop/b, violating shop/pdb",
            id="by preempting pods, which violates a budget",
        ),
        pytest.param(
            evicting("a", other_victims=["shop/b"]),
            "gets scheduled on n1, preempting shop/a (or shop/b)",
            id="by preempting one of two pods",
        ),
        pytest.param(
            InTurn(outcome=OPEN, nodes=["n1"], scheduled_runs=7, message="0/1 nodes are available."),
            "open: scheduled in 7 of 20 runs, on n1; otherwise 0/1 nodes are available.",
            id="open, with what is said if it is not scheduled",
        ),
        pytest.param(InTurn(outcome=OPEN), "open: scheduled in 0 of 20 runs", id="open, in no run so far"),
        pytest.param(
            InTurn(outcome=PENDING, message="0/1 nodes are available."),
            "stays pending: 0/1 nodes are available.",
            id="pending",
        ),
        pytest.param(InTurn(outcome=PENDING), "stays pending", id="pending, without a message"),
        pytest.param(
            InTurn(outcome=PENDING, message="0/3 nodes are available.", reasons={"Insufficient cpu": 2, "gone": 1}),
            "stays pending: 2 Insufficient cpu, 1 gone",
            id="pending, with the number of nodes by reason",
        ),
        pytest.param(
            InTurn(outcome=TurnOutcome.REMOVED), "gets scheduled, then preempted again", id="scheduled and preempted"
        ),
        pytest.param(NO_TURN, "is not tried", id="not tried"),
    ],
)
def test_what_becomes_of_a_pod_in_a_sentence(turn: InTurn, words: str) -> None:
    assert text_of(turn_in_words(turn, 20)) == words


@pytest.mark.parametrize(
    ("place", "words"),
    [
        pytest.param(
            TurnInQueue(position=2, in_queue=1200),
            "#2 of 1,200 pods in the queue: the queue is too long to serve it here; see kpreempt pending",
            id="of a long queue",
        ),
        pytest.param(
            TurnInQueue(position=1, in_queue=2, runs=1, turn=InTurn(outcome=SCHEDULED, nodes=["n1"])),
            "#1 of 2 pods in the queue: gets scheduled on n1",
            id="certain",
        ),
        pytest.param(
            TurnInQueue(position=1, in_queue=2, runs=4, turn=InTurn(outcome=SCHEDULED, nodes=["n1"])),
            "#1 of 2 pods in the queue: gets scheduled on n1",
            id="certain in all possible runs",
        ),
        pytest.param(
            TurnInQueue(
                position=1, in_queue=2, runs=20, is_complete=False, turn=InTurn(outcome=SCHEDULED, nodes=["n1"])
            ),
            "#1 of 2 pods in the queue: gets scheduled on n1 (in each of 20 runs)",
            id="the same in some of the possible runs",
        ),
        pytest.param(
            TurnInQueue(
                position=1,
                in_queue=2,
                runs=20,
                is_complete=False,
                turn=InTurn(outcome=OPEN, nodes=["n1"], scheduled_runs=3),
            ),
            "#1 of 2 pods in the queue: open: scheduled in 3 of 20 runs, on n1",
            id="open",
        ),
        pytest.param(TurnInQueue(in_queue=2, turn=NO_TURN), "is not tried", id="without a position"),
    ],
)
def test_the_turn_of_one_pod(place: TurnInQueue, words: str) -> None:
    section = turn_section(place, VERDICT, 1)
    assert (section.label, text_of(section.lead)) == ("IN ITS TURN", words)


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        pytest.param(None, ("-", ""), id="of another scheduler"),
        pytest.param(NO_TURN, ("-", ""), id="not tried"),
        pytest.param(InTurn(outcome=SCHEDULED, nodes=["n1"]), ("scheduled", "n1"), id="scheduled"),
        pytest.param(InTurn(outcome=SCHEDULED, nodes=["n1", "n2", "n3"]), ("scheduled", "n1 +2"), id="on one of three"),
        pytest.param(evicting("a", "b"), ("preempts 2", "n1"), id="by preempting two pods"),
        pytest.param(
            evicting(other_victims=["shop/a"]), ("preempts up to 1", "n1"), id="by preempting one pod in some orders"
        ),
        pytest.param(InTurn(outcome=OPEN, nodes=["n1"]), ("open", "n1"), id="open"),
        pytest.param(InTurn(outcome=PENDING), ("pending", ""), id="pending"),
        pytest.param(InTurn(outcome=TurnOutcome.REMOVED), ("preempted", ""), id="scheduled and preempted"),
    ],
)
def test_what_becomes_of_a_pod_in_a_word(turn: InTurn | None, words: tuple[str, str]) -> None:
    span, node = turn_in_brief(item("it", turn))
    assert (text_of((span,)), node) == words


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        pytest.param([InTurn(outcome=SCHEDULED)] * 2, ["2 get scheduled (shop/p0 and shop/p1)"], id="scheduled"),
        pytest.param(
            [evicting("a"), evicting("b", "c")],
            ["2 get scheduled by preempting 3 pods (shop/p0 and shop/p1)"],
            id="by preempting",
        ),
        pytest.param(
            [evicting("a", violated=["shop/x"])],
            ["1 gets scheduled by preempting 1 pod, violating shop/x (shop/p0)"],
            id="by violating a budget",
        ),
        pytest.param(
            [evicting("a", other_victims=["shop/b"])],
            ["1 gets scheduled by preempting about 1 pod (shop/p0)"],
            id="by preempting one of two pods",
        ),
        pytest.param(
            [evicting(other_victims=["shop/a"])],
            ["1 gets scheduled by preempting up to 1 pod (shop/p0)"],
            id="by preempting a pod in some orders only",
        ),
        pytest.param(
            [InTurn(outcome=OPEN), InTurn(outcome=SCHEDULED), InTurn(outcome=TurnOutcome.REMOVED)],
            [
                "1 gets scheduled (shop/p1)",
                "1 is open (shop/p0)",
                "1 is scheduled, then preempted again (shop/p2)",
            ],
            id="one of each",
        ),
        pytest.param([InTurn(outcome=PENDING), NO_TURN, None], [], id="pods that stay pending are counted elsewhere"),
    ],
)
def test_how_many_get_scheduled(turns: list[InTurn | None], words: list[str]) -> None:
    items = [item(f"p{number}", turn) for number, turn in enumerate(turns)]
    assert [text for text, _ in scheduled_parts(items, is_short=False)] == words


def test_a_short_list_names_at_most_three_pods() -> None:
    for number, names in ((3, " (shop/p0, shop/p1 and shop/p2)"), (4, "")):
        items = [item(f"p{index}", InTurn(outcome=SCHEDULED)) for index in range(number)]
        assert [text for text, _ in scheduled_parts(items, is_short=True)] == [f"{number} get scheduled{names}"]


def opened(*groups: tuple[list[str], int, int], low: int, high: int) -> ServedQueue:
    """A queue in which one pod certainly gets scheduled, and of the others ``low`` to ``high``."""
    found = [OpenPods(pods=pods, at_least=least, at_most=most) for pods, least, most in groups]
    in_turn = {key: InTurn(outcome=OPEN) for each in found for key in each.pods}
    in_turn["shop/certain"] = InTurn(outcome=SCHEDULED)
    return ServedQueue(open=found, in_turn=in_turn, scheduled_min=low + 1, scheduled_max=high + 1)


A, B, C, D = (f"shop/{name}" for name in "abcd")


@pytest.mark.parametrize(
    ("served", "listed", "words"),
    [
        pytest.param(opened(low=0, high=0), "a", "", id="nothing is open"),
        pytest.param(
            opened(([A, B, C], 2, 2), low=2, high=2),
            "abc",
            "Of shop/a, shop/b and shop/c, 2 get scheduled.",
            id="2 of 3",
        ),
        pytest.param(
            opened(([A], 0, 1), ([B], 0, 1), low=1, high=1),
            "ab",
            "Of shop/a and shop/b, 1 gets scheduled.",
            id="one or the other",
        ),
        pytest.param(opened(([A], 0, 1), low=0, high=1), "a", "Of shop/a, 0 or 1 gets scheduled.", id="one or none"),
        pytest.param(
            opened(([A, B], 0, 2), ([C, D], 0, 1), low=1, high=2),
            "abcd",
            "Of shop/a, shop/b, shop/c and 1 more, 1 or 2 get scheduled: 0 to 2 of shop/a and shop/b; 0 or 1 of shop/c"
            " and shop/d.",
            id="of two kinds",
        ),
        pytest.param(
            opened(([A, B], 0, 2), ([C, D], 0, 1), low=1, high=2),
            "ab",
            "Scheduled: 0 to 2 of shop/a and shop/b.",
            id="of two kinds, of which one is listed",
        ),
        pytest.param(opened(([A, B], 0, 2), low=0, high=2), "x", "", id="pods that are not listed"),
    ],
)
def test_how_many_of_the_open_ones_get_scheduled(served: ServedQueue, listed: str, words: str) -> None:
    assert open_in_words([item(name, InTurn(outcome=OPEN)) for name in listed], served) == words


@pytest.mark.parametrize(
    ("served", "words"),
    [
        pytest.param(ServedQueue(), "", id="nothing is open"),
        pytest.param(ServedQueue(runs=4), "All 4 possible results of chance were simulated.", id="all results"),
        pytest.param(
            ServedQueue(runs=20, is_complete=False),
            "Simulated 20 times, because the order or chance matters.",
            id="some results",
        ),
        pytest.param(
            ServedQueue(is_complete=False),
            "Only the likely order was simulated; another order, or chance, could decide otherwise.",
            id="one of several results",
        ),
    ],
)
def test_how_the_queue_was_served(served: ServedQueue, words: str) -> None:
    for is_short, limits in (
        (False, "Not simulated: nodes from autoscalers, "),
        (True, "Not simulated: autoscalers, "),
    ):
        found = about_runs(served, is_short=is_short)
        assert found.startswith(f"{words} {limits}".lstrip())


@pytest.mark.parametrize(
    ("served", "sentences"),
    [
        pytest.param(ServedQueue(), [], id="nothing else happens"),
        pytest.param(
            ServedQueue(ended=SimulationEnd.ABORTED, seconds=1800.0, attempts=1234),
            ["Stopped after 30 minutes."],
            id="the time is over",
        ),
        pytest.param(
            ServedQueue(ended=SimulationEnd.ABORTED, seconds=90.0, attempts=20_001),
            ["Stopped after 20,001 attempts."],
            id="too many attempts",
        ),
        pytest.param(
            ServedQueue(ended=SimulationEnd.LOOP, loop=["ReplicaSet s/a", "Job s/b"]),
            ["The queue never settles: ReplicaSet s/a and Job s/b keep displacing each other."],
            id="a loop",
        ),
        pytest.param(
            ServedQueue(
                pending=[
                    UnscheduledPod(pod="s/a-new-1", priority=0, workload="Deployment s/a"),
                    UnscheduledPod(pod="s/a-new-2", priority=0, workload="Deployment s/a"),
                ]
            ),
            ["2 replacements of evicted pods stay pending (Deployment s/a)."],
            id="replacements stay pending",
        ),
    ],
)
def test_what_else_the_queue_leads_to(served: ServedQueue, sentences: list[str]) -> None:
    assert list(after_in_words(served)) == sentences
