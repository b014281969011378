"""Output on many pods on one screen: 24 lines with the command line and the prompt, and reported truncation."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from kpreempt.gate_rules import RuleId
from kpreempt.report.answers import Answer, render_answer
from kpreempt.report.check.causes import causes
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.verdict import Assumption, Outcome, Victim
from kpreempt.verdict.at_risk import NodeOrder, PodAtRisk, PodsAtRisk, RankedVictim, SizeName, Threat, Threshold
from kpreempt.verdict.check import Check, FindingStatus
from kpreempt.verdict.compare import (
    Certainty,
    ComparedPod,
    Comparison,
    Decision,
    Difference,
    Pair,
    Step,
    UpgradeComparison,
    UpgradedPod,
    UpgradeEffect,
    UpgradeGroup,
    VersionChange,
)
from kpreempt.verdict.pending import PendingPod, PendingPods
from kpreempt.verdict.queue import Mover, MoverKind, PodMove, QueuedPod, QueueName, QueueStep, SchedulingQueueState
from kpreempt.verdict.waiting import PendingState
from tests.checks import big_check, failed, finding, hostile_check, passed, replaced
from tests.factories import NOW

LINES = 22
ASSUMED = [Assumption("cluster version", "version", "the input has none: assumed to be the newest of all")] * 3

numbers = st.integers(0, 40)
lengths = st.sampled_from([1, 8, 30, 120])
widths = st.sampled_from([40, 60, 80, 120, 200])


def names(number: int, length: int) -> list[str]:
    return [f"ns/{at}{'x' * length}" for at in range(number)]


def at_risk(number: int, length: int) -> PodsAtRisk:
    pods = names(number, length)
    items = [
        PodAtRisk(
            pod=pod,
            node="n" * length,
            threats=[Threat(each, 10, "n") for each in pods],
            thresholds=[Threshold(size=size, requests={"cpu": 1000}, anywhere=11) for size in SizeName],
            eviction_order=RankedVictim(pod, 0, 1),
        )
        for pod in pods
    ]
    orders = [NodeOrder(f"{pod}-node", 0, [RankedVictim(each, 0, 1) for each in pods]) for pod in pods]
    return PodsAtRisk(
        items=items, nodes=orders, matching=2 * number, threatened=number, pending=number, assumptions=ASSUMED
    )


def queue(number: int, length: int) -> SchedulingQueueState:
    pods = [
        QueuedPod(
            pod=pod, queue=place, position=1, time=NOW, rejected_by=["P" * length], moved_by=[Mover(MoverKind.FLUSH)]
        )
        for pod in names(number, length)
        for place in QueueName
        if place is not QueueName.NOT_QUEUED
    ]
    moves = [PodMove(pod, QueueName.ACTIVE, QueueName.BACKOFF) for pod in names(number, length)]
    steps = [QueueStep(number=at, time=NOW + timedelta(seconds=at), event="pop", moves=moves) for at in range(number)]
    return SchedulingQueueState(
        algorithm="kube-1.36",
        at=NOW,
        items=pods,
        nominated={f"node-{pod}": [pod] for pod in names(number, length)},
        steps=steps,
        assumptions=ASSUMED,
    )


def compared(pod: str, length: int, algorithms: list[str]) -> ComparedPod:
    difference = Difference(step=Step.VICTIMS, subject="n" * length, base="a " * length, other="b " * length)
    decisions = [
        Decision(
            algorithm=name,
            outcome=Outcome.PREEMPTS,
            nodes=["n" * length],
            victims={"n" * length: names(3, length)},
            differs_from=algorithms[:1] if at else [],
            differences=[difference] if at else [],
        )
        for at, name in enumerate(algorithms)
    ]
    return ComparedPod(pod=pod, is_same=False, decisions=decisions)


def compare(number: int, length: int) -> Comparison:
    algorithms = ["kube-1.8", "kube-1.13", f"kube-1.36@{'x' * length}"]
    items = [compared(pod, length, algorithms) for pod in names(number, length)]
    failed_ones = [ComparedPod(name=f"line {at}", is_same=False, error="broken " * length) for at in range(number // 2)]
    pairs = [Pair(base, other, number) for base in algorithms for other in algorithms if base < other]
    return Comparison(
        algorithms=algorithms, differing=number, pairs=pairs, items=[*items, *failed_ones], assumptions=ASSUMED
    )


def compare_one(number: int, length: int) -> Comparison:
    algorithms = [f"kube-1.36:{at}{'x' * length}" for at in range(number + 2)]
    return Comparison(algorithms=algorithms, differing=1, items=[compared("ns/pod", length, algorithms)])


def upgrade(number: int, length: int) -> UpgradeComparison:
    one = Decision(algorithm="kube-1.33", outcome=Outcome.LANDS, nodes=["n" * length])
    causes = [f"Change{at}" for at in range(number)]
    items = [
        UpgradedPod(
            pod=pod, effect=UpgradeEffect.EVICTS, certainty=certainty, base=one, target=one, causes=causes[at : at + 1]
        )
        for at, pod in enumerate(names(number, length))
        for certainty in Certainty
    ]
    return UpgradeComparison(
        base="kube-1.33",
        target="kube-1.34",
        compared=number,
        differing=number,
        changes=[VersionChange(name=name, sentence="It changes. " * length, source="a/b.go") for name in causes],
        groups=[UpgradeGroup(causes=[name], pods=[]) for name in causes],
        items=items,
        assumptions=ASSUMED,
    )


def check(number: int, length: int) -> Check:
    findings = [
        finding(rule, f"Deployment {name}", amount=3, pods=names(9, length), detail="d" * length, status=standing)
        for name in names(number, length)
        for rule, standing in zip(RuleId, [FindingStatus.FAILS, FindingStatus.WARNS] * 20, strict=False)
    ]
    return replaced(failed(), findings=findings, assumptions=ASSUMED)


def pending(number: int, length: int) -> PendingPods:
    pods = names(number, length)
    items = [
        PendingPod(
            pod=pod,
            state=PendingState.WAITS_FOR_CHANGE,
            outcome=Outcome.PREEMPTS,
            position=at,
            nodes=["n" * length],
            victims={"n" * length: [Victim(each, 0) for each in pods[:at]]},
            cause="c" * length,
        )
        for at, pod in enumerate(pods)
    ]
    return PendingPods(items=items, in_queue=2 * number, assumptions=ASSUMED)


ANSWERS = (at_risk, queue, compare, compare_one, upgrade, check, pending)


def screen(answer: Answer, width: int) -> list[str]:
    options = RenderOptions(width=width, now=NOW, extent=Extent.SCREEN)
    return render_answer(answer, "text", options).splitlines()


@pytest.mark.parametrize("answer", ANSWERS)
@settings(max_examples=25, deadline=None)
@given(number=numbers, length=lengths, width=widths)
def test_no_screen_is_longer_or_wider_than_a_terminal(
    answer: Callable[[int, int], Answer], number: int, length: int, width: int
) -> None:
    lines = screen(answer(number, length), width)
    assert len(lines) <= LINES
    assert max(map(cell_len, lines)) <= width
    assert lines[-1].startswith("More: -v") or not number


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(passed(), id="passed"),
        pytest.param(failed(), id="failed"),
        pytest.param(hostile_check(), id="hostile names"),
        pytest.param(big_check(), id="5,000 pods"),
    ],
)
@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_check_is_longer_than_a_terminal(answer: Check, width: int) -> None:
    lines = screen(answer, width)
    assert len(lines) <= LINES
    assert max(map(cell_len, lines)) <= width


@settings(max_examples=25, deadline=None)
@given(number=st.integers(1, 40), width=widths)
def test_every_finding_is_shown_or_counted(number: int, width: int) -> None:
    answer = check(number, 8)
    text = "\n".join(screen(answer, width))
    # The one shown stands for all with the same cause.
    cards = len(re.findall(r"(?m)^  [✗!] ", text))
    shown = sum(len(each.findings) for each in causes(answer.findings)[:cards])
    counted = re.findall(r"… and ([\d,]+) more findings?", text)
    assert shown + sum(int(each.replace(",", "")) for each in counted) == len(answer.findings)


@settings(max_examples=25, deadline=None)
@given(number=st.integers(2, 40), width=widths)
def test_every_pod_on_which_algorithms_differ_is_shown_or_counted(number: int, width: int) -> None:
    """Including those that could not be decided."""
    answer = compare(number, 1)
    text = "\n".join(screen(answer, width))
    shown = {int(at) for at in re.findall(r"ns/(\d+)x", text)}
    failed_ones = len(re.findall(r"line \d+", text))
    counted = sum(int(each.replace(",", "")) for each in re.findall(r"… and ([\d,]+) more pods?", text))
    assert len(shown) + failed_ones + counted == len(answer.items)
