"""Lists and maps that refuse to be changed; in everything else they are what they are a kind of.

Records are frozen, but a list in one is not. Where a record is shared with code that is not ours its lists and maps are
of these kinds.
"""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    kind = "list" if isinstance(self, list) else "dict"
    raise TypeError(f"this {kind} is read-only; change a copy: {kind}(...)")


class FrozenList(list[Any]):
    """A list that cannot be changed."""

    __slots__ = ()

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple[type, tuple[list[Any]]]:
        """A copy can be changed."""
        return list, (list(self),)

    def __reduce_ex__(self, _: Any) -> tuple[type, tuple[list[Any]]]:
        """As ``__reduce__``."""
        return self.__reduce__()


class FrozenDict(dict[Any, Any]):
    """A map that cannot be changed."""

    __slots__ = ()

    setdefault = update = pop = popitem = clear = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[Any, Any]]]:
        """A copy can be changed."""
        return dict, (dict(self),)

    def __reduce_ex__(self, _: Any) -> tuple[type, tuple[dict[Any, Any]]]:
        """As ``__reduce__``."""
        return self.__reduce__()


def frozen(value: Any) -> Any:
    """``value``, a record or plain data, with frozen lists and maps throughout; itself where it has none to freeze."""
    kind = type(value)
    if kind is list:
        return FrozenList(map(frozen, value))
    if kind is dict:
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    if not issubclass(kind, msgspec.Struct):
        return value
    changed = {}
    for field in kind.__struct_fields__:
        item = getattr(value, field)
        if type(item) in _ATOMS:
            continue
        copy = frozen(item)
        if copy is not item:
            changed[field] = copy
    return msgspec.structs.replace(value, **changed) if changed else value


_ATOMS = frozenset((str, int, float, bool, type(None), FrozenList, FrozenDict))
