"""Quantities, as in Kubernetes' ``library/quantity.go``; amounts as in ``apimachinery``'s ``pkg/api/resource``."""

from __future__ import annotations

import re
from functools import lru_cache, partial

from kpreempt.cel.functions import Overload, declare, one, per_character
from kpreempt.cel.libraries.texts import plain_text
from kpreempt.cel.values import NO_SUCH_OVERLOAD, Failure, Opaque, Value
from kpreempt.model.quantity import MAX_INT64, NANO_PER_UNIT, quantity, wrap_int64

_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_SUFFIX = "unable to parse quantity's suffix"
_SHAPE = re.compile(r"[+-]?([0-9]*\.?[0-9]*)[eEinumkKMGTP]*[-+]?[0-9]*", re.ASCII)
_SCALED_DIGITS = 18


class QuantityValue(Opaque):
    """An amount. ``scaled`` is value and power of ten where upstream has it in an int64, else it has a big number.

    ``sum`` is one that was added up: cel-go then has a pointer, which nothing is equal to on the right hand.
    """

    __slots__ = ("nano", "scaled", "sum", "text")
    type_name = "kubernetes.Quantity"

    def __init__(self, nano: int, scaled: tuple[int, int] | None, *, text: str = "", sum_: bool = False) -> None:
        self.nano = nano
        self.scaled = scaled
        self.sum = sum_
        self.text = text

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
    # Upstream takes a number without digits for nothing.
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
    """The amount as an int64, where upstream can tell it without rounding."""
    if amount.scaled is None or amount.scaled[1] < 0:
        return None
    value, scale = amount.scaled
    number = value * 10**scale if scale <= _SCALED_DIGITS else value * 10**19
    return number if -MAX_INT64 - 1 <= number <= MAX_INT64 else None


def _as_float(amount: QuantityValue) -> float:
    base, exponent = amount.scaled if amount.scaled is not None else (amount.nano, -9)
    return float(base) * (10.0**exponent if exponent <= 308 else float("inf"))


def _total(sign: int, left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
    """The sum or difference, as an int64 with a scale as long as it is one on the way there."""
    if isinstance(right, int):
        right = QuantityValue(right * NANO_PER_UNIT, (right, 0))
    if left.scaled is not None and right.scaled is not None:
        value, scale = right.scaled
        # The least int64 has no negative: upstream goes on with itself.
        scaled = _added_scaled(left.scaled, (wrap_int64(sign * value), scale))
        if scaled is not None:
            value, shift = scaled[0], scaled[1] + 9
            nano = int(value * 10**shift) if shift >= 0 else value // int(10**-shift)
            return QuantityValue(nano, scaled, sum_=True)
    return QuantityValue(left.nano + sign * right.nano, None, sum_=True)


def _added_scaled(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int] | None:
    if right[0] == 0 or left[0] == 0:
        return left if right[0] == 0 else right
    scale = min(left[1], right[1])
    values = [value * 10 ** (own - scale) for value, own in (left, right)]
    fits = all(-MAX_INT64 - 1 <= value <= MAX_INT64 for value in (*values, sum(values)))
    return (sum(values), scale) if fits else None


_PARSED = per_character()
_OF = "kubernetes.Quantity"

declare(
    Overload("quantity", f"(string) -> {_OF}", _quantity, _PARSED),
    Overload("isQuantity", "(string) -> bool", lambda text: type(_quantity(text)) is QuantityValue, _PARSED),
    Overload("sign", f"({_OF}) -> int", lambda amount: (amount.nano > 0) - (amount.nano < 0), one),
    Overload("isGreaterThan", f"{_OF}.({_OF}) -> bool", lambda left, right: left.nano > right.nano, one),
    Overload("isLessThan", f"{_OF}.({_OF}) -> bool", lambda left, right: left.nano < right.nano, one),
    Overload(
        "compareTo",
        f"{_OF}.({_OF}) -> int",
        lambda left, right: (left.nano > right.nano) - (left.nano < right.nano),
        one,
    ),
    Overload("asApproximateFloat", f"{_OF}.() -> double", _as_float, one),
    Overload(
        "asInteger",
        f"{_OF}.() -> int",
        lambda amount: Failure("cannot convert value to integer") if (number := _integer(amount)) is None else number,
        one,
    ),
    Overload("isInteger", f"{_OF}.() -> bool", lambda amount: _integer(amount) is not None, one),
    Overload("add", f"{_OF}.({_OF}) -> {_OF}", partial(_total, 1), one),
    Overload("add", f"{_OF}.(int) -> {_OF}", partial(_total, 1)),
    Overload("sub", f"{_OF}.({_OF}) -> {_OF}", partial(_total, -1), one),
    Overload("sub", f"{_OF}.(int) -> {_OF}", partial(_total, -1)),
)
