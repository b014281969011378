"""What a function is: its overloads, what they do and what they cost. ``libraries`` are full of them.

As in cel-go v0.26.0 ``common/decls``, with costs of ``interpreter/runtimecost.go`` and Kubernetes' ``library/cost.go``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property

from kpreempt.cel.types import Type, parse_type, split_types
from kpreempt.cel.values import ABSENT, LISTS, MAPS, Failure, Opaque, OptionalValue, Value, type_name

Implementation = Callable[..., Value]
# The cost of a call by its arguments and its result, any of which may be a failure.
Cost = Callable[[Sequence[Value], Value], int]

TRAVERSAL = 0.1
REGEX_LENGTH = 0.25


@dataclass(eq=False)
class Overload:
    """A function for arguments of certain types, as ``libraries`` have it in their tables.

    ``signature`` is ``list(A).(int) -> A`` of a member, else ``(list(A), int) -> A``; the first of the ``params`` of a
    member is what it is called on.
    """

    function: str
    signature: InitVar[str]
    run: Implementation
    # What a call costs whichever overload it is.
    cost: Cost | None = None
    # What this overload costs where it is known to be the one.
    overload_cost: Cost | None = None
    # Arguments after one that is an error are not evaluated.
    early: bool = False
    # Arguments are not looked at before the function itself does.
    unguarded: bool = False
    # It does the same for all types, and says itself which of them it takes.
    is_operator: bool = False
    member: bool = field(init=False)
    params: tuple[Type, ...] = field(init=False)
    result: Type = field(init=False)

    def __post_init__(self, signature: str) -> None:
        head, _, result = signature.partition(" -> ")
        receiver, _, rest = head.rpartition(".(") if ".(" in head else ("", "", head[1:])
        self.member = bool(receiver)
        self.params = tuple(parse_type(each) for each in [*([receiver] if receiver else []), *split_types(rest[:-1])])
        self.result = parse_type(result)

    @cached_property
    def type_params(self) -> tuple[Type, ...]:
        """The type parameters that stand in the signature."""
        found: dict[Type, None] = {}
        waiting = [*self.params, self.result]
        while waiting:
            type_ = waiting.pop()
            waiting.extend(type_.params)
            if type_.kind == "param":
                found[type_] = None
        return tuple(found)

    def accepts(self, args: Sequence[Value]) -> bool:
        """Whether values are such as the parameters say, so far as cel-go looks."""
        return len(args) == len(self.params) and all(map(_fits, self.params, args))

    def guarded(self, *args: Value) -> Value:
        """The result, or a failure for values that do not fit."""
        return self.run(*args) if self.accepts(args) else no_such_overload(self.function, args)


@dataclass(eq=False)
class Function:
    """All overloads of a name."""

    name: str
    overloads: list[Overload] = field(default_factory=list)
    # An operator does the same for all types, and says itself which of them it takes.
    operator: Implementation | None = None
    # What a call costs whichever overload it is.
    cost: Cost | None = None

    def dispatch(self, *args: Value) -> Value:
        """The first overload that takes the values."""
        for overload in self.overloads:
            if len(args) == len(overload.params) and (overload.unguarded or overload.accepts(args)):
                return overload.run(*args)
        return no_such_overload(self.name, args)


FUNCTIONS: dict[str, Function] = {}


def declare(*overloads: Overload) -> None:
    """Add overloads to their functions."""
    for overload in overloads:
        function = FUNCTIONS.setdefault(overload.function, Function(overload.function))
        function.cost = overload.cost or function.cost
        function.overloads.append(overload)
        if overload.is_operator:
            function.operator = overload.run


def operator(
    name: str, run: Implementation, *signatures: str, costs: Mapping[str, Cost] | None = None
) -> Iterator[Overload]:
    """The overloads of a function that does the same for all types; ``costs`` are those of some signatures."""
    for each in signatures:
        yield Overload(name, each, run, overload_cost=(costs or {}).get(each), is_operator=True)


def no_such_overload(name: str, args: Sequence[Value]) -> Failure:
    """What a call says of arguments that no overload takes; an error among them is told instead."""
    for arg in args:
        if type(arg) is Failure:
            return arg
    return Failure(f"no such overload: {name}({', '.join(map(type_name, args))})")


def _fits(param: Type, value: Value) -> bool:
    if param.is_dyn or param.kind == "param":
        return type(value) is not Failure
    if type(value) is Failure or param.runtime_name != type_name(value):
        return False
    if param.kind == "list" and value:
        return _fits(param.params[0], value[0])
    if param.kind == "map" and len(value):
        key, item = next(iter(value.items()))
        return _fits(param.params[0], key) and _fits(param.params[1], item)
    return True


def size_of(value: Value) -> int:
    """The size that costs are counted by: of what has one, else 1. Strings have code points."""
    kind = type(value)
    if kind is str or kind is bytes or kind in LISTS or kind in MAPS:
        return len(value)
    return value.size() if isinstance(value, Opaque) else 1


def full_size(value: Value) -> int:
    """As ``size_of``, but of an optional value that of what it has."""
    while type(value) is OptionalValue and value.value is not ABSENT:
        value = value.value
    return size_of(value)


def one(_args: Sequence[Value], _result: Value) -> int:
    """A cost of one, whatever the arguments are."""
    return 1


def per_character(index: int = 0, factor: float = TRAVERSAL) -> Cost:
    """A cost for each character of an argument, rounded up."""
    return lambda args, _result: math.ceil(size_of(args[index]) * factor)


def regex_cost(args: Sequence[Value], _result: Value) -> int:
    """What it costs to look for the second argument in the first."""
    return math.ceil((1.0 + full_size(args[0])) * TRAVERSAL) * math.ceil(full_size(args[1]) * REGEX_LENGTH)


def traversal(args: Sequence[Value], _result: Value) -> int:
    """What walking through all of the first argument costs: a tenth per character, else one for each value."""
    return _walked(args[0])


def _walked(value: Value) -> int:
    if type(value) is str:
        return int(len(value.encode(errors="surrogatepass")) * TRAVERSAL)
    if type(value) is bytes:
        return int(len(value) * TRAVERSAL)
    if type(value) in LISTS:
        return sum(map(_walked, value))
    return sum(_walked(key) + _walked(item) for key, item in value.items()) if type(value) in MAPS else 1
