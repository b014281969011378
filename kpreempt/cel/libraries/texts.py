"""Values as Go's ``%v`` and ``%q`` write them in messages."""

from __future__ import annotations

import math

from kpreempt.cel.libraries.numbers import float_text
from kpreempt.cel.values import ABSENT, LISTS, MAPS, OptionalValue, TypeValue, Value

_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def shown(value: Value) -> str:
    """A value in a message."""
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
    """A string in quotes, as Go's ``%q`` writes it."""
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
