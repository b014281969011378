"""Determine the types of an expression's nodes, and the possible overloads of its calls.

Follows cel-go v0.26.0 ``checker/checker.go``, with its messages.
"""

from __future__ import annotations

from collections.abc import Mapping as Dictionary
from typing import Final, NamedTuple

from kpreempt.cel.functions import FUNCTIONS, Function, Overload
from kpreempt.cel.source import Problems
from kpreempt.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from kpreempt.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Mapping,
    Type,
    make_type,
    most_general,
    parse_type,
)
from kpreempt.cel.values import Uint

_LITERALS: Final = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
# Names of types, and the types they denote.
TYPE_NAMES: Final = {
    "bool": "bool",
    "bytes": "bytes",
    "double": "double",
    "int": "int",
    "uint": "uint",
    "string": "string",
    "null_type": "null",
    "type": "type",
    "list": "list(A)",
    "map": "map(A, B)",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "optional_type": "optional_type(dyn)",
    "net.IP": "net.IP",
    "net.CIDR": "net.CIDR",
}


class Environment(NamedTuple):
    """What an expression can refer to: variables, and the fields of their types."""

    variables: Dictionary[str, Type]
    fields: Dictionary[str, Dictionary[str, Type]]


def check(node: Node, environment: Environment, problems: Problems) -> None:
    """Annotate all nodes with types and overloads, and report type errors."""
    checker = _Checker(environment, problems)
    checker.check(node)
    for each in checker.checked:
        each.type = checker.mapping.substitute(each.type, to_dyn=True)


