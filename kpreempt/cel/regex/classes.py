"""Classes of characters as ranges of code points."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache

_LAST = 0x10FFFF


class Chars:
    """A set of characters, as sorted ranges that do not touch."""

    __slots__ = ("_starts", "ranges")

    def __init__(self, ranges: tuple[tuple[int, int], ...]) -> None:
        self.ranges = ranges
        self._starts = [low for low, _ in ranges]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> Chars:
        """Build a class from ranges in any order."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(merged))

    def __contains__(self, code: int) -> bool:
        at = bisect_right(self._starts, code) - 1
        return at >= 0 and code <= self.ranges[at][1]

    def negated(self) -> Chars:
        found = []
        start = 0
        for low, high in self.ranges:
            if low > start:
                found.append((start, low - 1))
            start = high + 1
        if start <= _LAST:
            found.append((start, _LAST))
        return Chars(tuple(found))


def _ascii(text: str) -> Chars:
    """Build the class written like ``a-z0-9_``."""
    ranges = []
    place = 0
    while place < len(text):
        if text[place + 1 : place + 2] == "-" and place + 2 < len(text):
            ranges.append((ord(text[place]), ord(text[place + 2])))
            place += 3
        else:
            ranges.append((ord(text[place]), ord(text[place])))
            place += 1
    return Chars.of(ranges)


PERL = {
    "d": _ascii("0-9"),
    "s": _ascii("\t\n\f\r "),
    "w": _ascii("0-9A-Za-z_"),
    "any": Chars(((0, _LAST),)),
    "dot": _ascii("\n").negated(),
}
NAMED = {
    "alnum": _ascii("0-9A-Za-z"),
    "alpha": _ascii("A-Za-z"),
    "ascii": Chars(((0, 0x7F),)),
    "blank": _ascii("\t "),
    "cntrl": Chars(((0, 0x1F), (0x7F, 0x7F))),
    "digit": _ascii("0-9"),
    "graph": _ascii("!-~"),
    "lower": _ascii("a-z"),
    "print": _ascii(" -~"),
    "punct": Chars.of([(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)]),
    "space": _ascii("\t\n\v\f\r "),
    "upper": _ascii("A-Z"),
    "word": _ascii("0-9A-Za-z_"),
    "xdigit": _ascii("0-9A-Fa-f"),
}
_CATEGORIES = frozenset(
    [
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cs",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Pe",
        "Pf",
        "Pi",
        "Po",
        "Ps",
        "S",
        "Sc",
        "Sk",
        "Sm",
        "So",
        "Z",
        "Zl",
        "Zp",
        "Zs",
    ]
)


@lru_cache(maxsize=64)
def unicode_class(name: str) -> Chars | None:
    """Return the characters of a Unicode general category, or ``None`` for other names; scripts are not supported."""
    if name == "Any":
        return PERL["any"]
    if name not in _CATEGORIES:
        return None
    return Chars.of(run for category, runs in _categories().items() if category.startswith(name) for run in runs)


@lru_cache(maxsize=1)
def _categories() -> dict[str, list[tuple[int, int]]]:
    """Return the ranges of each category, without unassigned code points."""
    from unicodedata import category  # noqa: PLC0415

    found: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, category(chr(0))
    for code in range(1, _LAST + 2):
        following = category(chr(code)) if code <= _LAST else ""
        if following != current:
            if current != "Cn":
                found.setdefault(current, []).append((start, code - 1))
            start, current = code, following
    return found


def folded(chars: Chars) -> Chars:
    """Return the class with all case variants of its characters."""
    ranges = list(chars.ranges)
    for low, high in chars.ranges:
        # All letters with case are below this; large ranges are only scanned up to it.
        for code in range(low, min(high, 0x1E943) + 1):
            ranges.extend(_cases(code))
    return Chars.of(ranges)


@lru_cache(maxsize=4096)
def _cases(code: int) -> tuple[tuple[int, int], ...]:
    char = chr(code)
    others = {char.lower(), char.upper(), char.lower().upper(), char.upper().lower(), char.title()}
    # Letters that are a case variant of another one, but not its simple lower or upper case.
    if others & {"k", "K", "\u212a"}:
        others |= {"k", "K", "\u212a"}
    if others & {"s", "S", "\u017f"}:
        others |= {"s", "S", "\u017f"}
    return tuple((ord(other), ord(other)) for other in others if len(other) == 1)
