"""Kueue's objects of a cluster, which snapshots keep as plain data where they are wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import (
    KUEUE_GROUP,
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    Topology,
    Workload,
)
from kpreempt.model.wanted import ObjectKind, Wanted
from kpreempt.schedulers.kueue import KueueObjects, adjusted

_RECORDS: dict[str, type[msgspec.Struct]] = {
    "cluster_queues": ClusterQueue,
    "cohorts": Cohort,
    "local_queues": LocalQueue,
    "flavors": ResourceFlavor,
    "topologies": Topology,
    "checks": AdmissionCheck,
    "workloads": Workload,
}
_PLURALS = {"topologies": "topologies"}
_NAMESPACED = (LocalQueue, Workload)


def _kind(field: str, record: type[msgspec.Struct]) -> ObjectKind:
    return ObjectKind(
        record.__name__,
        KUEUE_GROUP,
        "v1beta2",
        _PLURALS.get(field, ""),
        is_namespaced=record in _NAMESPACED,
    )


_KINDS = {field: _kind(field, record) for field, record in _RECORDS.items()}
# What has to be read of a cluster.
KUEUE_WANTED = Wanted(
    (
        *_KINDS.values(),
        ObjectKind("WorkloadPriorityClass", KUEUE_GROUP, "v1beta2", "workloadpriorityclasses", is_namespaced=False),
    )
)


KUEUE_KINDS = tuple(each.key for each in KUEUE_WANTED.kinds)


class DecodeDocument(Protocol):
    """Makes a record of an object that is plain data."""

    def __call__(self, kind: str, record: type[msgspec.Struct], document: dict[str, Any], *, source: str = "") -> Any:
        """Decode one object. Raises ``InputError``."""


def kueue_objects(cluster: ClusterSnapshot, decode: DecodeDocument, *, source: str = "") -> KueueObjects:
    """Kueue's objects in a cluster that was read with ``KUEUE_WANTED``. Raises ``InputError``."""
    found: dict[str, Any] = {}
    for field, record in _RECORDS.items():
        documents = cluster.documents.get(_KINDS[field].key, ())
        found[field] = [decode(record.__name__, record, each, source=source) for each in documents]
    return adjusted(KueueObjects(cluster=cluster, **found))


def decode_queueing(document: dict[str, Any], decode: DecodeDocument, *, source: str = "") -> tuple[str, Any] | None:
    """The field and the record of an object of Kueue's; ``None`` for any other. Raises ``InputError``."""
    if not str(document.get("apiVersion", "")).startswith(f"{KUEUE_GROUP}/"):
        return None
    for field, record in _RECORDS.items():
        if document.get("kind") == record.__name__:
            return field, decode(record.__name__, record, document, source=source)
    return None


def with_objects(objects: KueueObjects, changed: Iterable[tuple[str, Any]]) -> KueueObjects:
    """The objects with some in the place of those of the same name, or beside them."""
    for field, record in changed:
        meta = record.metadata
        named = (meta.namespace, meta.name)
        kept = [each for each in getattr(objects, field) if (each.metadata.namespace, each.metadata.name) != named]
        objects = msgspec.structs.replace(objects, **{field: [*kept, record]})
    return adjusted(objects)


def record_of(kind: str) -> type[msgspec.Struct]:
    """The record of a kind. Raises ``KeyError``."""
    return {each.__name__: each for each in _RECORDS.values()}[kind]