class _Checker:
    def __init__(self, environment: Environment, problems: Problems) -> None:
        self.environment = environment
        self.problems = problems
        self.mapping = Mapping()
        self.scopes: list[dict[str, Type]] = [dict(environment.variables)]
        self.variables = 0
        self.checked: list[Node] = []

    def fail(self, node: Node, message: str) -> Type:
        self.problems.report(node.offset, message)
        return ERROR

    def mismatch(self, node: Node, expected: Type, given: Type) -> Type:
        return self.fail(node, f"expected type '{expected.text}' but found '{given.text}'")

    def fresh(self) -> Type:
        self.variables += 1
        return make_type("param", name=f"_var{self.variables - 1}")

    def check(self, node: Node) -> Type:
        node.type = self._type(node)
        self.checked.append(node)
        return node.type

    def _type(self, node: Node) -> Type:
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, Select):
            return self.select(node)
        if isinstance(node, Literal):
            return _LITERALS[type(node.value)]
        if isinstance(node, Ident):
            found = self.ident(node)
            if found is None:
                return self.fail(node, f"undeclared reference to '{node.name}' (in container '')")
            return found
        if isinstance(node, ListNode):
            return self.list_literal(node)
        if isinstance(node, MapNode):
            return self.map_literal(node)
        if isinstance(node, Comprehension):
            return self.comprehension(node)
        assert isinstance(node, StructNode)
        return self.message(node)

    def ident(self, node: Ident) -> Type | None:
        """Return the type of a name if it exists: a variable, or a type."""
        name = node.name.removeprefix(".")
        for scope in reversed(self.scopes):
            if name in scope:
                node.name = name
                return scope[name]
        if name in TYPE_NAMES:
            node.constant = name
            return parse_type("type") if name == "type" else make_type("type", parse_type(TYPE_NAMES[name]))
        return None

    def select(self, node: Select) -> Type:
        if not node.test_only and (name := _dotted(node)):
            whole = Ident(node.offset, name)
            if (found := self.ident(whole)) is not None:
                whole.type = found
                self.checked.append(whole)
                node.resolved = whole
                return found
        found = self.field(node, node.operand, node.field, optional=False)
        return BOOL if node.test_only else self.mapping.substitute(found)

    def field(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        type_ = self.mapping.substitute(self.check(operand))
        inside = type_.params[0] if type_.is_optional else type_
        result = DYN
        if inside.kind == "map":
            result = inside.params[1]
        elif inside.kind == "struct":
            fields = self.environment.fields.get(inside.name)
            if fields is None:
                result = self.fail(node, f"unexpected failed resolution of '{inside.name}'")
            else:
                result = fields[field] if field in fields else self.fail(node, f"undefined field '{field}'")
        elif inside.kind == "param":
            self.mapping.assign(DYN, inside)
        elif not inside.is_dyn and inside is not ERROR:
            self.fail(node, f"type '{inside.text}' does not support field selection")
        is_optional = optional or type_.is_optional
        return make_type("opaque", result, name="optional_type") if is_optional else result

    def call(self, node: Call) -> Type:
        if node.function == "_?._":
            field = node.args[1]
            assert isinstance(field, Literal)
            return self.mapping.substitute(self.field(node, node.args[0], field.value, optional=True))
        for arg in node.args:
            self.check(arg)
        if node.target is None:
            function = FUNCTIONS.get(node.function.removeprefix("."))
            if function is not None:
                node.function = function.name
                return self.resolve(node, function)
        else:
            prefix = _dotted(node.target)
            if prefix and (function := FUNCTIONS.get(f"{prefix}.{node.function}".removeprefix("."))):
                node.target, node.function = None, function.name
                return self.resolve(node, function)
            self.check(node.target)
            if function := FUNCTIONS.get(node.function):
                return self.resolve(node, function)
        return self.fail(node, f"undeclared reference to '{node.function}' (in container '')")

    def resolve(self, node: Call, function: Function) -> Type:
        """Return the overloads that match the arguments, and the result type."""
        parts = ([node.target] if node.target else []) + node.args
        given = tuple(part.type for part in parts)
        if function.name in ("_&&_", "_||_"):
            return self.logic(node, function.overloads[0])
        result: Type | None = None
        found: list[Overload] = []
        for overload in function.overloads:
            if overload.member is (node.target is None) or len(overload.params) != len(given):
                continue
            # Its type parameters are fresh variables.
            own = Mapping()
            for name in overload.type_params:
                own.add(name, self.fresh())
            if not self.mapping.assign_all(given, tuple(map(own.substitute, overload.params))):
                continue
            found.append(overload)
            this = self.mapping.substitute(own.substitute(overload.result))
            if result is None:
                result = this
            elif not result.is_dyn and this is not result:
                result = DYN
        if result is None:
            types = [self.mapping.substitute(type_, to_dyn=True).text for type_ in given]
            head = f"{types.pop(0)}." if node.target else ""
            signature = f"{head}({', '.join(types)})"
            return self.fail(node, f"found no matching overload for '{function.name}' applied to '{signature}'")
        node.overloads = tuple(found)
        return result

    def logic(self, node: Call, overload: Overload) -> Type:
        wrong = [index for index, arg in enumerate(node.args) if not self.mapping.assign(arg.type, BOOL)]
        for index in wrong:
            self.mismatch(node.args[index], BOOL, node.args[index].type)
        node.overloads = (overload,)
        # cel-go balances a chain into a tree, in which only the outermost operator's own operands affect the result.
        outermost = {2: {0, 1}, 3: {2}}.get(len(node.args), set())
        return ERROR if outermost.intersection(wrong) else BOOL

    def list_literal(self, node: ListNode) -> Type:
        items: Type | None = None
        for index, element in enumerate(node.elements):
            type_ = self.check(element)
            if index in node.optionals:
                type_ = self._unwrapped(element, type_)
            items = self.join(items, type_)
        return make_type("list", items or self.fresh())

    def map_literal(self, node: MapNode) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self.join(keys, self.check(key))
            type_ = self.check(value)
            values = self.join(values, self._unwrapped(value, type_) if optional else type_)
        return make_type("map", keys or self.fresh(), values or self.fresh())

    def _unwrapped(self, node: Node, type_: Type) -> Type:
        if type_.is_optional:
            return type_.params[0]
        if not type_.is_dyn:
            self.mismatch(node, make_type("opaque", type_, name="optional_type"), type_)
        return type_

    def join(self, previous: Type | None, current: Type) -> Type:
        """Return the element type of a literal after adding one element."""
        if previous is None:
            return current
        if self.mapping.assign(previous, current):
            return most_general(previous, current)
        # Mixed literals are rejected once all types are known (``validators``).
        return DYN

    def comprehension(self, node: Comprehension) -> Type:
        self.check(node.range)
        self.check(node.initial)
        over = self.mapping.substitute(node.range.type)
        accumulated = node.initial.type
        first, second = self._variables(node, over)
        self.scopes.append({node.accumulator: accumulated})
        self.scopes.append({node.variables[0]: first} | ({node.variables[1]: second} if node.variables[1] else {}))
        for part, expected in ((node.condition, BOOL), (node.step, accumulated)):
            given = self.check(part)
            if not self.mapping.assign(expected, given):
                self.mismatch(part, expected, given)
        self.scopes.pop()
        self.check(node.result)
        self.scopes.pop()
        return self.mapping.substitute(node.result.type)

    def _variables(self, node: Comprehension, over: Type) -> tuple[Type, Type]:
        if over.kind == "list":
            return (INT, over.params[0]) if node.variables[1] else (over.params[0], ERROR)
        if over.kind == "map":
            return over.params[0], over.params[1]
        if over.kind in ("dyn", "param") or over is ERROR:
            self.mapping.assign(DYN, over)
            return DYN, DYN
        self.fail(
            node.range,
            f"expression of type '{over.text}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def message(self, node: StructNode) -> Type:
        for _, value, _ in node.fields:
            self.check(value)
        name = node.name.removeprefix(".")
        if name.startswith("google.protobuf."):
            return self.fail(node, f"messages are not supported: '{name}'")
        if name in TYPE_NAMES:
            return self.fail(node, f"'{name}' is not a message type")
        return self.fail(node, f"undeclared reference to '{node.name}' (in container '')")


def _dotted(node: Node) -> str | None:
    """Return the dotted name that selections from a variable may form."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    names.append(node.name)
    return ".".join(reversed(names))
