"""What the order of equally good volumes can change for claims that choose one after the other.

Each claim takes the best remaining volume, and of equally good ones the first in the scheduler cache's order, which is
the unpredictable order of a Go map. A search finds all results that an order can lead to.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

# Maximum number of branches to follow: far more than pods have, and searched in a fraction of a second.
MAX_ORDERS = 2_000

# For each volume, a mask of the volumes known to come after it.
_Order = tuple[int, ...]
# For each claim, the volume that it takes.
_Picks = tuple[int | None, ...]


class Wishes(NamedTuple):
    """The claims' choices on one node, in the order in which they choose.

    ``tiers`` has for each claim the suitable volumes, by number: tiers of equally good ones, the best first. ``lost``
    are volumes that leave a claim that reaches one without any volume.
    """

    tiers: tuple[tuple[tuple[int, ...], ...], ...]
    lost: frozenset[int] = frozenset()


class Result(NamedTuple):
    """For each node and claim the volume that it takes or ``None``, and an order of all volumes that leads to this."""

    picks: tuple[_Picks, ...]
    order: tuple[int, ...]


class Search(NamedTuple):
    """The distinct results, and the volumes between which an order decides.

    The first result is for the volumes in numeric order.
    """

    results: list[Result]
    volumes: frozenset[int]


class _Branch(NamedTuple):
    """A node's claims so far: the known part of the order, the volumes taken, and the claims that took them."""

    order: _Order
    chosen: int
    picks: _Picks


def results_of_orders(nodes: Sequence[Wishes], values: Sequence[Hashable]) -> Search | None:
    """Return all results on these nodes, if the same order applies to all of them.

    ``values`` has the value of each volume: results that differ only in volumes of equal value are the same. ``None``
    if there are too many branches to follow.
    """
    volumes: set[int] = set()
    # The order known after a node matters on the next one, but not after the last.
    paths: list[tuple[_Order, tuple[_Picks, ...]]] = [(_order_within(_kinds(nodes, values)), ())]
    for number, wishes in enumerate(nodes, 1):
        is_last = number == len(nodes)
        ended: dict[Hashable, tuple[_Order, tuple[_Picks, ...]]] = {}
        for order, before in paths:
            ways = [_Branch(order, 0, ())]
            for tiers in wishes.tiers:
                following: dict[Hashable, _Branch] = {}
                for way in ways:
                    # The equally good volumes among which the claim takes one; empty if none is left for it.
                    left = ([volume for volume in tier if not way.chosen >> volume & 1] for tier in tiers)
                    free = next(filter(None, left), [])
                    firsts = _possible_firsts(free, way.order)
                    if len(firsts) > 1:
                        volumes.update(free)
                    for after in _taking(way, firsts, free, wishes.lost):
                        settled = None if len(nodes) == 1 else after.order
                        following.setdefault((_worth(after.picks, values), after.chosen, settled), after)
                if len(following) > MAX_ORDERS:
                    return None
                ways = list(following.values())
            for way in ways:
                picks = (*before, way.picks)
                key = tuple(_worth(each, values) for each in picks), None if is_last else way.order
                ended.setdefault(key, (way.order, picks))
        if len(ended) > MAX_ORDERS:
            return None
        paths = list(ended.values())
    return Search([Result(picks, _linear(order)) for order, picks in paths], frozenset(volumes))


def _kinds(nodes: Sequence[Wishes], values: Sequence[Hashable]) -> list[Hashable]:
    """Return what distinguishes each volume for all claims on all nodes; volumes of one kind are interchangeable."""
    roles: list[list[Hashable]] = [[value] for value in values]
    for node, wishes in enumerate(nodes):
        for claim, tiers in enumerate(wishes.tiers):
            for rank, tier in enumerate(tiers):
                for volume in tier:
                    roles[volume].append((node, claim, rank, volume in wishes.lost))
    return [tuple(role) for role in roles]


def _order_within(kinds: Sequence[Hashable]) -> _Order:
    """Order volumes of one kind by number, because it does not matter which of them comes first."""
    after = [0] * len(kinds)
    later: dict[Hashable, int] = {}
    for volume in reversed(range(len(kinds))):
        after[volume] = later.get(kinds[volume], 0)
        later[kinds[volume]] = after[volume] | 1 << volume
    return tuple(after)


def _possible_firsts(free: Sequence[int], order: _Order) -> list[int]:
    """Return the volumes that come first among ``free`` in some order that agrees with the known part."""
    later = 0
    for volume in free:
        later |= order[volume]
    return [volume for volume in free if not later >> volume & 1]


def _taking(way: _Branch, firsts: Sequence[int], free: Sequence[int], lost: frozenset[int]) -> list[_Branch]:
    """Return the next branches, one for each volume that may come first."""
    if not firsts:
        return [_Branch(way.order, way.chosen, (*way.picks, None))]
    ways = []
    for volume in firsts:
        order = way.order if len(firsts) == 1 else _before(volume, free, way.order)
        is_lost = volume in lost
        taken = way.chosen if is_lost else way.chosen | 1 << volume
        ways.append(_Branch(order, taken, (*way.picks, None if is_lost else volume)))
    return ways


def _before(first: int, others: Sequence[int], order: _Order) -> _Order:
    """Return the order in which ``first`` also comes before the others, and so before what comes after them."""
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
    """Return all volumes in an order that agrees with the known part, by number if nothing is known."""
    left = list(range(len(order)))
    sorted_volumes = []
    while left:
        first = _possible_firsts(left, order)[0]
        sorted_volumes.append(first)
        left.remove(first)
    return tuple(sorted_volumes)
