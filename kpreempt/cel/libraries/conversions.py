"""Conversions between types, as in cel-go v0.26.0 ``common/types``: ``ConvertToType`` of each."""

from __future__ import annotations

import math
import re

from kpreempt.cel.functions import Overload, declare, operator, per_character
from kpreempt.cel.libraries.operators import INT_OVERFLOW, UINT_OVERFLOW, checked_time
from kpreempt.cel.libraries.texts import float_text, seconds_text
from kpreempt.cel.libraries.times import parse_duration, parse_timestamp, timestamp_text
from kpreempt.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    SECOND,
    Duration,
    Failure,
    Timestamp,
    TooLargeError,
    TypeValue,
    Uint,
    Value,
    type_name,
)

_MAX_LENGTH = 1000
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_HEXADECIMAL = re.compile(r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+", re.ASCII | re.IGNORECASE)
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def _identity(value: Value) -> Value:
    return value


def _impossible(kind: str) -> Failure:
    return Failure(f"type conversion error from 'string' to '{kind}'")


def _check_length(text: str) -> None:
    """Numbers that are written longer are not read: nothing says how often one would be. Raises ``TooLargeError``."""
    if len(text) > _MAX_LENGTH:
        raise TooLargeError(f"a number is written with more than {_MAX_LENGTH} characters")


def _whole(text: str) -> int | None:
    """The number that digits state, as far as it can matter."""
    _check_length(text)
    if not _WHOLE.fullmatch(text):
        return None
    digits = text.lstrip("+-").lstrip("0") or "0"
    return None if len(digits) > 20 else int(digits) * (-1 if text[0] == "-" else 1)


def _string_to_int(text: str) -> Value:
    number = _whole(text)
    return number if number is not None and MIN_INT <= number <= MAX_INT else _impossible("int")


def _string_to_uint(text: str) -> Value:
    number = _whole(text) if text[:1].isdigit() else None
    return Uint(number) if number is not None and number <= MAX_UINT else _impossible("uint")


def string_to_double(text: str) -> Value:
    """The double that a text states, or a failure."""
    _check_length(text)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return _impossible("double")
    if not _DECIMAL.fullmatch(text):
        return _impossible("double")
    number = float(text)
    return _impossible("double") if math.isinf(number) and "n" not in text.lower() else number


def _string_to_duration(text: str) -> Value:
    nanoseconds = parse_duration(text)
    return _impossible("google.protobuf.Duration") if nanoseconds is None else Duration(nanoseconds)


def _string_to_timestamp(text: str) -> Value:
    moment = parse_timestamp(text)
    return _impossible("google.protobuf.Timestamp") if moment is None else checked_time(moment)


def _bytes_to_string(value: bytes) -> Value:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Failure("invalid UTF-8 in bytes, cannot convert to string")


def to_text(value: Value) -> Value:
    """``string(value)`` of the types that cel-go itself can turn into text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, bytes):
        return _bytes_to_string(value)
    if type(value) is Duration:
        return seconds_text(value.nanoseconds) + "s"
    if type(value) is Timestamp:
        return timestamp_text(value)
    return value.name if type(value) is TypeValue else value


declare(
    *operator("type", lambda value: TypeValue(type_name(value)), "(A) -> type(A)"),
    *operator("dyn", _identity, "(A) -> dyn"),
    Overload("bool", "(bool) -> bool", _identity),
    Overload(
        "bool",
        "(string) -> bool",
        lambda text: text in _TRUE if text in _TRUE or text in _FALSE else _impossible("bool"),
    ),
    Overload("bytes", "(bytes) -> bytes", _identity),
    Overload(
        "bytes", "(string) -> bytes", lambda text: text.encode(errors="surrogatepass"), overload_cost=per_character()
    ),
    Overload("double", "(double) -> double", _identity),
    Overload("double", "(int) -> double", float),
    Overload("double", "(string) -> double", string_to_double),
    Overload("double", "(uint) -> double", float),
    Overload("duration", "(duration) -> duration", _identity),
    Overload(
        "duration",
        "(int) -> duration",
        lambda _number: Failure("type conversion error from 'int' to 'google.protobuf.Duration'"),
    ),
    Overload("duration", "(string) -> duration", _string_to_duration),
    Overload("int", "(int) -> int", _identity),
    Overload("int", "(double) -> int", lambda number: int(number) if -(2.0**63) < number < 2.0**63 else INT_OVERFLOW),
    Overload("int", "(duration) -> int", lambda value: value.nanoseconds),
    Overload("int", "(string) -> int", _string_to_int),
    Overload("int", "(timestamp) -> int", lambda value: value.nanoseconds // SECOND),
    Overload("int", "(uint) -> int", lambda value: int(value) if value <= MAX_INT else INT_OVERFLOW),
    Overload("string", "(string) -> string", _identity),
    *(
        Overload("string", f"({_name}) -> string", to_text)
        for _name in ("bool", "double", "duration", "int", "timestamp", "uint")
    ),
    Overload("string", "(bytes) -> string", _bytes_to_string, overload_cost=per_character()),
    Overload("timestamp", "(timestamp) -> timestamp", _identity),
    Overload("timestamp", "(int) -> timestamp", lambda seconds: checked_time(Timestamp(seconds * SECOND))),
    Overload("timestamp", "(string) -> timestamp", _string_to_timestamp),
    Overload("uint", "(uint) -> uint", _identity),
    Overload(
        "uint",
        "(double) -> uint",
        lambda number: Uint(int(number)) if 0 <= number < 2.0**64 else UINT_OVERFLOW,
    ),
    Overload("uint", "(int) -> uint", lambda value: Uint(value) if value >= 0 else UINT_OVERFLOW),
    Overload("uint", "(string) -> uint", _string_to_uint),
)
