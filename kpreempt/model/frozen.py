"""Lists and maps that refuse to be changed; in everything else they are what they are a kind of.

Records are frozen, but a list in one is not. Where a record is shared with code that is not ours its lists and maps are
of these kinds.

So is the empty list that all records share where a field is missing: a plain ``[]`` as default is made anew for every
record, which for the pods of a big cluster is a million lists. How long a list may be is here, too: schedulers hold
lists of a pod against those of nodes and of other pods, each entry against each; an object whose list is longer than
any in earnest is refused where it is read.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec


def _reject(self: object, *_: object, **__: object) -> NoReturn:
    kind = "list" if isinstance(self, list) else "dict"
    raise TypeError(f"this {kind} is read-only; change a copy: {kind}(...)")


class FrozenList(list[Any]):
    """A list that cannot be changed."""

    __slots__ = ()

    append = extend = insert = remove = pop = clear = sort = reverse = _reject
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _reject

    def __reduce_ex__(self, _: Any) -> tuple[type, tuple[list[Any]]]:
        """A copy can be changed."""
        return list, (list(self),)


class FrozenDict(dict[Any, Any]):
    """A map that cannot be changed."""

    __slots__ = ()

    setdefault = update = pop = popitem = clear = _reject
    __setitem__ = __delitem__ = __ior__ = _reject

    def __reduce_ex__(self, _: Any) -> tuple[type, tuple[dict[Any, Any]]]:
        """A copy can be changed."""
        return dict, (dict(self),)


def frozen(value: Any) -> Any:
    """``value``, a record or plain data, with frozen lists and maps throughout; itself where it has none to freeze."""
    kind: Any = type(value)
    if kind is list:
        return FrozenList([frozen(item) for item in value])
    if kind is dict:
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    changed = {}
    for field in _fields_to_freeze(kind):
        item = getattr(value, field)
        # Most of them are missing, and the default is frozen.
        if item is None or isinstance(item, FrozenList | FrozenDict):
            continue
        copy = frozen(item)
        if copy is not item:
            changed[field] = copy
    return msgspec.structs.replace(value, **changed) if changed else value


@cache
def _fields_to_freeze(kind: type) -> tuple[str, ...]:
    """The fields of a record that may hold lists, maps or records; none of anything else."""
    if not issubclass(kind, msgspec.Struct):
        return ()
    hints = get_type_hints(kind)
    return tuple(field for field in kind.__struct_fields__ if not _is_plain(hints[field]))


def _is_plain(hint: Any) -> bool:
    """Whether a field of this type holds neither."""
    if get_origin(hint) in (Union, UnionType):
        return all(map(_is_plain, get_args(hint)))
    return hint in (str, int, float, bool, NoneType, datetime)


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
