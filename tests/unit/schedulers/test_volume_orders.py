"""All that claims can come to when equally good volumes go in any order, on one node and on several at once."""

from __future__ import annotations

import itertools
import random

import pytest

from kpreempt.schedulers.volume_orders import MAX_ORDERS, Search, Wishes, results_of_orders

# Two claims; the second takes nothing but volume 1, which the first may take from it.
RIVALS = Wishes((((0, 1),), ((1,),)))
# The same, with volumes 0 and 1 the other way round.
MIRRORED = Wishes((((0, 1),), ((0,),)))


def found(search: Search | None) -> Search:
    assert search is not None
    return search


def matched(search: Search | None) -> list[list[list[bool]]]:
    """Which claims have a volume, result by result and node by node."""
    return [[[pick is not None for pick in picks] for picks in result.picks] for result in found(search).results]


def test_a_claim_may_take_what_another_needs() -> None:
    search = found(results_of_orders([RIVALS], [0, 0]))
    assert matched(search) == [[[True, True]], [[True, False]]]
    assert search.volumes == {0, 1}
    assert [result.order for result in search.results] == [(0, 1), (1, 0)]


def test_one_order_holds_on_all_nodes() -> None:
    # What suits one node spoils the other.
    assert matched(results_of_orders([RIVALS, MIRRORED], [0, 0])) == [
        [[True, True], [True, False]],
        [[True, False], [True, True]],
    ]


@pytest.mark.parametrize(
    ("wishes", "values"),
    [
        pytest.param(Wishes((((0, 1, 2),), ((0, 1, 2),))), [0, 0, 0], id="volumes that are the same to all claims"),
        pytest.param(Wishes((((0,), (1,)), ((1,),))), [0, 0], id="the best is the only one"),
        pytest.param(Wishes((((0, 1),),)), [0, 0], id="a single claim"),
        pytest.param(Wishes(((), ())), [], id="no volumes"),
        pytest.param(Wishes(()), [], id="no claims"),
    ],
)
def test_there_is_one_result_where_order_does_not_matter(wishes: Wishes, values: list[int]) -> None:
    assert len(found(results_of_orders([wishes], values)).results) == 1


def test_results_differ_where_volumes_are_worth_more_than_others() -> None:
    # Kept for one claim beforehand, of different sizes.
    assert len(found(results_of_orders([Wishes((((0, 1),),))], [5, 9])).results) == 2


def test_a_volume_out_of_reach_leaves_the_claim_without_any() -> None:
    search = results_of_orders([Wishes((((0, 1), (2,)),), frozenset({1}))], [0, 0, 0])
    assert matched(search) == [[[True]], [[False]]]


def test_the_outcome_is_unknown_if_there_are_too_many_orders() -> None:
    # Each volume is another to the claims that follow.
    claims = 14
    tiers = [tuple(range(claim, 2 * claims)) for claim in range(claims)]
    assert results_of_orders([Wishes(tuple((tier,) for tier in tiers))], list(range(2 * claims))) is None
    assert MAX_ORDERS == 2_000


def by_brute_force(nodes: list[Wishes], number: int) -> set[tuple[tuple[bool, ...], ...]]:
    results = set()
    for order in itertools.permutations(range(number)):
        of_nodes = []
        for wishes in nodes:
            taken: set[int] = set()
            picks = []
            for tiers in wishes.tiers:
                tier = next((tier for tier in tiers if set(tier) - taken), ())
                pick = next((volume for volume in order if volume in tier and volume not in taken), None)
                if pick is not None and pick in wishes.lost:
                    pick = None
                if pick is not None:
                    taken.add(pick)
                picks.append(pick is not None)
            of_nodes.append(tuple(picks))
        results.add(tuple(of_nodes))
    return results


def drawn(draw: random.Random, number: int) -> Wishes:
    lost = frozenset(volume for volume in range(number) if draw.random() < 0.1)
    claims = []
    for _ in range(draw.randint(1, 4)):
        own = [volume for volume in range(number) if draw.random() < 0.6]
        draw.shuffle(own)
        split = draw.randint(0, len(own))
        claims.append(tuple(tuple(sorted(tier)) for tier in (own[:split], own[split:]) if tier))
    return Wishes(tuple(claims), lost)


@pytest.mark.parametrize("seed", range(200))
def test_the_results_are_those_of_all_orders(seed: int) -> None:
    draw = random.Random(seed)
    number = draw.randint(1, 5)
    nodes = [drawn(draw, number) for _ in range(draw.randint(1, 3))]
    search = found(results_of_orders(nodes, [0] * number))
    reported = {tuple(tuple(pick is not None for pick in picks) for picks in result.picks) for result in search.results}
    assert reported == by_brute_force(nodes, number)
    assert len(search.results) == len(reported)
