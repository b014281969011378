"""What the unknown order of equal pods leaves open on one node.

A preemption reprieves the pods of a node by importance, and equal pods in the order of the scheduler's own list of the
node's pods (``NodeInfo.Pods``). A pod is appended to that list whenever it is added or updated, and the last one fills
the gap of a removed one (``pkg/scheduler/framework/types.go``, v1.36.3), so no dump shows the order. This module
follows every order to find which pods may be reprieved, and thus which may be evicted.

Pods of a tie that no check and no budget distinguishes are ``EquivalentPods``: only the number of evicted ones counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, groupby, product
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from kpreempt.model.pod import Pod
from kpreempt.verdict import Alternatives, Assumption, AssumptionKind

P = TypeVar("P")
Q = TypeVar("Q")
# The number of pods of each kind that are back on the node, in the order of the kinds.
StayingPods = tuple[int, ...]
# Whether one more pod of a kind fits with these.
Fits = Callable[[StayingPods, int], bool]

# For a pod without a ``resourceVersion``.
_LATEST = 2**62
_MAX_DIGITS = 20
# The number of orders that are tried if following all of them takes too many steps; fewer for very many pods.
_SAMPLES = 100
_MAX_SAMPLED_PODS = 100_000
# The longest tie for which every order is listed.
_MAX_PERMUTED = 200
# Knuth's multiplicative hash.
_SCATTER = 2654435761
# The largest set of outcomes that is simplified by merging kinds.
_MAX_JOINED = 400


class EquivalentPods(NamedTuple, Generic[P]):
    """Pods of one tie that no check distinguishes, and the keys of the budgets that protect each of them."""

    pods: list[P]
    budgets: tuple[str, ...] = ()


class Choice(NamedTuple, Generic[P]):
    """A number of these pods is evicted; any of them may be."""

    number: int
    pods: list[P]


class Possible(NamedTuple, Generic[P]):
    """One possible outcome: pods that are always evicted, choices among equals, and evictions that violate a budget."""

    pods: list[P]
    choices: list[Choice[P]]
    num_violations: int

    @property
    def an_example(self) -> list[P]:
        """Victims that would produce this outcome, in no particular order."""
        return [*self.pods, *(pod for choice in self.choices for pod in choice.pods[: choice.number])]


class Outcomes(NamedTuple, Generic[P]):
    """The outcomes that an order can lead to: all of them if ``is_exact``, otherwise those of the orders tried."""

    possible: list[Possible[P]]
    is_exact: bool = True

    @property
    def is_certain(self) -> bool:
        """Whether every order leads to the same victims."""
        return self.is_exact and len(self.possible) == 1 and not self.possible[0].choices

    def map(self, other: Callable[[P], Q]) -> Outcomes[Q]:
        """Convert each pod in the outcomes with ``other``."""
        possible = [
            Possible(
                list(map(other, each.pods)),
                [Choice(choice.number, list(map(other, choice.pods))) for choice in each.choices],
                each.num_violations,
            )
            for each in self.possible
        ]
        return Outcomes(possible, self.is_exact)


def update_of(pod: Pod) -> int:
    """Return a number that grows with the time of a pod's last update within a cluster: its ``resourceVersion``.

    A pod without one has not been stored by an API server yet, so it is the latest.
    """
    return updates_of([pod.metadata.resource_version])[0]


def updates_of(versions: Iterable[str]) -> list[int]:
    """Return the same for pods with these ``resourceVersion`` values."""
    return [
        min(int(version), _LATEST) if len(version) < _MAX_DIGITS and version.isdecimal() else _LATEST
        for version in versions
    ]


def unfollowed(alternatives: Alternatives | None) -> list[Assumption]:
    """Return the assumption to report if not every order was followed."""
    if alternatives is None or alternatives.exact:
        return []
    message = "only the scheduler's cache knows their order, and not every order was tried; other pods may be evicted"
    return [Assumption("equally important pods", "", message, AssumptionKind.UNCERTAIN)]


class Steps:
    """The remaining steps for the exact searches of one decision; the count does not depend on the machine."""

    def __init__(self, most: int) -> None:
        self.remaining = most

    def take(self, most: int) -> Steps:
        """Reserve up to ``most`` of these steps for one search."""
        return Steps(min(most, self.remaining))


class _StepLimitError(Exception):
    """All steps are used."""


# The pods of a tie that are put back in one pass: in this order or, if it is free, in any.
class _Part(NamedTuple):
    kinds: tuple[int, ...]
    is_free: bool


class _Branch(NamedTuple):
    """How an order splits a tie: pods whose eviction violates a budget, which are put back first, and the others."""

    violating: _Part
    remaining: _Part


def follow(
    ties: Sequence[Sequence[EquivalentPods[P]]], allowed: Mapping[str, int], fits: Fits, steps: Steps
) -> Outcomes[P]:
    """Return every outcome that an order within the ``ties``, most important first, can lead to.

    ``allowed`` has the initial disruptions allowed by each budget. In order of importance, every protected pod uses
    one, and violates its budget if none remains. If ``steps`` run out, some orders are tried, always the same ones.
    """
    search = _Search(ties, allowed, fits, steps)
    try:
        found, is_exact = search.all_orders(), True
    except _StepLimitError:
        found, is_exact = search.some_orders(), False
    return Outcomes(_possible_outcomes(ties, found, search.totals), is_exact)


class _Search:
    def __init__(
        self, ties: Sequence[Sequence[EquivalentPods[P]]], allowed: Mapping[str, int], fits: Fits, steps: Steps
    ) -> None:
        kinds = list(chain.from_iterable(ties))
        self.totals = tuple(len(each.pods) for each in kinds)
        self._budgets = [each.budgets for each in kinds]
        self._steps = steps
        self._fits = cache(fits)
        numbers = iter(range(len(kinds)))
        self._ties = [[next(numbers) for _ in tie] for tie in ties]
        # The remaining disruptions of each budget at a tie's turn do not depend on the orders before it.
        self._left: list[dict[str, int]] = []
        left = dict(allowed)
        for tie in self._ties:
            self._left.append(dict(left))
            for kind in tie:
                for budget in self._budgets[kind]:
                    left[budget] = left.get(budget, 0) - self.totals[kind]

    def all_orders(self) -> set[tuple[StayingPods, int]]:
        """Return, for every order, how many pods of each kind are evicted and how many violations that causes."""
        ways = [list(self._ways(tie, left)) for tie, left in zip(self._ties, self._left, strict=True)]
        found = set()
        for combination in product(*ways):
            num_first = sum(len(way.violating.kinds) for way in combination)
            for first in self._put_back((0,) * len(self.totals), [way.violating for way in combination]):
                last = self._put_back(first, [way.remaining for way in combination])
                found |= {(self._gone(each), num_first - sum(first)) for each in last}
        return found

    def some_orders(self) -> set[tuple[StayingPods, int]]:
        """Return the same for the given order and for some pseudo-random ones."""
        found = set()
        for seed in range(max(2, min(_SAMPLES, _MAX_SAMPLED_PODS // max(1, sum(self.totals))))):
            combination = []
            for tie, left in zip(self._ties, self._left, strict=True):
                order = [kind for kind in tie for _ in range(self.totals[kind])]
                if seed:
                    # A pseudo-random order that is the same for a seed every time.
                    places = sorted(
                        range(len(order)), key=lambda place: (place + 1) * (2 * seed + 1) * _SCATTER % 2**32
                    )
                    order = [order[place] for place in places]
                combination.append(self._divided(order, left))
            kept: StayingPods = (0,) * len(self.totals)
            for way in combination:
                kept = self._in_order(kept, way.violating.kinds)
            violations = sum(len(way.violating.kinds) for way in combination) - sum(kept)
            for way in combination:
                kept = self._in_order(kept, way.remaining.kinds)
            found.add((self._gone(kept), violations))
        return found

    def _gone(self, kept: StayingPods) -> StayingPods:
        return tuple(total - stays for total, stays in zip(self.totals, kept, strict=True))

    def _ways(self, tie: Sequence[int], left: Mapping[str, int]) -> Iterable[_Branch]:
        if len(tie) == 1 and not self._budgets[tie[0]]:
            return [_Branch(_Part((), is_free=False), _Part(tuple(tie) * self.totals[tie[0]], is_free=False))]
        protected: dict[str, list[int]] = {}
        for kind in tie:
            for budget in self._budgets[kind]:
                protected.setdefault(budget, []).append(kind)
        if any(
            len(kinds) > 1 and 0 < left.get(budget, 0) < sum(self.totals[kind] for kind in kinds)
            for budget, kinds in protected.items()
        ):
            return dict.fromkeys(self._divided(order, left) for order in self._orders(tie))
        # The number of violations per kind is the same in any order: the pods after the first ones that all budgets
        # allow. The pods of either pass can be in any order, because those that do not violate can all come before the
        # others.
        spared = {
            kind: min([self.totals[kind], *(max(0, left.get(budget, 0)) for budget in self._budgets[kind])])
            for kind in tie
        }
        return [_Branch(self._free({kind: self.totals[kind] - spared[kind] for kind in tie}), self._free(spared))]

    def _free(self, counts: Mapping[int, int]) -> _Part:
        kinds = tuple(kind for kind, count in counts.items() for _ in range(count))
        # One kind has only one order.
        return _Part(kinds, is_free=len(set(kinds)) > 1)

    def _divided(self, order: Sequence[int], left: Mapping[str, int]) -> _Branch:
        """Split an order into its two passes: budgets are decremented pod by pod, even if one is already violated."""
        remaining = dict(left)
        violating: list[int] = []
        others: list[int] = []
        for kind in order:
            is_violated = False
            for budget in self._budgets[kind]:
                is_violated |= remaining.get(budget, 0) <= 0
                remaining[budget] = remaining.get(budget, 0) - 1
            (violating if is_violated else others).append(kind)
        return _Branch(_Part(tuple(violating), is_free=False), _Part(tuple(others), is_free=False))

    def _orders(self, tie: Sequence[int]) -> Iterator[list[int]]:
        """Yield the orders of a tie; pods of the same kind are interchangeable."""
        counts = {kind: self.totals[kind] for kind in tie}
        length = sum(counts.values())
        if length > _MAX_PERMUTED:
            raise _StepLimitError
        order: list[int] = []

        def extended() -> Iterator[list[int]]:
            self._step()
            if len(order) == length:
                yield list(order)
            for kind in tie:
                if counts[kind]:
                    counts[kind] -= 1
                    order.append(kind)
                    yield from extended()
                    order.pop()
                    counts[kind] += 1

        return extended()

    def _step(self) -> None:
        self._steps.remaining -= 1
        if self._steps.remaining < 0:
            raise _StepLimitError

    def _put_back(self, before: StayingPods, parts: Iterable[_Part]) -> set[StayingPods]:
        found = {before}
        for is_free, some in groupby(parts, key=attrgetter("is_free")):
            if is_free:
                for part in some:
                    found = set().union(*(self._in_any_order(kept, part.kinds) for kept in found))
            else:
                kinds = list(chain.from_iterable(part.kinds for part in some))
                found = {self._in_order(kept, kinds) for kept in found}
        return found

    def _in_order(self, kept: StayingPods, kinds: Iterable[int]) -> StayingPods:
        for kind in kinds:
            if self._fits(kept, kind):
                kept = _with(kept, kind)
        return kept

    def _in_any_order(self, kept: StayingPods, kinds: tuple[int, ...]) -> set[StayingPods]:
        """Return what can stay of ``kinds``; pods that do not fit now are retried with more pods back."""
        seen = {(kept, kinds)}
        waiting = [(kept, kinds)]
        final = set()
        while waiting:
            self._step()
            kept, kinds = waiting.pop()
            staying = [kind for kind in dict.fromkeys(kinds) if self._fits(kept, kind)]
            if not staying:
                final.add(kept)
                continue
            for kind in dict.fromkeys(kinds):
                at = kinds.index(kind)
                after = (_with(kept, kind) if kind in staying else kept, kinds[:at] + kinds[at + 1 :])
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return final


def _with(kept: StayingPods, kind: int) -> StayingPods:
    return (*kept[:kind], kept[kind] + 1, *kept[kind + 1 :])


def _possible_outcomes(
    ties: Sequence[Sequence[EquivalentPods[P]]], found: set[tuple[StayingPods, int]], totals: StayingPods
) -> list[Possible[P]]:
    """Convert the outcomes to pods; kinds of a tie that can replace each other are merged."""
    pools = [list(each.pods) for each in chain.from_iterable(ties)]
    sizes = list(totals)
    tie_of = [number for number, tie in enumerate(ties) for _ in tie]
    outcomes = found
    one = 0
    while one < len(pools) and len(outcomes) <= _MAX_JOINED:
        other = next(
            (
                each
                for each in range(one + 1, len(pools))
                if tie_of[each] == tie_of[one] and _stand_in(outcomes, sizes, one, each)
            ),
            None,
        )
        if other is None:
            one += 1
            continue
        outcomes = {(_joined(gone, one, other), violations) for gone, violations in outcomes}
        pools[one] += pools.pop(other)
        sizes[one] += sizes.pop(other)
        tie_of.pop(other)
    ordered = sorted(outcomes, key=lambda each: (each[1], sum(each[0]), each[0]))
    possible = []
    for gone, violations in ordered:
        certain = [pod for pool, count in zip(pools, gone, strict=True) if count == len(pool) for pod in pool]
        choices = [Choice(count, pool) for pool, count in zip(pools, gone, strict=True) if 0 < count < len(pool)]
        possible.append(Possible(certain, choices, violations))
    return possible


def _stand_in(outcomes: set[tuple[StayingPods, int]], sizes: Sequence[int], one: int, other: int) -> bool:
    """Return whether pods of two kinds can always replace each other."""
    shares: dict[tuple[StayingPods, int], int] = {}
    for gone, violations in outcomes:
        together = _joined(gone, one, other), violations
        shares[together] = shares.get(together, 0) + 1
    return all(
        count == min(gone[one], sizes[one]) - max(0, gone[one] - sizes[other]) + 1
        for (gone, _), count in shares.items()
    )


def _joined(gone: StayingPods, one: int, other: int) -> StayingPods:
    return tuple(count + (gone[other] if kind == one else 0) for kind, count in enumerate(gone) if kind != other)
