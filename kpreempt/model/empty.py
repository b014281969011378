"""What lists of records are: the empty one that all share where a field is missing, and how long one may be.

A plain ``[]`` as default is made anew for every record, which for the pods of a big cluster is a million lists. Records
are frozen, and so are these. Schedulers hold lists of a pod against those of nodes and of other pods, each entry
against each; an object whose list is longer than any in earnest is refused where it is read.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from kpreempt.model.frozen import FrozenDict, FrozenList

_Entry = TypeVar("_Entry")

Few = Annotated[list[_Entry], msgspec.Meta(max_length=500)]
# Those of which each entry is held against all pods: terms of affinity, spread constraints, expressions of selectors.
Handful = Annotated[list[_Entry], msgspec.Meta(max_length=100)]
# Those of values, ports and images, which programs write.
Many = Annotated[list[_Entry], msgspec.Meta(max_length=5000)]


class _EmptyList(FrozenList):
    """Not exactly ``list``, so that msgspec takes an instance as the default instead of copying it."""

    __slots__ = ()


class _EmptyMap(FrozenDict):
    __slots__ = ()


NO_ITEMS: list[Any] = _EmptyList()
NO_ENTRIES: dict[Any, Any] = _EmptyMap()
