"""The heap of the scheduling queues, item by item as Go's ``container/heap`` moves them.

Follows ``pkg/scheduler/internal/queue/scheduling_queue.go`` of v1.13.12 (``Heap``) and ``pkg/scheduler/backend/heap``
of v1.36.3, which are the same, over ``container/heap``. Which of two equal items comes first depends on these moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Heap(Generic[Item]):
    """Items by key, the first of them at the head. ``comes_first`` says whether its first argument goes before."""

    def __init__(self, key_of: Callable[[Item], str], comes_first: Callable[[Item, Item], bool]) -> None:
        self._key_of = key_of
        self._comes_first = comes_first
        self._items: dict[str, Item] = {}
        self._keys: list[str] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[str]:
        """The keys, in the order in which they came."""
        return iter(self._items)

    def get(self, key: str) -> Item | None:
        return self._items.get(key)

    def peek(self) -> Item | None:
        """The head, which stays."""
        return self._items[self._keys[0]] if self._keys else None

    def add(self, item: Item) -> None:
        """Add the item, or put it in the place of the one with its key."""
        key = self._key_of(item)
        if key in self._items:
            self._items[key] = item
            index = self._keys.index(key)
            if not self._sink(index, len(self._keys)):
                self._rise(index)
            return
        self._items[key] = item
        self._keys.append(key)
        self._rise(len(self._keys) - 1)

    def pop(self) -> Item | None:
        """Take the head; ``None`` where there is nothing."""
        if not self._keys:
            return None
        last = len(self._keys) - 1
        self._swap(0, last)
        self._sink(0, last)
        return self._items.pop(self._keys.pop())

    def delete(self, key: str) -> bool:
        """Take the item with that key out; False where there is none."""
        if key not in self._items:
            return False
        index, last = self._keys.index(key), len(self._keys) - 1
        if index != last:
            self._swap(index, last)
            if not self._sink(index, last):
                self._rise(index)
        del self._items[self._keys.pop()]
        return True

    def in_order(self) -> Iterator[Item]:
        """All items in the order in which they would be popped; they stay."""
        rest = Heap(self._key_of, self._comes_first)
        rest._items, rest._keys = dict(self._items), list(self._keys)
        while (item := rest.pop()) is not None:
            yield item

    def _rise(self, index: int) -> None:
        while index > 0 and self._goes_before(index, parent := (index - 1) // 2):
            self._swap(parent, index)
            index = parent

    def _sink(self, start: int, end: int) -> bool:
        """Let the item at ``start`` sink among the first ``end``; whether it moved."""
        index = start
        while (child := 2 * index + 1) < end:
            if child + 1 < end and self._goes_before(child + 1, child):
                child += 1
            if not self._goes_before(child, index):
                break
            self._swap(index, child)
            index = child
        return index > start

    def _goes_before(self, left: int, right: int) -> bool:
        return self._comes_first(self._items[self._keys[left]], self._items[self._keys[right]])

    def _swap(self, left: int, right: int) -> None:
        self._keys[left], self._keys[right] = self._keys[right], self._keys[left]
