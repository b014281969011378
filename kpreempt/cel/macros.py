"""Macros: calls that stand for loops and tests, expanded during parsing.

Follows cel-go v0.26.0 ``parser/macro.go``, ``cel/library.go``, ``ext/comprehensions.go``, ``ext/lists.go`` and
``ext/bindings.go``. Generated nodes have the position of the call.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kpreempt.cel.source import Problems
from kpreempt.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, walk
from kpreempt.cel.values import Value

ACCUMULATOR = "@result"
_UNUSED = "#unused"
_SORTED = "@__sortBy_input__"
# Some macros use their target twice, so each one in a chain would double the size of the expression.
_MAX_COPIED = 10_000


class _MacroError(Exception):
    """A macro is called incorrectly: the position, and the problem."""


class _At(NamedTuple):
    """Creates nodes at one position."""

    offset: int

    def literal(self, value: Value) -> Node:
        return Literal(self.offset, value)

    def ident(self, name: str = ACCUMULATOR) -> Node:
        return Ident(self.offset, name)

    def call(self, function: str, *args: Node, target: Node | None = None) -> Node:
        return Call(self.offset, function, list(args), target)

    def list(self, *elements: Node) -> Node:
        return ListNode(self.offset, list(elements))

    def fold(
        self, over: Node, variables: tuple[str, str], initial: Node, condition: Node, step: Node, result: Node
    ) -> Node:
        return Comprehension(
            self.offset, over, variables, ACCUMULATOR, initial=initial, condition=condition, step=step, result=result
        )

    def bind(self, name: str, value: Node, result: Node) -> Node:
        """Create a comprehension without a range that evaluates ``value`` on first use, and returns ``result``."""
        return Comprehension(
            self.offset,
            self.list(),
            (_UNUSED, ""),
            name,
            initial=value,
            condition=self.literal(False),
            step=self.ident(name),
            result=result,
        )


Macro = Callable[[_At, Node, list[Node]], Node | None]


class Expander:
    """Creates calls, and expands those that are macros."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._copied = 0

    def call(self, offset: int, function: str, args: list[Node], target: Node | None) -> Node:
        """Return the call, or its expansion."""
        plain = Call(offset, function, args, target)
        if function == "has" and len(args) == 1 and target is None:
            argument = args[0]
            if isinstance(argument, Select) and not argument.test_only:
                return Select(offset, argument.operand, argument.field, test_only=True)
            self._problems.report(argument.offset, "invalid argument to has() macro")
            return Literal(offset, False)
        if target is None:
            return plain
        macro = _MACROS.get((function, len(args)))
        if macro is None or (macro is _bind and not (isinstance(target, Ident) and target.name == "cel")):
            return plain
        if function in ("optMap", "optFlatMap"):
            self._copied += sum(1 for _ in walk(target))
            if self._copied > _MAX_COPIED:
                self._problems.report(offset, f"{function} is chained too many times")
                return Literal(offset, None)
        try:
            return macro(_At(offset), target, args) or plain
        except _MacroError as error:
            place, message = error.args
            self._problems.report(place, message)
            return Literal(offset, None)


def _variable(node: Node, problem: str) -> str:
    if not isinstance(node, Ident):
        raise _MacroError(node.offset, problem)
    if node.name in (ACCUMULATOR, "__result__"):
        raise _MacroError(node.offset, "iteration variable overwrites accumulator variable")
    return node.name


def _variables(args: list[Node], count: int = 2, problem: str = "argument must be a simple name") -> tuple[str, str]:
    names = [_variable(each, problem) for each in args[:count]]
    if count == 1:
        return names[0], ""
    if names[0] == names[1]:
        raise _MacroError(args[1].offset, f"duplicate variable name: {names[0]}")
    return names[0], names[1]


# In the next three, the test is the last argument, after one or two variables.
def _all(at: _At, target: Node, args: list[Node]) -> Node:
    variables = _variables(args, len(args) - 1)
    condition = at.call("@not_strictly_false", at.ident())
    step = at.call("_&&_", at.ident(), args[-1])
    return at.fold(target, variables, at.literal(True), condition, step, at.ident())


