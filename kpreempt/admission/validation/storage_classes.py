"""Validate StorageClasses.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/storage/validation/validation.go``.
"""

from __future__ import annotations

from kpreempt.admission.validation.metadata import (
    check_immutable,
    check_label_key,
    check_metadata,
    check_metadata_update,
)
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    duplicate,
    invalid,
    required,
    too_long,
    unsupported,
)
from kpreempt.admission.validation.values import qualified_name
from kpreempt.model.documents import Path

_MAX_PARAMETERS = 512
_MAX_SIZE = 256 * 1024
_DEFAULTS = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
_VALUES = {
    "reclaimPolicy": ("Delete", "Retain"),
    "volumeBindingMode": ("Immediate", "WaitForFirstConsumer"),
}
_IMMUTABLE = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def check_storage_class(document: Document, old: Document | None, _: Server) -> Problems:
    """Validate a StorageClass; only the metadata, the topologies and the expansion may change."""
    yield from check_metadata(document, is_namespaced=False)
    provisioner = document.get("provisioner") or ""
    if not provisioner:
        yield required(("provisioner",))
    elif problem := qualified_name(provisioner.lower()):
        yield invalid(("provisioner",), provisioner, problem)
    yield from _parameters(document.get("parameters") or {}, ("parameters",))
    for field, known in _VALUES.items():
        value = document.get(field, _DEFAULTS[field])
        if value not in known and (value or field == "volumeBindingMode"):
            yield unsupported((field,), value, known)
    yield from _topologies(document)
    if old is not None:
        yield from check_metadata_update(document, old)
        for field in _IMMUTABLE:
            default = _DEFAULTS.get(field)
            yield from check_immutable(document.get(field, default), old.get(field, default), (field,))


def _parameters(parameters: Document, path: Path) -> Problems:
    if len(parameters) > _MAX_PARAMETERS:
        yield too_long(path, _MAX_PARAMETERS)
        return
    if "" in parameters:
        yield invalid(path, "", "field can not be empty.")
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _MAX_SIZE:
        yield too_long(path, _MAX_SIZE)


def _topologies(document: Document) -> Problems:
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(document.get("allowedTopologies") or []):
        path = ("allowedTopologies", index, "matchLabelExpressions")
        values_of: dict[str, set[str]] = {}
        for number, each in enumerate(term.get("matchLabelExpressions") or []):
            key, values, at = each.get("key", ""), each.get("values") or [], (*path, number)
            if not values:
                yield required((*at, "values"))
            if len(set(values)) < len(values):
                yield duplicate((*at, "values"), values)
            yield from check_label_key(key, (*at, "key"))
            if key in values_of:
                yield duplicate((*at, "key"), key)
            values_of[key] = set(values)
        # An empty term counts as a duplicate of the initial ones.
        if not values_of or values_of in seen:
            yield duplicate(path, "")
        seen.append(values_of)


VALIDATORS = {"StorageClass": check_storage_class}
