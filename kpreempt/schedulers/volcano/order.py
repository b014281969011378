"""The order in which what the genuine scheduler keeps in maps is walked, and which of several equals it picks.

Volcano walks Go maps and picks at random among nodes with the same score, so that two sessions on the same cluster may
differ. Without chance the order is that of the keys and the pick the first; with it, one of the other ways is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")


class Chance(Protocol):
    """What shuffles and chooses; ``random.Random`` does."""

    def shuffle(self, x: Any, /) -> None:
        """Shuffle a list in place."""

    def choice(self, seq: Any, /) -> Any:
        """One of a list."""


class Order:
    """One way through all that is left to chance."""

    def __init__(self, chance: Chance | None = None) -> None:
        self._chance = chance

    def walk(self, items: Iterable[Item]) -> list[Item]:
        """The items of a map, which are given by key."""
        walked = list(items)
        if self._chance is not None:
            self._chance.shuffle(walked)
        return walked

    def pick(self, items: list[Item]) -> Item:
        """One of several equals; raises ``IndexError`` where there is none."""
        if self._chance is None:
            return items[0]
        picked: Item = self._chance.choice(items)
        return picked
