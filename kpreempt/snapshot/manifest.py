"""Manifests: the objects of a file as plain data, and single YAML values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kpreempt.errors import InputError, UsageError
from kpreempt.snapshot.batches import Batch, batches_of_list, list_within
from kpreempt.snapshot.decode import BadObjectError, parse_json
from kpreempt.snapshot.origins import Origins, find_origins
from kpreempt.snapshot.read import read_batches
from kpreempt.snapshot.sources import STDIN, STDIN_NAME, read_sources
from kpreempt.snapshot.wire_types import shown


class ManifestObject(msgspec.Struct, frozen=True):
    """One object of a manifest as plain data, and where it is written.

    ``origin`` is the file that it was rendered from, where a comment ``# Source:`` says it, as Helm's output does.
    """

    source: str
    line: int
    document: dict[str, Any]
    origin: str = ""


def read_manifest(path: str, *, stdin: BinaryIO | None = None) -> list[ManifestObject]:
    """The objects of a file, a folder or, for ``-``, of ``stdin``; lists are taken apart. Raises ``InputError``."""
    objects: list[ManifestObject] = []
    for source in read_sources(path, stdin):
        origins = find_origins(source.content)
        for batch in read_batches(source):
            objects += (_with_origin(found, origins) for found in _objects_of(batch))
    if not objects:
        raise InputError("has no objects", source=STDIN_NAME if path == STDIN else path)
    return objects


def _with_origin(found: ManifestObject, origins: Origins | None) -> ManifestObject:
    origin = origins.at(found.line) if origins is not None else ""
    return msgspec.structs.replace(found, origin=origin) if origin else found


def _objects_of(batch: Batch) -> Iterator[ManifestObject]:
    for index, json in enumerate(batch.objects):
        line = batch.line_of(index)
        try:
            document = parse_json(json)
        except BadObjectError as error:
            raise error.at(batch.source, line) from None
        if not isinstance(document, dict):
            raise InputError(f"expected an object, got {shown(document)}", source=batch.source, line=line)
        top = list_within(json) if "items" in document else None
        if top is not None:
            for inner in batches_of_list(batch.source, top, partial(_same_line, line)):
                yield from _objects_of(inner)
            continue
        if batch.kind:
            document = {"apiVersion": batch.api_version, "kind": batch.kind, **document}
        yield ManifestObject(batch.source, line, document)


def _same_line(line: int, _: int) -> int:
    return line


def parse_document(text: str, source: str) -> dict[str, Any]:
    """The one object that a text in YAML or JSON holds, such as a configuration. Raises ``InputError``."""
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        documents = [document for _, document in load_documents(text) if document is not None]
    except YamlError as error:
        raise InputError(error.problem, source=source, line=error.line) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InputError(
            "holds not one object" if len(documents) == 1 else f"holds {len(documents)} documents, not one",
            source=source,
        )
    return documents[0]


def read_document(path: str) -> dict[str, Any]:
    """The one object of a file. Raises ``InputError``."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=path) from error
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", source=path) from None
    return parse_document(text, path)


def parse_yaml_value(text: str) -> Any:
    """One YAML value as kubectl means it: ``1`` is a number, ``"1"`` and ``1500m`` are texts.

    Raises ``UsageError``.
    """
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        documents = list(load_documents(text))
    except YamlError as error:
        raise UsageError(f'"{text[:80]}": {error.problem}', hint="put the value in quotes") from None
    if len(documents) > 1:
        raise UsageError(f'"{text[:80]}" is more than one value')
    return documents[0][1] if documents else None
