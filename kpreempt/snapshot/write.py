"""A cluster to Kubernetes JSON, piece by piece: ``load_snapshot`` reads the same cluster back.

Objects are written by kind, each kind in the order of the cluster, in the version that kube-apiserver 1.36 serves. The
same cluster always results in the same bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot, KindState, Unread
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.model.pod import Pod
from kpreempt.snapshot.batches import ASSUMPTIONS, KPREEMPT_VERSION, LISTED, SERVER_VERSION, SKIPPED, TAKEN_AT, UNREAD
from kpreempt.snapshot.decode import Record
from kpreempt.snapshot.minimize import minimized
from kpreempt.verdict import Assumption

# The number of bytes per piece.
_PIECE = 2**20

_ENCODER = msgspec.json.Encoder(enc_hook=str)

Rewrite = Callable[[Record], Record]
ENDS = (".json", ".json.gz", ".json.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst")

_GZIP_LEVEL = 6
_GZIP_WINDOW = 31
_ZSTD_LEVEL = 3


class DumpHeader(msgspec.Struct, frozen=True, kw_only=True):
    """A dump's metadata: the server's version, when it was taken, by which kpreempt, and what it lacks.

    ``skipped`` counts the objects that were read but not kept, by kind; ``assumptions`` are those made while reading,
    ``unread`` has the kinds that could not be read, and ``listed`` those that were read completely.
    """

    server_version: str
    taken_at: datetime
    kpreempt_version: str
    skipped: Mapping[str, int] = {}
    assumptions: Sequence[Assumption] = ()
    unread: Mapping[str, Unread] = {}
    listed: Sequence[str] = ()


def dump_pieces(
    cluster: ClusterSnapshot,
    header: DumpHeader,
    rewrite: Rewrite,
    *,
    as_lines: bool,
    documents: Sequence[Mapping[str, Any]] = (),
) -> Iterator[bytes]:
    """Yield the cluster as one ``List``, or with ``as_lines`` as one object per line after an empty list (the header).

    ``rewrite`` converts each record to the one that is written. ``documents`` are written unmodified: in place of the
    records of the same objects, and those without a record at the end.
    """
    items = _items(cluster, rewrite, documents)
    if as_lines:
        yield header_line(header) + b"\n"
        for part in pieces(item + b"\n" for item in items):
            yield b"".join(part)
    else:
        yield _begin_of_list(header)
        for number, part in enumerate(pieces(items)):
            yield (b",\n" if number else b"") + b",\n".join(part)
        yield b"]}\n"


def header_line(header: DumpHeader) -> bytes:
    """Return the empty list with the header that precedes objects written one per line."""
    return _begin_of_list(header) + b"]}"


def line_of(kind: Kind, record: Record) -> bytes:
    """Return the line of an object."""
    return _begin_of_object(kind) + _ENCODER.encode(record)[1:]


def status_of(pod: Pod) -> dict[str, Any]:
    """Return the status of a pod as plain data, with as few fields as possible."""
    status: dict[str, Any] = msgspec.to_builtins(minimized(pod), enc_hook=str).get("status", {})
    return status


def api_version_of(kind: Kind) -> str:
    """Return the version in which the API server serves a kept kind; all but Volcano's have reached v1."""
    group, version = kind.groups[0], kind.version or "v1"
    return f"{group}/{version}" if group else version


def count_objects(cluster: ClusterSnapshot) -> dict[str, int]:
    """Count the objects of each kind in a dump, without kinds that it lacks."""
    counts = {kind.name: len(getattr(cluster, kind.field)) for kind in KINDS.values()}
    return {name: count for name, count in counts.items() if count}


def _items(cluster: ClusterSnapshot, rewrite: Rewrite, documents: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    complete = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in documents
    }
    for kind in KINDS.values():
        begin = _begin_of_object(kind)
        for record in getattr(cluster, kind.field):
            document = (
                complete.pop((kind.name, record.metadata.namespace, record.metadata.name), None) if complete else None
            )
            if document is not None:
                yield _ENCODER.encode(document)
            else:
                yield begin + _ENCODER.encode(rewrite(record))[1:]
    yield from map(_ENCODER.encode, complete.values())


def _begin_of_list(header: DumpHeader) -> bytes:
    # A kind that is not in the lists is absent anyway.
    unread = {
        kind: (each.status, each.namespace) if each.namespace else each.status
        for kind, each in header.unread.items()
        if each.state is KindState.UNREADABLE
    }
    taken_at = header.taken_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    annotations = {
        SERVER_VERSION: header.server_version,
        TAKEN_AT: taken_at,
        KPREEMPT_VERSION: header.kpreempt_version,
        SKIPPED: _ENCODER.encode(dict(header.skipped)).decode() if header.skipped else "",
        ASSUMPTIONS: _ENCODER.encode(list(header.assumptions)).decode() if header.assumptions else "",
        UNREAD: _ENCODER.encode(unread).decode() if unread else "",
        LISTED: _ENCODER.encode(list(header.listed)).decode() if header.listed else "",
    }
    metadata = _ENCODER.encode({"annotations": {key: value for key, value in annotations.items() if value}})
    return b'{"apiVersion":"v1","kind":"List","metadata":' + metadata + b',"items":['


def _begin_of_object(kind: Kind) -> bytes:
    # Every record has a name, so its text is never an empty object.
    return f'{{"apiVersion":"{api_version_of(kind)}","kind":"{kind.name}",'.encode()


def pieces(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Group the items into pieces of about a megabyte."""
    ready: list[bytes] = []
    size = 0
    for item in items:
        ready.append(item)
        size += len(item)
        if size >= _PIECE:
            yield ready
            ready, size = [], 0
    if ready:
        yield ready


class DumpForm(msgspec.Struct, frozen=True):
    """One list or an object per line, and the compression."""

    as_lines: bool = False
    packing: Literal["", "gz", "zst"] = ""


def form_of(path: str) -> DumpForm:
    """Return the form for a file name; ``-`` is plain JSON. Raises ``UsageError`` for an unknown extension."""
    if path == "-":
        return DumpForm()
    name = path.lower()
    end = max((each for each in ENDS if name.endswith(each)), key=len, default="")
    if not end:
        raise UsageError(
            f"--to {path}: unknown file extension",
            hint=f"a name that ends in {', '.join(ENDS)}; - for standard output",
        )
    packing: Literal["", "gz", "zst"] = "gz" if end.endswith(".gz") else "zst" if end.endswith(".zst") else ""
    return DumpForm(as_lines=end.startswith(".jsonl"), packing=packing)


def packed(pieces: Iterable[bytes], form: DumpForm) -> Iterator[bytes]:
    """Compress the file. The same pieces result in the same bytes, because no time and no name is stored."""
    if not form.packing:
        yield from pieces
        return
    packer: Any
    if form.packing == "gz":
        # zlib writes the gzip header without a time.
        packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    else:
        import zstandard  # noqa: PLC0415 - few runs need it

        packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).compressobj()
    for piece in pieces:
        if ready := packer.compress(piece):
            yield ready
    yield packer.flush()
