"""Format numbers and values like Go's ``%v`` and ``%q`` in messages."""

from __future__ import annotations

import math
from decimal import Decimal

from kpreempt.cel.values import ABSENT, LISTS, MAPS, OptionalValue, TypeValue, Value

_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def shown(value: Value) -> str:
    """Format a value for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return float_text(value) if math.isfinite(value) else {True: "+Inf", False: "-Inf"}.get(value > 0, "NaN")
    if isinstance(value, bytes):
        return f"[{' '.join(map(str, value))}]"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, OptionalValue):
        return "optional.none()" if value.value is ABSENT else f"optional({shown(value.value)})"
    if type(value) in LISTS:
        return f"[{', '.join(map(shown, value))}]"
    if type(value) in MAPS:
        return f"{{{', '.join(f'{shown(key)}: {shown(item)}' for key, item in value.items())}}}"
    return str(value)


def quoted(text: str) -> str:
    """Quote a string like Go's ``%q``."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    code = ord(char)
    if code in _ESCAPES:
        return _ESCAPES[code]
    if char.isprintable():
        return char
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def float_text(number: float) -> str:
    """Format a double like ``%g`` and ``%v``: the shortest exact digits, with an exponent from a million up."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    digits, exponent = _digits(number)
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if exponent < -4 or exponent >= 6:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _plain(digits, exponent)


def plain_text(number: float) -> str:
    """Format a finite double without an exponent, with the shortest exact digits."""
    digits, exponent = _digits(number)
    return ("-" if math.copysign(1.0, number) < 0 else "") + _plain(digits, exponent)


def seconds_text(nanoseconds: int) -> str:
    """Format a duration in seconds like Go's ``Duration.Seconds``."""
    whole, rest = divmod(abs(nanoseconds), 1_000_000_000)
    seconds = float(whole) + rest / 1e9
    return plain_text(-seconds if nanoseconds < 0 else seconds)


def _digits(number: float) -> tuple[str, int]:
    """Return the digits, and the power of ten of the first one."""
    if number == 0:
        return "0", 0
    _, digits, exponent = Decimal(repr(abs(number))).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    exponent += len(text) - 1
    return text.rstrip("0") or "0", exponent


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
