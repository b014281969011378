"""Following the orders of equal pods gives the same result as trying each of them, pod by pod and on columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, permutations, product
from typing import NamedTuple
from unittest.mock import patch

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import EquivalentPods, Possible, StayingPods, Steps, follow
from kpreempt.schedulers.kube import scheduler
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import PodChoice, PossibleOutcome
from tests.conformance.cases import NOW
from tests.equal_pods import PossibleResult, outcome_of
from tests.factories import make_budget, make_node, make_pod

LAWS = settings(max_examples=1000, deadline=None)
BUDGETS = "xyz"


class Sized(NamedTuple):
    """A pod with a size, and the budgets that protect it."""

    name: str
    size: int
    budgets: tuple[str, ...]


class Case(NamedTuple):
    """Ties of kinds of pods, the most important first, the budgets' allowances, and the free capacity."""

    ties: list[list[EquivalentPods[Sized]]]
    allowed: dict[str, int]
    room: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to seven pods in up to three ties, so that there are at most some thousand orders."""
    ties: list[list[EquivalentPods[Sized]]] = []
    left = 7
    for _ in range(draw(st.integers(1, 3))):
        tie: list[EquivalentPods[Sized]] = []
        for _ in range(draw(st.integers(1, 3))):
            size = draw(st.integers(0, 4))
            budgets = tuple(sorted(draw(st.sets(st.sampled_from(BUDGETS), max_size=2))))
            count = min(left, draw(st.integers(1, 3)))
            left -= count
            name = f"{len(ties)}{len(tie)}"
            tie.append(EquivalentPods([Sized(f"{name}{number}", size, budgets) for number in range(count)], budgets))
        ties.append([kind for kind in tie if kind.pods])
    allowed = {budget: draw(st.integers(0, 3)) for budget in BUDGETS}
    return Case([tie for tie in ties if tie], allowed, draw(st.integers(0, 12)))


def went(case: Case, order: Sequence[Sized]) -> tuple[frozenset[str], int]:
    """The victims if the pods are in this order, and how many of them violate a budget."""
    left = dict(case.allowed)
    violating, others = [], []
    for pod in order:
        (violating if any(left[budget] <= 0 for budget in pod.budgets) else others).append(pod)
        for budget in pod.budgets:
            left[budget] -= 1
    room = case.room
    deleted = []
    for pod in (*violating, *others):
        if pod.size <= room:
            room -= pod.size
        else:
            deleted.append(pod)
    return frozenset(pod.name for pod in deleted), sum(pod in deleted for pod in violating)


def spelt_out(possible: Possible[Sized]) -> Iterator[tuple[frozenset[str], int]]:
    """Every way in which an outcome can occur."""
    certain = [pod.name for pod in possible.pods]
    choices = [PodChoice(each.number, [pod.name for pod in each.pods]) for each in possible.choices]
    for _, deleted, violations in outcome_of(PossibleOutcome("", certain, choices, possible.num_violations)):
        yield deleted, violations


@LAWS
@given(cases())
def test_the_outcomes_that_are_followed_are_those_of_all_orders(case: Case) -> None:
    kinds = list(chain.from_iterable(case.ties))

    def fits(kept: StayingPods, kind: int) -> bool:
        taken = sum(count * each.pods[0].size for count, each in zip(kept, kinds, strict=True))
        return taken + kinds[kind].pods[0].size <= case.room

    outcomes = follow(case.ties, case.allowed, fits, Steps(10**6))
    assert outcomes.is_exact
    of_ties = [permutations(chain.from_iterable(kind.pods for kind in tie)) for tie in case.ties]
    reached = {went(case, list(chain.from_iterable(orders))) for orders in product(*of_ties)}
    assert set(chain.from_iterable(map(spelt_out, outcomes.possible))) == reached


@st.composite
def full_nodes(draw: st.DrawFn) -> tuple[ClusterSnapshot, Pod]:
    """Nodes that are short of one or two resources, with ties of different kinds, and a pod that evicts."""
    nodes, pods = [], []
    for number in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=9))
        cpu, memory = (sum(each) for each in zip(*sizes, strict=True))
        spare = draw(st.sampled_from([0, 0, 2, 20]))
        nodes.append(make_node(f"n{number}", cpu=str(cpu + draw(st.integers(0, 2))), memory=f"{memory + spare}Gi"))
        pods += [
            make_pod(
                f"p{number}-{index}",
                node=f"n{number}",
                cpu=str(size[0]),
                memory=f"{size[1]}Gi",
                priority=draw(st.sampled_from([0, 0, 1])),
                labels={"app": draw(st.sampled_from("aabc")), "tier": draw(st.sampled_from("xxyz"))},
                started=datetime(2026, 11, 20, draw(st.integers(0, 1)), tzinfo=UTC),
            )
            for index, size in enumerate(sizes)
        ]
    protected = [("app", "a"), ("app", "b"), ("tier", "x"), ("tier", "y")]
    budgets = [
        make_budget(f"{key}-{value}", {key: value}, draw(st.integers(0, 3)))
        for key, value in draw(st.lists(st.sampled_from(protected), max_size=3, unique=True))
    ]
    incoming = make_pod("incoming", cpu=str(draw(st.integers(1, 8))), memory=f"{draw(st.integers(0, 4))}Gi", priority=9)
    return ClusterSnapshot(nodes=nodes, pods=pods, pod_disruption_budgets=budgets), incoming


def outcomes_of_nodes(cluster: ClusterSnapshot, pod: Pod, *, at_once: bool) -> dict[str, set[PossibleResult]]:
    """The possible outcomes of each candidate, or the likely order's if it is certain."""
    with patch.object(scheduler, "MIN_PODS_OF_TABLE", 0 if at_once else 10**9):
        kube = KubeScheduler()
        verdict = kube.decide(kube.prepare(cluster, now=NOW), pod)
    return {
        each.node: {(each.node, frozenset(each.victims), each.num_pdb_violations)}
        if each.outcomes is msgspec.UNSET
        else {reported for outcome in each.outcomes for reported in outcome_of(outcome)}
        for each in verdict.candidates
    }


@LAWS
@given(full_nodes())
def test_ties_are_followed_on_columns_as_pod_by_pod(drawn: tuple[ClusterSnapshot, Pod]) -> None:
    assert outcomes_of_nodes(*drawn, at_once=True) == outcomes_of_nodes(*drawn, at_once=False)
