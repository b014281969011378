"""Changes of each field of an object, in every way that its type in the API allows.

Types come from the published OpenAPI of ``k8s.io/kubernetes``. What a change makes of an object may be valid: that a
server accepts it is as much to be known as what it rejects.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.conformance.api_server import FOLDER, REMOVED, Change, Keys

SOURCES = Path(__file__).resolve().parents[1] / "reference"
Schema = Mapping[str, Any]

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_TIMES = ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime")
# Fields that the server fills in, or that stand for themselves.
_PASSED_OVER = {"status", "managedFields", "apiVersion", "kind", "creationTimestamp", "deletionTimestamp", "selfLink"}
_PASSED_OVER |= {"deletionGracePeriodSeconds", "generation", "uid", "resourceVersion"}

_STRINGS = ["", "x", "Bogus Value!", "-bad-", "a/b/c", "../up", "x" * 64, "x" * 254]
_INTEGERS = [-1, 0, 1, 70000, 2**31]
_LONGS = [-1, 0, 1, 2**31, 2**63]
_QUANTITIES = ["-1", "0", "1.5", "10Ti", "abc", 3]
_INT_OR_STRINGS = [-1, 0, 1, 70000, "0%", "-5%", "150%", "10", "abc", "x" * 64]
_TEXTS: list[dict[str, Any]] = [
    {"": "x"}, {"bad key!": "x"}, {"a": "bad value!"}, {"a": "x" * 64}, {"x" * 64: "x"}, {"example.com/a": ""},
    {"Example/a/b": "x"}, {"a": None}, {"a": 1},
]  # fmt: skip
_AMOUNTS: list[dict[str, Any]] = [
    {"bad key!": "1"}, {"unknown": "1"}, {"cpu": "-1"}, {"cpu": "1.5"}, {"memory": "64Mi"}, {"memory": "0.5"},
    {"example.com/x": "1"}, {"example.com/x": "1.5"}, {"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "3Mi"},
    {"requests.cpu": "1"}, {"pods": "1"}, {"count/a.b": "1"}, {"storage": "1Gi"}, {"kubernetes.io/x": "1"},
    {"cpu": None}, {"cpu": []},
]  # fmt: skip
# All annotations together may have 256 KiB.
_LONG_ANNOTATION = {"a": "x" * 2**18}
_WRONG: Mapping[str, list[Any]] = {
    "string": [5, {}, None],
    "integer": ["1", 1.5, None],
    "boolean": ["true", None],
    "array": [{}, "x", None],
    "object": [[], "x", None],
    "quantity": [True, {}, None],
    "int-or-string": [1.5, True, None],
    "time": ["x", 5, None],
}


class Types(NamedTuple):
    """The types of the API, by their names, and the name of each kind's type by ``apiVersion`` and ``kind``."""

    by_name: Mapping[str, Schema]
    kinds: Mapping[tuple[str, str], str]

    def resolved(self, schema: Schema) -> tuple[str, Schema]:
        """The name of the type that a field refers to, or the empty string, and the type."""
        reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), "")
        name = reference.rpartition("/")[2]
        return name, self.by_name[name] if name else schema


