"""Go's ``sort.Sort`` as it was before Go 1.19, with which these releases were built (``sort/sort.go``, go1.10).

It is not stable. Pods of equal rank come out in an order that depends on the algorithm, and that order decides who is
reprieved; so the same algorithm is used here: quicksort with a pivot of three or nine, and up to 12 elements one pass
of Shell sort and insertion sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")

_MAX_SHELL = 12
_SHELL_GAP = 6
_SHORTEST_NINTHER = 41
_LEAST_TAIL = 5


def go_sorted(items: Iterable[Item], less: Callable[[Item, Item], bool]) -> list[Item]:
    """The items in the order in which Go's old sort leaves them; ``less`` need not be consistent."""
    ordered = list(items)
    _QuickSort(ordered, less).sort()
    return ordered


class _QuickSort(Generic[Item]):
    """The sort of one list in place."""

    def __init__(self, items: list[Item], less: Callable[[Item, Item], bool]) -> None:
        self._items = items
        self._is_less = less

    def sort(self) -> None:
        length = len(self._items)
        self._sort(0, length, 2 * length.bit_length())

    def _less(self, i: int, j: int) -> bool:
        return self._is_less(self._items[i], self._items[j])

    def _swap(self, i: int, j: int) -> None:
        self._items[i], self._items[j] = self._items[j], self._items[i]

    def _sort(self, start: int, end: int, depth: int) -> None:
        while end - start > _MAX_SHELL:
            if depth == 0:
                self._heap_sort(start, end)
                return
            depth -= 1
            low, high = self._partition(start, end)
            if low - start < end - high:
                self._sort(start, low, depth)
                start = high
            else:
                self._sort(high, end, depth)
                end = low
        for i in range(start + _SHELL_GAP, end):
            if self._less(i, i - _SHELL_GAP):
                self._swap(i, i - _SHELL_GAP)
        for i in range(start + 1, end):
            j = i
            while j > start and self._less(j, j - 1):
                self._swap(j, j - 1)
                j -= 1

    def _partition(self, start: int, end: int) -> tuple[int, int]:
        """Put what is less than a pivot before it and what is greater behind; the bounds of what equals it."""
        middle = (start + end) // 2
        self._choose_pivot(start, middle, end)
        less, greater = start + 1, end - 1
        while less < greater and self._less(less, start):
            less += 1
        equal, greater = self._split(less, greater, start)
        protects = end - greater < _LEAST_TAIL
        if not protects and end - greater < (end - start) // 4:
            equal, greater, protects = self._test_for_duplicates(start, middle, end, equal, greater)
        if protects:
            equal = self._gather_equals(less, equal, start)
        self._swap(start, equal - 1)
        return equal - 1, greater

    def _choose_pivot(self, start: int, middle: int, end: int) -> None:
        if end - start >= _SHORTEST_NINTHER:
            step = (end - start) // 8
            self._median(start, start + step, start + 2 * step)
            self._median(middle, middle - step, middle + step)
            self._median(end - 1, end - 1 - step, end - 1 - 2 * step)
        self._median(start, middle, end - 1)

    def _median(self, target: int, one: int, other: int) -> None:
        """Put the median of the three into ``target``."""
        if self._less(target, one):
            self._swap(target, one)
        if self._less(other, target):
            self._swap(other, target)
            if self._less(target, one):
                self._swap(target, one)

    def _split(self, low: int, high: int, pivot: int) -> tuple[int, int]:
        while True:
            while low < high and not self._less(pivot, low):
                low += 1
            while low < high and self._less(pivot, high - 1):
                high -= 1
            if low >= high:
                return low, high
            self._swap(low, high - 1)
            low, high = low + 1, high - 1

    def _test_for_duplicates(self, start: int, middle: int, end: int, low: int, high: int) -> tuple[int, int, bool]:
        duplicates = 0
        if not self._less(start, end - 1):
            self._swap(high, end - 1)
            high += 1
            duplicates += 1
        if not self._less(low - 1, start):
            low -= 1
            duplicates += 1
        if not self._less(middle, start):
            self._swap(middle, low - 1)
            low -= 1
            duplicates += 1
        return low, high, duplicates > 1

    def _gather_equals(self, low: int, high: int, pivot: int) -> int:
        while True:
            while low < high and not self._less(high - 1, pivot):
                high -= 1
            while low < high and self._less(low, pivot):
                low += 1
            if low >= high:
                return high
            self._swap(low, high - 1)
            low, high = low + 1, high - 1

    def _heap_sort(self, start: int, end: int) -> None:
        size = end - start
        for root in range((size - 1) // 2, -1, -1):
            self._sift_down(root, size, start)
        for last in range(size - 1, -1, -1):
            self._swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, size: int, first: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self._less(first + child, first + child + 1):
                child += 1
            if not self._less(first + root, first + child):
                return
            self._swap(first + root, first + child)
            root = child
