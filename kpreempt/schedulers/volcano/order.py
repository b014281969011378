"""The order in which what the genuine scheduler keeps in maps is walked, and which of several equals it picks.

Volcano walks Go maps and picks at random among nodes with the same score, so that two sessions on the same cluster may
differ. Without chance the order is that of the keys and the pick the first; with it, one of the other ways is taken.
The priority queue of the actions moves item by item as Go's ``container/heap`` does (``pkg/scheduler/util/
priority_queue.go`` of Volcano v1.8.0): the order may change while items wait (shares and readiness do), and need not be
strict, so that which item comes first depends on these moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

Item = TypeVar("Item")


class Chance(Protocol):
    """What shuffles and chooses; ``random.Random`` does."""

    def shuffle(self, x: Any, /) -> None:
        """Shuffle a list in place."""

    def choice(self, seq: Any, /) -> Any:
        """One of a list."""


class Order:
    """One way through all that is left to chance."""

    def __init__(self, chance: Chance | None = None) -> None:
        self._chance = chance

    def walk(self, items: Iterable[Item]) -> list[Item]:
        """The items of a map, which are given by key."""
        walked = list(items)
        if self._chance is not None:
            self._chance.shuffle(walked)
        return walked

    def pick(self, items: list[Item]) -> Item:
        """One of several equals; raises ``IndexError`` where there is none."""
        if self._chance is None:
            return items[0]
        picked: Item = self._chance.choice(items)
        return picked


class PriorityQueue(Generic[Item]):
    """Items of which ``goes_before`` says which of two comes out first."""

    def __init__(self, goes_before: Callable[[Item, Item], bool]) -> None:
        self._goes_before = goes_before
        self._items: list[Item] = []

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: Item) -> None:
        items = self._items
        items.append(item)
        index = len(items) - 1
        while index > 0 and self._goes_before(items[index], items[parent := (index - 1) // 2]):
            items[index], items[parent] = items[parent], items[index]
            index = parent

    def pop(self) -> Item:
        """Take the first item; raises ``IndexError`` where there is none."""
        items = self._items
        last = len(items) - 1
        items[0], items[last] = items[last], items[0]
        index = 0
        while (child := 2 * index + 1) < last:
            if child + 1 < last and self._goes_before(items[child + 1], items[child]):
                child += 1
            if not self._goes_before(items[child], items[index]):
                break
            items[index], items[child] = items[child], items[index]
            index = child
        return items.pop()