@cache
def types() -> Types:
    """The types of the newest version, from the Go module of the reference programs."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"]
    module = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=True).stdout.strip()
    by_name: dict[str, Schema] = {}
    for path in sorted(Path(module, "api", "openapi-spec", "v3").glob("*_openapi.json")):
        by_name |= json.loads(path.read_text())["components"].get("schemas", {})
    kinds = {
        (f"{kind['group']}/{kind['version']}".lstrip("/"), kind["kind"]): name
        for name, schema in by_name.items()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    }
    return Types(by_name, kinds)


@cache
def known_values() -> Mapping[str, list[Any]]:
    """Values by the name of a field, from ``values.yaml``."""
    values: Mapping[str, list[Any]] = yaml.safe_load((FOLDER / "values.yaml").read_text(encoding="utf-8"))
    return values


def changes(document: Mapping[str, Any]) -> Iterator[Change]:
    """All changes of single fields of a document, present and absent ones."""
    name = types().kinds[document["apiVersion"], document["kind"]]
    yield from _in_object((), document, types().by_name[name])


def _form(schema: Schema) -> tuple[str, Schema]:
    """What kind of value a field has, and its type."""
    name, target = types().resolved(schema)
    if name == _QUANTITY:
        return "quantity", target
    if name == _INT_OR_STRING or target.get("format") == "int-or-string":
        return "int-or-string", target
    if name in _TIMES:
        return "time", target
    return target.get("type", "object"), target


def _in_object(path: Keys, value: Mapping[str, Any], schema: Schema) -> Iterator[Change]:
    properties = schema.get("properties", {})
    yield Change((*path, "bogus"), 1)
    for name, field in properties.items():
        if name in _PASSED_OVER:
            continue
        at = (*path, name)
        if name in value:
            yield Change(at, REMOVED)
            yield from _of(at, value[name], field)
        else:
            yield from _absent(at, field)
    present = [name for name in value if name in properties and name not in _PASSED_OVER]
    if present:
        yield Change((*path, present[0].capitalize()), value[present[0]])


def _of(path: Keys, value: Any, schema: Schema) -> Iterator[Change]:
    form, target = _form(schema)
    for other in (*_WRONG[form], *_values(path, form, target)):
        if other != value or type(other) is not type(value):
            yield Change(path, other)
    if form == "array" and isinstance(value, list) and value:
        yield from _in_list(path, value, target)
    elif form == "object" and isinstance(value, dict):
        if "properties" in target:
            yield Change(path, {})
            yield from _in_object(path, value, target)
        elif value:
            yield Change((*path, next(iter(value))), REMOVED)


def _in_list(path: Keys, value: list[Any], schema: Schema) -> Iterator[Change]:
    yield Change(path, [])
    yield Change((*path, len(value)), value[0])
    yield Change((*path, len(value)), None)
    yield Change((*path, 0), REMOVED)
    if len(value) > 1:
        yield Change(path, value[::-1])
    if _form(schema["items"])[0] == "object" and "properties" in _form(schema["items"])[1]:
        yield Change((*path, len(value)), {})
        for index, item in enumerate(value):
            yield from _in_object((*path, index), item, _form(schema["items"])[1])
    else:
        for other in (*_WRONG[_form(schema["items"])[0]], *_STRINGS[:3]):
            yield Change((*path, 0), other)


def _absent(path: Keys, schema: Schema) -> Iterator[Change]:
    """A field that the document does not have."""
    form, target = _form(schema)
    if form == "object" and "properties" in target:
        values: list[Any] = [{}, _sample(schema, 0)]
    elif form == "array":
        values = [[], [_sample(target["items"], 0)], *known_values().get(str(path[-1]), [])]
    else:
        values = _values(path, form, target)
        values = values if path[-1] in known_values() else values[:4]
    for value in (*values, _WRONG[form][0]):
        yield Change(path, value)


def _values(path: Keys, form: str, schema: Schema) -> list[Any]:
    known = list(known_values().get(str(path[-1]), []))
    match form:
        case "string":
            return [*_STRINGS, *(value for value in known if isinstance(value, str))]
        case "integer":
            return [*(_LONGS if schema.get("format") == "int64" else _INTEGERS)]
        case "boolean":
            return [True, False]
        case "quantity":
            return list(_QUANTITIES)
        case "int-or-string":
            return [*_INT_OR_STRINGS, *known]
        case "time":
            return ["2026-01-01T00:00:00Z"]
        case "array":
            return [value for value in known if isinstance(value, list)]
        case _:
            values = schema.get("additionalProperties")
            if values is None:
                return []
            longest = [_LONG_ANNOTATION] if path == ("metadata", "annotations") else []
            return [{"a": "b"}, *(_AMOUNTS if _form(values)[0] == "quantity" else _TEXTS), *longest]


def _sample(schema: Schema, depth: int) -> Any:
    """A value of a type, with its required fields."""
    form, target = _form(schema)
    match form:
        case "string":
            return "a"
        case "integer" | "int-or-string":
            return 1
        case "boolean":
            return True
        case "quantity":
            return "1"
        case "time":
            return "2026-01-01T00:00:00Z"
        case "array":
            return [_sample(target["items"], depth + 1)]
    wanted = target.get("required", ()) or (() if depth else list(target.get("properties", ()))[:1])
    return {name: _sample(target["properties"][name], depth + 1) for name in wanted}
