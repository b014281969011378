"""The syntax tree of an expression. Nodes are told apart by identity; the checker writes on them what it finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kpreempt.cel.values import Value

if TYPE_CHECKING:
    from kpreempt.cel.functions import Overload
    from kpreempt.cel.types import Type


class Node:
    """A part of an expression; ``offset`` is the code point that messages about it point at."""

    __slots__ = ("offset", "overloads", "type")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: Type
        # Those that the argument types leave possible; none before the check, and on what is no call.
        self.overloads: tuple[Overload, ...] = ()

    def children(self) -> Iterator[Node]:
        """The nodes below this one, in the order of the text."""
        return iter(())


class Literal(Node):
    """A constant, or a name that stands for one."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Value) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A variable."""

    __slots__ = ("constant", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        # The name of the type that the check found the name to stand for.
        self.constant: str | None = None


class Select(Node):
    """``operand.field``, or ``has(operand.field)``."""

    __slots__ = ("field", "operand", "resolved", "test_only")

    def __init__(self, offset: int, operand: Node, field: str, *, test_only: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test_only = test_only
        # The dotted name as a whole, where the check found it to be a variable or a type.
        self.resolved: Ident | None = None

    def children(self) -> Iterator[Node]:
        yield self.operand


class Call(Node):
    """A function or an operator; ``target`` is what a method is called on."""

    __slots__ = ("args", "function", "target")

    def __init__(self, offset: int, function: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(offset)
        self.function = function
        self.args = args
        self.target = target

    def children(self) -> Iterator[Node]:
        if self.target is not None:
            yield self.target
        yield from self.args


class ListNode(Node):
    """``[a, ?b]``; ``optionals`` are the indices of elements with a question mark."""

    __slots__ = ("elements", "optionals")

    def __init__(self, offset: int, elements: list[Node], optionals: frozenset[int] = frozenset()) -> None:
        super().__init__(offset)
        self.elements = elements
        self.optionals = optionals

    def children(self) -> Iterator[Node]:
        yield from self.elements


class MapNode(Node):
    """``{a: b, ?c: d}``: keys, values, and whether there is a question mark."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[tuple[Node, Node, bool]]) -> None:
        super().__init__(offset)
        self.entries = entries

    def children(self) -> Iterator[Node]:
        for key, value, _ in self.entries:
            yield key
            yield value


class StructNode(Node):
    """``Name{field: value}``."""

    __slots__ = ("fields", "name")

    def __init__(self, offset: int, name: str, fields: list[tuple[str, Node, int]]) -> None:
        super().__init__(offset)
        self.name = name
        self.fields = fields

    def children(self) -> Iterator[Node]:
        for _, value, _ in self.fields:
            yield value


class Comprehension(Node):
    """What macros are made of: a loop over a list or a map that carries one value along.

    It has one variable or two; the name of the second is empty where there is none.
    """

    __slots__ = ("accumulator", "condition", "initial", "range", "result", "second", "step", "variable")

    def __init__(
        self,
        offset: int,
        over: Node,
        variables: tuple[str, str],
        accumulator: str,
        *,
        initial: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(offset)
        self.range = over
        self.variable, self.second = variables
        self.accumulator = accumulator
        self.initial = initial
        self.condition = condition
        self.step = step
        self.result = result

    def children(self) -> Iterator[Node]:
        yield from (self.range, self.initial, self.condition, self.step, self.result)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, without recursion."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(node.children())))
