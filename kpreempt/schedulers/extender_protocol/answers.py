"""Parse extender responses like Go's ``encoding/json`` does for the types of a version.

Only the first value of the body counts. Field names match in any case; ``null`` leaves a field unset; unknown fields
are ignored. A wrong type raises an ``ExtenderError`` in Go's words, as does invalid JSON (``scanner.go`` and
``stream.go``, Go 1.24): after a rejection, the position of the first invalid character is computed.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from kpreempt.model.node import Node
from kpreempt.model.quantity import MAX_INT64, Quantity, quantity

# Longer numbers fit no type; they are kept as text.
_LONGEST_NUMBER = 64


class FilterResult(NamedTuple):
    """The response to a filter call. ``nodes`` and ``node_names`` are ``None`` if missing."""

    nodes: list[Node] | None
    node_names: list[str] | None
    failed: dict[str, str]
    unresolvable: dict[str, str]
    error: str


class MetaVictims(NamedTuple):
    """The victims on a node by UID, and the reported number of PDB violations."""

    uids: list[str]
    num_violations: int


class HostPriority(NamedTuple):
    """The score of a node."""

    host: str
    score: int


class _Number(NamedTuple):
    """A number in its original notation."""

    text: str


class _Object(NamedTuple):
    """The fields of an object in order, including duplicates."""

    pairs: list[tuple[str, Any]]


def read_filter_result(body: bytes, *, has_unresolvable: bool) -> FilterResult:
    """Parse the response to a filter call; ``has_unresolvable`` means that the version has it."""
    fields = _fields(_decode(body), "v1.ExtenderFilterResult")
    path = "ExtenderFilterResult"
    nodes = _last(fields, "nodes")
    names = _last(fields, "nodenames")
    return FilterResult(
        nodes=None if nodes is None else _nodes(nodes, f"{path}.Nodes"),
        node_names=None
        if names is None
        else [_text(each, f"{path}.NodeNames") for each in _list(names, f"{path}.NodeNames", "[]string")],
        failed=_map(fields, "failednodes", f"{path}.FailedNodes"),
        unresolvable=_map(fields, "failedandunresolvablenodes", f"{path}.FailedAndUnresolvableNodes")
        if has_unresolvable
        else {},
        error=_text(_last(fields, "error"), f"{path}.Error"),
    )


def read_preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """Parse the response to a preemption call: victims by node, in response order.

    A null node or pod is rejected; the real scheduler panics.
    """
    fields = _fields(_decode(body), "v1.ExtenderPreemptionResult")
    path = "ExtenderPreemptionResult.NodeNameToMetaVictims"
    victims: dict[str, MetaVictims] = {}
    for name, value in fields:
        if name != "nodenametometavictims" or value is None:
            continue
        if not isinstance(value, _Object):
            raise _mismatch(value, path, "map[string]*v1.MetaVictims")
        for node, each in value.pairs:
            if each is None:
                raise ExtenderError(f'the response has node "{_clean(node)}" without victims (null)')
            victims[_clean(node)] = _meta_victims(each, path)
    return victims


def read_priorities(body: bytes) -> list[HostPriority]:
    """Parse the response to a prioritize call, in order."""
    value = _decode(body)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _mismatch(value, "", "v1.HostPriorityList")
    found = []
    for each in value:
        fields = _fields(each, "v1.HostPriority")
        host = _text(_last(fields, "host"), "HostPriority.Host")
        found.append(HostPriority(host, _int64(_last(fields, "score"), "HostPriority.Score")))
    return found


def is_complete(body: bytes) -> bool:
    """Return whether the body starts with a complete value, which is all that is parsed."""
    try:
        _raw_value(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _meta_victims(value: Any, path: str) -> MetaVictims:
    fields = _fields(value, "v1.MetaVictims", path)
    pods, place = _last(fields, "pods"), "NodeNameToMetaVictims.Pods"
    uids = []
    for each in [] if pods is None else _list(pods, f"MetaVictims.{place}", "[]*v1.MetaPod"):
        if each is None:
            raise ExtenderError("the response has a pod without a UID (null)")
        uids.append(_text(_last(_fields(each, "v1.MetaPod", f"MetaVictims.{place}"), "uid"), f"MetaPod.{place}.UID"))
    violations = _last(fields, "numpdbviolations")
    return MetaVictims(uids, _int64(violations, "MetaVictims.NodeNameToMetaVictims.NumPDBViolations"))


def _decode(body: bytes) -> Any:
    text = body.decode("utf-8", "replace")
    try:
        return _raw_value(text)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise ExtenderError(problem_of(text) or f"the response is {what}") from None


def _raw_value(text: str) -> Any:
    """Decode the first value of a text. Raises ``ValueError`` and ``RecursionError``."""
    return _DECODER.raw_decode(text, len(text) - len(text.lstrip(" \t\r\n")))[0]


def _no_constant(name: str) -> Any:
    """Reject NaN and Infinity, which Python accepts but JSON does not have."""
    raise ValueError(name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant
)


def _fields(value: Any, go_type: str, path: str = "") -> list[tuple[str, Any]]:
    """Return the fields of an object with lower-case names; none for ``null``."""
    if value is None:
        return []
    if not isinstance(value, _Object):
        raise _mismatch(value, path, go_type)
    return [(name.casefold(), each) for name, each in value.pairs]


def _last(fields: list[tuple[str, Any]], name: str) -> Any:
    """Return the last value of a field that is not ``null``."""
    return next((value for key, value in reversed(fields) if key == name and value is not None), None)


def _list(value: Any, path: str, go_type: str) -> list[Any]:
    if not isinstance(value, list):
        raise _mismatch(value, path, go_type)
    return value


def _map(fields: list[tuple[str, Any]], name: str, path: str) -> dict[str, str]:
    """Return a map of strings; duplicate fields are merged."""
    found: dict[str, str] = {}
    for key, value in fields:
        if key != name or value is None:
            continue
        if not isinstance(value, _Object):
            raise _mismatch(value, path, "v1.FailedNodesMap")
        found |= {_clean(node): _text(reason, path) for node, reason in value.pairs}
    return found


def _text(value: Any, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _mismatch(value, path, "string")
    return _clean(value)


def _clean(text: str) -> str:
    """Replace lone surrogates, as Go does."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _int64(value: Any, path: str) -> int:
    number = _plain(value) if isinstance(value, _Number) else value
    if number is None:
        return 0
    if not isinstance(number, int) or isinstance(number, bool) or not -MAX_INT64 - 1 <= number <= MAX_INT64:
        raise _mismatch(value, path, "int64")
    return number


