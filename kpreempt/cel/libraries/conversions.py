"""Type conversions and ``string.format``, including the check of constant formats.

Follows cel-go v0.26.0: ``ConvertToType`` of each type in ``common/types``, and ``ext/formatting.go``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kpreempt.cel.functions import Overload, declare, operator, per_character
from kpreempt.cel.libraries.operators import INT_OVERFLOW, UINT_OVERFLOW, checked_text, checked_time
from kpreempt.cel.libraries.texts import float_text, quoted, seconds_text
from kpreempt.cel.libraries.times import parse_duration, parse_timestamp, timestamp_text
from kpreempt.cel.values import (
    LISTS,
    MAPS,
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    SECOND,
    Duration,
    Failure,
    List,
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
    """Limit the length of written numbers, whose parsing has no cost. Raises ``TooLargeError``."""
    if len(text) > _MAX_LENGTH:
        raise TooLargeError(f"a number has more than {_MAX_LENGTH} characters")


def _whole(text: str) -> int | None:
    """Return the number that digits denote, as far as it matters."""
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


def _string_to_double(text: str) -> Value:
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


def _bytes_to_string(value: bytes) -> Value:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Failure("invalid UTF-8 in bytes, cannot convert to string")


def _to_text(value: Value) -> Value:
    """Convert a value to a string, for types that cel-go itself converts."""
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
    Overload("double", "(string) -> double", _string_to_double),
    Overload("double", "(uint) -> double", float),
    Overload("duration", "(duration) -> duration", _identity),
    Overload(
        "duration",
        "(int) -> duration",
        lambda _number: Failure("type conversion error from 'int' to 'google.protobuf.Duration'"),
    ),
    Overload(
        "duration",
        "(string) -> duration",
        lambda text: (
            _impossible("google.protobuf.Duration") if (span := parse_duration(text)) is None else Duration(span)
        ),
    ),
    Overload("int", "(int) -> int", _identity),
    Overload("int", "(double) -> int", lambda number: int(number) if -(2.0**63) < number < 2.0**63 else INT_OVERFLOW),
    Overload("int", "(duration) -> int", lambda value: value.nanoseconds),
    Overload("int", "(string) -> int", _string_to_int),
    Overload("int", "(timestamp) -> int", lambda value: value.nanoseconds // SECOND),
    Overload("int", "(uint) -> int", lambda value: int(value) if value <= MAX_INT else INT_OVERFLOW),
    Overload("string", "(string) -> string", _identity),
    *(
        Overload("string", f"({_name}) -> string", _to_text)
        for _name in ("bool", "double", "duration", "int", "timestamp", "uint")
    ),
    Overload("string", "(bytes) -> string", _bytes_to_string, overload_cost=per_character()),
    Overload("timestamp", "(timestamp) -> timestamp", _identity),
    Overload("timestamp", "(int) -> timestamp", lambda seconds: checked_time(Timestamp(seconds * SECOND))),
    Overload(
        "timestamp",
        "(string) -> timestamp",
        lambda text: (
            _impossible("google.protobuf.Timestamp") if (at := parse_timestamp(text)) is None else checked_time(at)
        ),
    ),
    Overload("uint", "(uint) -> uint", _identity),
    Overload(
        "uint",
        "(double) -> uint",
        lambda number: Uint(int(number)) if 0 <= number < 2.0**64 else UINT_OVERFLOW,
    ),
    Overload("uint", "(int) -> uint", lambda value: Uint(value) if value >= 0 else UINT_OVERFLOW),
    Overload("uint", "(string) -> uint", _string_to_uint),
)


_PRECISION = re.compile(r"\.([0-9]*)", re.ASCII)
_SPECIAL = frozenset({"NaN", "Infinity", "-Infinity"})


class FormatError(Exception):
    """A format that does not match its arguments; ``str`` is the message."""


class Clause(NamedTuple):
    """A clause such as ``%.3f``: its letter, precision, and argument index."""

    letter: str
    precision: int
    argument: int


# The message of each clause for a value of another type.
COMPLAINTS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations,"
    " and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}


def complaint(letter: str, kind: str) -> str:
    """Return the message for a value of the wrong type."""
    return f"error during formatting: {COMPLAINTS[letter]}, was given {kind}"


def clauses(text: str, count: int, *, checked: bool = False) -> Iterator[str | Clause]:
    """Yield the parts of a format with ``count`` arguments. Raises ``FormatError``.

    ``checked`` is for the compiler, which reports missing arguments itself.
    """
    place = index = 0
    while place < len(text):
        percent = text.find("%", place)
        if percent < 0:
            yield text[place:]
            return
        yield text[place:percent]
        if text.startswith("%%", percent):
            yield "%"
            place = percent + 2
            continue
        if index >= count and not checked:
            raise FormatError(f"index {index} out of range")
        if percent + 1 >= len(text):
            raise FormatError("unexpected end of string")
        if index >= count:
            raise FormatError(f"index {index} out of range")
        clause, place = _clause(text, percent + 1, index)
        yield clause
        index += 1


def _clause(text: str, place: int, index: int) -> tuple[Clause, int]:
    precision = 6
    if match := _PRECISION.match(text, place):
        place = match.end()
        if place >= len(text):
            raise FormatError(
                "could not parse formatting clause: error while parsing precision: "
                "could not find end of precision specifier"
            )
        if not match[1] or len(match[1]) > 18:
            reason = "invalid syntax" if not match[1] else "value out of range"
            raise FormatError(
                "could not parse formatting clause: error while parsing precision: error while converting precision"
                f' to integer: strconv.Atoi: parsing "{match[1]}": {reason}'
            )
        precision = int(match[1])
    letter = text[place]
    if letter not in COMPLAINTS:
        # Go reads a byte.
        byte = chr(letter.encode(errors="surrogatepass")[0])
        raise FormatError(f'could not parse formatting clause: unrecognized formatting clause "{byte}"')
    return Clause(letter, precision, index), place + 1


def format_string(text: str, args: List) -> Value:
    """Return the text with its clauses replaced by arguments, or a failure."""
    parts = []
    length = 0
    try:
        for part in clauses(text, len(args)):
            parts.append(part if isinstance(part, str) else _written(part, args[part.argument]))
            length += len(parts[-1])
            checked_text(length)
    except FormatError as error:
        return Failure(str(error))
    return "".join(parts)


def _written(clause: Clause, value: Value) -> str:
    written = _WRITERS[clause.letter](value, clause)
    if written is None:
        raise FormatError(complaint(clause.letter, type_name(value)))
    return written


def _string(value: Value, _clause: Clause | None = None) -> str | None:
    if type(value) in LISTS:
        return f"[{', '.join(map(_member, value))}]"
    if type(value) in MAPS:
        pairs = sorted(((_key(key), _member(item)) for key, item in value.items()), key=lambda pair: pair[0])
        return f"{{{', '.join(f'{key}:{item}' for key, item in pairs)}}}"
    if value is None:
        return "null"
    if isinstance(value, bool | int | float | str | bytes | Duration | Timestamp | TypeValue):
        text = _to_text(value)
        if isinstance(text, Failure):
            raise FormatError(f"error during formatting: could not convert argument {quoted(text.message)} to string")
        return str(text)
    return None


def _key(key: Value) -> str:
    if not isinstance(key, bool | int | str):
        raise FormatError(f"error during formatting: no formatting function for map key of type {type_name(key)}")
    return quoted(key) if isinstance(key, str) else str(_to_text(key))


def _member(value: Value) -> str:
    """Format a value inside a list or a map."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return f"b{quoted(value.decode(errors='replace'))}"
    if isinstance(value, Timestamp):
        return f'timestamp("{timestamp_text(value)}")'
    if isinstance(value, Duration):
        return f'duration("{seconds_text(value.nanoseconds)}s")'
    if isinstance(value, float):
        return (
            f"{value:.6f}"
            if math.isfinite(value)
            else quoted("NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf")
        )
    text = _string(value)
    if text is None:
        raise FormatError(f"error during formatting: no formatting function for {type_name(value)}")
    return text


