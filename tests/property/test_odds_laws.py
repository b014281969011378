"""The odds of a sampled search equal those from enumerating every order, or every start."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.schedulers.kube.preemption.odds import (
    SampledCandidate,
    num_candidates,
    outcomes_from_a_start,
    outcomes_in_any_order,
)
from kpreempt.verdict import OddsOutcome

# What a search finds on each node: nothing, or the violations and the rank by the other rules.
Found = tuple[int, int] | None
FOUND = st.none() | st.tuples(st.integers(0, 2), st.integers(0, 3))


def winners_in_order(found: Sequence[Found], order: Iterable[int], wanted: int) -> frozenset[int]:
    """Search like upstream's code with one worker: two lists of ``wanted`` entries each."""
    clean: list[int] = []
    violating: list[int] = []
    for index in order:
        outcome = found[index]
        if outcome is None:
            continue
        kept = violating if outcome[0] else clean
        if len(kept) < wanted:
            kept.append(index)
        if clean and len(clean) + len(violating) >= wanted:
            break
    ranks = {index: (-outcome[0], outcome[1]) for index in clean + violating if (outcome := found[index]) is not None}
    return frozenset(index for index, rank in ranks.items() if rank == max(ranks.values()))


def named(found: Sequence[Found]) -> tuple[list[str], dict[str, SampledCandidate]]:
    names = [f"n{index}" for index in range(len(found))]
    candidates = {
        name: SampledCandidate(outcome[0] > 0, (-outcome[0], outcome[1]))
        for name, outcome in zip(names, found, strict=True)
        if outcome is not None
    }
    return names, candidates


def check(outcomes: list[OddsOutcome], found: Sequence[Found], winners: list[frozenset[int]]) -> None:
    """Each order's or start's winners belong to one outcome, whose probability is its frequency."""
    counts = Counter(dict.fromkeys(range(len(outcomes)), 0))
    for each in winners:
        names = {f"n{index}" for index in each}
        (outcome,) = (index for index, one in enumerate(outcomes) if names <= set(one.nodes))
        counts[outcome] += 1
    for index, outcome in enumerate(outcomes):
        assert outcome.probability == pytest.approx(float(Fraction(counts[index], len(winners))), abs=1e-12)
        assert len({found[int(name[1:])] for name in outcome.nodes}) == 1
    possible = {f"n{index}" for each in winners for index in each}
    assert sorted(name for each in outcomes for name in each.nodes) == sorted(possible)
    probabilities = [each.probability for each in outcomes]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1, abs=1e-12)


@given(found=st.lists(FOUND, min_size=1, max_size=6).filter(any), wanted=st.integers(1, 7))
def test_in_any_order_the_count_is_that_of_all_orders(found: list[Found], wanted: int) -> None:
    _, candidates = named(found)
    orders = itertools.permutations(range(len(found)))
    check(
        outcomes_in_any_order(candidates, wanted), found, [winners_in_order(found, order, wanted) for order in orders]
    )


@given(found=st.lists(FOUND, min_size=1, max_size=40).filter(any), wanted=st.integers(1, 40))
def test_from_a_start_the_count_is_that_of_all_starts(found: list[Found], wanted: int) -> None:
    names, candidates = named(found)
    size = len(found)
    orders = [[(start + step) % size for step in range(size)] for start in range(size)]
    check(
        outcomes_from_a_start(names, candidates, wanted),
        found,
        [winners_in_order(found, order, wanted) for order in orders],
    )


@given(
    clean=st.lists(st.integers(0, 5), min_size=1, max_size=300),
    violating=st.integers(0, 300),
    wanted=st.integers(1, 200),
)
def test_many_candidates_are_counted_as_exact_fractions_would_be(clean: list[int], violating: int, wanted: int) -> None:
    candidates = {f"c{index}": SampledCandidate(False, (rank,)) for index, rank in enumerate(clean)}
    candidates |= {f"v{index}": SampledCandidate(True, ()) for index in range(violating)}
    missed, left, expected = Fraction(1), len(candidates), {}
    for rank in sorted(set(clean), reverse=True):
        share = Fraction(0)
        for _ in range(clean.count(rank)):
            share += missed * min(Fraction(wanted, left), 1)
            missed *= 1 - min(Fraction(wanted, left), 1)
            left -= 1
        expected[rank] = share
    for outcome in outcomes_in_any_order(candidates, wanted):
        rank = int(candidates[outcome.nodes[0]].rank[0])
        exact = expected[rank] + missed * Fraction(clean.count(rank), len(clean))
        assert outcome.probability == pytest.approx(float(exact), rel=1e-9)


@given(nodes=st.integers(1, 20_000), percentage=st.integers(0, 100), absolute=st.integers(0, 1000))
def test_a_search_never_wants_more_candidates_than_there_are_nodes(nodes: int, percentage: int, absolute: int) -> None:
    wanted = num_candidates(nodes, percentage, absolute)
    assert wanted <= nodes
    assert wanted == nodes or wanted >= absolute
    assert wanted == nodes or wanted * 100 > nodes * percentage - 100
