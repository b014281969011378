"""Manifests: the objects of a file as plain data, and records that are not Kubernetes objects.

Helm writes ``# Source: chart/templates/x.yaml`` before each document. YAML readers drop comments, so they are searched
for in the text: at the beginning of a line, no YAML value can look like one.
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
from kpreempt.snapshot.archives import InputLimits, check_density
from kpreempt.snapshot.batches import Batch, batches_of_list, fixed_line, is_extension, list_within, no_kind
from kpreempt.snapshot.decode import Json, parse_json_of
from kpreempt.snapshot.layouts import looks_like_objects
from kpreempt.snapshot.read import read_batches
from kpreempt.snapshot.sources import STDIN, STDIN_NAME, Content, LineCounter, Source, read_bytes, read_sources
from kpreempt.snapshot.wire_types import shown

_SIGN = b"# Source:"
_MARK_OR_SIGN = re.compile(rb"^(?:---(?=[ \t\r\n]|\Z)|# Source:[ \t]*([^\r\n]*))", re.MULTILINE)
_NOTHING = re.compile(rb"(?:[ \t\r]*(?:#[^\n]*)?(?:\n|\Z))*+\Z")
_LONGEST = 300
# The files that kubectl reads in a directory (``k8s.io/cli-runtime`` v0.36.3 ``pkg/resource/builder.go``), packed or
# not.
_OF_FOLDERS = tuple(ending + packing for ending in (".json", ".yaml", ".yml") for packing in ("", ".gz", ".zst"))
# The files that kubectl builds a directory from (``sigs.k8s.io/kustomize/api/konfig/general.go``).
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# A directory with these files is a chart, which is not rendered.
_VALUES = re.compile(r"(?:\A|[/:])values(?:[-.][^/:]*)?\.ya?ml\Z")
_PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902")
_KUSTOMIZE = "kustomize.config.k8s.io/"


class ManifestObject(msgspec.Struct, frozen=True):
    """One object of a manifest as plain data, and its location.

    ``origin`` is the file that it was rendered from, according to a ``# Source:`` comment as in Helm's output. ``text``
    is the text of the whole source, in which messages find the lines of fields; empty for a large one.
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
    input_limits: InputLimits | None = None,
    may_be_empty: bool = False,
) -> list[ManifestObject]:
    """Read the objects of a file, a directory, a URL or, for ``-``, of ``stdin``; lists are split up.

    In a directory, only ``.yaml``, ``.yml`` and ``.json`` files are read, as by kubectl, and packed ones;
    ``input_limits.skipped`` gets the others, and values that are not objects. Raises ``InputError``, also if there are
    no objects, unless ``may_be_empty``.
    """
    input_limits = input_limits or InputLimits()
    if path.lower().startswith(("http://", "https://")):
        from kpreempt.model.urls import without_secrets  # noqa: PLC0415 - few manifests are from the web
        from kpreempt.snapshot.live.download import download  # noqa: PLC0415 - urllib3 takes a while

        return manifest_in(download(path, os.environ), without_secrets(path), input_limits, may_be_empty=may_be_empty)
    sources = read_sources(path, stdin, input_limits, endings=_OF_FOLDERS, skipped=input_limits.skipped.not_read)
    return _objects(sources, STDIN_NAME if path == STDIN else path, input_limits, may_be_empty=may_be_empty)


def manifest_in(
    content: bytes, name: str, input_limits: InputLimits | None = None, *, may_be_empty: bool = False
) -> list[ManifestObject]:
    """Read the objects of a manifest in memory; ``name`` is its name in messages. Raises like ``read_manifest``."""
    input_limits = input_limits or InputLimits()
    return _objects(read_bytes(content, name, input_limits), name, input_limits, may_be_empty=may_be_empty)


def _objects(
    sources: Iterable[Source], name: str, input_limits: InputLimits, *, may_be_empty: bool
) -> list[ManifestObject]:
    skipped, bad_before = input_limits.skipped, len(input_limits.skipped.bad)
    objects: list[ManifestObject] = []
    # The files that kustomizations name as patches, and the kustomizations.
    patches: dict[str, str] = {}
    for source in sources:
        if documents := _kustomization(source):
            skipped.kustomizations.append(source.name)
            folder = os.path.dirname(source.name)  # noqa: PTH120
            patches |= dict.fromkeys(_patches(documents, folder), source.name)
            continue
        origin_at = _origins(source.content)
        # Mapped content is only available briefly.
        text = source.content if isinstance(source.content, bytes) else b""
        for each in skipped.objects_of(source.name, _objects_in(source)):
            if str(each.document.get("apiVersion")).startswith(_KUSTOMIZE):
                skipped.kustomizations.append(source.name)
            else:
                objects.append(msgspec.structs.replace(each, origin=origin_at(each.line), text=text))
    for each in [each for each in objects if os.path.normpath(each.source) in patches]:
        problem = f"is a patch of {patches[os.path.normpath(each.source)]}, not an object"
        skipped.skip(InputError(problem, source=each.source, line=each.line, hint="-k DIR builds it"))
    objects = [each for each in objects if os.path.normpath(each.source) not in patches]
    if not objects and (skipped.bad[bad_before:] or not may_be_empty):
        hint = "-k DIR builds a kustomization" if skipped.kustomizations else ""
        raise next(iter(skipped.bad[bad_before:]), InputError("contains no objects", source=name, hint=hint))
    return objects


