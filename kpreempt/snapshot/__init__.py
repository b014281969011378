"""Clusters and manifests from files of every shape, and clusters into files (``write``, ``least``, ``redact``).

What is named here is imported when it is first asked for: a TAB needs ``live`` alone. Heavy readers (YAML, zstandard)
are imported by the functions that need them, and what writes by who writes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpreempt.snapshot.collect import Keeps
    from kpreempt.snapshot.decode import decode_document, decode_object, object_decoder
    from kpreempt.snapshot.documents import parse_document, parse_yaml_value, read_document
    from kpreempt.snapshot.load import Loaded, cluster_from_json, load_snapshot, merge_clusters
    from kpreempt.snapshot.manifest import (
        ManifestObject,
        manifest_in,
        read_manifest,
        read_plain_records,
    )

__all__ = [
    "Keeps",
    "Loaded",
    "ManifestObject",
    "cluster_from_json",
    "decode_document",
    "decode_object",
    "load_snapshot",
    "manifest_in",
    "merge_clusters",
    "object_decoder",
    "parse_document",
    "parse_yaml_value",
    "read_document",
    "read_manifest",
    "read_plain_records",
]

_MODULES = {
    "Keeps": "collect",
    "Loaded": "load",
    "ManifestObject": "manifest",
    "cluster_from_json": "load",
    "decode_document": "decode",
    "decode_object": "decode",
    "load_snapshot": "load",
    "manifest_in": "manifest",
    "merge_clusters": "load",
    "object_decoder": "decode",
    "parse_document": "documents",
    "parse_yaml_value": "documents",
    "read_document": "documents",
    "read_manifest": "manifest",
    "read_plain_records": "manifest",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
