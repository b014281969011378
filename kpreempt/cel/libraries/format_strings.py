"""``string.format``, as in cel-go v0.26.0 ``ext/formatting.go``; also for the check of constant formats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kpreempt.cel.libraries.conversions import string_to_double, to_text
from kpreempt.cel.libraries.operators import checked_text
from kpreempt.cel.libraries.texts import quoted, seconds_text
from kpreempt.cel.libraries.times import timestamp_text
from kpreempt.cel.values import LISTS, MAPS, Duration, Failure, List, Timestamp, TypeValue, Uint, Value, type_name

_PRECISION = re.compile(r"\.([0-9]*)", re.ASCII)
_SPECIAL = frozenset({"NaN", "Infinity", "-Infinity"})


class FormatError(Exception):
    """A format that fits its arguments not; ``str`` is the message."""


class Clause(NamedTuple):
    """``%.3f``: the letter, the precision, and which argument it is for."""

    letter: str
    precision: int
    argument: int


# What each clause cannot do with a value of another type.
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
    """What is said where a clause gets a value of that type."""
    return f"error during formatting: {COMPLAINTS[letter]}, was given {kind}"


def clauses(text: str, count: int, *, checked: bool = False) -> Iterator[str | Clause]:
    """The parts of a format for ``count`` arguments. Raises ``FormatError``.

    ``checked``: for the compiler, which would look at an argument that is not there: it says so in its own words.
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
        # Go looks at a byte.
        byte = chr(letter.encode(errors="surrogatepass")[0])
        raise FormatError(f'could not parse formatting clause: unrecognized formatting clause "{byte}"')
    return Clause(letter, precision, index), place + 1


def format_string(text: str, args: List) -> Value:
    """The text with its clauses replaced by arguments, or a failure."""
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
    write = _WRITERS[clause.letter]
    written = write(value, clause)
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
        text = to_text(value)
        if isinstance(text, Failure):
            raise FormatError(f"error during formatting: could not convert argument {quoted(text.message)} to string")
        return str(text)
    return None


def _key(key: Value) -> str:
    if not isinstance(key, bool | int | str):
        raise FormatError(f"error during formatting: no formatting function for map key of type {type_name(key)}")
    return quoted(key) if isinstance(key, str) else str(to_text(key))


def _member(value: Value) -> str:
    """A value inside a list or a map."""
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


def _number(value: Value) -> float | None:
    if type(value) is float:
        return value
    if type(value) is str and value in _SPECIAL:
        number = string_to_double(value)
        return number if isinstance(number, float) else None
    return None


def _fixed(value: Value, clause: Clause) -> str | None:
    number = _number(value)
    if number is None:
        return None
    checked_text(clause.precision)
    if not math.isfinite(number):
        return _infinite(number)
    return f"{number:,.{clause.precision}f}"


def _scientific(value: Value, clause: Clause) -> str | None:
    number = _number(value)
    if number is None:
        return None
    checked_text(clause.precision)
    if not math.isfinite(number):
        return _infinite(number).rjust(clause.precision)
    # What is written as the precision is the width for cel-go, and the precision is always six.
    mantissa, _, exponent = f"{number:.6e}".partition("e")
    superscript = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
    return f"{mantissa}\u00d710{exponent.removeprefix('+').translate(superscript)}".rjust(clause.precision)


def _infinite(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _binary(value: Value, _clause: Clause) -> str | None:
    if type(value) is bool:
        return "1" if value else "0"
    return f"{int(value):b}" if type(value) in (int, Uint) else None


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
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "X": _hexadecimal,
    "o": lambda value, _clause: f"{int(value):o}" if type(value) in (int, Uint) else None,
}
