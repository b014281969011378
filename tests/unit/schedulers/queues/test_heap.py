"""Equal items come out of the queues' heap as Go's ``container/heap`` gives them."""

from __future__ import annotations

import pytest

from kpreempt.schedulers.queues.heap import Heap


# What Go 1.26 prints for the same calls of heap.Push, heap.Remove and heap.Pop.
@pytest.mark.parametrize(
    ("added", "taken_out", "popped"),
    [
        ("abcd", "", "adcb"),
        ("abcdefg", "", "agfedcb"),
        ("abcdefg", "c", "afedgb"),
    ],
)
def test_equal_items(added: str, taken_out: str, popped: str) -> None:
    heap: Heap[str] = Heap(lambda item: item, lambda left, right: False)
    for item in added:
        heap.add(item)
    for item in taken_out:
        heap.delete(item)
    assert "".join(heap.in_order()) == popped
