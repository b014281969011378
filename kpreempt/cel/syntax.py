"""The syntax tree of an expression. Nodes are told apart by identity; the checker writes on them what it finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from kpreempt.cel.values import Value

if TYPE_CHECKING:
    from kpreempt.cel.functions import Overload
    from kpreempt.cel.types import Type


@dataclass(eq=False, slots=True)
class Node:
    """A part of an expression; ``offset`` is the code point that messages about it point at."""

    offset: int
    type: Type = field(init=False)
    # Those that the argument types leave possible; none before the check, and on what is no call.
    overloads: tuple[Overload, ...] = field(init=False, default=())

    def children(self) -> Iterable[Node]:
        """The nodes below this one, in the order of the text."""
        return ()


@dataclass(eq=False, slots=True)
class Literal(Node):
    """A constant, or a name that stands for one."""

    value: Value


@dataclass(eq=False, slots=True)
class Ident(Node):
    """A variable."""

    name: str
    # The name of the type that the check found the name to stand for.
    constant: str | None = field(init=False, default=None)


@dataclass(eq=False, slots=True)
class Select(Node):
    """``operand.field``, or ``has(operand.field)``."""

    operand: Node
    field: str
    test_only: bool = False
    # The dotted name as a whole, where the check found it to be a variable or a type.
    resolved: Ident | None = None

    def children(self) -> Iterable[Node]:
        return (self.operand,)


@dataclass(eq=False, slots=True)
class Call(Node):
    """A function or an operator; ``target`` is what a method is called on."""

    function: str
    args: list[Node]
    target: Node | None = None

    def children(self) -> Iterable[Node]:
        return self.args if self.target is None else (self.target, *self.args)


@dataclass(eq=False, slots=True)
class ListNode(Node):
    """``[a, ?b]``; ``optionals`` are the indices of elements with a question mark."""

    elements: list[Node]
    optionals: frozenset[int] = frozenset()

    def children(self) -> Iterable[Node]:
        return self.elements


@dataclass(eq=False, slots=True)
class MapNode(Node):
    """``{a: b, ?c: d}``: keys, values, and whether there is a question mark."""

    entries: list[tuple[Node, Node, bool]]

    def children(self) -> Iterable[Node]:
        return [node for key, value, _ in self.entries for node in (key, value)]


@dataclass(eq=False, slots=True)
class StructNode(Node):
    """``Name{field: value}``."""

    name: str
    fields: list[tuple[str, Node, int]]

    def children(self) -> Iterable[Node]:
        return [value for _, value, _ in self.fields]


@dataclass(eq=False, slots=True)
class Comprehension(Node):
    """What macros are made of: a loop over a list or a map that carries one value along.

    It has one variable or two; the name of the second is empty where there is none.
    """

    range: Node
    variables: tuple[str, str]
    accumulator: str
    _: KW_ONLY
    initial: Node
    condition: Node
    step: Node
    result: Node

    def children(self) -> Iterable[Node]:
        return self.range, self.initial, self.condition, self.step, self.result


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, without recursion."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(node.children())))