def _kustomization(source: Source) -> list[dict[str, Any]]:
    """Return the documents of a file that is a kustomization by name and content; empty for a file with objects.

    ``kubectl apply -f DIR`` also applies an object from a file of that name.
    """
    if re.split("[/:]", source.name)[-1] not in _KUSTOMIZATIONS:
        return []
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        documents = [document for _, document in load_documents((source.content or b"")[:].decode("utf-8-sig"))]
    except (YamlError, UnicodeDecodeError):
        return []
    for each in documents:
        version = each.get("apiVersion") if isinstance(each, dict) else ""
        if not (str(version).startswith(_KUSTOMIZE) if version is not None else "kind" not in each):
            return []
    return documents


def _patches(documents: Iterable[dict[str, Any]], folder: str) -> Iterator[str]:
    """Yield the paths of the patches that a kustomization in ``folder`` names."""
    for document in documents:
        for field in _PATCHES:
            patches = document.get(field)
            for each in patches if isinstance(patches, list) else ():
                path = each.get("path") if isinstance(each, dict) else each
                if isinstance(path, str) and "\n" not in path:
                    yield os.path.normpath(os.path.join(folder, path))  # noqa: PTH118


def _objects_in(source: Source) -> Iterator[ManifestObject]:
    """Yield the objects of a file.

    Raises ``InputError`` for anything else in a file with objects, and for Helm values.
    """
    others: list[InputError] = []
    has_objects = False
    for batch in read_batches(source, partial(_without_kind, others)):
        for each in _objects_of(batch):
            has_objects = True
            yield each
    if others and (has_objects or _VALUES.search(source.name)):
        raise others[0]


def _without_kind(others: list[InputError], name: str, json: Json, line: int, *, is_named: bool) -> Iterator[Batch]:
    """Record a value that has no kind and is not an object. kubectl rejects it, too.

    Raises ``InputError`` for a value that looks like an object, and for any value in a file that the user named.
    """
    document = parse_json_of(json, name, line)
    if document is not None and not is_extension(document):
        rejection = no_kind(document, name, line)
        if is_named or looks_like_objects(document):
            raise rejection
        others.append(rejection)
    return iter(())


def _objects_of(batch: Batch) -> Iterator[ManifestObject]:
    for index, json in enumerate(batch.objects):
        line = batch.line_of(index)
        document = parse_json_of(json, batch.source, line)
        if not isinstance(document, dict):
            raise InputError(f"expected an object, got {shown(document)}", source=batch.source, line=line)
        top = list_within(json) if "items" in document else None
        if top is not None:
            for inner in batches_of_list(batch.source, top, fixed_line(line)):
                yield from _objects_of(inner)
            continue
        if batch.kind:
            document = {"apiVersion": batch.api_version, "kind": batch.kind, **document}
        yield ManifestObject(batch.source, line, document)


def _origins(content: Content | None) -> Callable[[int], str]:
    """Return a function from a document's line to its origin in the text, which is empty if none is stated.

    The first comment in a document counts. A comment before a document's mark, with only comments since the previous
    mark, belongs to that document.
    """
    if content is None or content.find(_SIGN) < 0:
        return lambda _: ""
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
    return lambda line: names[max(bisect_right(starts, line) - 1, 0)]


def read_plain_records(
    path: str, *, stdin: BinaryIO | None = None, input_limits: InputLimits | None = None
) -> list[ManifestObject]:
    """Read the records of a file, or for ``-`` of ``stdin``; lists are split up. Raises ``InputError``."""
    records: list[ManifestObject] = []
    for source in read_sources(path, stdin, input_limits):
        if source.error is not None:
            raise source.error
        if source.content is None:
            raise InputError("is not text", source=source.name)
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
        raise InputError("is empty", source=STDIN_NAME if path == STDIN else path)
    return records


def _json_lines(text: str) -> list[tuple[int, Any]]:
    """Return the values of JSON lines with their line numbers; empty if the text is something else."""
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


def line_of_field(text: bytes, line: int, path: Sequence[str | int]) -> int:
    """Return the line (from 1) of the key at ``path`` in the object that begins on ``line`` of a YAML or JSON text."""
    from kpreempt.snapshot.field_lines import line_of_field as found  # noqa: PLC0415 - few objects have problems

    return found(text, line, path)
