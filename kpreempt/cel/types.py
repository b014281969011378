"""The types used by the checker, and which of them are assignable.

Follows cel-go v0.26.0 ``common/types/types.go`` and ``checker/types.go``. A type is identified by its text, as in
messages.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# Types with another name when the compiler reports the type of an entire expression.
_FULL_NAMES: Final = {
    "any": "google.protobuf.Any",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "null": "null_type",
    "!error!": "error",
}
_PRIMITIVE: Final = frozenset({"bool", "bytes", "double", "int", "string", "uint"})
_SIMPLE: Final = _PRIMITIVE | {"dyn", "any", "null", "duration", "timestamp", "!error!"}
_PARAMETER: Final = re.compile(r"[A-Z]|_var[0-9]+")
# Deeper types are rejected: comparing them needs recursion of the same depth.
MAX_DEPTH: Final = 120


class Type:
    """A type: ``kind`` is ``list``, ``map``, ``type``, ``opaque``, ``struct``, ``param``, or a simple type's text.

    Created by ``make_type``, which shares equal types, so that equality is identity.
    """

    __slots__ = ("depth", "kind", "name", "params", "text")

    def __init__(self, kind: str, name: str, params: tuple[Type, ...], text: str) -> None:
        self.kind, self.name, self.params, self.text = kind, name, params, text
        self.depth: int = 1 + max((param.depth for param in params), default=0)

    @property
    def full_name(self) -> str:
        """The text of the type when the type of a compiled expression is reported."""
        name = f"<{self.name}>" if self.kind == "param" else _FULL_NAMES.get(self.name, self.name)
        return f"{name}({', '.join(param.full_name for param in self.params)})" if self.params else name

    @property
    def runtime_name(self) -> str:
        """The name of the type without parameters, as ``type()`` returns it."""
        return _FULL_NAMES.get(self.name, self.name)

    @property
    def is_dyn(self) -> bool:
        return self.kind in ("dyn", "any")

    @property
    def is_optional(self) -> bool:
        return self.name == "optional_type"


class TypeTooDeepError(Exception):
    """A type nests deeper than ``MAX_DEPTH``."""


@lru_cache(maxsize=4096)
def make_type(kind: str, *params: Type, name: str = "") -> Type:
    """Return the type of that kind, named like the kind unless it has a ``name``; equal types are shared."""
    name = name or kind
    text = f"{name}({', '.join(param.text for param in params)})" if params else name
    made = Type(kind, name, params, text)
    if made.depth > MAX_DEPTH:
        raise TypeTooDeepError
    return made


BOOL: Final = make_type("bool")
INT: Final = make_type("int")
UINT: Final = make_type("uint")
DOUBLE: Final = make_type("double")
STRING: Final = make_type("string")
BYTES: Final = make_type("bytes")
NULL: Final = make_type("null")
DYN: Final = make_type("dyn")
ANY: Final = make_type("any")
ERROR: Final = make_type("!error!")


def parse_type(text: str) -> Type:
    """Parse a type in a declaration: ``map(K, list(int))``."""
    name, _, rest = text.partition("(")
    params = tuple(parse_type(part) for part in split_types(rest[:-1]))
    if params or name == "type":
        return make_type(name if name in ("list", "map", "type") else "opaque", *params, name=name)
    if name in _SIMPLE:
        return make_type(name)
    if _PARAMETER.fullmatch(name):
        return make_type("param", name=name)
    return make_type("opaque" if name.startswith("net.") else "struct", name=name)


def split_types(text: str) -> list[str]:
    """Split a list of types, each of which may have parameters."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part]


class Mapping:
    """Substitutions of type variables. ``assign`` changes them only on success."""

    def __init__(self) -> None:
        self._found: dict[Type, Type] = {}

    def add(self, param: Type, to: Type) -> None:
        self._found[param] = to

    def assign(self, expected: Type, given: Type) -> bool:
        """Return whether a value of type ``given`` may be used as ``expected``."""
        return self.assign_all((expected,), (given,))

    def assign_all(self, expected: tuple[Type, ...], given: tuple[Type, ...]) -> bool:
        """Return whether all are assignable, in lists of equal length."""
        before = dict(self._found)
        if len(expected) == len(given) and all(map(self._assign, expected, given)):
            return True
        self._found = before
        return False

    def _assign(self, one: Type, other: Type) -> bool:
        if other.kind == "param":
            valid, bound = self._bind(one, other)
            if valid or bound:
                return valid
        if one.kind == "param":
            return self._bind(other, one)[0]
        if one.is_dyn or other.is_dyn or ERROR in (one, other):
            return True
        if one is NULL or other is NULL:
            return (other if one is NULL else one).kind in ("opaque", "struct", "duration", "timestamp", "null")
        if one.kind == "type":
            return other.kind == "type"
        if one.kind in ("opaque", "list", "map"):
            return (
                one.kind == other.kind
                and one.name == other.name
                and len(one.params) == len(other.params)
                and all(map(self._assign, one.params, other.params))
            )
        return one is other

    def _bind(self, type_: Type, param: Type) -> tuple[bool, bool]:
        """Return whether ``param`` can be ``type_``, and whether it was already bound."""
        if type_ is param:
            return True, True
        known = self._found.get(param)
        if known is not None:
            if type_ is known:
                return True, True
            if self._assign(type_, known):
                general = most_general(type_, known)
                if self._unreferenced(param, general):
                    self._found[param] = general
                return True, True
            return False, True
        if self._unreferenced(param, type_):
            self._found[param] = type_
            return True, False
        return False, False

    def _unreferenced(self, param: Type, within: Type) -> bool:
        if param is within:
            return False
        if within.kind == "param":
            known = self._found.get(within)
            return known is None or self._unreferenced(param, known)
        return all(self._unreferenced(param, inner) for inner in within.params)

    def substitute(self, type_: Type, *, to_dyn: bool = False) -> Type:
        """Replace bound variables in a type; with ``to_dyn`` unbound ones become ``dyn``."""
        known = self._found.get(type_)
        if known is not None:
            return self.substitute(known, to_dyn=to_dyn)
        if type_.kind == "param":
            return DYN if to_dyn else type_
        if not type_.params:
            return type_
        return make_type(
            type_.kind, *(self.substitute(param, to_dyn=to_dyn) for param in type_.params), name=type_.name
        )


def most_general(one: Type, other: Type) -> Type:
    """Return the more general of two types that are assignable to each other."""
    return one if _less_specific(one, other) else other


def _less_specific(one: Type, other: Type) -> bool:
    if one.is_dyn or one.kind == "param":
        return True
    if other.is_dyn or other.kind == "param" or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in ("opaque", "list", "map"):
        return (
            one.name == other.name
            and len(one.params) == len(other.params)
            and all(map(_less_specific, one.params, other.params))
        )
    return one is other


def equivalent(one: Type, other: Type) -> bool:
    """Return whether types are equal except for the names of type parameters."""
    if one.kind != other.kind or len(one.params) != len(other.params):
        return False
    return (one.kind == "param" or one.name == other.name) and all(map(equivalent, one.params, other.params))
