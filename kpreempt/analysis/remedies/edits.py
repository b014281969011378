"""Applies the edits of a remedy to a cluster, and to plain objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.quantity import Quantity, quantity
from kpreempt.verdict.remedies import ObjectEdit


def merge_patched(document: Any, patch: Any) -> Any:
    """The document after a JSON merge patch (RFC 7386): ``null`` removes a field, and a list replaces a list."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patched(merged.get(key), value)
    return merged


def edited_documents(documents: Iterable[Document], edits: Sequence[ObjectEdit]) -> list[Document]:
    """The plain objects after the edits; objects that none of them names stay as they are."""
    by_object = {each.object: each for each in edits}
    found = []
    for document in documents:
        edit = by_object.get(describe(document))
        if edit is None or not edit.deletes:
            found.append(document if edit is None else merge_patched(document, edit.patch))
    return found


def edited(cluster: ClusterSnapshot, edits: Sequence[ObjectEdit]) -> ClusterSnapshot:
    """The cluster after the edits. Fields and objects that a snapshot does not hold are ignored."""
    for edit in edits:
        kind, _, name = edit.object.partition(" ")
        if kind not in CLUSTER_KINDS:
            continue
        field = CLUSTER_KINDS[kind].field
        records = [
            changed
            for each in getattr(cluster, field)
            if (changed := _edited(each, edit) if _name_of(each) == name else each) is not None
        ]
        cluster = msgspec.structs.replace(cluster, **{field: records})
    return cluster


def _name_of(record: Any) -> str:
    metadata = record.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)


def _edited(record: Any, edit: ObjectEdit) -> Any:
    if edit.deletes:
        return None
    document = merge_patched(msgspec.to_builtins(record, enc_hook=str), edit.patch)
    metadata = document.get("metadata", {})
    if metadata.get("deletionTimestamp") and "finalizers" in edit.patch.get("metadata", {}):
        # The API server deletes a terminating object once it has no finalizers.
        return None if not metadata.get("finalizers") else record
    return msgspec.convert(document, type(record), dec_hook=_decoded)


def _decoded(kind: type, value: Any) -> Any:
    if kind is Quantity:
        return quantity(str(value))
    raise NotImplementedError(f"{kind.__name__} has no decoder")
