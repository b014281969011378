"""Validate the metadata of objects, labels and label selectors.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/api/validation/objectmeta.go`` and
``pkg/apis/meta/v1/validation/validation.go``. What the API server sets itself (resource version, UID, managed fields)
is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kpreempt.admission.validation.problems import (
    Document,
    Problem,
    Problems,
    forbidden,
    invalid,
    required,
    too_long,
)
from kpreempt.admission.validation.values import dns_label, dns_subdomain, label_value, qualified_name
from kpreempt.model.documents import Path, mapping_in

IMMUTABLE = "field is immutable"
METADATA: Path = ("metadata",)

NameCheck = Callable[[str], str]

_MAX_ANNOTATIONS = 256 * 1024
# Ends a generated name when its form is checked.
_GENERATED = "a"
_EXCLUSIVE = frozenset({"orphan", "foregroundDeletion"})
_STANDARD_FINALIZERS = _EXCLUSIVE | {"kubernetes"}


def check_metadata(
    document: Document,
    *,
    name: NameCheck = dns_subdomain,
    is_namespaced: bool = True,
    has_own_rules: bool = True,
    path: Path = METADATA,
) -> Problems:
    """Validate the metadata of an object; ``name`` checks its name.

    A missing namespace is not a problem, because the request has it; that of a cluster-scoped object is ignored. The
    finalizers of kinds without rules for their metadata may have any qualified name.
    """
    metadata = mapping_in(document, "metadata")
    generated, own = metadata.get("generateName"), metadata.get("name")
    if generated:
        text = f"{generated[:-1]}{_GENERATED}" if generated.endswith("-") else generated
        if problem := name(text):
            yield invalid((*path, "generateName"), generated, problem)
    if own:
        if problem := name(own):
            yield invalid((*path, "name"), own, problem)
    elif not generated:
        yield required((*path, "name"), "name or generateName is required")
    namespace = metadata.get("namespace")
    if is_namespaced and namespace and (problem := dns_label(namespace)):
        yield invalid((*path, "namespace"), namespace, problem)
    yield from _common(metadata, path)
    if has_own_rules:
        yield from check_finalizers(metadata.get("finalizers") or [], (*path, "finalizers"))


def check_metadata_update(document: Document, old: Document, *, has_own_rules: bool = True) -> Problems:
    """Validate the metadata of an object that is updated."""
    metadata, before = mapping_in(document, "metadata"), mapping_in(old, "metadata")
    yield from _common(metadata, METADATA)
    if has_own_rules:
        yield from check_finalizers(metadata.get("finalizers") or [], (*METADATA, "finalizers"))
    if before.get("deletionTimestamp"):
        added = [each for each in metadata.get("finalizers") or [] if each not in (before.get("finalizers") or [])]
        if added:
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {added}"
            yield forbidden((*METADATA, "finalizers"), detail)


def check_finalizers(finalizers: Sequence[str], path: Path) -> Problems:
    """Validate finalizers that must be standard ones or have a domain; their form is not checked."""
    for index, each in enumerate(finalizers):
        if "/" not in each and each not in _STANDARD_FINALIZERS:
            yield invalid((*path, index), each, "name is neither a standard finalizer name nor is it fully qualified")


def check_labels(given: Document, path: Path) -> Problems:
    """Validate labels."""
    for key, value in given.items():
        yield from check_label_key(key, path)
        if problem := label_value(value):
            yield invalid((*path, key), value, problem)


def check_label_key(key: str, path: Path) -> Problems:
    """Validate the key of a label."""
    if problem := qualified_name(key):
        yield invalid(path, key, problem)


def check_annotations(given: Document, path: Path) -> Problems:
    """Validate annotations: their keys, in any case, and their total size."""
    for key in given:
        if problem := qualified_name(key.lower()):
            yield invalid(path, key, problem)
    if sum(len(key.encode()) + len(value.encode()) for key, value in given.items()) > _MAX_ANNOTATIONS:
        yield too_long(path, _MAX_ANNOTATIONS)


def check_label_selector(selector: Document | None, path: Path) -> Problems:
    """Validate a label selector."""
    if selector is None:
        return
    yield from check_labels(selector.get("matchLabels") or {}, (*path, "matchLabels"))
    for index, each in enumerate(selector.get("matchExpressions") or []):
        at = (*path, "matchExpressions", index)
        operator, values = each.get("operator", ""), each.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                yield required((*at, "values"), "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden((*at, "values"), detail)
        else:
            yield invalid((*at, "operator"), operator, "not a valid selector operator")
        yield from check_label_key(each.get("key", ""), (*at, "key"))
        for number, value in enumerate(values):
            if problem := label_value(value):
                yield invalid((*at, "values", number), value, problem)


def check_immutable(new: Any, old: Any, path: Path, detail: str = IMMUTABLE) -> Problems:
    """Yield a problem if a value changes; empty and missing values are equal."""
    if (new or None) != (old or None):
        yield invalid(path, new, detail)


def check_unchanged_except(
    document: Document, old: Document, mutable: Sequence[str], path: Path, detail: str
) -> Problems:
    """Yield a problem if fields other than the ``mutable`` ones of a mapping change."""
    fields = sorted(
        key
        for key in document.keys() | old.keys()
        if key not in mutable and (document.get(key) or None) != (old.get(key) or None)
    )
    if fields:
        yield Problem((*path, fields[0]), forbidden(path, detail).message)


def _common(metadata: Document, path: Path) -> Problems:
    if metadata.get("generation", 0) < 0:
        yield invalid((*path, "generation"), metadata["generation"], "must be greater than or equal to 0")
    yield from check_labels(metadata.get("labels") or {}, (*path, "labels"))
    yield from check_annotations(metadata.get("annotations") or {}, (*path, "annotations"))
    yield from _owners(metadata.get("ownerReferences") or [], (*path, "ownerReferences"))
    yield from _finalizers(metadata.get("finalizers") or [], (*path, "finalizers"))


def _owners(owners: Sequence[Document], path: Path) -> Problems:
    controllers = 0
    for each in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not each.get(field):
                detail = "version must not be empty" if field == "apiVersion" else "must not be empty"
                yield invalid((*path, field), each.get(field, ""), detail)
        controllers += bool(each.get("controller"))
    if controllers > 1:
        yield invalid(path, list(owners), "Only one reference can have Controller set to true")


def _finalizers(finalizers: Sequence[str], path: Path) -> Problems:
    for each in finalizers:
        if problem := qualified_name(each):
            yield invalid(path, each, problem)
    if set(finalizers) >= _EXCLUSIVE:
        yield invalid(path, list(finalizers), "finalizer orphan and foregroundDeletion cannot be both set")
