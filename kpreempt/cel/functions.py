"""Functions: overloads with their implementation and cost. ``libraries`` declares them.

Follows cel-go v0.26.0 ``common/decls``, with the costs of ``interpreter/runtimecost.go`` and Kubernetes'
``library/cost.go``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property

from kpreempt.cel.types import Type, parse_type, split_types
from kpreempt.cel.values import ABSENT, LISTS, MAPS, Failure, Opaque, OptionalValue, Value, type_name

Implementation = Callable[..., Value]
# Computes the cost of a call from its arguments and its result, any of which may be a failure.
Cost = Callable[[Sequence[Value], Value], int]

TRAVERSAL = 0.1
REGEX_LENGTH = 0.25


@dataclass(eq=False)
class Overload:
    """An implementation for certain argument types, as declared in ``libraries``.

    ``signature`` is ``list(A).(int) -> A`` for a member function, otherwise ``(list(A), int) -> A``; the first of a
    member's ``params`` is its receiver.
    """

    function: str
    signature: InitVar[str]
    run: Implementation
    # The cost of a call with any overload.
    cost: Cost | None = None
    # The cost of this overload if it is known to be selected.
    overload_cost: Cost | None = None
    # Arguments after a failed one are not evaluated.
    early: bool = False
    # Arguments are not checked before the function runs.
    unguarded: bool = False
    # The implementation is the same for all types, and checks them itself.
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
        """The type parameters in the signature."""
        found: dict[Type, None] = {}
        waiting = [*self.params, self.result]
        while waiting:
            type_ = waiting.pop()
            waiting.extend(type_.params)
            if type_.kind == "param":
                found[type_] = None
        return tuple(found)

    def accepts(self, args: Sequence[Value]) -> bool:
        """Return whether values match the parameters, as far as cel-go checks."""
        return len(args) == len(self.params) and all(map(_fits, self.params, args))

    def guarded(self, *args: Value) -> Value:
        """Return the result, or a failure for values that do not match."""
        return self.run(*args) if self.accepts(args) else no_such_overload(self.function, args)


@dataclass(eq=False)
class Function:
    """All overloads of a name."""

    name: str
    overloads: list[Overload] = field(default_factory=list)
    # An operator has one implementation for all types, which checks them itself.
    operator: Implementation | None = None
    # The cost of a call with any overload.
    cost: Cost | None = None

    def dispatch(self, *args: Value) -> Value:
        """Call the first overload that accepts the values."""
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
    """Return the overloads of a function with one implementation; ``costs`` apply to some signatures."""
    for each in signatures:
        yield Overload(name, each, run, overload_cost=(costs or {}).get(each), is_operator=True)


def no_such_overload(name: str, args: Sequence[Value]) -> Failure:
    """Return the failure of a call without a matching overload; an error among the arguments takes precedence."""
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
    """Return the size used in costs, by default 1. Strings count code points."""
    kind = type(value)
    if kind is str or kind is bytes or kind in LISTS or kind in MAPS:
        return len(value)
    return value.size() if isinstance(value, Opaque) else 1


def full_size(value: Value) -> int:
    """Like ``size_of``, but for an optional value, the size of its value."""
    while type(value) is OptionalValue and value.value is not ABSENT:
        value = value.value
    return size_of(value)


def one(_args: Sequence[Value], _result: Value) -> int:
    """A cost of one, regardless of the arguments."""
    return 1


def per_character(index: int = 0, factor: float = TRAVERSAL) -> Cost:
    """A cost per character of an argument, rounded up."""
    return lambda args, _result: math.ceil(size_of(args[index]) * factor)


def regex_cost(args: Sequence[Value], _result: Value) -> int:
    """The cost of searching the first argument for the second one."""
    return math.ceil((1.0 + full_size(args[0])) * TRAVERSAL) * math.ceil(full_size(args[1]) * REGEX_LENGTH)


def traversal(args: Sequence[Value], _result: Value) -> int:
    """The cost of traversing the first argument: a tenth per character, or one per value."""
    return _walked(args[0])


def _walked(value: Value) -> int:
    if type(value) is str:
        return int(len(value.encode(errors="surrogatepass")) * TRAVERSAL)
    if type(value) is bytes:
        return int(len(value) * TRAVERSAL)
    if type(value) in LISTS:
        return sum(map(_walked, value))
    return sum(_walked(key) + _walked(item) for key, item in value.items()) if type(value) in MAPS else 1
