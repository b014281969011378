"""Clusters and manifests from files of every shape, and clusters into files.

Heavy readers (YAML, zstandard) are imported by the functions that need them.
"""

from kpreempt.snapshot.archives import name_of
from kpreempt.snapshot.collect import Keeps
from kpreempt.snapshot.decode import decode_object, object_decoder
from kpreempt.snapshot.least import least
from kpreempt.snapshot.load import Loaded, cluster_from_json, load_snapshot, merge_clusters
from kpreempt.snapshot.manifest import (
    ManifestObject,
    parse_document,
    parse_yaml_value,
    read_document,
    read_manifest,
    read_plain_records,
)
from kpreempt.snapshot.redact import Redaction
from kpreempt.snapshot.write import DumpForm, DumpHeader, count_objects, dump_pieces, form_of, packed

__all__ = [
    "DumpForm",
    "DumpHeader",
    "Keeps",
    "Loaded",
    "ManifestObject",
    "Redaction",
    "cluster_from_json",
    "count_objects",
    "decode_object",
    "dump_pieces",
    "form_of",
    "least",
    "load_snapshot",
    "merge_clusters",
    "name_of",
    "object_decoder",
    "packed",
    "parse_document",
    "parse_yaml_value",
    "read_document",
    "read_manifest",
    "read_plain_records",
]
