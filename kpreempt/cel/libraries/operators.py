"""Arithmetic, order, membership, size and optional values, like cel-go v0.26.0 ``common/stdlib`` and ``common/types``.

Optional values follow ``cel/library.go``. Functions that need an authorizer are declared everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from kpreempt.cel.functions import TRAVERSAL, Overload, declare, full_size, one, operator
from kpreempt.cel.libraries.texts import shown
from kpreempt.cel.values import (
    ABSENT,
    LISTS,
    MAPS,
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NO_SUCH_OVERLOAD,
    NONE,
    SECOND,
    Accumulator,
    Duration,
    Failure,
    List,
    Opaque,
    OptionalValue,
    Timestamp,
    TooLargeError,
    Uint,
    Value,
    compare,
    equal,
    is_zero,
)

INT_OVERFLOW = Failure("integer overflow")
UINT_OVERFLOW = Failure("unsigned integer overflow")
MIN_TIME, MAX_TIME = -62135596800, 253402300799
# Longer strings are rejected: some functions multiply lengths at no cost.
MAX_LENGTH = 16 * 1024 * 1024

# Types whose unknown functions fail with a plain "no such overload".
_RECEIVERS = (str, Duration, Timestamp)


def checked_text(length: int) -> None:
    """Raises ``TooLargeError`` if a string of that length would be too long."""
    if length > MAX_LENGTH:
        raise TooLargeError(f"a string has more than {MAX_LENGTH} characters")


def unsupported(name: str, value: Value) -> Failure:
    """Return an operator's failure for a type it does not support."""
    return NO_SUCH_OVERLOAD if isinstance(value, _RECEIVERS) else Failure(f"no such overload: {name}")


def checked_int(number: int) -> Value:
    """Return the number, or a failure if it overflows int64."""
    return number if MIN_INT <= number <= MAX_INT else INT_OVERFLOW


def _checked_uint(number: int) -> Value:
    return Uint(number) if 0 <= number <= MAX_UINT else UINT_OVERFLOW


def checked_time(moment: Timestamp) -> Value:
    """Return the time, or a failure if it is outside the years 1 to 9999."""
    return moment if MIN_TIME <= moment.nanoseconds // SECOND <= MAX_TIME else Failure("timestamp overflow")


def add(left: Value, right: Value) -> Value:
    """``left + right``."""
    kind = type(left)
    if kind is int:
        return checked_int(left + right) if type(right) is int else NO_SUCH_OVERLOAD
    if kind is Accumulator:
        return left.grow(right) if type(right) in LISTS else NO_SUCH_OVERLOAD
    if kind is str or kind is bytes:
        if type(right) is not kind:
            return NO_SUCH_OVERLOAD
        checked_text(len(left) + len(right))
        return left + right
    if kind is List:
        if type(right) not in LISTS:
            return NO_SUCH_OVERLOAD
        return List([*left, *right]) if left and right else left or right
    if kind is float:
        return left + right if type(right) is float else NO_SUCH_OVERLOAD
    if kind is Uint:
        return _checked_uint(int(left) + right) if type(right) is Uint else NO_SUCH_OVERLOAD
    if kind is Duration or kind is Timestamp:
        moment, other = (left, right) if kind is Timestamp else (right, left)
        if type(moment) is Timestamp and type(other) is Duration:
            return checked_time(Timestamp(left.nanoseconds + right.nanoseconds, moment.offset))
        both = kind is Duration and type(right) is Duration
        return _duration(left.nanoseconds + right.nanoseconds) if both else NO_SUCH_OVERLOAD
    return unsupported("_+_", left)


def _duration(nanoseconds: int) -> Value:
    return Duration(nanoseconds) if MIN_INT <= nanoseconds <= MAX_INT else INT_OVERFLOW


