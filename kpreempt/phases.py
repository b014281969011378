"""What an answer's time goes to, by phase; whoever measures hands an object down that knows a clock.

The phases are ``read`` (files to objects), ``decode`` (objects to records), ``admission``, ``prepare``, ``filter``,
``score``, ``dryRun``, ``choice``, ``proposals`` and ``report``. What is prepared lazily counts in the phase that first
needs it. Out-of-tree plugins and extenders are told apart within the phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

T = TypeVar("T")


class Phases(Protocol):
    """Told when a phase begins and ends. A phase may come more than once; none begins within another."""

    def phase(self, name: str, /) -> AbstractContextManager[None]:
        """What the block does belongs to the phase."""
        ...

    def part(self, name: str, /) -> AbstractContextManager[None]:
        """What the block does is the work of that plugin or extender, within whatever phase it is."""
        ...


class _NoPhases:
    def phase(self, _name: str, /) -> AbstractContextManager[None]:
        return nullcontext()

    part = phase


NO_PHASES: Phases = _NoPhases()


def timed_items(phases: Phases, name: str, items: Iterable[T]) -> Iterator[T]:
    """The items, where the phase is finding the next one and not what is done with it."""
    iterator = iter(items)
    while True:
        with phases.phase(name):
            found = next(((item,) for item in iterator), None)
        if found is None:
            return
        yield found[0]