def _exists(at: _At, target: Node, args: list[Node]) -> Node:
    variables = _variables(args, len(args) - 1)
    condition = at.call("@not_strictly_false", at.call("!_", at.ident()))
    step = at.call("_||_", at.ident(), args[-1])
    return at.fold(target, variables, at.literal(False), condition, step, at.ident())


def _exists_one(at: _At, target: Node, args: list[Node]) -> Node:
    variables = _variables(args, len(args) - 1)
    more = at.call("_+_", at.ident(), at.literal(1))
    step = at.call("_?_:_", args[-1], more, at.ident())
    result = at.call("_==_", at.ident(), at.literal(1))
    return at.fold(target, variables, at.literal(0), at.literal(True), step, result)


def _collect(at: _At, target: Node, variables: tuple[str, str], rest: list[Node]) -> Node:
    """Create a list of the last of ``rest`` for each element, or only for those that satisfy the first."""
    step = at.call("_+_", at.ident(), at.list(rest[-1]))
    if len(rest) == 2:
        step = at.call("_?_:_", rest[0], step, at.ident())
    return at.fold(target, variables, at.list(), at.literal(True), step, at.ident())


def _map(at: _At, target: Node, args: list[Node]) -> Node:
    return _collect(at, target, _variables(args, 1, "argument is not an identifier"), args[1:])


def _filter(at: _At, target: Node, args: list[Node]) -> Node:
    return _collect(at, target, _variables(args, 1, "argument is not an identifier"), [args[1], args[0]])


def _transform_map(at: _At, target: Node, args: list[Node], *, entry: bool) -> Node:
    variables = _variables(args)
    key = () if entry else (at.ident(variables[0]),)
    step = at.call("cel.@mapInsert", at.ident(), *key, args[-1])
    if len(args) == 4:
        step = at.call("_?_:_", args[2], step, at.ident())
    return at.fold(target, variables, MapNode(at.offset, []), at.literal(True), step, at.ident())


def _opt_map(at: _At, target: Node, args: list[Node], *, flat: bool) -> Node:
    if not isinstance(args[0], Ident):
        function = "optFlatMap" if flat else "optMap"
        raise _MacroError(args[0].offset, f"{function}() variable name must be a simple identifier")
    value = at.call("value", target=copy.deepcopy(target))
    bound = at.bind(args[0].name, value, args[1])
    found = bound if flat else at.call("optional.of", bound)
    return at.call("_?_:_", at.call("hasValue", target=target), found, at.call("optional.none"))


def _sort_by(at: _At, target: Node, args: list[Node]) -> Node:
    if isinstance(target, Literal | MapNode):
        raise _MacroError(
            target.offset, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
    keys = _map(at, at.ident(_SORTED), args)
    return at.bind(_SORTED, target, at.call("@sortByAssociatedKeys", keys, target=at.ident(_SORTED)))


def _bind(at: _At, _target: Node, args: list[Node]) -> Node:
    if not isinstance(args[0], Ident):
        raise _MacroError(args[0].offset, "cel.bind() variable names must be simple identifiers")
    return at.bind(args[0].name, args[1], args[2])


_MACROS: dict[tuple[str, int], Macro] = {
    ("all", 2): _all,
    ("all", 3): _all,
    ("exists", 2): _exists,
    ("exists", 3): _exists,
    ("exists_one", 2): _exists_one,
    ("exists_one", 3): _exists_one,
    ("existsOne", 3): _exists_one,
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): lambda at, target, args: _collect(at, target, _variables(args), args[2:]),
    ("transformList", 4): lambda at, target, args: _collect(at, target, _variables(args), args[2:]),
    ("transformMap", 3): partial(_transform_map, entry=False),
    ("transformMap", 4): partial(_transform_map, entry=False),
    ("transformMapEntry", 3): partial(_transform_map, entry=True),
    ("transformMapEntry", 4): partial(_transform_map, entry=True),
    ("optMap", 2): partial(_opt_map, flat=False),
    ("optFlatMap", 2): partial(_opt_map, flat=True),
    ("sortBy", 2): _sort_by,
    ("bind", 3): _bind,
}
