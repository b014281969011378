"""The empty list and the empty map that all records share where a field is missing.

A plain ``[]`` as default is made anew for every record, which for the pods of a big cluster is a million lists. Records
are frozen, and so are these.
"""

from __future__ import annotations

from typing import Any

from kpreempt.model.frozen import FrozenDict, FrozenList


class _EmptyList(FrozenList):
    """Not exactly ``list``, so that msgspec takes an instance as the default instead of copying it."""

    __slots__ = ()


class _EmptyMap(FrozenDict):
    __slots__ = ()


NO_ITEMS: list[Any] = _EmptyList()
NO_ENTRIES: dict[Any, Any] = _EmptyMap()
