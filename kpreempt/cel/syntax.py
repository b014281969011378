"""The syntax tree of an expression. Nodes are compared by identity; the checker annotates them."""

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
    """A part of an expression; ``offset`` is the code point shown in messages."""

    offset: int
    type: Type = field(init=False)
    # The overloads that the argument types allow; none before the check, and on nodes that are not calls.
    overloads: tuple[Overload, ...] = field(init=False, default=())

    def children(self) -> Iterable[Node]:
        """The child nodes in text order."""
        return ()


@dataclass(eq=False, slots=True)
class Literal(Node):
    """A constant, or a name that denotes one."""

    value: Value


@dataclass(eq=False, slots=True)
class Ident(Node):
    """A variable."""

    name: str
    # The type name that the checker resolved the name to.
    constant: str | None = field(init=False, default=None)


@dataclass(eq=False, slots=True)
class Select(Node):
    """``operand.field``, or ``has(operand.field)``."""

    operand: Node
    field: str
    test_only: bool = False
    # The complete dotted name, if the checker resolved it to a variable or a type.
    resolved: Ident | None = None

    def children(self) -> Iterable[Node]:
        return (self.operand,)


@dataclass(eq=False, slots=True)
class Call(Node):
    """A function or operator call; ``target`` is the receiver of a method."""

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
    """A loop over a list or a map with an accumulator, as created by macros.

    It has one or two variables; the name of the second is empty if there is one.
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
    """Yield the node and all its descendants, without recursion."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(node.children())))
