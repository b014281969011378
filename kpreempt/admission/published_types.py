"""The types that an API server publishes in its OpenAPI documents (``/openapi/v3/apis/apps/v1``).

They are converted to the tables that ``schema`` reads. ``tools/api_types.py`` makes the tables of all versions from the
same documents. Descriptions are left out. For custom resources, the documents have the schemas of their definitions.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kpreempt.admission.schema import ApiTypes

Definitions = Mapping[str, Any]

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
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "micro-time",
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


def kinds_of(definitions: Definitions) -> Iterator[tuple[str, str]]:
    """Yield the kinds of objects that have metadata, as ``apps/v1 Deployment``, and their types."""
    for name, definition in definitions.items():
        metadata = definition.get("properties", {}).get("metadata", {})
        if reference_of(metadata) != _OBJECT_META:
            continue
        for each in definition.get("x-kubernetes-group-version-kind", ()):
            version = f"{each['group']}/{each['version']}" if each["group"] else each["version"]
            yield f"{version} {each['kind']}", name


def reachable(definitions: Definitions) -> Iterator[str]:
    """Yield the types of all kinds, and the types with fields that these have in them."""
    found: set[str] = set()
    waiting = [name for _, name in kinds_of(definitions)]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in _OWN_DECODERS:
            found.add(name)
            yield name
            waiting += filter(None, (reference_of(each) for _, each in fields_of(definitions[name])))


def fields_of(definition: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Return the fields of a type, and their schemas."""
    properties: Mapping[str, Mapping[str, Any]] = definition.get("properties", {})
    return properties.items()


def reference_of(schema: Mapping[str, Any]) -> str:
    """Return the type that a field refers to, be it in a list or a map; empty for a scalar."""
    # A reference with a description or a default.
    inner = schema.get("items") or schema.get("additionalProperties") or next(iter(schema.get("allOf", ())), None)
    return reference_of(inner) if inner else str(schema.get("$ref", "")).rpartition("/")[2]


def type_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a field, as in the tables."""
    for key, sign in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            return sign + type_of(schema[key])
    if name := reference_of(schema):
        return _OWN_DECODERS.get(name) or short(name)
    return _SCALARS.get((schema.get("type", ""), schema.get("format", "")), "any")


def short(name: str) -> str:
    """Return ``core.v1.Pod`` for ``io.k8s.api.core.v1.Pod``."""
    return name.removeprefix(next((prefix for prefix in _PACKAGES if name.startswith(prefix)), ""))


class Published(msgspec.Struct, frozen=True):
    """What a server publishes: the types of built-in kinds, and CustomResourceDefinitions with the schemas of others.

    It is small, unlike the documents that it is made from, and may be encoded as JSON to keep it.
    """

    types: ApiTypes
    definitions: list[dict[str, Any]] = []


# The kind of the document in which snapshots keep what was published.
GROUP = "kpreempt.io"
KIND = "PublishedTypes"


def as_document(what: Published) -> dict[str, Any]:
    """Return the document in which a snapshot keeps what was published."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(what))
    return {"apiVersion": f"{GROUP}/v1", "kind": KIND, "metadata": {"name": "types"}, **plain}


def of_document(document: Mapping[str, Any]) -> Published | None:
    """Return what a snapshot keeps in a document; ``None`` if it cannot be read."""
    try:
        return msgspec.json.decode(msgspec.json.encode(document), type=Published)
    except msgspec.ValidationError:
        return None


def published(documents: Iterable[Mapping[str, Any]]) -> Published:
    """Return what is in the OpenAPI documents of some groups and versions of one server."""
    built_in: dict[str, Any] = {}
    definitions: list[dict[str, Any]] = []
    for document in documents:
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            if name.startswith(_PACKAGES):
                built_in[name] = schema
            else:
                kinds = (
                    schema.get("x-kubernetes-group-version-kind", ())
                    if "metadata" in schema.get("properties", {})
                    else ()
                )
                definitions += (_definition(document, schema, each) for each in kinds)
    return Published(_types_in(built_in), definitions)


def _types_in(definitions: Definitions) -> ApiTypes:
    # Types that are not structs decode themselves, and may do so in any way.
    opaque = {short(name) for name, schema in definitions.items() if not schema.get("properties")}
    types: dict[str, msgspec.Raw] = {}
    required: dict[str, msgspec.Raw] = {}
    for name in reachable(definitions):
        fields = {field: _known(type_of(each), opaque) for field, each in fields_of(definitions[name])}
        types[short(name)] = msgspec.Raw(msgspec.json.encode(fields))
        required[short(name)] = msgspec.Raw(
            msgspec.json.encode(dict.fromkeys(definitions[name].get("required", ()), ""))
        )
    kinds = {kind: short(name) for kind, name in kinds_of(definitions)}
    # It is one version, whichever it is.
    return ApiTypes(minors=(0, -1), kinds=kinds, types=types, required=required)


def _known(type_name: str, opaque: Container[str]) -> str:
    name = type_name.replace("[]", "").replace("{}", "")
    return type_name.removesuffix(name) + "any" if name in opaque else type_name


def _definition(document: Mapping[str, Any], schema: Mapping[str, Any], kind: Mapping[str, str]) -> dict[str, Any]:
    """Return a CustomResourceDefinition for the schema of a kind, as far as the document shows it."""
    paths = [
        path
        for path, item in document.get("paths", {}).items()
        if any(isinstance(each, dict) and each.get("x-kubernetes-group-version-kind") == kind for each in item.values())
    ]
    # The other fields refer to types.
    properties = {
        name: each for name, each in schema["properties"].items() if name not in ("apiVersion", "kind", "metadata")
    }
    version: dict[str, Any] = {
        "name": kind["version"],
        "served": True,
        "schema": {"openAPIV3Schema": {**schema, "properties": properties}},
        "subresources": {"status": {}} if any(path.endswith("/{name}/status") for path in paths) else {},
    }
    spec = {
        "group": kind["group"],
        "names": {"kind": kind["kind"]},
        "scope": "Namespaced" if any("/namespaces/{namespace}/" in path for path in paths) else "Cluster",
        "versions": [version],
    }
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
