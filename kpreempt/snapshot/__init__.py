"""Clusters and manifests from files of every shape.

Heavy readers (YAML, zstandard) are imported by the functions that need them.
"""

from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.load import Loaded, cluster_from_json, load_snapshot
from kpreempt.snapshot.manifest import ManifestObject, parse_document, parse_yaml_value, read_document, read_manifest
from kpreempt.snapshot.merge import merge_clusters

__all__ = [
    "Loaded",
    "ManifestObject",
    "cluster_from_json",
    "decode_object",
    "load_snapshot",
    "merge_clusters",
    "parse_document",
    "parse_yaml_value",
    "read_document",
    "read_manifest",
]
