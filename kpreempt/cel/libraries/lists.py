"""Lists: Kubernetes' ``library/lists.go``, cel-go's (v0.26.0) ``ext/lists.go``, version 3, and ``ext/sets.go``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key, partial

from kpreempt.cel.functions import TRAVERSAL, Overload, declare, operator, size_of, traversal
from kpreempt.cel.libraries.operators import add, contains, unsupported
from kpreempt.cel.libraries.texts import shown
from kpreempt.cel.values import (
    ABSENT,
    LISTS,
    NO_SUCH_OVERLOAD,
    NONE,
    Duration,
    Failure,
    FatalError,
    List,
    Map,
    OptionalValue,
    Timestamp,
    TooLargeError,
    Uint,
    Value,
    compare,
    equal,
    go_name,
    type_name,
)

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
_LIST_COST = 11
_MAX_RANGE = 1_000_000
_ADDERS = (int, Uint, float, str, bytes, Duration, Timestamp)


def _is_sorted(items: List) -> Value:
    for index, item in enumerate(items):
        if compare(item, item) is None:
            return NO_SUCH_OVERLOAD
        if index and compare(items[index - 1], item) == 1:
            return False
    return True


def _extreme(name: str, preferred: int, items: List) -> Value:
    if not items:
        return Failure(f"{name} called on empty list")
    found = items[0]
    for item in items:
        if compare(item, item) is None:
            return NO_SUCH_OVERLOAD
        if compare(found, item) == preferred:
            found = item
    return found


def _sum(total: Value, items: List) -> Value:
    for item in items:
        total = add(total, item)
        if type(total) is Failure:
            return total
    return total


def _slice(items: List, start: int, end: int) -> Value:
    if start < 0 or end < 0:
        return Failure(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return Failure(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        return Failure(f"cannot slice({start}, {end}), list is length {len(items)}")
    return List(items[start:end])


def _flatten(items: List, depth: int = 1) -> Value:
    if depth < 0:
        return Failure("level must be non-negative")
    flat = items
    while depth and any(type(item) in LISTS for item in flat):
        flat = List(part for item in flat for part in (item if type(item) in LISTS else (item,)))
        depth -= 1
    return flat


def _range(count: int) -> Value:
    if count > _MAX_RANGE:
        raise TooLargeError("operation cancelled: actual cost limit exceeded")
    return List(range(count))


def _distinct(items: List) -> Value:
    found: list[Value] = []
    seen = set()
    for item in items:
        # Strings and integers hash to themselves; others need a lookup.
        if type(item) in (str, int, bool):
            if (type(item), item) not in seen and not (
                type(item) is int and any(equal(item, other) is True for other in found if type(other) is not int)
            ):
                found.append(item)
            seen.add((type(item), item))
        elif not any(equal(item, other) is True for other in found):
            found.append(item)
    return List(found)


def _sort_by(items: Value, keys: Value, name: str = "@sortByAssociatedKeys") -> Value:
    if type(items) not in LISTS:
        return unsupported(name, items)
    if len(items) != len(keys):
        return Failure(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    if compare(keys[0], keys[0]) is None:
        return Failure("list elements must be comparable")
    if len(keys) > 1 and any(type_name(key) != type_name(keys[0]) for key in keys):
        return Failure("list elements must have the same type")
    # If one of them is NaN, there is no order.
    order = cmp_to_key(lambda one, other: found if isinstance(found := compare(one, other), int) else 0)
    return List(items[index] for index in sorted(range(len(items)), key=lambda index: order(keys[index])))


def _insert(target: Map, *entry: Value) -> Value:
    """Insert entries into the map that a comprehension builds, in place."""
    pairs = [entry] if len(entry) == 2 else list(entry[0].items())
    for key, value in pairs:
        if target.find(key) is not ABSENT:
            return Failure(f"insert failed: key {shown(key)} already exists")
        target.put(key, value)
    return target


def _output_size(_args: Sequence[Value], result: Value) -> int:
    return size_of(result) + _LIST_COST


def _flatten_cost(args: Sequence[Value], _result: Value) -> int:
    depth = 1.0
    if len(args) == 2:
        if type(args[1]) is not int:
            raise FatalError("internal error: interface conversion: ref.Val is *types.Err, not types.Int")
        depth = float(args[1])
    return max(int(size_of(args[0]) * depth), 0) + _LIST_COST


def _comparison_cost(index: int, args: Sequence[Value], _result: Value) -> int:
    items = args[index]
    if type(items) not in LISTS:
        kind = "*types.Err" if isinstance(items, Failure) else go_name(items)
        lacking = "Contains" if type(items) in _ADDERS else "Add"
        raise FatalError(f"internal error: interface conversion: {kind} is not traits.Lister: missing method {lacking}")
    factor = 2.0
    if items and type(items[0]) in (str, bytes):
        factor += TRAVERSAL
    return int(len(items) ** 2 * factor) + _LIST_COST


def _contains(items: List, expected: List) -> bool:
    return all(contains(item, items) for item in expected)


def _product(factor: float, args: Sequence[Value], _result: Value) -> int:
    return 1 + int(size_of(args[0]) * size_of(args[1]) * factor)


_SORTS = [f"list({_name}).() -> list({_name})" for _name in _COMPARABLE]
_SORTS_BY = [f"list(T).(list({_name})) -> list(T)" for _name in _COMPARABLE]
declare(
    *(Overload("isSorted", f"list({_name}).() -> bool", _is_sorted, traversal) for _name in _COMPARABLE),
    *(
        Overload(_function, f"list({_name}).() -> {_name}", partial(_extreme, _function, _preferred), traversal)
        for _name in _COMPARABLE
        for _function, _preferred in (("max", -1), ("min", 1))
    ),
    *operator(
        "sort",
        lambda items: _sort_by(items, items, "sort"),
        *_SORTS,
        costs=dict.fromkeys(_SORTS, partial(_comparison_cost, 0)),
    ),
    *operator(
        "@sortByAssociatedKeys", _sort_by, *_SORTS_BY, costs=dict.fromkeys(_SORTS_BY, partial(_comparison_cost, 1))
    ),
    *(
        Overload("sum", f"list({_name}).() -> {_name}", partial(_sum, _zero), traversal)
        for _name, _zero in _ZEROS.items()
    ),
    Overload(
        "indexOf",
        "list(A).(A) -> int",
        lambda items, expected: next((index for index, item in enumerate(items) if equal(item, expected) is True), -1),
        traversal,
    ),
    Overload(
        "lastIndexOf",
        "list(A).(A) -> int",
        lambda items, expected: next(
            (index for index in reversed(range(len(items))) if equal(items[index], expected) is True), -1
        ),
        traversal,
    ),
    Overload("slice", "list(T).(int, int) -> list(T)", _slice, overload_cost=_output_size),
    Overload("flatten", "list(list(T)).() -> list(T)", _flatten, overload_cost=_flatten_cost),
    Overload("flatten", "list(dyn).(int) -> list(dyn)", _flatten, overload_cost=_flatten_cost),
    Overload("lists.range", "(int) -> list(int)", _range, overload_cost=_output_size),
    Overload("reverse", "list(T).() -> list(T)", lambda items: List(reversed(items)), overload_cost=_output_size),
    Overload("distinct", "list(T).() -> list(T)", _distinct, overload_cost=partial(_comparison_cost, 0)),
    Overload("first", "list(V).() -> optional_type(V)", lambda items: OptionalValue(items[0]) if items else NONE),
    Overload("last", "list(V).() -> optional_type(V)", lambda items: OptionalValue(items[-1]) if items else NONE),
    Overload("cel.@mapInsert", "(map(K, V), K, V) -> map(K, V)", _insert),
    Overload("cel.@mapInsert", "(map(K, V), map(K, V)) -> map(K, V)", _insert),
    Overload("sets.contains", "(list(T), list(T)) -> bool", _contains, overload_cost=partial(_product, 1)),
    Overload(
        "sets.equivalent",
        "(list(T), list(T)) -> bool",
        lambda one, other: _contains(one, other) and _contains(other, one),
        overload_cost=partial(_product, 2),
    ),
    Overload(
        "sets.intersects",
        "(list(T), list(T)) -> bool",
        lambda one, other: any(contains(item, other) for item in one),
        overload_cost=partial(_product, 1),
    ),
)
