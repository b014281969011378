"""YAML as kubectl interprets it, read with PyYAML: the plain and exact reader that the fast one must equal.

kubectl reads YAML 1.1 like ``sigs.k8s.io/yaml`` v1.6.0 (``go.yaml.in/yaml/v2`` v2.4.3, ``resolve.go``) and converts it
to JSON. PyYAML's own resolvers differ: kubectl knows ``y`` and ``n``, reads ``1e3`` as a number and ``0o17`` as octal,
and leaves times and ``12:30`` as strings. Keys become strings. A repeated key is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

MAX_DEPTH = 150
# Aliases may make a document larger than its text, but only up to a limit.
_MAX_NODES_BY_ALIASES = 1_000_000

_TAG = "tag:yaml.org,2002:"
_TRUE = dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True)
_FALSE = dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False)
_WORDS: dict[str, bool | None] = {**_TRUE, **_FALSE, **dict.fromkeys(("", "~", "null", "Null", "NULL"))}
_UNENDING = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NUMBER_STARTS = frozenset("+-.0123456789")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_POINT_FIRST = re.compile(r"\.[0-9](?:_?[0-9])*(?:[eE][-+]?[0-9](?:_?[0-9])*)?")
_INTEGERS = (
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+"), 16),
    (re.compile(r"[-+]?0[bB][01]+"), 2),
    (re.compile(r"[-+]?0[oO]?[0-7]+"), 8),
    (re.compile(r"[-+]?(?:0|[1-9][0-9]*)"), 10),
)
_MAX_DIGITS = 400
_MAY_NEST_DEEPLY = re.compile(rf"^[ ?-]{{{MAX_DEPTH // 2},}}", re.MULTILINE)


class YamlError(Exception):
    """YAML that cannot be read. ``line`` counts from 1 within the given text."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


class KubectlLoader(yaml.CSafeLoader):
    """PyYAML's safe loader with kubectl's interpretation of scalars and keys."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: Any) -> str:
        """Return the tag of a node without one."""
        if kind is not yaml.ScalarNode or not implicit[0]:
            # The stubs are untyped here.
            return str(super().resolve(kind, value, (False, True)))  # type: ignore[no-untyped-call]  # see above
        if value == "<<":
            return _TAG + "merge"
        kind_of_scalar: type = type(resolve_scalar(value or ""))
        return _TAG + {bool: "bool", int: "int", float: "float", str: "str"}.get(kind_of_scalar, "null")

    def construct_kubectl_mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        """Return a mapping with string keys."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = _key(self, key_node)
            if key in seen and key_node.tag != _TAG + "merge":
                raise YamlError(f'duplicate key "{key[:80]}"', key_node.start_mark.line + 1)
            seen.add(key)
        self.flatten_mapping(node)
        return {_key(self, key): self.construct_object(value, deep=True) for key, value in node.value}


def _key(loader: KubectlLoader, node: yaml.Node) -> str:
    """Return a key as kubectl writes it to JSON."""
    if not isinstance(node, yaml.ScalarNode):
        raise YamlError("a key is a list or a mapping", node.start_mark.line + 1)
    key = loader.construct_object(node)
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        return f"{key:.7g}"
    if key is None:
        raise YamlError("a key is null", node.start_mark.line + 1)
    return str(key)


def resolve_scalar(text: str) -> bool | int | float | str | None:
    """Return kubectl's value of a scalar without quotes or tag."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if _UNENDING.fullmatch(text):
        return math.nan if "n" in text.lower().replace("inf", "") else math.inf
    if text[0] == ".":
        return float(text) if _POINT_FIRST.fullmatch(text) else text
    plain = text.replace("_", "")
    for syntax, base in _INTEGERS:
        if syntax.fullmatch(plain):
            if len(plain) > _MAX_DIGITS:
                break
            number = int(plain.replace("o", "").replace("O", "") if base == 8 else plain, base)
            if -(2**63) <= number < 2**63 or (number < 2**64 and plain[0] not in "+-"):
                return number
            break
    value = float(plain) if _FLOAT.fullmatch(plain) else math.inf
    return text if math.isinf(value) else value


def _construct_scalar(_: KubectlLoader, node: yaml.ScalarNode) -> bool | int | float | str | None:
    """Return a scalar according to its tag, explicit or implicit."""
    name = node.tag.removeprefix(_TAG)
    line = node.start_mark.line + 1
    if name in ("str", "merge", "timestamp"):
        return str(node.value)
    value = resolve_scalar(node.value)
    if name == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise YamlError(f"{node.value} is not a valid JSON number", line)
    expected = {"bool": bool, "int": int, "float": float, "null": type(None)}[name]
    if type(value) is not expected:
        raise YamlError(f'"{node.value[:40]}" is not a {name}', line)
    return value


for _name in ("str", "bool", "int", "float", "null", "timestamp", "merge"):
    KubectlLoader.add_constructor(_TAG + _name, _construct_scalar)
KubectlLoader.add_constructor(_TAG + "map", KubectlLoader.construct_kubectl_mapping)
KubectlLoader.add_constructor(
    _TAG + "seq", lambda loader, node: [loader.construct_object(each, deep=True) for each in node.value]
)


def load_documents(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the documents of a text with the lines on which they begin (from 1). Raises ``YamlError``."""
    try:
        # PyYAML would crash the process on deeper nesting.
        brackets = text.count("[") + text.count("{")
        if brackets >= MAX_DEPTH // 2 or _MAY_NEST_DEEPLY.search(text) or "&" in text or "!" in text:
            depth = 0
            for event in yaml.parse(text, Loader=yaml.CSafeLoader):
                if isinstance(event, yaml.CollectionStartEvent):
                    depth += 1
                    if depth > MAX_DEPTH:
                        raise YamlError("is nested too deeply", event.start_mark.line + 1 if event.start_mark else 1)
                elif isinstance(event, yaml.CollectionEndEvent):
                    depth -= 1
        loader = KubectlLoader(text)
        try:
            while loader.check_node():
                node = loader.get_node()
                if node is None:
                    continue
                if "*" in text:
                    _check_size(node, len(text) + _MAX_NODES_BY_ALIASES)
                yield node.start_mark.line + 1, loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "unreadable"
        line = 1 if mark is None else mark.line + 1
        raise YamlError(f"is not YAML: {problem}", line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else 1
        character = error.character if isinstance(error.character, int) else 0
        raise YamlError(f"contains the control character #x{character:02x}", line) from None
    except ValueError as error:
        raise YamlError(f"is not YAML: {error}", 1) from None


def _check_size(node: yaml.Node, limit: int) -> None:
    """Raise an error if aliases expand the document to more than ``limit`` nodes, or contain themselves."""
    sizes: dict[int, int] = {}

    def size_of(each: yaml.Node) -> int:
        if isinstance(each, yaml.ScalarNode):
            return 1
        known = sizes.get(id(each))
        if known is None:
            sizes[id(each)] = -1
            below = (
                each.value if isinstance(each, yaml.SequenceNode) else [part for pair in each.value for part in pair]
            )
            known = sizes[id(each)] = 1 + sum(size_of(part) for part in below)
        if known < 0:
            raise YamlError("an alias contains itself", each.start_mark.line + 1)
        return known

    if size_of(node) > limit:
        raise YamlError("its aliases expand without limit", node.start_mark.line + 1)
