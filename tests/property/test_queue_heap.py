"""The heap of the scheduling queues yields its items in order after any additions, changes and removals."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kpreempt.schedulers.queues.heap import Heap

KEYS = st.sampled_from("abcdefghij")
CALLS = st.lists(st.tuples(st.sampled_from(["add", "delete", "pop"]), KEYS, st.integers(0, 4)), max_size=60)


@given(CALLS)
def test_a_heap_pops_its_items_in_order(calls: list[tuple[str, str, int]]) -> None:
    heap: Heap[tuple[str, int]] = Heap(lambda item: item[0], lambda left, right: left[1] < right[1])
    held: dict[str, int] = {}
    for call, key, value in calls:
        if call == "add":
            heap.add((key, value))
            held[key] = value
        elif call == "delete":
            assert heap.delete(key) == (held.pop(key, None) is not None)
        else:
            popped = heap.pop()
            assert (popped is None) == (not held)
            if popped is not None:
                assert popped[1] == min(held.values()) == held.pop(popped[0])
        assert len(heap) == len(held)
        assert [value for _, value in heap.in_order()] == sorted(held.values())
        assert dict(heap.in_order()) == held


@given(CALLS, st.lists(st.booleans(), min_size=1, max_size=40))
def test_an_order_that_contradicts_itself_loses_nothing(calls: list[tuple[str, str, int]], stated: list[bool]) -> None:
    answers = itertools.cycle(stated)
    heap: Heap[tuple[str, int]] = Heap(lambda item: item[0], lambda left, right: next(answers))
    held: dict[str, int] = {}
    for call, key, value in calls:
        if call == "add":
            heap.add((key, value))
            held[key] = value
        elif call == "delete":
            assert heap.delete(key) == (held.pop(key, None) is not None)
        elif (popped := heap.pop()) is not None:
            assert held.pop(popped[0]) == popped[1]
        assert dict(heap.in_order()) == held
