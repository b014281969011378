"""Go's ``sort.Slice`` and ``sort.Sort`` (``sort/sort.go``): as in Go 1.19 and later, and as in go1.10.

Neither is stable. The order of equal pods depends on the algorithm and decides which pods are reprieved, so the same
algorithms are used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")

_MAX_SMALL = 12
_SHELL_GAP = 6
_SHORTEST_NINTHER_BEFORE_1_19 = 41
_MIN_TAIL = 5
_SHORTEST_NINTHER = 50
_SHORTEST_SHIFTING = 50
_MAX_SHIFT_STEPS = 5
_SWAPS_OF_DECREASING = 12
_BALANCE_DIVISOR = 8
_MASK_64 = 2**64 - 1


def sorted_as_in_go(items: Iterable[Item], less: Callable[[Item, Item], bool]) -> list[Item]:
    """Sort the items as Go 1.19 and later do; ``less`` need not be consistent."""
    ordered = list(items)
    _PatternDefeatingSort(ordered, less).sort(0, len(ordered), len(ordered).bit_length())
    return ordered


def sorted_as_before_go_1_19(items: Iterable[Item], less: Callable[[Item, Item], bool]) -> list[Item]:
    """Sort the items as Go before 1.19 did, with which old schedulers were built."""
    ordered = list(items)
    _QuickSort(ordered, less).sort(0, len(ordered), 2 * len(ordered).bit_length())
    return ordered


class _Sort(Generic[Item]):
    """Sorts one list in place."""

    def __init__(self, items: list[Item], less: Callable[[Item, Item], bool]) -> None:
        self._items = items
        self._is_less = less

    def _less(self, i: int, j: int) -> bool:
        return self._is_less(self._items[i], self._items[j])

    def _swap(self, i: int, j: int) -> None:
        self._items[i], self._items[j] = self._items[j], self._items[i]

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

    def _insertion_sort(self, start: int, end: int) -> None:
        for i in range(start + 1, end):
            j = i
            while j > start and self._less(j, j - 1):
                self._swap(j, j - 1)
                j -= 1


class _PatternDefeatingSort(_Sort[Item]):
    """Pattern-defeating quicksort, with Go's pivot selection and thresholds; insertion sort for up to 12 elements."""

    def sort(self, start: int, end: int, limit: int) -> None:
        was_balanced = was_partitioned = True
        while (length := end - start) > _MAX_SMALL:
            if limit == 0:
                self._heap_sort(start, end)
                return
            if not was_balanced:
                self._break_patterns(start, end)
                limit -= 1
            pivot, swaps = self._choose_pivot(start, end)
            looks_sorted = swaps == 0
            if swaps == _SWAPS_OF_DECREASING:
                self._items[start:end] = self._items[start:end][::-1]
                pivot = end - 1 - (pivot - start)
                looks_sorted = True
            if was_balanced and was_partitioned and looks_sorted and self._nearly_sorted(start, end):
                return
            if start > 0 and not self._less(start - 1, pivot):
                start = self._partition_equal(start, end, pivot)
                continue
            middle, was_partitioned = self._partition(start, end, pivot)
            left, right = middle - start, end - middle
            was_balanced = min(left, right) >= length // _BALANCE_DIVISOR
            if left < right:
                self.sort(start, middle, limit)
                start = middle + 1
            else:
                self.sort(middle + 1, end, limit)
                end = middle
        self._insertion_sort(start, end)

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Move elements less than the pivot before it; also return whether they already were."""
        self._swap(start, pivot)
        i, j = start + 1, end - 1
        i, j = self._skip_in_place(i, j, start)
        if i > j:
            self._swap(j, start)
            return j, True
        while i <= j:
            self._swap(i, j)
            i, j = self._skip_in_place(i + 1, j - 1, start)
        self._swap(j, start)
        return j, False

    def _skip_in_place(self, i: int, j: int, pivot: int) -> tuple[int, int]:
        while i <= j and self._less(i, pivot):
            i += 1
        while i <= j and not self._less(j, pivot):
            j -= 1
        return i, j

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Move elements equal to the pivot before greater ones; no element is less."""
        self._swap(start, pivot)
        i, j = start + 1, end - 1
        while True:
            while i <= j and not self._less(start, i):
                i += 1
            while i <= j and self._less(start, j):
                j -= 1
            if i > j:
                return i
            self._swap(i, j)
            i, j = i + 1, j - 1

    def _nearly_sorted(self, start: int, end: int) -> bool:
        """DrainBatch a few elements; return whether all are sorted afterward."""
        i = start + 1
        for _ in range(_MAX_SHIFT_STEPS):
            while i < end and not self._less(i, i - 1):
                i += 1
            if i == end:
                return True
            if end - start < _SHORTEST_SHIFTING:
                return False
            self._swap(i, i - 1)
            self._shift(i, start, end)
        return False

    def _shift(self, i: int, start: int, end: int) -> None:
        if i - start >= 2:
            # Upstream goes down to index 1 of the whole list, not of the part.
            j = i - 1
            while j >= 1 and self._less(j, j - 1):
                self._swap(j, j - 1)
                j -= 1
        if end - i >= 2:
            j = i + 1
            while j < end and self._less(j, j - 1):
                self._swap(j, j - 1)
                j += 1

    def _break_patterns(self, start: int, end: int) -> None:
        length = end - start
        seed = length
        modulus = 1 << length.bit_length()
        middle = start + (length // 4) * 2
        for index in range(middle - 1, middle + 2):
            seed = (seed ^ (seed << 13)) & _MASK_64
            seed ^= seed >> 7
            seed = (seed ^ (seed << 17)) & _MASK_64
            other = seed & (modulus - 1)
            self._swap(index, start + (other - length if other >= length else other))

    def _choose_pivot(self, start: int, end: int) -> tuple[int, int]:
        """Return the pivot and the number of swaps used to find it: none in sorted data, 12 in reversed data."""
        length = end - start
        quarter = length // 4
        candidates = [start + quarter, start + quarter * 2, start + quarter * 3]
        swaps = 0
        if length >= _SHORTEST_NINTHER:
            for index, candidate in enumerate(candidates):
                candidates[index], extra = self._median(candidate - 1, candidate, candidate + 1)
                swaps += extra
        pivot, extra = self._median(*candidates)
        return pivot, swaps + extra

    def _median(self, a: int, b: int, c: int) -> tuple[int, int]:
        swaps = 0
        if self._less(b, a):
            a, b, swaps = b, a, swaps + 1
        if self._less(c, b):
            b, c, swaps = c, b, swaps + 1
        if self._less(b, a):
            a, b, swaps = b, a, swaps + 1
        return b, swaps


class _QuickSort(_Sort[Item]):
    """Quicksort with a pivot of three or nine; Shell sort pass and insertion sort for up to 12 elements."""

    def sort(self, start: int, end: int, depth: int) -> None:
        while end - start > _MAX_SMALL:
            if depth == 0:
                self._heap_sort(start, end)
                return
            depth -= 1
            low, high = self._partition(start, end)
            if low - start < end - high:
                self.sort(start, low, depth)
                start = high
            else:
                self.sort(high, end, depth)
                end = low
        for i in range(start + _SHELL_GAP, end):
            if self._less(i, i - _SHELL_GAP):
                self._swap(i, i - _SHELL_GAP)
        self._insertion_sort(start, end)

    def _partition(self, start: int, end: int) -> tuple[int, int]:
        """Partition around a pivot; return the bounds of the elements that equal it."""
        middle = (start + end) // 2
        self._choose_pivot(start, middle, end)
        less, greater = start + 1, end - 1
        while less < greater and self._less(less, start):
            less += 1
        equal, greater = self._split(less, greater, start)
        protects = end - greater < _MIN_TAIL
        if not protects and end - greater < (end - start) // 4:
            equal, greater, protects = self._test_for_duplicates(start, middle, end, equal, greater)
        if protects:
            equal = self._gather_equals(less, equal, start)
        self._swap(start, equal - 1)
        return equal - 1, greater

    def _choose_pivot(self, start: int, middle: int, end: int) -> None:
        if end - start >= _SHORTEST_NINTHER_BEFORE_1_19:
            step = (end - start) // 8
            self._median(start, start + step, start + 2 * step)
            self._median(middle, middle - step, middle + step)
            self._median(end - 1, end - 1 - step, end - 1 - 2 * step)
        self._median(start, middle, end - 1)

    def _median(self, target: int, one: int, other: int) -> None:
        """Move the median of the three into ``target``."""
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
