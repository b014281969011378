"""Which topology pairs hold pods that matter to a pod (``topologyPairsMaps``, ``predicates/metadata.go``, v1.13.12)."""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.schedulers.legacy.base.node_info import PodInfo

# The key and the value of a node's label.
Pair = tuple[str, str]
_NO_PAIRS: frozenset[Pair] = frozenset()


class TopologyPairs:
    """How many pods each topology pair has, and the pairs of each pod.

    Copies share what was there at first, and keep what has changed since beside it.
    """

    def __init__(self) -> None:
        self._counts: dict[Pair, int] = {}
        self._first: dict[PodInfo, frozenset[Pair]] = {}
        self._changed: dict[PodInfo, frozenset[Pair]] = {}

    def clone(self) -> TopologyPairs:
        copy = TopologyPairs()
        copy._counts = dict(self._counts)
        copy._first = self._first
        copy._changed = dict(self._changed)
        return copy

    def settle(self) -> None:
        """Take all that is there for the beginning, which copies share."""
        self._first, self._changed = {**self._first, **self._changed}, {}

    def add(self, info: PodInfo, pairs: Iterable[Pair]) -> None:
        """The pod counts for these pairs, too."""
        before = self._pairs_of(info)
        new = frozenset(pairs) - before
        if new:
            self._changed[info] = before | new
            for pair in new:
                self._counts[pair] = self._counts.get(pair, 0) + 1

    def remove(self, info: PodInfo) -> None:
        """The pod counts no more."""
        pairs = self._pairs_of(info)
        if pairs:
            self._changed[info] = _NO_PAIRS
            for pair in pairs:
                self._counts[pair] -= 1
                if not self._counts[pair]:
                    del self._counts[pair]

    def holders(self, pair: Pair) -> list[str]:
        """The pods of a pair."""
        return [info.key for info in {**self._first, **self._changed} if pair in self._pairs_of(info)]

    def _pairs_of(self, info: PodInfo) -> frozenset[Pair]:
        changed = self._changed.get(info)
        return self._first.get(info, _NO_PAIRS) if changed is None else changed

    def __contains__(self, pair: Pair | None) -> bool:
        return pair in self._counts

    def __bool__(self) -> bool:
        return bool(self._counts)
