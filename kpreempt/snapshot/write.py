"""A cluster back to Kubernetes JSON, piece by piece: what ``load_snapshot`` reads is the same cluster again.

Objects come kind by kind, each kind in the order of the cluster, in the version that kube-apiserver 1.36 serves. The
same cluster always gives the same bytes.
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

# So many bytes are handed on together.
_PIECE = 2**20

_ENCODER = msgspec.json.Encoder(enc_hook=str)

Rewrite = Callable[[Record], Record]
ENDS = (".json", ".json.gz", ".json.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst")

_GZIP_LEVEL = 6
_GZIP_WINDOW = 31
_ZSTD_LEVEL = 3


class DumpHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What a dump says of itself: the server's version, when it was taken, by which kpreempt, and what it lacks.

    ``skipped`` counts the objects that were read and not kept, by kind; ``assumptions`` are what was assumed while
    reading, ``unread`` are the kinds that could not be read, and ``listed`` those that were read whole.
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
    """The cluster as one ``List``, or with ``as_lines`` an object a line after an empty list that says the header.

    ``rewrite`` makes of each record the one that is written. ``documents`` are written as they are: in the place of the
    records of the same objects, and those that have none at the end.
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
    """An empty list that says the header, with which an object a line begins."""
    return _begin_of_list(header) + b"]}"


def line_of(kind: Kind, record: Record) -> bytes:
    """A record as the line of its object."""
    return _begin_of_object(kind) + _ENCODER.encode(record)[1:]


def status_of(pod: Pod) -> dict[str, Any]:
    """The status of a pod as plain data, with least fields."""
    status: dict[str, Any] = msgspec.to_builtins(minimized(pod), enc_hook=str).get("status", {})
    return status


def api_version_of(kind: Kind) -> str:
    """The version in which the API server serves a kind that is kept; all but Volcano's have reached v1."""
    group, version = kind.groups[0], kind.version or "v1"
    return f"{group}/{version}" if group else version


def count_objects(cluster: ClusterSnapshot) -> dict[str, int]:
    """How many objects of each kind a dump has, without the kinds of which it has none."""
    counts = {kind.name: len(getattr(cluster, kind.field)) for kind in KINDS.values()}
    return {name: count for name, count in counts.items() if count}


def _items(cluster: ClusterSnapshot, rewrite: Rewrite, documents: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    whole = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in documents
    }
    for kind in KINDS.values():
        begin = _begin_of_object(kind)
        for record in getattr(cluster, kind.field):
            document = whole.pop((kind.name, record.metadata.namespace, record.metadata.name), None) if whole else None
            if document is not None:
                yield _ENCODER.encode(document)
            else:
                yield begin + _ENCODER.encode(rewrite(record))[1:]
    yield from map(_ENCODER.encode, whole.values())


def _begin_of_list(header: DumpHeader) -> bytes:
    # A kind that is not among those listed is absent anyway.
    unread = {kind: each.status for kind, each in header.unread.items() if each.state is KindState.UNREADABLE}
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
    # Every record has a name, so that its text is never an empty object.
    return f'{{"apiVersion":"{api_version_of(kind)}","kind":"{kind.name}",'.encode()


def pieces(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The items, so many together as make a megabyte."""
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
    """One list or an object a line, and how it is packed."""

    as_lines: bool = False
    packing: Literal["", "gz", "zst"] = ""


def form_of(path: str) -> DumpForm:
    """The form that a file's name asks for; ``-`` is plain JSON. Raises ``UsageError`` for any other end."""
    if path == "-":
        return DumpForm()
    name = path.lower()
    end = max((each for each in ENDS if name.endswith(each)), key=len, default="")
    if not end:
        raise UsageError(
            f"--to {path}: the end of the name does not say what to write",
            hint=f"a name that ends in {', '.join(ENDS)}; - for standard output",
        )
    packing: Literal["", "gz", "zst"] = "gz" if end.endswith(".gz") else "zst" if end.endswith(".zst") else ""
    return DumpForm(as_lines=end.startswith(".jsonl"), packing=packing)


def packed(pieces: Iterable[bytes], form: DumpForm) -> Iterator[bytes]:
    """The bytes of the file. The same pieces give the same bytes: no time and no name is packed with them."""
    if not form.packing:
        yield from pieces
        return
    packer: Any
    if form.packing == "gz":
        # zlib writes the header of gzip itself, without a time.
        packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    else:
        import zstandard  # noqa: PLC0415 - few runs need it

        packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).compressobj()
    for piece in pieces:
        if ready := packer.compress(piece):
            yield ready
    yield packer.flush()
