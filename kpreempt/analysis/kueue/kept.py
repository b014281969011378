"""What a dump keeps of Kueue's objects: what is known of them here, and no environment, command or note of anybody."""

from __future__ import annotations

from typing import Any

import msgspec

from kpreempt.analysis.kueue.objects import KUEUE_WANTED, DecodeDocument, record_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ADMISSION_GATED_BY, ELASTIC, PRIORITY_BOOST

_ANNOTATIONS = frozenset({ADMISSION_GATED_BY, ELASTIC, PRIORITY_BOOST})
_PRIORITY_CLASS = "WorkloadPriorityClass"


def kept_kueue(cluster: ClusterSnapshot, decode: DecodeDocument) -> list[dict[str, Any]]:
    """Kueue's objects of a cluster that was read with ``KUEUE_WANTED``, as a dump has them. Raises ``InputError``."""
    return [
        _kept(kind.kind, document, decode)
        for kind in KUEUE_WANTED.kinds
        for document in cluster.documents.get(kind.key, ())
    ]


def _kept(kind: str, document: dict[str, Any], decode: DecodeDocument) -> dict[str, Any]:
    if kind == _PRIORITY_CLASS:
        name = document["metadata"]["name"]
        return {**_head(document), "metadata": {"name": name}, "value": document.get("value")}
    record = decode(kind, record_of(kind), document)
    found: dict[str, Any] = msgspec.to_builtins(record, enc_hook=str)
    annotations = found["metadata"].pop("annotations", {})
    if used := {key: each for key, each in annotations.items() if key in _ANNOTATIONS}:
        found["metadata"]["annotations"] = used
    return {**_head(document), **found}


def _head(document: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": document["apiVersion"], "kind": document["kind"]}
