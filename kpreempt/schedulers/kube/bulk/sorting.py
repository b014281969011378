"""Positions in the order of several columns, in a fraction of the time of ``numpy.lexsort``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_BITS = 63


def order_by(*columns: Integers) -> Integers:
    """The positions sorted by the columns, the first counting most; equals stay in their order.

    Where the columns' ranges and the positions have room in one number, that is sorted.
    """
    size = len(columns[0])
    if not size:
        return np.zeros(0, dtype=np.int64)
    key, used = np.zeros(size, dtype=np.int64), _bits_of(size - 1)
    for column in columns:
        least = int(column.min())
        bits = _bits_of(int(column.max()) - least)
        used += bits
        if used > _BITS:
            return np.lexsort(columns[::-1])
        key = (key << bits) | (column - least)
    bits = _bits_of(size - 1)
    key = (key << bits) | np.arange(size)
    key.sort()
    order: Integers = key & ((1 << bits) - 1)
    return order


# ``numpy.unique`` loads all of ``numpy.ma``, which takes longer than a decision on a small cluster.


def distinct(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values that there are, the least first."""
    ordered = np.sort(column)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def dense(column: npt.NDArray[Any]) -> Integers:
    """The place of each value among those that there are, the least first."""
    return np.searchsorted(distinct(column), column)


def _bits_of(most: int) -> int:
    return most.bit_length()
