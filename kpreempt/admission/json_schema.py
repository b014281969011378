"""Validate values against the OpenAPI schema of a custom resource.

Follows ``k8s.io/kube-openapi`` v0.0.0-20260317180543 ``pkg/validation/validate``, and for lists that are sets or maps
``k8s.io/apiextensions-apiserver`` v0.36.3 ``pkg/apiserver/schema/listtype/validation.go``. Values are JSON, in which
whole numbers are integers. Formats of texts and ranges of numbers' formats are not checked, nor are patterns that
cannot be compiled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kpreempt.admission.validation.problems import (
    Problem,
    Problems,
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
)
from kpreempt.model.documents import Path, mapping_in

Schema = Mapping[str, Any]

_TYPES: Mapping[type, str] = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    list: "array",
    str: "string",
    type(None): "null",
}


def schema_of_field(schema: Schema | None, field: str) -> Schema | None:
    """Return the schema of an object's field, or of a map's value; ``None`` if there is none."""
    properties = mapping_in(schema, "properties")
    if field in properties:
        return mapping_in(properties, field)
    additional = schema.get("additionalProperties") if schema else None
    return additional if isinstance(additional, dict) else None


def inner_values(value: Any, schema: Schema) -> Iterator[tuple[str | int, Any, Schema]]:
    """Yield the fields or elements of a value that have a schema: key or index, value and schema."""
    if isinstance(value, dict):
        for key, each in value.items():
            if (inner := schema_of_field(schema, key)) is not None:
                yield key, each, inner
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, each in enumerate(value):
            yield index, each, schema["items"]


def check_value(value: Any, schema: Schema, path: Path) -> Problems:
    """Yield why the value does not match the schema."""
    if problem := _type_problem(value, schema, path):
        yield problem
        return
    if (enum := schema.get("enum")) and not any(_is_value_of(value, each) for each in enum):
        yield unsupported(path, value, [each if isinstance(each, str) else json.dumps(each) for each in enum])
    if value is None:
        return
    yield from _combined(value, schema, path)
    if check := _CHECKS.get(type(value)):
        yield from check(value, schema, path)
    for key, each, inner in inner_values(value, schema):
        yield from check_value(each, inner, (*path, key))


def _is_value_of(value: Any, known: Any) -> bool:
    """Return whether a value is one of an enum; Go converts a fraction to the integer that it is compared with."""
    known = with_integers(known)
    return is_equal(int(value) if type(value) is float and type(known) is int else value, known)


def is_equal(value: Any, other: Any) -> bool:
    """Return whether JSON values are equal; a number is not a boolean."""
    return _text(value) == _text(other)


def _text(value: Any) -> str:
    return json.dumps(with_integers(value), sort_keys=True)


def with_integers(value: Any) -> Any:
    """Return a copy in which whole numbers are integers, as in the JSON that ``kubectl`` sends."""
    if isinstance(value, dict):
        return {key: with_integers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_integers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _type_problem(value: Any, schema: Schema, path: Path) -> Problem | None:
    expected = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [str(schema.get("type") or "")]
    kind = _TYPES.get(type(value), "")
    if kind == "null":
        is_allowed = bool(schema.get("nullable"))
    else:
        is_allowed = kind in expected or (kind == "integer" and "number" in expected)
    if is_allowed or not expected[0]:
        return None
    return invalid(path, kind, f'must be of type {",".join(expected)}: "{kind}"')


def _combined(value: Any, schema: Schema, path: Path) -> Problems:
    for each in schema.get("allOf") or ():
        yield from check_value(value, each, path)
    if (any_of := schema.get("anyOf")) and not any(_is_valid(value, each) for each in any_of):
        yield invalid(path, "", "must validate at least one schema (anyOf)")
    if one_of := schema.get("oneOf"):
        count = sum(_is_valid(value, each) for each in one_of)
        if count != 1:
            found = f"Found {count} valid alternatives" if count else "Found none valid"
            yield invalid(path, "", f"must validate one and only one schema (oneOf). {found}")
    if isinstance(excluded := schema.get("not"), dict) and _is_valid(value, excluded):
        yield invalid(path, "", "must not validate the schema (not)")


def _is_valid(value: Any, schema: Schema) -> bool:
    return next(check_value(value, schema, ()), None) is None


def _check_text(value: str, schema: Schema, path: Path) -> Problems:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        yield too_long(path, longest)
    elif shortest is not None and len(value) < shortest:
        yield invalid(path, value, f"should be at least {shortest} chars long")
    elif pattern and not _matches(pattern, value):
        yield invalid(path, value, f"should match '{pattern}'")


def _matches(pattern: str, value: str) -> bool:
    from kpreempt.cel.regex import RegexWorkError, compile_regex  # noqa: PLC0415 - takes a while
    from kpreempt.cel.regex.syntax import RegexError  # noqa: PLC0415 - as above

    try:
        return compile_regex(pattern).matches(value)
    except (RegexError, RegexWorkError):
        return True


def _check_number(value: float, schema: Schema, path: Path) -> Problems:
    # An integer is compared with an integer.
    convert: Callable[[float], float] = int if isinstance(value, int) else float
    if (maximum := schema.get("maximum")) is not None:
        exclusive = bool(schema.get("exclusiveMaximum"))
        if value > convert(maximum) or (exclusive and value == convert(maximum)):
            yield invalid(path, value, f"should be less than {'' if exclusive else 'or equal to '}{maximum}")
    if (minimum := schema.get("minimum")) is not None:
        exclusive = bool(schema.get("exclusiveMinimum"))
        if value < convert(minimum) or (exclusive and value == convert(minimum)):
            yield invalid(path, value, f"should be greater than {'' if exclusive else 'or equal to '}{minimum}")
    factor = schema.get("multipleOf")
    if factor and factor > 0 and abs(value / factor - round(value / factor)) > _TOLERANCE:
        yield invalid(path, value, f"should be a multiple of {factor}")


_TOLERANCE = 1e-6


def _check_size(noun: str, suffix: str, value: Any, schema: Schema, path: Path) -> Problems:
    longest, shortest = schema.get(f"max{suffix}"), schema.get(f"min{suffix}")
    if longest is not None and len(value) > longest:
        yield too_many(path, len(value), longest)
    if shortest is not None and len(value) < shortest:
        yield invalid(path, len(value), f"should have at least {shortest} {noun}")


def _check_list(value: list[Any], schema: Schema, path: Path) -> Problems:
    yield from _check_size("items", "Items", value, schema, path)


def _check_object(value: dict[str, Any], schema: Schema, path: Path) -> Problems:
    yield from _check_size("properties", "Properties", value, schema, path)
    for field in schema.get("required") or ():
        if field not in value:
            yield required((*path, field))


_CHECKS: Mapping[type, Callable[[Any, Schema, Path], Problems]] = {
    dict: _check_object,
    float: _check_number,
    int: _check_number,
    list: _check_list,
    str: _check_text,
}


def check_lists(value: Any, schema: Schema, path: Path) -> Problems:
    """Yield elements that a list with ``x-kubernetes-list-type`` has twice."""
    kind = schema.get("x-kubernetes-list-type")
    if isinstance(value, list) and kind in ("set", "map"):
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        seen: set[str] = set()
        for index, each in enumerate(value):
            named = (
                {key: each[key] for key in keys if key in each} if kind == "map" and isinstance(each, dict) else each
            )
            text = _text(named)
            if text in seen:
                yield duplicate((*path, index), named)
            seen.add(text)
    for key, each, inner in inner_values(value, schema):
        yield from check_lists(each, inner, (*path, key))
