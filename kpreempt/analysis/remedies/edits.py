"""Applies the edits of a remedy to a cluster, and to plain objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kpreempt.admission.priority import known_classes
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.simulation.cluster import Workloads
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import decode_quantity
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


def merge_patch(before: Any, after: Any) -> Any:
    """The smallest JSON merge patch from one mapping to another; it is empty if they are equal."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        known = before.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            if inner := merge_patch(known, value):
                patch[key] = inner
        elif key not in before or known != value:
            patch[key] = value
    return patch


def nested(path: Sequence[str], value: Any) -> Document:
    """The merge patch that sets a field."""
    for key in reversed(path):
        value = {key: value}
    return value  # type: ignore[no-any-return]


def edited_documents(documents: Iterable[Document], edits: Sequence[ObjectEdit]) -> list[Document]:
    """The plain objects after the edits; objects that none of them names stay as they are."""
    found = [*documents]
    for edit in edits:
        if edit.creates:
            found.append(edit.patch)
        elif edit.deletes:
            found = [each for each in found if describe(each) != edit.object]
        else:
            found = [merge_patched(each, edit.patch) if describe(each) == edit.object else each for each in found]
    return found


def edited(cluster: ClusterSnapshot, edits: Sequence[ObjectEdit]) -> ClusterSnapshot:
    """The cluster after the edits. Fields and objects that a snapshot does not hold are ignored."""
    for edit in edits:
        kind, _, name = edit.object.partition(" ")
        if kind not in CLUSTER_KINDS:
            continue
        field = CLUSTER_KINDS[kind].field
        if edit.creates:
            records = [*getattr(cluster, field), _record(edit.patch, CLUSTER_KINDS[kind].record)]
            cluster = msgspec.structs.replace(cluster, **{field: records})
            continue
        records = [
            changed
            for each in getattr(cluster, field)
            if (changed := _edited(each, edit) if _name_of(each) == name else each) is not None
        ]
        cluster = msgspec.structs.replace(cluster, **{field: records})
    return cluster


def with_new_templates(cluster: ClusterSnapshot, edits: Sequence[ObjectEdit]) -> ClusterSnapshot:
    """The cluster after the rollouts of edited pod templates, with every pod where it was.

    A snapshot has no templates, so the pods of each workload get what its template gets. Their priority is that of
    their PriorityClass.
    """
    patches = {each.object: patch for each in edits if (patch := mapping_in(each.patch, "spec", "template", "spec"))}
    if not patches:
        return cluster
    workloads = Workloads(cluster)
    classes = known_classes(cluster)

    def updated(pod: Pod) -> Pod:
        patch = patches.get(workloads.of(pod))
        if patch is None:
            return pod
        document = merge_patched(msgspec.to_builtins(pod.spec, enc_hook=str), patch)
        spec = msgspec.convert(document, type(pod.spec), dec_hook=decode_quantity)
        chosen = classes.get(spec.priority_class_name)
        if "priorityClassName" in patch and chosen is not None:
            spec = msgspec.structs.replace(
                spec, priority=chosen.value, preemption_policy=chosen.preemption_policy or spec.preemption_policy
            )
        return msgspec.structs.replace(pod, spec=spec)

    return msgspec.structs.replace(cluster, pods=[updated(pod) for pod in cluster.pods])


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
    return _record(document, type(record))


def _record(document: Any, kind: type) -> Any:
    return msgspec.convert(document, kind, dec_hook=decode_quantity)
