"""Random choices in Kueue: the order of heads that compare equal, and cohorts with the same share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")
# Limit of the runs that are tried. If more are possible, not all outcomes are known.
MAX_PATHS = 32


class Chance:
    """One sequence of choices: the first option each time, unless ``script`` gives another index."""

    def __init__(self, script: Sequence[int] = ()) -> None:
        self._script = script
        self._chosen: list[tuple[int, int]] = []

    def pick(self, options: Sequence[_T]) -> _T:
        """Choose one of the options; there is at least one."""
        if len(options) == 1:
            return options[0]
        place = len(self._chosen)
        choice = self._script[place] if place < len(self._script) else 0
        self._chosen.append((choice, len(options)))
        return options[choice]

    def shuffled(self, options: Sequence[_T]) -> Iterator[_T]:
        """Yield all options in the chosen order."""
        left = list(options)
        while left:
            option = self.pick(left)
            left.remove(option)
            yield option

    def alternatives(self) -> list[list[int]]:
        """Return scripts for the other choices after the end of this script."""
        choices = [choice for choice, _ in self._chosen]
        return [
            [*choices[:place], other]
            for place in range(len(self._script), len(self._chosen))
            for other in range(1, self._chosen[place][1])
        ]


def all_branches(run: Callable[[Chance], _T], most: int = MAX_PATHS) -> tuple[list[_T], bool]:
    """Run up to ``most`` sequences of choices, first options first; return the results and whether all were tried."""
    found: list[_T] = []
    scripts: list[list[int]] = [[]]
    while scripts and len(found) < most:
        chance = Chance(scripts.pop(0))
        found.append(run(chance))
        scripts += chance.alternatives()
    return found, not scripts