def _mismatch(value: Any, path: str, go_type: str) -> ExtenderError:
    """``json: cannot unmarshal`` with the value, its position, and the expected type."""
    kinds = {_Number: "number", _Object: "object", bool: "bool", str: "string"}
    found = kinds.get(type(value), "array")
    if isinstance(value, _Number) and go_type == "int64":
        found = f"number {value.text[:_LONGEST_NUMBER]}"
    target = f"Go struct field {path}" if path else "Go value"
    return ExtenderError(f"json: cannot unmarshal {found} into {target} of type {go_type}")


def _nodes(value: Any, path: str) -> list[Node]:
    """Decode a list of nodes; fields that no scheduler reads are dropped."""
    items, place = _last(_fields(value, "v1.NodeList", path), "items"), "NodeList.Nodes.items"
    return [] if items is None else [_node(each, place) for each in _list(items, place, "[]v1.Node")]


def _node(value: Any, path: str) -> Node:
    fields = _fields(value, "v1.Node", path)
    try:
        plain = {name: _plain(_last(fields, name)) for name in ("metadata", "spec", "status")}
        return msgspec.convert({name: each for name, each in plain.items() if each is not None}, Node, dec_hook=_hook)
    except RecursionError:
        raise ExtenderError("exceeded max depth") from None
    except (msgspec.ValidationError, ValueError) as error:
        at = str(error).partition(" - at `$.")[2].rstrip("`")
        raise ExtenderError(
            f"json: cannot unmarshal {at or 'a field'} into Go struct field {path} of type v1.Node"
        ) from None


def _plain(value: Any) -> Any:
    """Convert to plain data without ``null`` values."""
    if isinstance(value, _Object):
        return {_clean(name): _plain(each) for name, each in value.pairs if each is not None}
    if isinstance(value, list):
        return [_plain(each) for each in value if each is not None]
    if isinstance(value, _Number):
        number = value.text
        return int(number) if len(number) <= _LONGEST_NUMBER and number.lstrip("-").isdecimal() else number
    return _clean(value) if isinstance(value, str) else value


def _hook(expected: type, value: object) -> object:
    """Decode a quantity from a string or number. Raises ``ValueError``."""
    if expected is Quantity and isinstance(value, (str, int)) and not isinstance(value, bool):
        return quantity(str(value))
    raise ValueError("not a quantity")


class ExtenderError(Exception):
    """A call failed or returned an invalid response. The message contains no secret of the settings."""


class ExtenderStatusError(ExtenderError):
    """The extender returned an HTTP status other than 200, which each version words differently."""

    def __init__(self, status: int) -> None:
        super().__init__(f"code {status}")
        self.status = status


