"""Tokens for names: the same token for the same name, in the order of the names if the order matters.

A scheduler sorts names among each other and with names that every cluster has ("cpu"). So a token sorts before and
after the same tokens, and before and after the same well-known names, as the name that it replaces. If nothing sorts
the names, a key determines the order of the tokens, which is not stored in any file.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby

import msgspec

from kpreempt.model.labels import is_label_key, is_label_value

_MIN_DIGITS = 4
# The characters of a DNS name, letters first, because tokens should look like DNS names.
_FIRST = "abcdefghijklmnopqrstuvwxyz0123456789"
_NEXT = _FIRST + "-."
_MAX_LABEL = 63
_MAX_DOMAIN = 253
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")


class Space(msgspec.Struct, frozen=True):
    """Names of one kind, which are only compared with each other.

    ``stem`` is the prefix of their tokens, ``is_kept`` selects well-known names, which stay, and ``ending`` returns the
    part of a name's shape that its token must have. ``fences`` are other texts with which these names are sorted.
    ``joint`` precedes the number. ``sorts_with_kept`` means that the order relative to names that stay matters as
    well, and ``is_sorted`` that any order matters.
    """

    stem: str
    is_kept: Callable[[str], bool] = lambda _: False
    ending: Callable[[str], str] = lambda _: ""
    fences: tuple[str, ...] = ()
    joint: str = "-"
    sorts_with_kept: bool = True
    is_sorted: bool = True


class Names:
    """The collected names, by space, and once they are ``numbered``, the token of each.

    The ``key`` orders names that nothing sorts: up to 64 bytes, as good as any secret.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._seen: dict[str, tuple[Space, set[str], set[str]]] = {}
        self._tokens: dict[str, dict[str, str]] = {}

    def collect(self, space: Space, name: str) -> str:
        """Collect a name and return it."""
        names = self._of(space)[1]
        if name not in names:
            (self._of(space)[2] if space.is_kept(name) else names).add(name)
        return name

    def keep(self, space: Space, name: str) -> str:
        """Record that a name is kept as it is here."""
        self._of(space)[2].add(name)
        return name

    def token(self, space: Space, name: str) -> str:
        """Return the token of a collected name, or the name itself if it is empty or well known.

        Raises ``KeyError`` for any other: a name that was overlooked must not leak.
        """
        tokens = self._tokens[space.stem]
        return name if not name or space.is_kept(name) else tokens[name]

    def number(self) -> None:
        """Assign a token to every collected name."""
        for space, names, kept_names in self._seen.values():
            # The key orders names that nothing sorts.
            order = None if space.is_sorted else self._scattered
            neighbors = kept_names - {""} if space.sorts_with_kept else ()
            fences = sorted({*neighbors, *space.fences}) if space.is_sorted else ()
            self._tokens[space.stem] = dict(_in_order(space, sorted(names - {""}, key=order), fences))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every token with its name, in order within each space."""
        for tokens in self._tokens.values():
            yield from ((token, name) for name, token in tokens.items())

    def _scattered(self, name: str) -> bytes:
        return blake2b(name.encode(errors="surrogatepass"), key=self._key).digest()

    def _of(self, space: Space) -> tuple[Space, set[str], set[str]]:
        found = self._seen.get(space.stem)
        if found is None:
            found = self._seen[space.stem] = (space, set(), set())
        return found


def _in_order(space: Space, names: Sequence[str], fences: Sequence[str]) -> Iterator[tuple[str, str]]:
    digits = max(_MIN_DIGITS, len(str(len(names))))
    number = 0
    for place, group in groupby(names, key=lambda name: bisect_left(fences, name)):
        below = fences[place - 1] if place else ""
        above = fences[place] if place < len(fences) else ""
        start = _start_between(below, above, space.stem)
        for name in group:
            number += 1
            yield name, f"{start}{space.joint}{number:0{digits}}{space.ending(name)}"


def _start_between(below: str, above: str, stem: str) -> str:
    """Return a prefix for tokens that keeps them between two fences, whatever follows it.

    An empty fence is none. If no name fits in between, as between ``a`` and ``a-``, the order is given up.
    """
    for lead in ("", *_leads(below, above)):
        start = f"{lead}-{stem}" if lead else stem
        if _is_between(below, start, above):
            return start
    return stem


def _leads(below: str, above: str) -> Iterable[str]:
    for length in range(max(len(below), len(above)) + 1):
        for base in {below[:length]: None, above[:length]: None}:
            for letter in _NEXT if length else _FIRST:
                lead = base + letter
                if _is_between(below, lead, above):
                    yield lead


def _is_between(below: str, start: str, above: str) -> bool:
    is_above = not below or (start > below and not below.startswith(start))
    return is_above and (not above or (start < above and not above.startswith(start)))


def ending_of_value(value: str) -> str:
    """Return an empty string for a valid label value, otherwise a suffix that makes the token equally invalid."""
    return "" if is_label_value(value) else _spoiling(value, _NAME, _MAX_LABEL)


def ending_of_key(key: str) -> str:
    """Return an empty string for a valid label key, otherwise a suffix that makes the token equally invalid."""
    if is_label_key(key):
        return ""
    *domains, name = key.split("/")
    ending = _spoiling(name, _NAME, _MAX_LABEL)
    if not domains:
        return ending
    domain = _spoiling(domains[0], _DOMAIN, _MAX_DOMAIN) if domains[0] else "!"
    return f"{domain}{'/x' * (len(domains) - 1)}/{'x' if name else ''}{ending}"


def _spoiling(text: str, syntax: re.Pattern[str], longest: int) -> str:
    padding = "x" * longest if len(text.encode(errors="replace")) > longest else ""
    return padding if not text or syntax.fullmatch(text) else f"{padding}!"
