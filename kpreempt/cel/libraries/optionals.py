"""Values that may be missing, as in cel-go v0.26.0 ``cel/library.go``."""

from __future__ import annotations

from kpreempt.cel.functions import declare
from kpreempt.cel.libraries.operators import planned
from kpreempt.cel.libraries.texts import shown
from kpreempt.cel.values import ABSENT, NONE, Failure, List, OptionalValue, Value, is_zero


def _of_non_zero(value: Value) -> OptionalValue:
    return NONE if is_zero(value) else OptionalValue(value)


def _value(optional: OptionalValue) -> Value:
    return Failure("optional.none() dereference") if optional.value is ABSENT else optional.value


def _unwrap(items: List) -> Value:
    for item in items:
        if type(item) is not OptionalValue:
            return Failure(f"value {shown(item)} is not optional")
    return List(item.value for item in items if item.value is not ABSENT)


declare("optional.of", "(V) -> optional_type(V)", OptionalValue)
declare("optional.ofNonZeroValue", "(V) -> optional_type(V)", _of_non_zero)
declare("optional.none", "() -> optional_type(V)", lambda: NONE)
declare("value", "optional_type(V).() -> V", _value)
declare("hasValue", "optional_type(V).() -> bool", lambda optional: optional.value is not ABSENT)
declare("or", "optional_type(V).(optional_type(V)) -> optional_type(V)", planned)
declare("orValue", "optional_type(V).(V) -> V", planned)
declare("optional.unwrap", "(list(optional_type(V))) -> list(V)", _unwrap)
declare("unwrapOpt", "list(optional_type(V)).() -> list(V)", _unwrap)
