"""The time that an answer takes, by phase; the caller passes an object with a clock to measure it.

The phases are ``read`` (files to objects), ``decode`` (objects to records), ``admission``, ``prepare``, ``filter``,
``score``, ``dryRun``, ``choice``, ``remedies`` and ``report``. Lazy preparation counts toward the phase that first
needs it. Out-of-tree plugins and extenders are measured separately within the phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

T = TypeVar("T")


class Phases(Protocol):
    """Notified when a phase begins and ends. A phase may occur more than once, but never within another."""

    def phase(self, name: str, /) -> AbstractContextManager[None]:
        """Mark the block as part of the phase."""
        ...

    def part(self, name: str, /) -> AbstractContextManager[None]:
        """Mark the block as the work of a plugin or extender, in whatever phase."""
        ...


class _NoPhases:
    def phase(self, _name: str, /) -> AbstractContextManager[None]:
        return nullcontext()

    part = phase


NO_PHASES: Phases = _NoPhases()


def timed_items(phases: Phases, name: str, items: Iterable[T]) -> Iterator[T]:
    """Yield the items; the phase covers finding the next item, but not what is done with it."""
    iterator = iter(items)
    while True:
        with phases.phase(name):
            found = next(((item,) for item in iterator), None)
        if found is None:
            return
        yield found[0]
