"""One cluster laid over another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.empty import NO_ENTRIES
from kpreempt.snapshot.kinds import KINDS


def merge_clusters(base: ClusterSnapshot, over: ClusterSnapshot) -> ClusterSnapshot:
    """``base`` with the objects of ``over``: those of the same identity replaced in place, new ones last.

    Kind, namespace and name are the identity. What ``base`` says of version and time stays, unless it says nothing. A
    kind that ``base`` was taken without stays one of which there may be more.
    """
    changes: dict[str, Any] = {}
    for kind in KINDS.values():
        added = getattr(over, kind.field)
        if added:
            changes[kind.field] = _laid_over(getattr(base, kind.field), added, _identity)
    documents = {
        key: _laid_over(base.documents.get(key, []), over.documents.get(key, []), _identity_of_document)
        for key in {**base.documents, **over.documents}
    }
    return msgspec.structs.replace(
        base,
        **changes,
        version=base.version or over.version,
        taken_at=base.taken_at or over.taken_at,
        skipped=dict(Counter(base.skipped) + Counter(over.skipped)),
        documents=documents or NO_ENTRIES,
    )


def _laid_over(below: list[Any], above: list[Any], identity: Callable[[Any], tuple[str, str]]) -> list[Any]:
    latest = {identity(each): each for each in above}
    merged = [latest.pop(identity(each), each) for each in below]
    return merged + list(latest.values())


def _identity(record: Any) -> tuple[str, str]:
    return record.metadata.namespace, record.metadata.name


def _identity_of_document(document: dict[str, Any]) -> tuple[str, str]:
    return document["metadata"].get("namespace") or "", document["metadata"]["name"]
