"""The manifests of a change: files, folders and streams, each object with its place."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.analysis.rollout.records import ManifestDocument
from kpreempt.cli.clusters import standard_input
from kpreempt.snapshot import read_manifest


def read_change(paths: Sequence[str]) -> list[ManifestDocument]:
    """All objects of files and folders, and for ``-`` of standard input, in their order; lists are taken apart.

    Raises ``InputError`` for what cannot be read, and where a path has no objects.
    """
    return [
        ManifestDocument(each.document, each.source, each.line, each.origin)
        for path in paths
        for each in read_manifest(path, stdin=standard_input() if path == "-" else None)
    ]
