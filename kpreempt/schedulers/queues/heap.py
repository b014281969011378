"""The heap of the scheduling queues, which moves items exactly like Go's ``container/heap``.

Follows ``pkg/scheduler/internal/queue/scheduling_queue.go`` of v1.13.12 (``Heap``) and ``pkg/scheduler/backend/heap``
of v1.36.3, which are the same, over ``container/heap``. The order of equal items depends on these moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Heap(Generic[Item]):
    """Items by key, with the first one at the head. ``is_before`` returns whether its first argument is less."""

    def __init__(self, key_of: Callable[[Item], str], is_before: Callable[[Item, Item], bool]) -> None:
        self._key_of = key_of
        self._is_before = is_before
        self._items: dict[str, Item] = {}
        self._keys: list[str] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys in insertion order."""
        return iter(self._items)

    def get(self, key: str) -> Item | None:
        return self._items.get(key)

    def peek(self) -> Item | None:
        """Return the head without removing it."""
        return self._items[self._keys[0]] if self._keys else None

    def add(self, item: Item) -> None:
        """Add the item, or replace the one with its key."""
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
        """Remove and return the head; ``None`` if the heap is empty."""
        if not self._keys:
            return None
        last = len(self._keys) - 1
        self._swap(0, last)
        self._sink(0, last)
        return self._items.pop(self._keys.pop())

    def delete(self, key: str) -> bool:
        """Remove the item with that key; return False if there is none."""
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
        """Yield all items in the order in which they would be popped, without removing them."""
        rest = Heap(self._key_of, self._is_before)
        rest._items, rest._keys = dict(self._items), list(self._keys)
        while (item := rest.pop()) is not None:
            yield item

    def _rise(self, index: int) -> None:
        while index > 0 and self._is_index_before(index, parent := (index - 1) // 2):
            self._swap(parent, index)
            index = parent

    def _sink(self, start: int, end: int) -> bool:
        """Sift the item at ``start`` down within the first ``end``; return whether it moved."""
        index = start
        while (child := 2 * index + 1) < end:
            if child + 1 < end and self._is_index_before(child + 1, child):
                child += 1
            if not self._is_index_before(child, index):
                break
            self._swap(index, child)
            index = child
        return index > start

    def _is_index_before(self, left: int, right: int) -> bool:
        return self._is_before(self._items[self._keys[left]], self._items[self._keys[right]])

    def _swap(self, left: int, right: int) -> None:
        self._keys[left], self._keys[right] = self._keys[right], self._keys[left]