def _subtract(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is int:
        return checked_int(left - right) if type(right) is int else NO_SUCH_OVERLOAD
    if kind is float:
        return left - right if type(right) is float else NO_SUCH_OVERLOAD
    if kind is Uint:
        return _checked_uint(int(left) - right) if type(right) is Uint else NO_SUCH_OVERLOAD
    if kind is Duration:
        return _duration(left.nanoseconds - right.nanoseconds) if type(right) is Duration else NO_SUCH_OVERLOAD
    if kind is Timestamp:
        if type(right) is Duration:
            return checked_time(Timestamp(left.nanoseconds - right.nanoseconds, left.offset))
        return _duration(left.nanoseconds - right.nanoseconds) if type(right) is Timestamp else NO_SUCH_OVERLOAD
    return unsupported("_-_", left)


def _multiply(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind not in (int, Uint, float):
        return unsupported("_*_", left)
    if type(right) is not kind:
        return NO_SUCH_OVERLOAD
    if kind is int:
        return checked_int(left * right)
    return _checked_uint(int(left) * right) if kind is Uint else left * right


def _divide(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind not in (int, Uint, float):
        return unsupported("_/_", left)
    if type(right) is not kind:
        return NO_SUCH_OVERLOAD
    if kind is float:
        if right != 0:
            return left / right
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    if right == 0:
        return Failure("division by zero")
    quotient = abs(left) // abs(right)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient) if kind is int else Uint(quotient)


def _modulo(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind not in (int, Uint):
        return unsupported("_%_", left)
    if type(right) is not kind:
        return NO_SUCH_OVERLOAD
    if right == 0:
        return Failure("modulus by zero")
    if left == MIN_INT and right == -1:
        return INT_OVERFLOW
    rest = abs(left) % abs(right)
    return Uint(rest) if kind is Uint else (-rest if left < 0 else rest)


def _negate(value: Value) -> Value:
    if type(value) is int:
        return checked_int(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return _duration(-value.nanoseconds)
    return NO_SUCH_OVERLOAD if type(value) is bool else unsupported("-_", value)


def _ordering(name: str, holds: Callable[[int], bool], left: Value, right: Value) -> Value:
    order = compare(left, right)
    if type(order) is int:
        return holds(order)
    return unsupported(name, left) if order is None else order


def contains(item: Value, container: Value) -> Value:
    """``item in container``."""
    if type(container) in LISTS:
        return any(equal(item, element) is True for element in container)
    return container.contains(item) if type(container) in MAPS else NO_SUCH_OVERLOAD


def _size(value: Value) -> Value:
    if isinstance(value, str | bytes) or type(value) in LISTS or type(value) in MAPS:
        return len(value)
    return unsupported("size", value)


def inequality_cost(args: Sequence[Value], _result: Value) -> int:
    """The cost of ``!=`` and of comparing strings: that of the smaller argument."""
    return math.ceil(min(full_size(args[0]), full_size(args[1])) * TRAVERSAL)


def equality_cost(args: Sequence[Value], result: Value) -> int:
    """The cost of ``==``; equality of Kubernetes' own types is constant."""
    return 1 if isinstance(args[0], Opaque) else inequality_cost(args, result)


def _both(args: Sequence[Value], _result: Value) -> int:
    return math.ceil((full_size(args[0]) + full_size(args[1])) * TRAVERSAL)


def _signatures(types: str, result: str = "") -> list[str]:
    return [f"({name}, {name}) -> {result or name}" for name in types.split()]


_AUTHORIZER = "kubernetes.authorization."
_CHECK_COST = 350_000
_SMALLER = {"(string, string) -> bool": inequality_cost, "(bytes, bytes) -> bool": inequality_cost}
_NUMBERS = ("int", "uint", "double")
_ORDER = [
    *_signatures("bool string bytes timestamp duration", "bool"),
    *(f"({left}, {right}) -> bool" for left in _NUMBERS for right in _NUMBERS),
]


def planned(*_args: Value) -> Value:
    """Placeholder for operators that the planner implements, and for functions that need an authorizer."""
    return NO_SUCH_OVERLOAD


def _unwrap(items: List) -> Value:
    for item in items:
        if type(item) is not OptionalValue:
            return Failure(f"value {shown(item)} is not optional")
    return List(item.value for item in items if item.value is not ABSENT)


declare(
    *operator(
        "_+_",
        add,
        *_signatures("bytes double int string uint duration list(A)"),
        "(duration, timestamp) -> timestamp",
        "(timestamp, duration) -> timestamp",
        costs={"(string, string) -> string": _both, "(bytes, bytes) -> bytes": _both},
    ),
    *operator(
        "_-_",
        _subtract,
        *_signatures("double duration int uint"),
        "(timestamp, duration) -> timestamp",
        "(timestamp, timestamp) -> duration",
    ),
    *operator("_*_", _multiply, *_signatures("double int uint")),
    *operator("_/_", _divide, *_signatures("double int uint")),
    *operator("_%_", _modulo, *_signatures("int uint")),
    *operator("-_", _negate, "(double) -> double", "(int) -> int"),
    *operator("!_", lambda value: not value if type(value) is bool else NO_SUCH_OVERLOAD, "(bool) -> bool"),
    *operator("_<_", partial(_ordering, "_<_", lambda order: order < 0), *_ORDER, costs=_SMALLER),
    *operator("_<=_", partial(_ordering, "_<=_", lambda order: order <= 0), *_ORDER, costs=_SMALLER),
    *operator("_>_", partial(_ordering, "_>_", lambda order: order > 0), *_ORDER, costs=_SMALLER),
    *operator("_>=_", partial(_ordering, "_>=_", lambda order: order >= 0), *_ORDER, costs=_SMALLER),
    *operator(
        "@in",
        contains,
        "(A, list(A)) -> bool",
        "(A, map(A, B)) -> bool",
        costs={"(A, list(A)) -> bool": lambda args, _result: full_size(args[1])},
    ),
    *operator(
        "size",
        _size,
        *(f"{name}.() -> int" for name in ("bytes", "list(A)", "map(A, B)", "string")),
        *(f"({name}) -> int" for name in ("bytes", "list(A)", "map(A, B)", "string")),
    ),
    *(
        Overload(_name, _signature, planned)
        for _name, _signature in (
            ("_==_", "(A, A) -> bool"),
            ("_!=_", "(A, A) -> bool"),
            ("_&&_", "(bool, bool) -> bool"),
            ("_||_", "(bool, bool) -> bool"),
            ("_?_:_", "(bool, A, A) -> A"),
            ("@not_strictly_false", "(bool) -> bool"),
            ("_?._", "(dyn, string) -> optional_type(V)"),
            ("_[?_]", "(list(V), int) -> optional_type(V)"),
            ("_[?_]", "(optional_type(list(V)), int) -> optional_type(V)"),
            ("_[?_]", "(map(K, V), K) -> optional_type(V)"),
            ("_[?_]", "(optional_type(map(K, V)), K) -> optional_type(V)"),
            ("_[_]", "(list(A), int) -> A"),
            ("_[_]", "(map(A, B), A) -> B"),
            ("_[_]", "(optional_type(list(V)), int) -> optional_type(V)"),
            ("_[_]", "(optional_type(map(K, V)), K) -> optional_type(V)"),
        )
    ),
    Overload("optional.of", "(V) -> optional_type(V)", OptionalValue),
    Overload(
        "optional.ofNonZeroValue",
        "(V) -> optional_type(V)",
        lambda value: NONE if is_zero(value) else OptionalValue(value),
    ),
    Overload("optional.none", "() -> optional_type(V)", lambda: NONE),
    Overload(
        "value",
        "optional_type(V).() -> V",
        lambda optional: Failure("optional.none() dereference") if optional.value is ABSENT else optional.value,
    ),
    Overload("hasValue", "optional_type(V).() -> bool", lambda optional: optional.value is not ABSENT),
    Overload("or", "optional_type(V).(optional_type(V)) -> optional_type(V)", planned),
    Overload("orValue", "optional_type(V).(V) -> V", planned),
    Overload("optional.unwrap", "(list(optional_type(V))) -> list(V)", _unwrap),
    Overload("unwrapOpt", "list(optional_type(V)).() -> list(V)", _unwrap),
    *(
        Overload(_name, f"{_AUTHORIZER}{_receiver}.({_parameters}) -> {_result}", planned, one)
        for _name, _receiver, _parameters, _result in (
            ("path", "Authorizer", "string", f"{_AUTHORIZER}PathCheck"),
            ("group", "Authorizer", "string", f"{_AUTHORIZER}GroupCheck"),
            ("serviceAccount", "Authorizer", "string, string", f"{_AUTHORIZER}Authorizer"),
            ("resource", "GroupCheck", "string", f"{_AUTHORIZER}ResourceCheck"),
            ("subresource", "ResourceCheck", "string", f"{_AUTHORIZER}ResourceCheck"),
            ("namespace", "ResourceCheck", "string", f"{_AUTHORIZER}ResourceCheck"),
            ("name", "ResourceCheck", "string", f"{_AUTHORIZER}ResourceCheck"),
            ("fieldSelector", "ResourceCheck", "string", f"{_AUTHORIZER}ResourceCheck"),
            ("labelSelector", "ResourceCheck", "string", f"{_AUTHORIZER}ResourceCheck"),
            ("allowed", "Decision", "", "bool"),
            ("errored", "Decision", "", "bool"),
            ("error", "Decision", "", "string"),
            ("reason", "Decision", "", "string"),
        )
    ),
    *(
        Overload(
            "check",
            f"{_AUTHORIZER}{_kind}.(string) -> {_AUTHORIZER}Decision",
            planned,
            lambda _args, _result: _CHECK_COST,
        )
        for _kind in ("PathCheck", "ResourceCheck")
    ),
)
