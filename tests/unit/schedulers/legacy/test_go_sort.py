"""Go's sort before 1.19: the order of equal elements, and of those for which ``less`` is inconsistent."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from tests.conformance.cases import read_lines

# From golang.org/x/exp/slices of March 2022, which still has the algorithm.
RECORDED = Path(__file__).resolve().parents[4] / "fixtures" / "importance" / "go-sort-before-1.19.jsonl.gz"

Item = tuple[int, int]


def test_the_order_of_equal_elements_is_that_of_go() -> None:
    for case in read_lines(RECORDED):
        ties_are_less = case["evenTiesAreLess"]

        def less(one: Item, other: Item, ties_are_less: bool = ties_are_less) -> bool:
            return one[0] > other[0] or (ties_are_less and one[0] == other[0] and one[0] % 2 == 0)

        items = [(key, index) for index, key in enumerate(case["keys"])]
        assert [index for _, index in sorted_as_before_go_1_19(items, less)] == case["order"]


@pytest.mark.parametrize("length", [0, 1, 6])
def test_up_to_six_equal_elements_keep_their_order(length: int) -> None:
    assert sorted_as_before_go_1_19(range(length), lambda one, other: False) == list(range(length))
