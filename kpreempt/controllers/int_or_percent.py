"""Amounts that are a number or a percentage of another number.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/intstr/intstr.go`` (``GetScaledValueFromIntOrPercent``).
"""

from __future__ import annotations

from kpreempt.controllers.actions import SyncError
from kpreempt.model.labels import parse_int64

# A sign and the digits of an int64; longer texts are numbers that upstream cannot read, or zeros in a row.
_LONGEST_NUMBER = 20


def scaled_value(amount: int | str, total: int, *, round_up: bool) -> int:
    """``amount`` itself where it is a number, or that percentage of ``total``, rounded to a whole number.

    Raises ``SyncError`` for a text that is no percentage.
    """
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    percent = parse_int64(digits) if digits != amount and len(digits) <= _LONGEST_NUMBER else None
    if percent is None:
        problem = "invalid type: string is not a percentage"
        if digits != amount:
            why = "value out of range" if digits.lstrip("+-").isdecimal() and digits.isascii() else "invalid syntax"
            problem = f'invalid value "{amount}": strconv.Atoi: parsing "{digits}": {why}'
        raise SyncError(
            f'"{_shortened(amount)}" is not a percentage',
            controllers_words=f"invalid value for IntOrString: {problem}",
        )
    return -(-percent * total // 100) if round_up else percent * total // 100


def _shortened(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
