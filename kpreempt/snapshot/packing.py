"""Which form a dump has, by the end of its file's name, and the packing of its bytes on the way."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from kpreempt.errors import UsageError

ENDS = (".json", ".json.gz", ".json.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst")

_GZIP_LEVEL = 6
_GZIP_WINDOW = 31
_ZSTD_LEVEL = 3


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
    if form.packing == "gz":
        yield from _gzipped(pieces)
    elif form.packing == "zst":
        yield from _zstandard(pieces)
    else:
        yield from pieces


def _gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    # zlib writes the header of gzip itself, without a time.
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in pieces:
        if ready := packer.compress(piece):
            yield ready
    yield packer.flush()


def _zstandard(pieces: Iterable[bytes]) -> Iterator[bytes]:
    import zstandard  # noqa: PLC0415 - few runs need it

    packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).compressobj()
    for piece in pieces:
        if ready := packer.compress(piece):
            yield ready
    yield packer.flush()
