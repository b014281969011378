"""Texts of annotations and arguments, read as Go's ``strconv`` reads them."""

from __future__ import annotations

import re

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
# Longer texts of digits are out of every range.
_MAX_DIGITS = 400


def parse_bool(text: str) -> bool | None:
    """The truth value (``ParseBool``), or ``None``."""
    return True if text in _TRUE else False if text in _FALSE else None


def parse_int32(text: str) -> int | None:
    """The decimal number of 32 bits, or ``None``."""
    return _integer(text, _INT32)


def parse_int(text: str) -> int | None:
    """The decimal number of 64 bits (``Atoi``), or ``None``."""
    return _integer(text, _INT64)


def parse_float(text: str) -> float:
    """The decimal fraction, or 0 for a text that is none."""
    return float(text) if len(text) <= _MAX_DIGITS and _FLOAT.fullmatch(text) else 0.0


def _integer(text: str, allowed: range) -> int | None:
    if len(text) > _MAX_DIGITS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if number in allowed else None
