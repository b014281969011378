"""Device selectors: CEL expressions that decide whether a device may be allocated.

Follows ``k8s.io/dynamic-resource-allocation`` v0.36.3 ``cel/compile.go``, with consumable capacity. The attributes that
a selector reads are determined, too: devices that are equal in these have the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kpreempt.cel import EvaluationError
from kpreempt.cel.checker import Environment
from kpreempt.cel.compiler import Program
from kpreempt.cel.libraries.quantities import parse_quantity, parse_semver
from kpreempt.cel.syntax import Call, Comprehension, Ident, Literal, Node, Select
from kpreempt.cel.types import ANY, BOOL, STRING, parse_type
from kpreempt.cel.values import ABSENT, DefaultMap, Document, Failure, OptionalValue, Value, type_name

_DEVICE = "kubernetes.DRADevice"
_ENVIRONMENT = Environment(
    {"device": parse_type(_DEVICE)},
    {
        _DEVICE: {
            "driver": STRING,
            "attributes": parse_type("map(string, map(string, any))"),
            "capacity": parse_type("map(string, map(string, kubernetes.Quantity))"),
            "allowMultipleAllocations": BOOL,
        }
    },
)


@dataclass(frozen=True)
class DeviceView:
    """A device as seen by a selector.

    ``attributes`` are as in the API: a name, with or without a domain, to one of ``{"string": ...}``, ``{"int": ...}``,
    ``{"bool": ...}`` or ``{"version": ...}``; ``capacity`` is a name to ``{"value": quantity}``. Neither may change
    after creation: converted values are cached with the view.
    """

    driver: str
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    capacity: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allow_multiple_allocations: bool = False

    def value(self) -> Value:
        """Return the device as a value. Raises ``EvaluationError`` for an attribute that Kubernetes cannot convert."""
        made = self.__dict__.get("_value")
        if made is None:
            made = _device(self)
            self.__dict__["_value"] = made
        return made


class DeviceSelector(Program):
    """A compiled device selector."""

    def __init__(self, expression: str) -> None:
        """Raises ``CompileError``."""
        super().__init__(expression, _ENVIRONMENT, frozenset({BOOL, ANY}))
        # The attributes that affect the result, in addition to driver, capacity and sharing; ``None``: possibly all.
        self.attributes_read = attributes_read(self.tree)

    def matches(self, device: DeviceView) -> bool:
        """Return whether the device matches. Raises ``EvaluationError``."""
        return truth(self.value_for(device.value()))


@lru_cache(maxsize=1024)
def device_selector(expression: str) -> DeviceSelector:
    """Compile ``expression``; results are cached. Raises ``CompileError``."""
    return DeviceSelector(expression)


@lru_cache(maxsize=4096)
def is_version(text: str) -> bool:
    """Return whether an attribute may have this version."""
    try:
        parse_semver(text)
    except ValueError:
        return False
    return True


def truth(value: Value) -> bool:
    """Return the Boolean result of a selector or a rule. Raises ``EvaluationError`` for other types."""
    if type(value) is bool:
        return value
    if type(value) is Failure:
        raise EvaluationError(value.message)
    inner = value
    while type(inner) is OptionalValue:
        inner = inner.value
    if type(inner) is bool:
        return inner
    if inner is ABSENT:
        reason = "optional.none() dereference"
    elif type(inner) is Failure:
        reason = inner.message
    else:
        kind = type_name(inner)
        reason = _REASONS.get(kind, f"type conversion error from '{kind.rpartition('.')[2]}' to 'bool'")
    raise EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool: {reason}")


_REASONS = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "double": "type conversion error from Double to 'bool'",
    "string": "unsupported native conversion from string to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "type": "type conversion not supported for 'type'",
    "kubernetes.NamedFormat": "type conversion error from 'Format' to 'bool'",
}


def _device(device: DeviceView) -> Document:
    attributes: dict[str, list[tuple[str, Value]]] = {}
    for name, attribute in device.attributes.items():
        domain, key = _qualified(name, device.driver)
        attributes.setdefault(domain, []).append((key, _attribute(name, attribute)))
    capacity: dict[str, list[tuple[str, Value]]] = {}
    for name, amount in device.capacity.items():
        domain, key = _qualified(name, device.driver)
        try:
            quantity = parse_quantity(str(amount.get("value", "0")))
        except ValueError as error:
            raise EvaluationError(f"capacity {name}: {error}") from None
        capacity.setdefault(domain, []).append((key, quantity))
    return Document(
        {
            "driver": device.driver,
            "allowMultipleAllocations": device.allow_multiple_allocations,
            "attributes": DefaultMap((domain, Document(values)) for domain, values in attributes.items()),
            "capacity": DefaultMap((domain, Document(values)) for domain, values in capacity.items()),
        }.items()
    )


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, key = name.partition("/")
    return (domain, key) if slash else (driver, name)


_READERS: dict[str, Callable[[Any], Value]] = {
    "int": int,
    "bool": bool,
    "string": str,
    "version": parse_semver,
}


def _attribute(name: str, attribute: Mapping[str, Any]) -> Value:
    for kind, read in _READERS.items():
        if attribute.get(kind) is not None:
            try:
                return read(attribute[kind])
            except (TypeError, ValueError) as error:
                raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None
    raise EvaluationError(f"attribute {name}: unsupported attribute value")


# An attribute's domain and name.
AttributeName = tuple[str, str]

_VARIABLE = "device"
_WHOLE = frozenset({"driver", "capacity", "allowMultipleAllocations"})


class _UnknownError(Exception):
    """The expression uses all attributes, or the device as a value."""


def attributes_read(tree: Node) -> frozenset[AttributeName] | None:
    """Return all attributes that may affect the result; ``None`` if it may be any."""
    try:
        return frozenset(_read(tree))
    except _UnknownError:
        return None


def _read(node: Node) -> Iterator[AttributeName]:
    attribute = _attribute_of(node)
    if attribute is not None:
        yield attribute
        return
    if isinstance(node, Select) and node.field in _WHOLE and _is_device(node.operand):
        return
    # A loop variable may shadow the device.
    if isinstance(node, Comprehension) or _is_device(node):
        raise _UnknownError
    for child in node.children():
        yield from _read(child)


def _attribute_of(node: Node) -> AttributeName | None:
    """Return the attribute if the node is ``device.attributes["domain"].name``, or tests its presence."""
    if isinstance(node, Select):
        domain, name = _domain(node.operand), node.field
    elif isinstance(node, Call) and node.function == "_[_]" and (key := _text(node.args[1])) is not None:
        domain, name = _domain(node.args[0]), key
    elif isinstance(node, Call) and node.function == "@in" and (key := _text(node.args[0])) is not None:
        domain, name = _domain(node.args[1]), key
    else:
        return None
    return None if domain is None else (domain, name)


def _domain(node: Node) -> str | None:
    """Return the domain in ``device.attributes["domain"]``."""
    if not (isinstance(node, Call) and node.function == "_[_]"):
        return None
    whole = node.args[0]
    if isinstance(whole, Select) and whole.field == "attributes" and not whole.test_only and _is_device(whole.operand):
        return _text(node.args[1])
    return None


def _is_device(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == _VARIABLE


def _text(node: Node) -> str | None:
    return node.value if isinstance(node, Literal) and isinstance(node.value, str) else None
