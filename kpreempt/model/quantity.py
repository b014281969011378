"""Resource quantities, exact.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/api/resource``: a value has at most nano precision (finer ones are rounded
up), and ``Value()`` and ``MilliValue()`` round up. If a result does not fit an int64, the upstream functions return 0
or a wrapped number; ``value`` and ``milli_value`` return the same, because the scheduler computes with them.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_INT64 = 2**63 - 1
NANO_PER_UNIT = 10**9
NANO_PER_MILLI = 10**6

_SYNTAX = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# Smaller amounts never have a binary suffix.
_LEAST_BINARY = 1024
# The number of digits up to which upstream keeps a decimal number as an int64 with a scale.
_MAX_INT64_FACTORS = 18
# Longer texts are rejected: an exact conversion of a million digits would take unbounded time.
_MAX_LENGTH = 256
_MAX_EXPONENT = 1000


class Quantity:
    """An immutable amount of a resource.

    ``nano`` is the exact amount in 1e-9 units. ``value`` (whole units) and ``milli_value`` (1e-3 units) are the results
    of upstream's ``Value()`` and ``MilliValue()``, rounded up. ``scaled`` is a value and a power of ten if upstream
    keeps the amount in an int64, else ``None``.
    """

    __slots__ = ("milli_value", "nano", "scaled", "text", "value")

    def __init__(self, text: str) -> None:
        """Parse ``text``; raises ``ValueError`` if upstream's ``ParseQuantity`` returns an error."""
        self.text = text
        self.nano, self.scaled = _parse(text)
        self.value = self._rounded_up(9)
        self.milli_value = self._rounded_up(6)

    def _rounded_up(self, digits: int) -> int:
        """Return the amount in units of 10**(digits-9), as an int64 computed like upstream's."""
        if self.scaled is None:
            # Upstream's ``scaledValue``, for amounts that it keeps as arbitrary-precision decimals.
            return wrap_int64(-(-self.nano // 10**digits))
        value, scale = self.scaled
        shift = scale + 9 - digits
        if shift >= 0:
            result = value * 10**shift
            return result if abs(result) <= MAX_INT64 else 0
        divisor: int = 10**-shift
        magnitude = -(-abs(value) // divisor)
        return magnitude if value >= 0 else -magnitude

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"


@lru_cache(maxsize=65536)
def quantity(text: str) -> Quantity:
    """Parse a quantity, sharing the result between equal texts. Raises ``ValueError`` like ``Quantity``."""
    return Quantity(text)


def decode_quantity(expected: type, value: object) -> Quantity:
    """Decode the text of a quantity, as a hook of ``msgspec.convert``. Raises ``NotImplementedError``."""
    if expected is Quantity:
        return quantity(str(value))
    raise NotImplementedError(f"{expected.__name__} has no decoder")


def quantity_text(nano: int) -> str:
    """Format an exact amount as Kubernetes may write it: in the largest binary unit that divides it, or in decimal."""
    whole, rest = divmod(nano, NANO_PER_UNIT)
    if rest:
        return f"{nano // NANO_PER_MILLI}m" if nano % NANO_PER_MILLI == 0 else f"{nano}n"
    for suffix, exponent in reversed(_BINARY_SUFFIXES.items()):
        if whole and not whole % 2**exponent:
            return f"{whole >> exponent}{suffix}"
    return str(whole)


def canonical_text(text: str) -> str:
    """Return a quantity as the API server writes it: ``1`` for ``1000m``; one with an exponent stays as it is."""
    try:
        nano = quantity(text).nano
    except ValueError:
        return text
    if "e" in text.lower().replace("ei", "") and not text.endswith("E"):
        return text
    if not nano:
        return "0"
    whole, rest = divmod(nano, NANO_PER_UNIT)
    if text.endswith("i") and not rest and abs(whole) >= _LEAST_BINARY:
        binary = reversed(_BINARY_SUFFIXES.items())
        return next((f"{whole >> bits}{suffix}" for suffix, bits in binary if not whole % 2**bits), str(whole))
    decimal = reversed(_DECIMAL_SUFFIXES.items())
    suffix, power = next((suffix, power) for suffix, power in decimal if not nano % 10 ** (power + 9))
    return f"{nano // 10 ** (power + 9)}{suffix}"


def ceil_units(nano: int) -> int:
    """Return the amount in whole units, rounded up and wrapped to int64 like upstream's big numbers."""
    return wrap_int64(-(-nano // NANO_PER_UNIT))


def ceil_milli(nano: int) -> int:
    """Return the amount in thousandths of a unit, rounded up and wrapped to int64."""
    return wrap_int64(-(-nano // NANO_PER_MILLI))


def wrap_int64(number: int) -> int:
    """Wrap a number around like an unchecked int64 in Go."""
    return (number + 2**63) % 2**64 - 2**63


def _parse(text: str) -> tuple[int, tuple[int, int] | None]:
    """Return the amount in nano, and ``(value, scale)`` if upstream keeps the amount as ``value * 10**scale``."""
    if not text or len(text) > _MAX_LENGTH:
        raise ValueError("is not a quantity" if not text else "is too long for a quantity")
    match = _SYNTAX.fullmatch(text)
    if match is None or not text.isascii():
        raise ValueError(_problem(text))
    sign, whole, fraction, suffix = match.groups()
    if not whole and not fraction:
        raise ValueError(_problem(text))
    whole, fraction = whole.lstrip("0"), fraction or ""
    binary = _BINARY_SUFFIXES.get(suffix, 0)
    if binary or suffix in _DECIMAL_SUFFIXES:
        exponent = 0 if binary else _DECIMAL_SUFFIXES[suffix]
    elif exponential := _EXPONENT.fullmatch(suffix):
        exponent = int(exponential[1])
        if abs(exponent) > _MAX_EXPONENT:
            raise ValueError("has an exponent out of range")
    else:
        raise ValueError(_problem(text))
    digits = int((whole + fraction) or "0") << binary
    scale = exponent - len(fraction)
    shift = scale + 9
    magnitude = digits * 10**shift if shift >= 0 else -(-digits // 10**-shift)
    if binary:
        # Binary amounts are capped; decimal ones are not.
        magnitude = min(magnitude, MAX_INT64 * NANO_PER_UNIT)
        fits_fast_path = not fraction and 15 - len(whole or "0") - int(binary * 3 / 10) - 1 >= 0
    else:
        fits_fast_path = len(whole or "0") + len(fraction) <= _MAX_INT64_FACTORS and scale >= -9
    factor = -1 if sign == "-" else 1
    return factor * magnitude, (factor * digits, scale) if fits_fast_path else None


def _problem(text: str) -> str:
    return f'"{text[:40]}" is not a quantity'