def _floating(value: Value, clause: Clause) -> str | None:
    """Format ``%f`` or ``%e``."""
    if type(value) is not float and not (type(value) is str and value in _SPECIAL):
        return None
    number, is_fixed = float(value), clause.letter == "f"
    checked_text(clause.precision)
    if not math.isfinite(number):
        text = "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"
        return text if is_fixed else text.rjust(clause.precision)
    if is_fixed:
        return f"{number:,.{clause.precision}f}"
    # cel-go takes the written precision as the width, and the precision is always six.
    mantissa, _, exponent = f"{number:.6e}".partition("e")
    superscript = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
    return f"{mantissa}\u00d710{exponent.removeprefix('+').translate(superscript)}".rjust(clause.precision)


def _hexadecimal(value: Value, clause: Clause) -> str | None:
    if type(value) is str:
        text = value.encode(errors="surrogatepass").hex()
    elif type(value) is bytes:
        text = value.hex()
    elif type(value) in (int, Uint):
        text = f"{int(value):x}"
    else:
        return None
    return text.upper() if clause.letter == "X" else text


_WRITERS: dict[str, Callable[[Value, Clause], str | None]] = {
    "s": _string,
    "d": lambda value, _clause: str(int(value)) if type(value) in (int, Uint) else None,
    "f": _floating,
    "e": _floating,
    "b": lambda value, _clause: f"{int(value):b}" if type(value) in (bool, int, Uint) else None,
    "x": _hexadecimal,
    "X": _hexadecimal,
    "o": lambda value, _clause: f"{int(value):o}" if type(value) in (int, Uint) else None,
}
