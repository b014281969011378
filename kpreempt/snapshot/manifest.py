"""Manifests: the objects of a file as plain data, and records that are no Kubernetes objects.

Helm writes ``# Source: chart/templates/x.yaml`` before each document. Comments never reach a reader of YAML, so that
they are looked for in the text itself: at the beginning of a line no value of YAML can look like one.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.archives import Intake, check_density
from kpreempt.snapshot.batches import Batch, batches_of_list, list_within
from kpreempt.snapshot.decode import BadObjectError, parse_json
from kpreempt.snapshot.read import read_batches
from kpreempt.snapshot.sources import STDIN, STDIN_NAME, Content, LineCounter, Source, read_bytes, read_sources
from kpreempt.snapshot.wire_types import shown

_SIGN = b"# Source:"
_MARK_OR_SIGN = re.compile(rb"^(?:---(?=[ \t\r\n]|\Z)|# Source:[ \t]*([^\r\n]*))", re.MULTILINE)
_NOTHING = re.compile(rb"(?:[ \t\r]*(?:#[^\n]*)?(?:\n|\Z))*+\Z")
_LONGEST = 300
# What kubectl reads of a folder (``k8s.io/cli-runtime`` v0.36.3 ``pkg/resource/builder.go``).
_OF_FOLDERS = (".json", ".yaml", ".yml")
_NAMES_SHOWN = 3


class ManifestObject(msgspec.Struct, frozen=True):
    """One object of a manifest as plain data, and where it is written.

    ``origin`` is the file that it was rendered from, where a comment ``# Source:`` says it, as Helm's output does.
    ``text`` is that of the whole source, in which messages look for the lines of fields; empty for a large one.
    """

    source: str
    line: int
    document: dict[str, Any]
    origin: str = ""
    text: bytes = b""


def read_manifest(
    path: str,
    *,
    stdin: BinaryIO | None = None,
    tell: Callable[[str], None] | None = None,
    intake: Intake | None = None,
    may_be_empty: bool = False,
) -> list[ManifestObject]:
    """The objects of a file, a folder, a URL or, for ``-``, of ``stdin``; lists are taken apart.

    Of a folder only ``.yaml``, ``.yml`` and ``.json`` files are read, as kubectl does; ``tell`` is told of others.
    Raises ``InputError``, also if there are no objects, unless it ``may_be_empty``.
    """
    if path.lower().startswith(("http://", "https://")):
        from kpreempt.model.urls import without_secrets  # noqa: PLC0415 - few manifests are from the web
        from kpreempt.snapshot.live.download import download  # noqa: PLC0415 - urllib3 takes a while

        return manifest_in(download(path, os.environ), without_secrets(path), intake, may_be_empty=may_be_empty)
    left_out: list[str] = []
    sources = read_sources(path, stdin, intake, endings=_OF_FOLDERS, left_out=left_out)
    try:
        return _objects(sources, STDIN_NAME if path == STDIN else path, may_be_empty=may_be_empty)
    finally:
        if left_out and tell is not None:
            tell(_not_read(left_out))


def _not_read(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    shown = [*names[:_NAMES_SHOWN], *([f"{more} more"] if more > 0 else [])]
    return f"neither .yaml, .yml nor .json, and not read: {', '.join(shown)}"


def manifest_in(
    content: bytes, name: str, intake: Intake | None = None, *, may_be_empty: bool = False
) -> list[ManifestObject]:
    """The objects of a manifest in memory; ``name`` is what messages call it. Raises as ``read_manifest``."""
    return _objects(read_bytes(content, name, intake), name, may_be_empty=may_be_empty)


def _objects(sources: Iterable[Source], name: str, *, may_be_empty: bool) -> list[ManifestObject]:
    objects: list[ManifestObject] = []
    for source in sources:
        origins = find_origins(source.content)
        # What is mapped is not there for long.
        text = source.content if isinstance(source.content, bytes) else b""
        for batch in read_batches(source):
            objects += (_with_source(found, origins, text) for found in _objects_of(batch))
    if not objects and not may_be_empty:
        raise InputError("has no objects", source=name)
    return objects


def _with_source(found: ManifestObject, origins: Origins | None, text: bytes) -> ManifestObject:
    return msgspec.structs.replace(found, origin=origins.at(found.line) if origins else "", text=text)


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


class Origins:
    """The origins of a text's documents, in order."""

    def __init__(self, starts: list[int], names: list[str]) -> None:
        """Take in the lines on which documents start, and what each is from."""
        self._starts = starts
        self._names = names

    def at(self, line: int) -> str:
        """What the document that has the line is from; empty where nothing says it."""
        return self._names[max(bisect_right(self._starts, line) - 1, 0)]


def find_origins(content: Content | None) -> Origins | None:
    """The origins of a text's documents, or ``None`` where it says none.

    Of several comments in one document the first counts. One that stands before the mark of a document, with nothing
    but comments since the mark before, is that document's.
    """
    if content is None or content.find(_SIGN) < 0:
        return None
    lines = LineCounter(content)
    starts, names = [1], [""]
    begin, has_own = 0, False
    for match in _MARK_OR_SIGN.finditer(content):
        name = match[1]
        if name is None:
            starts.append(lines.line_at(match.start()))
            names.append(names[-1] if _NOTHING.match(content[begin : match.start()]) else "")
            begin, has_own = match.end(), False
        elif not has_own:
            names[-1], has_own = name[:_LONGEST].decode(errors="replace").strip(), True
    return Origins(starts, names)


def read_plain_records(
    path: str, *, stdin: BinaryIO | None = None, intake: Intake | None = None
) -> list[ManifestObject]:
    """The records of a file, or for ``-`` of ``stdin``; lists are taken apart. Raises ``InputError``."""
    records: list[ManifestObject] = []
    for source in read_sources(path, stdin, intake):
        if source.content is None:
            raise InputError("is no text", source=source.name)
        check_density(source.content, source.name)
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def _documents(text: str, source: str) -> Iterator[tuple[int, Any]]:
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        yield from ((line, document) for line, document in load_documents(text) if document is not None)
    except YamlError as error:
        raise InputError(error.problem, source=source, line=error.line) from None
