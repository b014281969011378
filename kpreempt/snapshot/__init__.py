"""Clusters and manifests from files of every shape, and clusters into files (``write``, ``least``, ``redact``).

Heavy readers (YAML, zstandard) are imported by the functions that need them, and what writes by who writes.
"""

from kpreempt.snapshot.archives import name_of
from kpreempt.snapshot.collect import Keeps
from kpreempt.snapshot.decode import decode_object, object_decoder
from kpreempt.snapshot.load import Loaded, cluster_from_json, load_snapshot, merge_clusters
from kpreempt.snapshot.manifest import (
    ManifestObject,
    manifest_in,
    parse_document,
    parse_yaml_value,
    read_document,
    read_manifest,
    read_plain_records,
)

__all__ = [
    "Keeps",
    "Loaded",
    "ManifestObject",
    "cluster_from_json",
    "decode_object",
    "load_snapshot",
    "manifest_in",
    "merge_clusters",
    "name_of",
    "object_decoder",
    "parse_document",
    "parse_yaml_value",
    "read_document",
    "read_manifest",
    "read_plain_records",
]
