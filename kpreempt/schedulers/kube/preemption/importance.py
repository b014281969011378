"""Which of two pods is more important, and a sort that agrees with Go's ``sort.Slice`` where pods are equal.

``MoreImportantPod`` (``pkg/scheduler/util/utils.go``, v1.36.3) compares priority, then start time. It has no last
tie-break, and a pod without a start time counts as starting now, with ``now`` read twice in a comparison. So the order
of equal pods is an artefact of the sorting algorithm. It decides who is reprieved, so the same algorithm is used here:
pattern-defeating quicksort as in Go's ``sort`` package (insertion sort up to 12 elements).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from kpreempt.schedulers.equal_pods import update_of
from kpreempt.schedulers.kube.framework.node_info import PodInfo

# A start time that is missing; it counts as now.
NO_START = float("inf")

_MAX_INSERTION = 12
_SHORTEST_NINTHER = 50
_SHORTEST_SHIFTING = 50
_MAX_SHIFT_STEPS = 5
_SWAPS_OF_DECREASING = 12
_BALANCE_DIVISOR = 8
_MASK_64 = 2**64 - 1


def is_more_important(one: PodInfo, other: PodInfo, now: datetime) -> bool:
    """Whether ``one`` is put back before ``other``: by priority, then by the earlier start.

    Where both have no start time the answer is always yes, because upstream's clock moves on between its two readings.
    """
    if one.priority != other.priority:
        return one.priority > other.priority
    if one.start is None and other.start is None:
        return True
    return (one.start or now) < (other.start or now)


def sort_by_importance(pods: Sequence[PodInfo], now: datetime, *, has_scheduler_order: bool) -> list[PodInfo]:
    """The pods, most important first.

    Equals are in the order that Go's sort makes of the scheduler's own, where they stand in that one. Otherwise they
    are in the likely order: an update puts a pod at the end of its node's list, so that the last one updated comes
    last; pods without a start time, of few of which Go's sort turns the order round, the other way.
    """
    ordered = list(pods)
    if not has_scheduler_order:
        latest_last = sorted(ordered, key=lambda pod: update_of(pod.pod))
        without_start = [pod for pod in reversed(latest_last) if pod.start is None]
        return sorted([*(pod for pod in latest_last if pod.start is not None), *without_start], key=tie_of)
    keys = [(-pod.priority, pod.start) for pod in ordered]
    if all(start is not None for _, start in keys) and len(set(keys)) == len(keys):
        return sorted(ordered, key=lambda pod: (-pod.priority, pod.start or now))
    return sorted_as_in_go(ordered, lambda one, other: is_more_important(one, other, now))


def have_equal_rank(one: PodInfo, other: PodInfo) -> bool:
    """Whether neither pod is more important, or each is."""
    return one.priority == other.priority and one.start == other.start


def tie_of(pod: PodInfo) -> tuple[int, float]:
    """What equals share: priority and start, as a key that sorts the most important first."""
    return -pod.priority, NO_START if pod.start is None else pod.start.timestamp()


def sorted_as_in_go(pods: Sequence[PodInfo], less: Callable[[PodInfo, PodInfo], bool]) -> list[PodInfo]:
    """The pods as Go's ``sort.Slice`` orders them."""
    ordered = list(pods)
    _QuickSort(ordered, less).sort()
    return ordered


class _QuickSort:
    """Pattern-defeating quicksort of one list in place, with Go's choices of pivots and thresholds."""

    def __init__(self, items: list[PodInfo], less: Callable[[PodInfo, PodInfo], bool]) -> None:
        self._items = items
        self._is_less = less

    def sort(self) -> None:
        self._sort(0, len(self._items), len(self._items).bit_length())

    def _less(self, i: int, j: int) -> bool:
        return self._is_less(self._items[i], self._items[j])

    def _swap(self, i: int, j: int) -> None:
        self._items[i], self._items[j] = self._items[j], self._items[i]

    def _sort(self, start: int, end: int, limit: int) -> None:
        was_balanced = was_partitioned = True
        while (length := end - start) > _MAX_INSERTION:
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
                self._sort(start, middle, limit)
                start = middle + 1
            else:
                self._sort(middle + 1, end, limit)
                end = middle
        self._insertion_sort(start, end)

    def _insertion_sort(self, start: int, end: int) -> None:
        for i in range(start + 1, end):
            j = i
            while j > start and self._less(j, j - 1):
                self._swap(j, j - 1)
                j -= 1

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

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Put what is less than the pivot before it; says whether it was so already."""
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
        """Put what equals the pivot before what is greater; nothing is less than it."""
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
        """Shift a few elements; says whether all is sorted then."""
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
        """The pivot, and how many swaps finding it took: none in sorted data, 12 in reversed data."""
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
