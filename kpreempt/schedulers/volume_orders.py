"""What the order of equally good volumes can make of claims that choose one after the other.

Each claim takes the best volume that is left, and of those that are equally good the first in the order of the
scheduler's cache. That is the order of a Go map, which nobody knows beforehand. All results to which an order can lead
are found by search.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

# How many ways to choose are followed side by side: far more than pods have, and searched in a fraction of a second.
MAX_WAYS = 2_000

# For each volume a mask of those that come after it, as far as that is settled.
_Order = tuple[int, ...]
# For each claim the volume that it takes.
_Picks = tuple[int | None, ...]


class Wishes(NamedTuple):
    """What claims may take on one node, in the order in which they choose.

    ``tiers`` has for each claim the volumes that suit it, by number: tiers of equally good ones, the best first.
    ``lost`` are volumes with which a claim that comes to one ends up without any.
    """

    tiers: tuple[tuple[tuple[int, ...], ...], ...]
    lost: frozenset[int] = frozenset()


class Result(NamedTuple):
    """For each node and claim the volume that it takes or ``None``, and all volumes in an order that leads to this."""

    picks: tuple[_Picks, ...]
    order: tuple[int, ...]


class Search(NamedTuple):
    """The different results, and the volumes between which an order decides on the way.

    The first result is that of the volumes in the order of their numbers.
    """

    results: list[Result]
    volumes: frozenset[int]


class _Branch(NamedTuple):
    """How far the claims of a node have come: what is settled of the order, the volumes taken, and by whom."""

    order: _Order
    taken: int
    picks: _Picks


def results_of_orders(nodes: Sequence[Wishes], values: Sequence[Hashable]) -> Search | None:
    """All results on these nodes, where one order holds on all of them.

    ``values`` says what each volume is worth: results that differ in nothing but volumes of one value are the same.
    ``None`` where there are more ways to choose than are followed.
    """
    volumes: set[int] = set()
    # What a node settles of the order matters on the next; after the last it does not.
    paths: list[tuple[_Order, tuple[_Picks, ...]]] = [(_order_within(_kinds(nodes, values)), ())]
    for number, wishes in enumerate(nodes, 1):
        is_last = number == len(nodes)
        ended: dict[Hashable, tuple[_Order, tuple[_Picks, ...]]] = {}
        for order, before in paths:
            ways = [_Branch(order, 0, ())]
            for tiers in wishes.tiers:
                following: dict[Hashable, _Branch] = {}
                for way in ways:
                    # The equally good volumes of which the claim takes one; none where nothing is left for it.
                    left = ([volume for volume in tier if not way.taken >> volume & 1] for tier in tiers)
                    free = next(filter(None, left), [])
                    firsts = _possible_firsts(free, way.order)
                    if len(firsts) > 1:
                        volumes.update(free)
                    for after in _taking(way, firsts, free, wishes.lost):
                        settled = None if len(nodes) == 1 else after.order
                        following.setdefault((_worth(after.picks, values), after.taken, settled), after)
                if len(following) > MAX_WAYS:
                    return None
                ways = list(following.values())
            for way in ways:
                picks = (*before, way.picks)
                key = tuple(_worth(each, values) for each in picks), None if is_last else way.order
                ended.setdefault(key, (way.order, picks))
        if len(ended) > MAX_WAYS:
            return None
        paths = list(ended.values())
    return Search([Result(picks, _linear(order)) for order, picks in paths], frozenset(volumes))


def _kinds(nodes: Sequence[Wishes], values: Sequence[Hashable]) -> list[Hashable]:
    """For each volume what it is to all claims on all nodes; those of one kind can stand for each other."""
    roles: list[list[Hashable]] = [[value] for value in values]
    for node, wishes in enumerate(nodes):
        for claim, tiers in enumerate(wishes.tiers):
            for rank, tier in enumerate(tiers):
                for volume in tier:
                    roles[volume].append((node, claim, rank, volume in wishes.lost))
    return [tuple(role) for role in roles]


def _order_within(kinds: Sequence[Hashable]) -> _Order:
    """Volumes of one kind go in the order of their numbers, since it does not matter which of them comes first."""
    after = [0] * len(kinds)
    later: dict[Hashable, int] = {}
    for volume in reversed(range(len(kinds))):
        after[volume] = later.get(kinds[volume], 0)
        later[kinds[volume]] = after[volume] | 1 << volume
    return tuple(after)


def _possible_firsts(free: Sequence[int], order: _Order) -> list[int]:
    """Those that come first among ``free`` in some order that agrees with what is settled."""
    later = 0
    for volume in free:
        later |= order[volume]
    return [volume for volume in free if not later >> volume & 1]


def _taking(way: _Branch, firsts: Sequence[int], free: Sequence[int], lost: frozenset[int]) -> list[_Branch]:
    """The ways on, one for each volume that may come first."""
    if not firsts:
        return [_Branch(way.order, way.taken, (*way.picks, None))]
    ways = []
    for volume in firsts:
        order = way.order if len(firsts) == 1 else _before(volume, free, way.order)
        is_lost = volume in lost
        taken = way.taken if is_lost else way.taken | 1 << volume
        ways.append(_Branch(order, taken, (*way.picks, None if is_lost else volume)))
    return ways


def _before(first: int, others: Sequence[int], order: _Order) -> _Order:
    """The order in which ``first`` also comes before the others, and so before what comes after them."""
    later = order[first]
    for volume in others:
        if volume != first:
            later |= 1 << volume | order[volume]
    return tuple(
        later if volume == first else after | later if after >> first & 1 else after
        for volume, after in enumerate(order)
    )


def _worth(picks: _Picks, values: Sequence[Hashable]) -> tuple[Hashable, ...]:
    return tuple(None if volume is None else values[volume] for volume in picks)


def _linear(order: _Order) -> tuple[int, ...]:
    """All volumes in an order that agrees with what is settled, by number where nothing is."""
    left = list(range(len(order)))
    sorted_volumes = []
    while left:
        first = _possible_firsts(left, order)[0]
        sorted_volumes.append(first)
        left.remove(first)
    return tuple(sorted_volumes)
