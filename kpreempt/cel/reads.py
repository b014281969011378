"""What a selector reads of a device: selectors say the same of devices that do not differ in it."""

from __future__ import annotations

from collections.abc import Iterator

from kpreempt.cel.syntax import Call, Comprehension, Ident, Literal, Node, Select

# An attribute's domain and its name.
AttributeName = tuple[str, str]

_DEVICE = "device"
_WHOLE = frozenset({"driver", "capacity", "allowMultipleAllocations"})


class _UnknownError(Exception):
    """Something is done with all attributes, or with the device itself."""


def attributes_read(tree: Node) -> frozenset[AttributeName] | None:
    """All attributes that the result may hang on; ``None`` where these may be any."""
    try:
        return frozenset(_read(tree))
    except _UnknownError:
        return None


def _read(node: Node) -> Iterator[AttributeName]:
    attribute = _attribute(node)
    if attribute is not None:
        yield attribute
        return
    if isinstance(node, Select) and node.field in _WHOLE and _is_device(node.operand):
        return
    # What a loop calls its variables may hide the device.
    if isinstance(node, Comprehension) or _is_device(node):
        raise _UnknownError
    for child in node.children():
        yield from _read(child)


def _attribute(node: Node) -> AttributeName | None:
    """The attribute, where the node is ``device.attributes["domain"].name``, or asks whether there is one."""
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
    """The domain of ``device.attributes["domain"]``."""
    if not (isinstance(node, Call) and node.function == "_[_]"):
        return None
    whole = node.args[0]
    if isinstance(whole, Select) and whole.field == "attributes" and not whole.test_only and _is_device(whole.operand):
        return _text(node.args[1])
    return None


def _is_device(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == _DEVICE


def _text(node: Node) -> str | None:
    return node.value if isinstance(node, Literal) and isinstance(node.value, str) else None
