"""What a dump keeps of Kueue's objects: what is known of them here, and no environment, command or note of anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kpreempt.analysis.kueue.objects import KUEUE_WANTED, DecodeDocument, record_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ADMISSION_GATED_BY, ELASTIC, KUEUE_GROUP, PRIORITY_BOOST

_ANNOTATIONS = frozenset({ADMISSION_GATED_BY, ELASTIC, PRIORITY_BOOST})
_PRIORITY_CLASS = "WorkloadPriorityClass"
# A record under other names.
Redact = Callable[[Any], Any]


def kept_kueue(cluster: ClusterSnapshot, decode: DecodeDocument, redact: Redact | None = None) -> list[dict[str, Any]]:
    """Kueue's objects of a cluster that was read with ``KUEUE_WANTED``, as a dump has them. Raises ``InputError``.

    ``redact`` gives those of ``redactable`` other names; nothing else is kept then.
    """
    if redact is not None:
        return [
            {"apiVersion": f"{KUEUE_GROUP}/v1beta2", "kind": type(each).__name__, **_plain(redact(each))}
            for each in redactable(cluster, decode)
        ]
    return [
        _kept(kind.kind, document, decode)
        for kind in KUEUE_WANTED.kinds
        for document in cluster.documents.get(kind.key, ())
    ]


def redactable(cluster: ClusterSnapshot, decode: DecodeDocument) -> list[Any]:
    """The records of Kueue's objects, with no other annotations than those that are read. Raises ``InputError``."""
    return [
        _trimmed(decode(kind.kind, record_of(kind.kind), document))
        for kind in KUEUE_WANTED.kinds
        if kind.kind != _PRIORITY_CLASS
        for document in cluster.documents.get(kind.key, ())
    ]


def _trimmed(record: Any) -> Any:
    meta = record.metadata
    used = {key: each for key, each in meta.annotations.items() if key in _ANNOTATIONS}
    return msgspec.structs.replace(record, metadata=msgspec.structs.replace(meta, annotations=used))


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record, enc_hook=str)
    return found


def _kept(kind: str, document: dict[str, Any], decode: DecodeDocument) -> dict[str, Any]:
    if kind == _PRIORITY_CLASS:
        name = document["metadata"]["name"]
        return {**_head(document), "metadata": {"name": name}, "value": document.get("value")}
    return {**_head(document), **_plain(_trimmed(decode(kind, record_of(kind), document)))}


def _head(document: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": document["apiVersion"], "kind": document["kind"]}
