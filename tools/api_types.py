"""Writes ``kpreempt/admission/api_types.json``: the kinds of the Kubernetes API and their fields, version by version.

``python tools/api_types.py`` reads the OpenAPI document that each version of the Go module ``k8s.io/kubernetes``
carries, and downloads the modules it does not find in Go's module cache. It needs Go, and is run by hand when a
version is added to ``VERSIONS``; the same versions produce the same bytes. Only names and types are kept.

The file holds ``minors`` (the first and the last minor version of Kubernetes 1 that it covers), ``kinds`` (``apps/v1
Deployment`` to the name of its type) and ``types`` (the fields of each type). The type of a field is a scalar
(``string``, ``bytes``, ``int32``, ``int64``, ``number``, ``boolean``, ``quantity``, ``int-or-string``, ``time``),
``any`` for a value that the API server does not look into, or the name of a type; ``[]`` before it means a list, ``{}``
a map with free keys. ``33-``, ``-30`` or ``33-35`` after it are the minor versions that have the field (or the kind),
if that isn't every version that has its type.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "kpreempt" / "admission" / "api_types.json"
VERSIONS = {
    29: "v1.29.14",
    30: "v1.30.14",
    31: "v1.31.14",
    32: "v1.32.13",
    33: "v1.33.13",
    34: "v1.34.4",
    35: "v1.35.4",
    36: "v1.36.3",
    37: "v1.37.1",
    38: "v1.38.0-beta.0",
}
_PACKAGES = (
    "io.k8s.api.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.apiextensions-apiserver.pkg.apis.",
    "io.k8s.kube-aggregator.pkg.apis.",
)
# Types that decode themselves, so that strict decoding does not look into them.
_OWN_DECODERS = {
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
}
_SCALARS = {
    ("string", ""): "string",
    ("string", "byte"): "bytes",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "number",
    ("boolean", ""): "boolean",
}
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

Definitions = dict[str, Any]


def main() -> int:
    """Write the file."""
    versions = {minor: definitions_of(version) for minor, version in VERSIONS.items()}
    kinds: dict[str, dict[int, str]] = {}
    for minor, definitions in versions.items():
        for kind, name in kinds_of(definitions):
            kinds.setdefault(kind, {})[minor] = name
    fields: dict[str, dict[str, dict[int, str]]] = {}
    for minor, definitions in versions.items():
        for name in reachable(definitions, (by_minor[minor] for by_minor in kinds.values() if minor in by_minor)):
            own = fields.setdefault(name, {})
            for field, schema in definitions[name].get("properties", {}).items():
                own.setdefault(field, {})[minor] = type_of(schema)
    presence = {name: [minor for minor in versions if name in versions[minor]] for name in fields}
    table = {
        "minors": [min(versions), max(versions)],
        "kinds": {
            kind: within({minor: short(name) for minor, name in by_minor.items()}, list(versions))
            for kind, by_minor in sorted(kinds.items())
        },
        "types": {
            short(name): {field: within(by_minor, presence[name]) for field, by_minor in sorted(own.items())}
            for name, own in sorted(fields.items())
        },
    }
    TARGET.write_text(as_lines(table), encoding="utf-8")
    sys.stderr.write(f"{TARGET}: {len(kinds)} kinds, {len(fields)} types, {TARGET.stat().st_size:,} bytes\n")
    return 0


def definitions_of(version: str) -> Definitions:
    """The types in the OpenAPI document of a version. Raises if Go cannot get its module."""
    module = f"k8s.io/kubernetes@{version}"
    # It fails for a version that needs a newer Go, even though it downloads the module.
    subprocess.run(["go", "mod", "download", module], check=False, stderr=subprocess.DEVNULL)  # noqa: S607 - by hand
    cache = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True)  # noqa: S607
    document = Path(cache.stdout.strip(), module, "api", "openapi-spec", "swagger.json")
    return dict(json.loads(document.read_bytes())["definitions"])


def kinds_of(definitions: Definitions) -> Iterator[tuple[str, str]]:
    """The kinds of objects that have metadata, as ``apps/v1 Deployment``, and their types."""
    for name, definition in definitions.items():
        metadata = definition.get("properties", {}).get("metadata", {})
        if reference_of(metadata) != _OBJECT_META:
            continue
        for each in definition.get("x-kubernetes-group-version-kind", ()):
            version = f"{each['group']}/{each['version']}" if each["group"] else each["version"]
            yield f"{version} {each['kind']}", name


def reachable(definitions: Definitions, names: Iterator[str]) -> set[str]:
    """The types with fields that these types have in them, themselves included."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name in _OWN_DECODERS:
            continue
        found.add(name)
        waiting += filter(None, map(reference_of, definitions[name].get("properties", {}).values()))
    return found


def reference_of(schema: Mapping[str, Any]) -> str:
    """The type that a field refers to, be it in a list or a map; empty for a scalar."""
    inner = schema.get("items") or schema.get("additionalProperties")
    return reference_of(inner) if inner else str(schema.get("$ref", "")).rpartition("/")[2]


def type_of(schema: Mapping[str, Any]) -> str:
    """The type of a field."""
    for key, sign in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            return sign + type_of(schema[key])
    if "$ref" in schema:
        name = reference_of(schema)
        return _OWN_DECODERS.get(name) or short(name)
    return _SCALARS[schema["type"], schema.get("format", "")]


def short(name: str) -> str:
    """``core.v1.Pod`` for ``io.k8s.api.core.v1.Pod``."""
    return name.removeprefix(next(prefix for prefix in _PACKAGES if name.startswith(prefix)))


def within(by_minor: Mapping[int, str], minors: list[int]) -> str:
    """The newest of the types, with the minor versions that have it if those aren't all of ``minors``."""
    have = sorted(by_minor)
    assert have == list(range(have[0], have[-1] + 1)), f"it was gone in between: {by_minor}"
    first = "" if have[0] == minors[0] else str(have[0])
    last = "" if have[-1] == minors[-1] else str(have[-1])
    return f"{by_minor[have[-1]]} {first}-{last}" if first or last else by_minor[have[-1]]


def as_lines(table: Mapping[str, Any]) -> str:
    """JSON with a line for each kind and type, for readable diffs."""
    parts = [f'"minors":{json.dumps(table["minors"])}']
    for key in ("kinds", "types"):
        lines = (f"{json.dumps(name)}:{json.dumps(each, separators=(',', ':'))}" for name, each in table[key].items())
        parts.append(f'"{key}":{{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    raise SystemExit(main())
