"""The priority queue of the actions, moved item by item as Go's ``container/heap`` moves them.

Follows ``pkg/scheduler/util/priority_queue.go`` of Volcano v1.8.0. The order may change while items wait (shares and
readiness do), and need not be strict, so that which item comes first depends on these moves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class PriorityQueue(Generic[Item]):
    """Items of which ``goes_before`` says which of two comes out first."""

    def __init__(self, goes_before: Callable[[Item, Item], bool]) -> None:
        self._goes_before = goes_before
        self._items: list[Item] = []

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: Item) -> None:
        """Add an item."""
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
