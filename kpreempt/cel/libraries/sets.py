"""Lists as sets, as in cel-go v0.26.0 ``ext/sets.go``."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.cel.functions import Cost, declare, size_of
from kpreempt.cel.libraries.operators import contains
from kpreempt.cel.values import List, Value


def _contains(items: List, wanted: List) -> bool:
    return all(contains(item, items) for item in wanted)


def _equivalent(one: List, other: List) -> bool:
    return _contains(one, other) and _contains(other, one)


def _intersects(one: List, other: List) -> bool:
    return any(contains(item, other) for item in one)


def _product(factor: float) -> Cost:
    def cost(args: Sequence[Value], _result: Value) -> int:
        return 1 + int(size_of(args[0]) * size_of(args[1]) * factor)

    return cost


declare("sets.contains", "(list(T), list(T)) -> bool", _contains, overload_cost=_product(1))
declare("sets.equivalent", "(list(T), list(T)) -> bool", _equivalent, overload_cost=_product(2))
declare("sets.intersects", "(list(T), list(T)) -> bool", _intersects, overload_cost=_product(1))
