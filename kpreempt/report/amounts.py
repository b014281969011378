"""Amounts as people read them: resources with units, counts with the right plural.

An amount is exact or marked with ``~``; nothing is rounded silently.
"""

from __future__ import annotations

_BINARY_UNITS = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
_DECIMAL_UNITS = ("E", "P", "T", "G", "M", "k")
# Integers of more digits than this are shown rounded, with the mark.
_MAX_BINARY_DIGITS = 5
_MAX_DECIMAL_DIGITS = 4
_IRREGULAR_VERBS = {"is": "are", "has": "have", "was": "were", "goes": "go", "does": "do"}


def is_bytes(resource: str) -> bool:
    """Whether amounts of the resource are bytes; CPU is in milli-CPU and all others are units."""
    return resource in ("memory", "ephemeral-storage", "storage") or resource.startswith("hugepages-")


def format_amount(resource: str, amount: int, *, exact: bool = False) -> str:
    """An amount in the units that the verdict keeps the resource in, as a quantity: ``500m``, ``1.5``, ``16000Mi``.

    Bytes that no unit says shortly are rounded and marked (``~15.6Gi``), unless ``exact``.
    """
    if amount < 0:
        return f"-{format_amount(resource, -amount, exact=exact)}"
    if resource == "cpu":
        return _format_cpu(amount)
    return _format_bytes(amount, exact=exact) if is_bytes(resource) else f"{amount:,}"


def _format_cpu(milli: int) -> str:
    if milli < 1000:
        return f"{milli}m" if milli else "0"
    whole, rest = divmod(milli, 1000)
    return f"{whole:,}" + (f".{rest:03}".rstrip("0") if rest else "")


def _format_bytes(amount: int, *, exact: bool) -> str:
    if not amount:
        return "0"
    binary = _whole_units(amount, 1024, _BINARY_UNITS)
    decimal = _whole_units(amount, 1000, _DECIMAL_UNITS)
    if len(binary[0]) <= _MAX_BINARY_DIGITS:
        return "".join(binary)
    if len(decimal[0]) <= _MAX_DECIMAL_DIGITS:
        return "".join(decimal)
    shortest = "".join(min(binary, decimal, key=lambda parts: len(parts[0])))
    return shortest if exact else _round_bytes(amount)


def _whole_units(amount: int, base: int, units: tuple[str, ...]) -> tuple[str, str]:
    """The amount in the largest unit that divides it."""
    for index, unit in enumerate(units):
        count, rest = divmod(amount, base ** (len(units) - index))
        if not rest:
            return str(count), unit
    return str(amount), ""


def _round_bytes(amount: int) -> str:
    for index, unit in enumerate(_BINARY_UNITS):
        size = 1024 ** (len(_BINARY_UNITS) - index)
        if amount >= size:
            return f"~{_decimal(amount * 100 // size)}{unit}"
    return str(amount)


def _decimal(hundredths: int) -> str:
    whole, rest = divmod(hundredths, 100)
    return f"{whole}.{rest:02}".rstrip("0").rstrip(".")


def count(number: int, noun: str) -> str:
    """A number with its noun: ``1 node``, ``1,189 nodes``."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of a noun."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def agree(number: int, verb: str) -> str:
    """A verb in the form that ``number`` things take: ``agree(1, "is")`` is ``is``, ``agree(2, "is")`` ``are``."""
    return verb if number == 1 else _IRREGULAR_VERBS.get(verb, verb.removesuffix("s"))
