"""Validate custom resources with the schema in their CustomResourceDefinition, as the API server does.

Follows ``k8s.io/apiextensions-apiserver`` v0.36.3: ``pkg/apiserver/customresource_handler.go`` (decoding),
``pkg/apiserver/schema/{pruning,defaulting,objectmeta}`` and ``pkg/registry/customresource``. CEL rules that types or
versions may give another meaning than ours are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cache
from typing import Any

from kpreempt.admission.json_schema import (
    Schema,
    check_lists,
    check_value,
    inner_values,
    is_equal,
    schema_of_field,
    with_integers,
)
from kpreempt.admission.schema import api_types, decoded_value
from kpreempt.admission.unknown_names import unknown
from kpreempt.admission.validation.metadata import check_metadata, check_metadata_update
from kpreempt.admission.validation.problems import Document, Problem, Problems, invalid, required
from kpreempt.admission.validation.values import MAX_INT32
from kpreempt.model.documents import Path, group_of, mapping_in

_META_FIELDS = ("apiVersion", "kind", "metadata")
_OBJECT_META = "meta.v1.ObjectMeta"
# Updates tolerate unchanged invalid values from this version on (CRDValidationRatcheting).
_RATCHETING_FROM = 30


def is_custom(document: Document) -> bool:
    """Return whether an object's group is not built in, so that its schema is in a CustomResourceDefinition, if any."""
    group = group_of(document)
    return bool(group) and group not in _built_in_groups()


@cache
def _built_in_groups() -> frozenset[str]:
    return frozenset(kind.partition("/")[0] for kind in api_types().kinds if "/" in kind)


def definition_of(document: Document, definitions: Iterable[Document]) -> Document | None:
    """Return the CustomResourceDefinition of an object's group and kind."""
    wanted = (group_of(document), document.get("kind"))
    for each in definitions:
        spec = mapping_in(each, "spec")
        if (spec.get("group"), mapping_in(spec, "names").get("kind")) == wanted:
            return each
    return None


def problems_of_custom(
    document: Document,
    definition: Document,
    old: Document | None = None,
    minor: int | None = None,
    skipped: list[str] | None = None,
) -> list[Problem]:
    """Return why the API server rejects a custom resource, or its update from ``old``.

    ``definition`` is its CustomResourceDefinition. ``skipped`` gets CEL rules that are not evaluated.
    """
    spec = mapping_in(definition, "spec")
    version = str(document.get("apiVersion")).rpartition("/")[2]
    served = [each for each in spec.get("versions") or () if each.get("name") == version and each.get("served")]
    if not served:
        kind = f'no matches for kind "{document.get("kind")}" in version "{document.get("apiVersion")}"'
        return [Problem(("apiVersion",), kind)]
    skipped = [] if skipped is None else skipped
    try:
        return list(_problems(with_integers(document), spec, served[0], old, minor, skipped))
    except RecursionError:
        return []


def _problems(
    document: dict[str, Any],
    spec: Mapping[str, Any],
    version: Mapping[str, Any],
    old: Document | None,
    minor: int | None,
    skipped: list[str],
) -> Problems:
    """Yield the problems of the first step that finds any; later steps need values without them."""
    metadata, found = decoded_value(document.get("metadata") or {}, _OBJECT_META, ("metadata",), minor)
    schema = mapping_in(version, "schema", "openAPIV3Schema")
    if schema and not spec.get("preserveUnknownFields"):
        found += _unknown(document, {**schema, "x-kubernetes-embedded-resource": True}, ())
    found += _embedded_metadata(document, schema, ())
    if not found:
        value = {**_defaulted(document, schema), "metadata": metadata}
        old = None if old is None else _defaulted(old, schema)
        _keep_status(value, old, version)
        if old is None:
            found += check_metadata(value, is_namespaced=spec.get("scope") != "Cluster", has_own_rules=False)
        else:
            found += check_metadata_update(value, old, has_own_rules=False)
        found += _tolerant(check_value(value, schema, ()), value, old, minor)
        found += _embedded(value, schema, ())
        if old is None or next(check_lists(old, schema, ()), None) is None:
            found += check_lists(value, schema, ())
        found += _replicas(value, version)
    yield from found or _tolerant(_rules(value, old, schema, (), skipped), value, old, minor)