EMPTY = "EOF"
CUT_OFF = "unexpected EOF"
_TOO_DEEP = "exceeded max depth"
MAX_DEPTH = 10_000
_SPACE = " \t\r\n"
_ESCAPES = '"\\/bfnrt'
_DIGITS = "0123456789"
_HEX = "0123456789abcdefABCDEF"
_VALUE = "looking for beginning of value"
_KEY = "looking for beginning of object key string"
_IN_NUMBER = "in numeric literal"
_WORDS = {"t": "true", "f": "false", "n": "null"}


class _FoundError(Exception):
    """Carries the message once the error is found."""


class _Cursor:
    """A text and the current position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self, characters: str = _SPACE) -> None:
        """Skip all of these characters."""
        while self.take(characters):
            pass

    def peek(self) -> str:
        """Return the next character; raise an error if the text ends."""
        if self.at >= len(self.text):
            raise _FoundError(CUT_OFF)
        return self.text[self.at]

    def take(self, characters: str) -> bool:
        """Consume the next character if it is one of these."""
        is_there = self.at < len(self.text) and self.text[self.at] in characters
        self.at += is_there
        return is_there

    def expect(self, characters: str, context: str) -> str:
        found = self.peek()
        if found not in characters:
            raise _FoundError(f"invalid character {_quoted(found)} {context}")
        self.at += 1
        return found


def problem_of(text: str) -> str:
    """Return Go's message for the first value of invalid JSON; empty if it is valid."""
    cursor = _Cursor(text)
    cursor.skip()
    if cursor.at >= len(text):
        return EMPTY
    try:
        _values(cursor)
    except _FoundError as problem:
        return str(problem)
    return ""


def _values(cursor: _Cursor) -> None:
    """Parse one value and everything in it, at any depth."""
    # The expected closing brackets: ``}`` or ``]``.
    stack: list[str] = []
    while True:
        cursor.skip()
        if cursor.peek() in "{[":
            stack.append("}" if cursor.expect("{[", _VALUE) == "{" else "]")
            if len(stack) > MAX_DEPTH:
                raise _FoundError(_TOO_DEEP)
            cursor.skip()
            if cursor.peek() != stack[-1]:
                if stack[-1] == "}":
                    _key(cursor)
                continue
            cursor.at += 1
            stack.pop()
        elif cursor.take('"'):
            _string(cursor)
        elif cursor.peek() in f"-{_DIGITS}":
            _number(cursor)
        else:
            word = _WORDS.get(cursor.peek())
            if word is None:
                cursor.expect("", _VALUE)
            for character in word or "":
                cursor.expect(character, f"in literal {word} (expecting {_quoted(character)})")
        while stack:
            cursor.skip()
            end = stack[-1]
            after = "after object key:value pair" if end == "}" else "after array element"
            if cursor.expect(f",{end}", after) == ",":
                cursor.skip()
                if end == "}":
                    _key(cursor)
                break
            stack.pop()
        if not stack:
            return


def _key(cursor: _Cursor) -> None:
    cursor.expect('"', _KEY)
    _string(cursor)
    cursor.skip()
    cursor.expect(":", "after object key")


def _string(cursor: _Cursor) -> None:
    while True:
        character = cursor.peek()
        if character < " ":
            cursor.expect("", "in string literal")
        cursor.at += 1
        if character == '"':
            return
        if character == "\\" and cursor.expect(f"{_ESCAPES}u", "in string escape code") == "u":
            for _ in range(4):
                cursor.expect(_HEX, "in \\u hexadecimal character escape")


def _number(cursor: _Cursor) -> None:
    cursor.take("-")
    if cursor.expect(_DIGITS, _IN_NUMBER) != "0":
        cursor.skip(_DIGITS)
    if cursor.take("."):
        cursor.expect(_DIGITS, "after decimal point in numeric literal")
        cursor.skip(_DIGITS)
    if cursor.take("eE"):
        cursor.take("+-")
        cursor.expect(_DIGITS, "in exponent of numeric literal")
        cursor.skip(_DIGITS)


def _quoted(character: str) -> str:
    """Quote a character like ``quoteChar``; nonprintable characters are escaped."""
    special = {"'": "'\\''", '"': "'\"'", "\\": "'\\\\'", "\n": "'\\n'", "\r": "'\\r'", "\t": "'\\t'"}
    if character in special:
        return special[character]
    # Go works on bytes.
    if not " " <= character <= "~":
        byte = character.encode("utf-8", "replace")[0]
        character = chr(byte) if chr(byte).isprintable() else f"\\x{byte:02x}"
    return f"'{character}'"
