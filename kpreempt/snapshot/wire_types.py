"""Finds the error in an object by walking it along with the record type that it should match.

The fast decoder stops at the first error and cannot name the key of a map. This walk finds the same error with its
exact path. It also does what Go's JSON decoder does and the fast one does not: ``null`` is the zero value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect

from kpreempt.model.quantity import Quantity, quantity

_NUMBER_WITH_UNIT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_CORES = ("core", "cores", "cpu", "cpus", "vcpu", "vcpus")
_UNITS = {
    **dict.fromkeys(("k", "kb", "kib"), ("k", "Ki")),
    **dict.fromkeys(("m", "mb", "mib"), ("M", "Mi")),
    **dict.fromkeys(("g", "gb", "gib"), ("G", "Gi")),
    **dict.fromkeys(("t", "tb", "tib"), ("T", "Ti")),
}
# The field in which a record lists unknown fields of its strict parts.
_UNREAD = "unreadFields"
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_/-]+")
_SHOWN = 40


class FieldError(Exception):
    """An error in one field of an object. ``hint`` is advice, or empty."""

    def __init__(self, path: str, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.path = path
        self.problem = problem
        self.hint = hint


def to_quantity(expected: type, value: object) -> object:
    """The decoder's hook: convert a string or a number to a quantity. Raises ``ValueError``."""
    if expected is not Quantity:
        raise NotImplementedError(expected)
    if isinstance(value, str):
        return quantity(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return quantity(str(value))
    raise ValueError(f"expected a quantity, got {shown(value)}")


def with_zero_values(value: object, record: type[msgspec.Struct]) -> object:
    """Return ``value`` with every ``null`` replaced by Go's zero value, ready for the decoder. Raises ``FieldError``.

    Unknown fields of strict parts are left out; a record with ``unread_fields`` gets their paths there.
    """
    expected = _type_of(record)
    walked = _walk(value, expected, "")
    if "unread_fields" in record.__struct_fields__ and isinstance(walked, dict):
        unread = list(dict.fromkeys([*walked.get(_UNREAD, []), *_unread_fields(value, expected, "")]))
        if unread:
            walked[_UNREAD] = unread
    return walked


def _unread_fields(value: object, expected: inspect.Type, path: str) -> Iterator[str]:
    """Yield the paths of unknown fields in strict parts, without the indices of lists."""
    if isinstance(expected, inspect.UnionType):
        structs = [each for each in expected.types if isinstance(each, inspect.StructType)]
        expected = structs[0] if structs else expected
    if isinstance(expected, inspect.StructType) and isinstance(value, dict):
        known = {field.encode_name: field.type for field in expected.fields}
        for key, each in value.items():
            if key in known:
                yield from _unread_fields(each, known[key], _below(path, key))
            elif expected.forbid_unknown_fields and each is not None:
                yield _below(path, key)
    elif isinstance(expected, inspect.ListType) and isinstance(value, list):
        for each in value:
            yield from _unread_fields(each, expected.item_type, f"{path}[]")
    elif isinstance(expected, inspect.DictType) and isinstance(value, dict):
        for each in value.values():
            yield from _unread_fields(each, expected.value_type, f"{path}[]")


_type_of = lru_cache(maxsize=256)(inspect.type_info)


def _walk(value: object, expected: inspect.Type, path: str) -> object:
    kind, words = _KINDS.get(type(expected), (object, ""))
    if not isinstance(value, kind):
        raise _wrong(path, words, value)
    walker = _WALKERS.get(type(expected))
    return walker(value, expected, path) if walker else value


# The Python types of values, and their names.
_KINDS: dict[type[inspect.Type], tuple[type, str]] = {
    inspect.StructType: (dict, "an object"),
    inspect.DictType: (dict, "an object"),
    inspect.ListType: (list, "a list"),
    inspect.BoolType: (bool, "true or false"),
    inspect.LiteralType: (str, "a string"),
}


def _walk_struct(value: dict[str, object], expected: inspect.StructType, path: str) -> object:
    result: dict[str, object] = {}
    for field in expected.fields:
        given = value.get(field.encode_name)
        if given is not None:
            result[field.encode_name] = _walk(given, field.type, _below(path, field.encode_name))
        elif field.required:
            raise FieldError(_below(path, field.encode_name), "is missing")
    return result


def _walk_dict(value: dict[str, object], expected: inspect.DictType, path: str) -> object:
    return {key: _element(each, expected.value_type, _below(path, key)) for key, each in value.items()}


def _walk_list(value: list[object], expected: inspect.ListType, path: str) -> object:
    if expected.max_length is not None and len(value) > expected.max_length:
        raise FieldError(path, f"has {len(value):,} entries, more than {expected.max_length:,}")
    return [_element(each, expected.item_type, f"{path}[{index}]") for index, each in enumerate(value)]


def _element(value: object, expected: inspect.Type, path: str) -> object:
    """Check a value of a map or list, in which ``null`` becomes the zero value instead of being left out."""
    return _walk(_ZEROS.get(type(expected)) if value is None else value, expected, path)


_ZEROS: dict[type[inspect.Type], object] = {
    inspect.StrType: "",
    inspect.IntType: 0,
    inspect.BoolType: False,
    inspect.StructType: {},
    inspect.DictType: {},
    inspect.ListType: [],
    inspect.CustomType: "0",
}


def _walk_union(value: object, expected: inspect.UnionType, path: str) -> object:
    choices = [each for each in expected.types if not isinstance(each, inspect.NoneType)]
    if len(choices) == 1:
        return _walk(value, choices[0], path)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise _wrong(path, "a number or a percentage", value)
    return value


def _walk_str(value: object, expected: inspect.StrType, path: str) -> object:
    if not isinstance(value, str):
        hint = f'"{_text(value)}" in quotes' if isinstance(value, (int, float)) else ""
        raise _wrong(path, "a string", value, hint)
    if expected.max_length is not None and len(value) > expected.max_length:
        raise FieldError(path, f"is {len(value):,} characters long, more than {expected.max_length:,}")
    return value


def _walk_int(value: object, expected: inspect.IntType, path: str) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        if isinstance(value, float) and value.is_integer():
            return _walk_int(int(value), expected, path)
        hint = f"{value} without quotes" if isinstance(value, str) and re.fullmatch("-?[0-9]{1,18}", value) else ""
        raise _wrong(path, "an integer", value, hint)
    low = -(2**63) if expected.ge is None else expected.ge
    high = 2**63 - 1 if expected.le is None else expected.le
    if not low <= value <= high:
        raise FieldError(path, f"{_text(value)} is out of range ({low} to {high})")
    return value


def _walk_time(value: object, _: inspect.DateTimeType, path: str) -> object:
    try:
        time = msgspec.convert(value, datetime) if isinstance(value, str) else None
    except msgspec.ValidationError:
        time = None
    if time is None or time.tzinfo is None:
        raise _wrong(path, "a time such as 2026-11-21T03:12:00Z", value)
    return value


def _walk_literal(value: str, expected: inspect.LiteralType, path: str) -> object:
    if value not in expected.values:
        allowed = [str(each) for each in expected.values if each]
        near = difflib.get_close_matches(value, allowed, n=1) or [
            each for each in allowed if each.lower() == value.lower()
        ]
        raise FieldError(path, f'"{value[:_SHOWN]}" is not one of {", ".join(allowed)}', near[0] if near else "")
    return value


def _walk_custom(value: object, expected: inspect.CustomType, path: str) -> object:
    try:
        to_quantity(expected.cls, value)
    except ValueError as error:
        # Guess the intended quantity: ``2 cores`` is 2, ``4 GB`` is 4G or 4Gi.
        match = _NUMBER_WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
        hint = ""
        if match is not None:
            number, unit = match.groups()
            if not unit or unit.lower() in _CORES:
                milli = float(number) * 1000
                hint = f"{number}, {int(milli)}m" if milli.is_integer() else number
            else:
                suffixes = _UNITS.get(unit.lower().removesuffix("ytes").removesuffix("yte"), ())
                hint = ", ".join(number + suffix for suffix in suffixes)
        raise FieldError(path, str(error), hint) from error
    return value


_WALKERS: dict[type[inspect.Type], Callable[[Any, Any, str], object]] = {
    inspect.StructType: _walk_struct,
    inspect.DictType: _walk_dict,
    inspect.ListType: _walk_list,
    inspect.UnionType: _walk_union,
    inspect.StrType: _walk_str,
    inspect.IntType: _walk_int,
    inspect.DateTimeType: _walk_time,
    inspect.LiteralType: _walk_literal,
    inspect.CustomType: _walk_custom,
}


def _below(path: str, key: str) -> str:
    """Return the path of a key; a key with dots is put in brackets, so that the path can be parsed."""
    if not _PLAIN_KEY.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def _wrong(path: str, expected: str, value: object, hint: str = "") -> FieldError:
    return FieldError(path, f"expected {expected}, got {shown(value)}", hint)


def shown(value: object) -> str:
    """Describe a value briefly. Lists and objects are never shown, because they might hold secrets."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return f'"{value[:_SHOWN]}"' if isinstance(value, str) else _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