def _keep_status(value: dict[str, Any], old: Document | None, version: Mapping[str, Any]) -> None:
    """If there is a subresource for the status, only it can change the status."""
    if "status" in mapping_in(version, "subresources"):
        value.pop("status", None)
        if old is not None and "status" in old:
            value["status"] = old["status"]


def _tolerant(problems: Problems, value: Document, old: Document | None, minor: int | None) -> Problems:
    """Yield the problems that an update does not tolerate, because the value changes."""
    is_tolerant = old is not None and (minor is None or minor >= _RATCHETING_FROM)
    for problem in problems:
        if not (is_tolerant and _is_unchanged(value, old, problem.path)):
            yield problem


def _unknown(value: Any, schema: Schema | None, path: Path) -> Problems:
    """Yield the fields that are not in the schema."""
    is_open = bool(schema and schema.get("x-kubernetes-preserve-unknown-fields"))
    if isinstance(value, list):
        items = schema.get("items") if schema else None
        if is_open and isinstance(items, dict):
            items = {**items, "x-kubernetes-preserve-unknown-fields": True}
        if items is None and is_open:
            return
        for index, each in enumerate(value):
            yield from _unknown(each, items, (*path, index))
    elif isinstance(value, dict):
        for key, each in value.items():
            if schema and schema.get("x-kubernetes-embedded-resource") and key in _META_FIELDS:
                continue
            inner = schema_of_field(schema, key)
            if inner is not None or (schema and schema.get("additionalProperties") is True):
                yield from _unknown(each, inner, (*path, key))
            elif not is_open:
                yield unknown("field", (*path, key), mapping_in(schema, "properties"))


def _defaulted(value: Any, schema: Schema) -> Any:
    """Return a copy with the schema's defaults, without ``null`` where the schema does not permit it."""
    if isinstance(value, list):
        items = mapping_in(schema, "items")
        filled = [deepcopy(items.get("default")) if _is_unset(each, items) else each for each in value]
        return [_defaulted(each, items) for each in filled]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, each in value.items():
        inner = schema_of_field(schema, key) or {}
        if not (_is_unset(each, inner) and inner.get("default") is None):
            result[key] = deepcopy(inner["default"]) if _is_unset(each, inner) else each
    for key, inner in mapping_in(schema, "properties").items():
        if key not in result and inner.get("default") is not None:
            result[key] = deepcopy(inner["default"])
    return {key: _defaulted(each, schema_of_field(schema, key) or {}) for key, each in result.items()}


def _is_unset(value: Any, schema: Schema) -> bool:
    return value is None and bool(schema) and not schema.get("nullable")


def _is_unchanged(value: Any, old: Any, path: Path) -> bool:
    """Return whether the value at the path, or one that contains it, is the same in the old object."""
    if is_equal(value, old):
        return True
    for key in path:
        if isinstance(key, int):
            if isinstance(old, list) and any(is_equal(value[key], each) for each in old):
                return True
            value, old = value[key], old[key] if isinstance(old, list) and key < len(old) else None
        else:
            value, old = part_of(value, key), part_of(old, key)
            if is_equal(value, old):
                return True
    return False


def part_of(value: Any, key: str) -> Any:
    """Return the value at a key; ``None`` if there is none."""
    return value.get(key) if isinstance(value, dict) else None


def _embedded_metadata(value: Any, schema: Schema, path: Path) -> Problems:
    """Decode the metadata of the objects in a resource that are marked as such."""
    if isinstance(value, dict) and schema.get("x-kubernetes-embedded-resource"):
        yield from decoded_value(value.get("metadata") or {}, _OBJECT_META, (*path, "metadata"))[1]
    for key, each, inner in inner_values(value, schema):
        yield from _embedded_metadata(each, inner, (*path, key))


