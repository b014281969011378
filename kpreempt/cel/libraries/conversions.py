"""Conversions between types, as in cel-go v0.26.0 ``common/types``: ``ConvertToType`` of each."""

from __future__ import annotations

import math
import re

from kpreempt.cel.functions import declare, declare_operator, per_character
from kpreempt.cel.libraries.operators import INT_OVERFLOW, MAX_TIME, MIN_TIME, UINT_OVERFLOW
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
    return _impossible("google.protobuf.Timestamp") if moment is None else _in_range(moment)


def _in_range(moment: Timestamp) -> Value:
    return moment if MIN_TIME <= moment.nanoseconds // SECOND <= MAX_TIME else Failure("timestamp overflow")


def _int_to_timestamp(seconds: int) -> Value:
    return Timestamp(seconds * SECOND) if MIN_TIME <= seconds <= MAX_TIME else Failure("timestamp overflow")


def _double_to_int(number: float) -> Value:
    if not math.isfinite(number) or not -(2.0**63) < number < 2.0**63:
        return INT_OVERFLOW
    return int(number)


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


declare_operator("type", lambda value: TypeValue(type_name(value)), "(A) -> type(A)")
declare_operator("dyn", _identity, "(A) -> dyn")

declare("bool", "(bool) -> bool", _identity)
declare(
    "bool", "(string) -> bool", lambda text: text in _TRUE if text in _TRUE or text in _FALSE else _impossible("bool")
)
declare("bytes", "(bytes) -> bytes", _identity)
declare("bytes", "(string) -> bytes", lambda text: text.encode(errors="surrogatepass"), overload_cost=per_character())
declare("double", "(double) -> double", _identity)
declare("double", "(int) -> double", float)
declare("double", "(string) -> double", string_to_double)
declare("double", "(uint) -> double", float)
declare("duration", "(duration) -> duration", _identity)
declare(
    "duration",
    "(int) -> duration",
    lambda _number: Failure("type conversion error from 'int' to 'google.protobuf.Duration'"),
)
declare("duration", "(string) -> duration", _string_to_duration)
declare("int", "(int) -> int", _identity)
declare("int", "(double) -> int", _double_to_int)
declare("int", "(duration) -> int", lambda value: value.nanoseconds)
declare("int", "(string) -> int", _string_to_int)
declare("int", "(timestamp) -> int", lambda value: value.nanoseconds // SECOND)
declare("int", "(uint) -> int", lambda value: int(value) if value <= MAX_INT else INT_OVERFLOW)
declare("string", "(string) -> string", _identity)
for _name in ("bool", "double", "duration", "int", "timestamp", "uint"):
    declare("string", f"({_name}) -> string", to_text)
declare("string", "(bytes) -> string", _bytes_to_string, overload_cost=per_character())
declare("timestamp", "(timestamp) -> timestamp", _identity)
declare("timestamp", "(int) -> timestamp", _int_to_timestamp)
declare("timestamp", "(string) -> timestamp", _string_to_timestamp)
declare("uint", "(uint) -> uint", _identity)
declare(
    "uint",
    "(double) -> uint",
    lambda number: Uint(int(number)) if math.isfinite(number) and 0 <= number < 2.0**64 else UINT_OVERFLOW,
)
declare("uint", "(int) -> uint", lambda value: Uint(value) if value >= 0 else UINT_OVERFLOW)
declare("uint", "(string) -> uint", _string_to_uint)
