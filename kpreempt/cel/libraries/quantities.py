"""Quantities and semantic versions, like Kubernetes' ``library/quantity.go`` and ``library/semverlib.go``.

Quantities follow ``apimachinery``'s ``pkg/api/resource``, versions follow ``github.com/blang/semver/v4``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, partial

from kpreempt.cel.functions import Overload, declare, one, per_character
from kpreempt.cel.libraries.texts import plain_text, quoted
from kpreempt.cel.values import MAX_UINT, NO_SUCH_OVERLOAD, Failure, Opaque, Value
from kpreempt.model.quantity import MAX_INT64, NANO_PER_UNIT, quantity, wrap_int64

_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_SUFFIX = "unable to parse quantity's suffix"
_SHAPE = re.compile(r"[+-]?([0-9]*\.?[0-9]*)[eEinumkKMGTP]*[-+]?[0-9]*", re.ASCII)
_SCALED_DIGITS = 18


@dataclass(eq=False)
class QuantityValue(Opaque):
    """A quantity. ``scaled`` is value and power of ten if upstream stores it as int64; otherwise it is a big number.

    ``sum`` marks the result of an addition: a pointer in cel-go, which nothing equals on the right-hand side.
    """

    nano: int
    scaled: tuple[int, int] | None
    text: str = ""
    sum: bool = False
    type_name = "kubernetes.Quantity"

    def __str__(self) -> str:
        return self.text or plain_text(self.nano / NANO_PER_UNIT)

    def equals(self, other: Value) -> bool | Failure:
        if not isinstance(other, QuantityValue) or other.sum:
            return NO_SUCH_OVERLOAD
        return self.nano == other.nano


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> QuantityValue:
    """Raises ``ValueError`` with upstream's message."""
    shape = _SHAPE.fullmatch(text)
    if not text or shape is None:
        raise ValueError(_WRONG_FORMAT)
    # Upstream parses a number without digits as zero.
    if not shape[1].strip("."):
        text = text[: shape.start(1)] + "0" + text[shape.end(1) :]
    try:
        found = quantity(text)
    except ValueError:
        raise ValueError(_WRONG_SUFFIX) from None
    return QuantityValue(found.nano, found.scaled, text=text)


def _quantity(text: str) -> Value:
    try:
        return parse_quantity(text)
    except ValueError as error:
        return Failure(str(error))


def _integer(amount: QuantityValue) -> int | None:
    """Return the quantity as an int64 if upstream can do so without rounding."""
    if amount.scaled is None or amount.scaled[1] < 0:
        return None
    value, scale = amount.scaled
    number = value * 10**scale if scale <= _SCALED_DIGITS else value * 10**19
    return number if -MAX_INT64 - 1 <= number <= MAX_INT64 else None


def _as_float(amount: QuantityValue) -> float:
    base, exponent = amount.scaled if amount.scaled is not None else (amount.nano, -9)
    return float(base) * (10.0**exponent if exponent <= 308 else float("inf"))


def _total(sign: int, left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
    """Return the sum or difference, as a scaled int64 as long as no step overflows."""
    if isinstance(right, int):
        right = QuantityValue(right * NANO_PER_UNIT, (right, 0))
    if left.scaled is not None and right.scaled is not None:
        value, scale = right.scaled
        # The minimum int64 has no negation: upstream continues with itself.
        scaled = _added_scaled(left.scaled, (wrap_int64(sign * value), scale))
        if scaled is not None:
            value, shift = scaled[0], scaled[1] + 9
            nano = int(value * 10**shift) if shift >= 0 else value // int(10**-shift)
            return QuantityValue(nano, scaled, sum=True)
    return QuantityValue(left.nano + sign * right.nano, None, sum=True)


def _added_scaled(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int] | None:
    if right[0] == 0 or left[0] == 0:
        return left if right[0] == 0 else right
    scale = min(left[1], right[1])
    values = [value * 10 ** (own - scale) for value, own in (left, right)]
    fits = all(-MAX_INT64 - 1 <= value <= MAX_INT64 for value in (*values, sum(values)))
    return (sum(values), scale) if fits else None


_QUANTITY = "kubernetes.Quantity"


_DIGITS = frozenset("0123456789")
_ALPHANUMERIC = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")


@dataclass(eq=False)
class Semver(Opaque):
    """A semantic version."""

    numbers: tuple[int, int, int]
    prerelease: tuple[int | str, ...]
    build: tuple[str, ...]
    type_name = "kubernetes.Semver"

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key of versions: build metadata is ignored, and a prerelease comes before the release."""
        return self.numbers, not self.prerelease, tuple((isinstance(part, str), part) for part in self.prerelease)

    def equals(self, other: Value) -> bool | Failure:
        return self.order == other.order if isinstance(other, Semver) else NO_SUCH_OVERLOAD

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        text += f"-{'.'.join(map(str, self.prerelease))}" if self.prerelease else ""
        return text + (f"+{'.'.join(self.build)}" if self.build else "")


def parse_semver(text: str) -> Semver:
    """Raises ``ValueError`` with the message of the library that Kubernetes uses."""
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major", "Major"), _number(parts[1], "minor", "Minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    numbers = (major, minor, _number(patch, "patch", "Patch"))
    pre = tuple(map(_prerelease, prerelease.split("."))) if dash else ()
    return Semver(numbers, pre, tuple(map(_build, build.split("."))) if plus else ())


def _number(text: str, word: str, title: str) -> int:
    if not _DIGITS.issuperset(text):
        raise ValueError(f"Invalid character(s) found in {word} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{title} number must not contain leading zeroes {quoted(text)}")
    return _uint(text)


def _uint(text: str) -> int:
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > MAX_UINT:
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise ValueError("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return _uint(text)
    if not _ALPHANUMERIC.issuperset(text):
        raise ValueError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise ValueError("Build meta data is empty")
    if not _ALPHANUMERIC.issuperset(text):
        raise ValueError(f"Invalid character(s) found in build meta data {quoted(text)}")
    return text


def _normalized(text: str) -> str:
    """Normalize a loosely written version: remove ``v`` and leading zeros, and add missing numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part.encode(errors="surrogatepass")) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped and stripped[0] in _DIGITS else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts.extend(["0"] * (3 - len(parts)))
    return ".".join(parts)


