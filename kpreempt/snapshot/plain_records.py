"""Files of records that are no Kubernetes objects: JSON lines, one JSON value, or YAML, each with its line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.manifest import ManifestObject
from kpreempt.snapshot.sources import STDIN, STDIN_NAME, read_sources
from kpreempt.snapshot.wire_types import shown


def read_plain_records(path: str, *, stdin: BinaryIO | None = None) -> list[ManifestObject]:
    """The records of a file, or for ``-`` of ``stdin``; lists are taken apart. Raises ``InputError``."""
    records: list[ManifestObject] = []
    for source in read_sources(path, stdin):
        if source.content is None:
            raise InputError("is no text", source=source.name)
        try:
            text = source.content[:].decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"is not UTF-8 (byte {error.start + 1})", source=source.name) from None
        for line, value in _json_lines(text) or _documents(text, source.name):
            for each in value if isinstance(value, list) else [value]:
                if not isinstance(each, dict):
                    raise InputError(f"expected a mapping, got {shown(each)}", source=source.name, line=line)
                records.append(ManifestObject(source.name, line, each))
    if not records:
        raise InputError("holds nothing", source=STDIN_NAME if path == STDIN else path)
    return records


def _json_lines(text: str) -> list[tuple[int, Any]]:
    """The values of JSON lines with their lines; nothing where the text is something else."""
    if not text.lstrip().startswith("{"):
        return []
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    try:
        return [(number, msgspec.json.decode(line)) for number, line in lines]
    except (msgspec.DecodeError, RecursionError):
        return []


def _documents(text: str, source: str) -> Iterator[tuple[int, Any]]:
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        yield from ((line, document) for line, document in load_documents(text) if document is not None)
    except YamlError as error:
        raise InputError(error.problem, source=source, line=error.line) from None
