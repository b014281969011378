"""Validate PersistentVolumeClaims.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidatePersistentVolumeClaim``).
For fields that are dropped or completed before, it follows ``pkg/registry/core/persistentvolumeclaim/strategy.go`` and
``pkg/api/persistentvolumeclaim/util.go``.
"""

from __future__ import annotations

from typing import Any

from kpreempt.admission.validation.metadata import (
    check_immutable,
    check_label_selector,
    check_metadata,
    check_metadata_update,
    check_unchanged_except,
)
from kpreempt.admission.validation.problems import (
    Document,
    Problem,
    Problems,
    Server,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kpreempt.admission.validation.values import amount, dns_label, dns_subdomain
from kpreempt.model.documents import Path, mapping_in
from kpreempt.model.storage import BETA_STORAGE_CLASS_ANNOTATION

# The versions in which gates are on by default.
_VOLUME_ATTRIBUTES = 34
_SMALLER_AFTER_FAILURE = 32

_SPEC: Path = ("spec",)
_STORAGE: Path = ("spec", "resources", "requests", "storage")
_SINGLE_POD = "ReadWriteOncePod"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", _SINGLE_POD)
_VOLUME_MODES = ("Block", "Filesystem")
_CLAIM = "PersistentVolumeClaim"
# The sources that ``dataSource`` accepts by itself; others are dropped.
_SOURCES = frozenset({(_CLAIM, ""), ("VolumeSnapshot", "snapshot.storage.k8s.io")})
_CLASS = "storageClassName"
_ATTRIBUTES = "volumeAttributesClassName"


def check_claim(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a PersistentVolumeClaim."""
    yield from check_metadata(document)
    spec = _prepared(mapping_in(document, "spec"), mapping_in(old or {}, "spec"), server)
    before = None if old is None else _with_data_sources(mapping_in(old, "spec"))
    yield from _spec(spec, server, _SPEC, old=before)
    if old is None or before is None:
        return
    yield from check_metadata_update(document, old)
    is_bound = _is_bound(old)
    yield from _class_annotation(document, old, spec, before)
    yield from _unchanged(spec, before, _annotations(old), server, is_bound=is_bound)
    yield from _size(spec, before, mapping_in(old, "status"), server)
    if spec.get(_ATTRIBUTES) != before.get(_ATTRIBUTES):
        yield from _attributes_class(spec, mapping_in(old, "status"), server)


def check_claim_spec(spec: Document, server: Server, path: Path) -> Problems:
    """Validate the spec of a claim template; ``path`` is that of the spec."""
    yield from _spec(spec, server, path)


def _spec(spec: Document, server: Server, path: Path, *, old: Document | None = None) -> Problems:
    yield from _access_modes(spec.get("accessModes") or [], (*path, "accessModes"))
    selector_problems = list(check_label_selector(spec.get("selector"), (*path, "selector")))
    if old is None or not any(check_label_selector(old.get("selector"), path)):
        yield from selector_problems
    requests, at = mapping_in(spec, "resources", "requests"), (*path, "resources", "requests", "storage")
    if "storage" not in requests:
        yield required(at)
    elif amount(requests["storage"]).nano <= 0:
        yield invalid(at, requests["storage"], "must be greater than zero")
    has_attributes = server.minor >= _VOLUME_ATTRIBUTES or bool(old and _ATTRIBUTES in old)
    for field in (_CLASS, _ATTRIBUTES) if has_attributes else (_CLASS,):
        if spec.get(field) and (problem := dns_subdomain(spec[field])):
            yield invalid((*path, field), spec[field], problem)
    if "volumeMode" in spec and spec["volumeMode"] not in _VOLUME_MODES:
        yield unsupported((*path, "volumeMode"), spec["volumeMode"], _VOLUME_MODES)
    yield from _data_sources(spec, path, old=old)


def _access_modes(modes: list[str], path: Path) -> Problems:
    if not modes:
        yield required(path, "at least 1 access mode is required")
    for index, each in enumerate(modes):
        if each not in _ACCESS_MODES:
            yield unsupported((*path, index), each, _ACCESS_MODES)
    if _SINGLE_POD in modes and not {_SINGLE_POD}.issuperset(set(modes).intersection(_ACCESS_MODES)):
        yield forbidden(path, f"may not use {_SINGLE_POD} with other access modes")


def _data_sources(spec: Document, path: Path, *, old: Document | None) -> Problems:
    may_keep_group = any("apiGroup" in mapping_in(old or {}, field) for field in ("dataSource", "dataSourceRef"))
    for field in ("dataSource", "dataSourceRef"):
        if field in spec:
            yield from _data_source(mapping_in(spec, field), may_keep_group, (*path, field))
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        yield invalid((*path, "dataSource"), source, detail)
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        yield invalid((*path, "dataSource"), source, "must match dataSourceRef")


def _data_source(source: Document, may_keep_group: bool, path: Path) -> Problems:
    kind, group, namespace = (source.get(field) or "" for field in ("kind", "apiGroup", "namespace"))
    for field in ("name", "kind"):
        if not source.get(field):
            yield required((*path, field))
    if not group and kind != _CLAIM:
        yield invalid(path, kind, f"must be '{_CLAIM}' when referencing the default apiGroup")
    if group and not may_keep_group and (problem := dns_subdomain(group)):
        yield invalid((*path, "apiGroup"), group, problem)
    if namespace and (problem := dns_label(namespace)):
        yield invalid((*path, "namespace"), namespace, problem)


def _prepared(spec: Document, old: Document, server: Server) -> dict[str, Any]:
    """The spec without the fields that the API server drops."""
    prepared = dict(spec)
    if server.minor < _VOLUME_ATTRIBUTES and _ATTRIBUTES not in old:
        prepared.pop(_ATTRIBUTES, None)
    # The gate for sources in other namespaces is off by default.
    if mapping_in(prepared, "dataSourceRef").get("namespace") and "dataSourceRef" not in old:
        del prepared["dataSourceRef"]
    source = mapping_in(prepared, "dataSource")
    is_known = (source.get("kind"), source.get("apiGroup") or "") in _SOURCES
    if not is_known and not {"dataSource", "dataSourceRef"} & (prepared.keys() - {"dataSource"} | old.keys()):
        prepared.pop("dataSource", None)
    return _with_data_sources(prepared)


def _with_data_sources(spec: Document) -> dict[str, Any]:
    """The spec with both fields for the source of its data, if it has one."""
    completed = dict(spec)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        completed["dataSourceRef"] = source
    elif reference is not None and source is None and not reference.get("namespace"):
        completed["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}
    return completed


def _is_bound(old: Document) -> bool:
    """Whether the claim is bound; one without status, as written by hand, is if it has a volume."""
    phase = mapping_in(old, "status").get("phase")
    return phase == "Bound" if phase else bool(mapping_in(old, "spec").get("volumeName"))


def _annotations(document: Document) -> Document:
    return mapping_in(document, "metadata", "annotations")


def _class_annotation(document: Document, old: Document, spec: Document, before: Document) -> Problems:
    value, previous = (_annotations(each).get(BETA_STORAGE_CLASS_ANNOTATION) for each in (document, old))
    is_moved = previous is not None and before.get(_CLASS) is None and spec.get(_CLASS) == previous
    if not (is_moved and value in (None, previous)):
        yield from check_immutable(value, previous, ("metadata", "annotations", BETA_STORAGE_CLASS_ANNOTATION))


def _unchanged(
    spec: Document, before: Document, old_annotations: Document, server: Server, *, is_bound: bool
) -> Problems:
    """Yield a problem unless only what may change does: the size, classes by their rules, and a first volume."""
    mutable = [] if before.get("volumeName") else ["volumeName"]
    class_before = old_annotations.get(BETA_STORAGE_CLASS_ANNOTATION, spec.get(_CLASS))
    if _CLASS not in before and class_before == spec.get(_CLASS):
        mutable.append(_CLASS)
    if is_bound and (server.minor >= _VOLUME_ATTRIBUTES or _ATTRIBUTES in spec):
        mutable.append(_ATTRIBUTES)
    new, old = (_comparable(each, without_size=is_bound) for each in (spec, before))
    detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    yield from check_unchanged_except(new, old, mutable, _SPEC, detail)


def _comparable(spec: Document, *, without_size: bool) -> dict[str, Any]:
    resources = {
        field: {
            name: amount(value)
            for name, value in amounts.items()
            if not (without_size and field == "requests" and name == "storage")
        }
        for field, amounts in mapping_in(spec, "resources").items()
        if isinstance(amounts, dict)
    }
    return {
        **spec,
        # Unlike for other fields, an empty name is not the same as a missing one.
        **{field: (spec[field],) for field in (_CLASS, _ATTRIBUTES) if field in spec},
        "resources": {field: amounts for field, amounts in resources.items() if amounts},
        "volumeMode": spec.get("volumeMode", "Filesystem"),
    }


def _size(spec: Document, before: Document, status: Document, server: Server) -> Problems:
    size, old_size = (amount(mapping_in(each, "resources", "requests").get("storage", 0)) for each in (spec, before))
    if size.nano >= old_size.nano:
        return
    has_expanded = "allocatedResources" in status or "allocatedResourceStatuses" in status
    # A claim without status, as written by hand, is either pending, so that its size is immutable, or has its size.
    if "phase" not in status or (server.minor < _SMALLER_AFTER_FAILURE and not has_expanded):
        yield forbidden(_STORAGE, "field can not be less than previous value")
    elif size.nano <= amount(mapping_in(status, "capacity").get("storage", 0)).nano:
        yield forbidden(_STORAGE, "field can not be less than status.capacity")


def _attributes_class(spec: Document, status: Document, server: Server) -> Problems:
    path = (*_SPEC, _ATTRIBUTES)
    if server.minor < _VOLUME_ATTRIBUTES:
        yield forbidden(path, "update is forbidden when the VolumeAttributesClass feature gate is disabled")
    is_applied = "currentVolumeAttributesClassName" in status
    if server.minor >= _VOLUME_ATTRIBUTES and is_applied and not spec.get(_ATTRIBUTES):
        yield _removed(path)


def _removed(path: Path) -> Problem:
    detail = "update to nil or an empty string is forbidden when status.currentVolumeAttributesClassName is not nil"
    return forbidden(path, detail)


VALIDATORS = {"PersistentVolumeClaim": check_claim}