def _semver(text: str, normalize: bool = False) -> Value:
    try:
        return parse_semver(_normalized(text) if normalize else text)
    except ValueError as error:
        return Failure(str(error))


def _number_at(index: int, version: Semver) -> int:
    number = version.numbers[index]
    return number if number < 2**63 else number - 2**64


def _compare(left: Semver, right: Semver) -> int:
    return (left.order > right.order) - (left.order < right.order)


_SEMVER = "kubernetes.Semver"

declare(
    Overload("quantity", f"(string) -> {_QUANTITY}", _quantity, per_character()),
    Overload("isQuantity", "(string) -> bool", lambda text: type(_quantity(text)) is QuantityValue, per_character()),
    Overload("sign", f"({_QUANTITY}) -> int", lambda amount: (amount.nano > 0) - (amount.nano < 0), one),
    Overload("isGreaterThan", f"{_QUANTITY}.({_QUANTITY}) -> bool", lambda left, right: left.nano > right.nano, one),
    Overload("isLessThan", f"{_QUANTITY}.({_QUANTITY}) -> bool", lambda left, right: left.nano < right.nano, one),
    Overload(
        "compareTo",
        f"{_QUANTITY}.({_QUANTITY}) -> int",
        lambda left, right: (left.nano > right.nano) - (left.nano < right.nano),
        one,
    ),
    Overload("asApproximateFloat", f"{_QUANTITY}.() -> double", _as_float, one),
    Overload(
        "asInteger",
        f"{_QUANTITY}.() -> int",
        lambda amount: Failure("cannot convert value to integer") if (number := _integer(amount)) is None else number,
        one,
    ),
    Overload("isInteger", f"{_QUANTITY}.() -> bool", lambda amount: _integer(amount) is not None, one),
    Overload("add", f"{_QUANTITY}.({_QUANTITY}) -> {_QUANTITY}", partial(_total, 1), one),
    Overload("add", f"{_QUANTITY}.(int) -> {_QUANTITY}", partial(_total, 1)),
    Overload("sub", f"{_QUANTITY}.({_QUANTITY}) -> {_QUANTITY}", partial(_total, -1), one),
    Overload("sub", f"{_QUANTITY}.(int) -> {_QUANTITY}", partial(_total, -1)),
    Overload("semver", f"(string) -> {_SEMVER}", _semver, per_character()),
    Overload("semver", f"(string, bool) -> {_SEMVER}", _semver),
    Overload("isSemver", "(string) -> bool", lambda text: type(_semver(text)) is Semver, per_character()),
    Overload("isSemver", "(string, bool) -> bool", lambda text, normalize: type(_semver(text, normalize)) is Semver),
    Overload("isGreaterThan", f"{_SEMVER}.({_SEMVER}) -> bool", lambda left, right: _compare(left, right) > 0, one),
    Overload("isLessThan", f"{_SEMVER}.({_SEMVER}) -> bool", lambda left, right: _compare(left, right) < 0, one),
    Overload("compareTo", f"{_SEMVER}.({_SEMVER}) -> int", _compare, one),
    *(
        Overload(_name, f"{_SEMVER}.() -> int", partial(_number_at, _index), one)
        for _index, _name in enumerate(("major", "minor", "patch"))
    ),
)
