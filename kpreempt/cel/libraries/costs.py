"""Costs that several libraries share."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.cel.functions import TRAVERSAL
from kpreempt.cel.values import LISTS, MAPS, Value


def traversal(args: Sequence[Value], _result: Value) -> int:
    """What walking through all of the first argument costs: a tenth per character, else one for each value."""
    return _walked(args[0])


def _walked(value: Value) -> int:
    if type(value) is str:
        return int(len(value.encode(errors="surrogatepass")) * TRAVERSAL)
    if type(value) is bytes:
        return int(len(value) * TRAVERSAL)
    if type(value) in LISTS:
        return sum(map(_walked, value))
    if type(value) in MAPS:
        return sum(_walked(key) + _walked(item) for key, item in value.items())
    return 1