def _embedded(value: Any, schema: Schema, path: Path) -> Problems:
    if isinstance(value, dict) and schema.get("x-kubernetes-embedded-resource"):
        for field in ("apiVersion", "kind"):
            if field not in value:
                yield required((*path, field))
            elif not value[field]:
                yield invalid((*path, field), value[field], "must not be empty")
    for key, each, inner in inner_values(value, schema):
        yield from _embedded(each, inner, (*path, key))


def _replicas(value: Any, version: Mapping[str, Any]) -> Problems:
    """Validate the number of replicas that the subresource for scaling has."""
    text = str(mapping_in(version, "subresources", "scale").get("specReplicasPath", ""))
    path = tuple(filter(None, text.split(".")))
    for key in path:
        value = part_of(value, key)
    if not path or value is None:
        return
    if type(value) is not int:
        yield invalid(path, value, "must be an integer")
    elif value < 0:
        yield invalid(path, value, "should be a non-negative integer")
    elif value > MAX_INT32:
        yield invalid(path, value, f"should be less than or equal to {MAX_INT32}")


_OLD = re.compile(r"\boldSelf\b")
# Texts of these formats have separate types in CEL.
_TYPED_FORMATS = frozenset({"byte", "date", "date-time", "datetime", "duration"})
_PLAIN_FIELD_PATH = re.compile(r"(\.[\w-]+)+")


def _rules(value: Any, old: Any, schema: Schema, path: Path, skipped: list[str]) -> Problems:
    """Evaluate CEL rules. Rules on transitions need the old value; those on elements of lists are not evaluated."""
    for rule in schema.get("x-kubernetes-validations") or ():
        yield from _rule(rule, value, old, schema, path, skipped)
    for key, each, inner in inner_values(value, schema):
        before = part_of(old, key) if isinstance(key, str) else None
        yield from _rules(each, before, inner, (*path, key), skipped)


def _rule(rule: Mapping[str, Any], value: Any, old: Any, schema: Schema, path: Path, skipped: list[str]) -> Problems:
    expression = str(rule.get("rule", ""))
    is_transition = bool(_OLD.search(expression))
    if is_transition and old is None:
        return
    is_typed = rule.get("optionalOldSelf") or "__" in expression
    holds = None
    if not is_typed and _is_plain(value, schema, is_transition=is_transition):
        holds = _holds(expression, value, old)
    if holds is None:
        skipped.append(expression)
    if holds is not False:
        return
    field = str(rule.get("fieldPath", ""))
    at = (*path, *field.split(".")[1:]) if _PLAIN_FIELD_PATH.fullmatch(field) else path
    yield Problem(at, f"Invalid value: {rule.get('message') or f'failed rule: {expression}'}")


def _holds(expression: str, value: Any, old: Any) -> bool | None:
    """Evaluate an expression; ``None`` if it cannot be evaluated."""
    from kpreempt.cel import CompileError, EvaluationError  # noqa: PLC0415 - takes a while, and few schemas have rules
    from kpreempt.cel.documents import compile_rule  # noqa: PLC0415 - as above

    try:
        return compile_rule(expression, ("self", "oldSelf")).evaluate({"self": value, "oldSelf": old})
    except (CompileError, EvaluationError):
        return None


def _is_plain(value: Any, schema: Schema, *, is_transition: bool) -> bool:
    """Return whether CEL sees the value like JSON: without ``null``, and without texts that have separate types.

    Lists that are sets or maps are compared in any order, which matters for transitions.
    """
    is_unordered = is_transition and schema.get("x-kubernetes-list-type", "atomic") != "atomic"
    if value is None or is_unordered or schema.get("format") in _TYPED_FORMATS:
        return False
    inner = inner_values(value, schema)
    return all(_is_plain(each, its_schema, is_transition=is_transition) for _, each, its_schema in inner)
