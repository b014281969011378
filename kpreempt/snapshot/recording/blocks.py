"""The frame of a segment's bytes: blocks, each with its kind, its length and a check sum, packed with zstd.

A block is whole or it is not there: what a kill has torn is told from what is whole by the check sum.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, NamedTuple

MAGIC = b"kprec 1\n"
# Objects of the base, an object a line; what else is known at its end; changes, one a line.
BASE, BASE_END, CHANGES = b"B", b"E", b"C"

_FRAME = Struct("<cII")
_LEVEL = 3
# Of a block, packed or not. Writers stay far below it.
MAX_BYTES = 64 * 2**20


class DamageError(Exception):
    """What follows at ``offset`` is no whole block. ``is_torn`` says that it is the last one, which a kill explains."""

    def __init__(self, offset: int, *, is_torn: bool) -> None:
        super().__init__(offset)
        self.offset = offset
        self.is_torn = is_torn


class Block(NamedTuple):
    """A whole block: its kind, and its content as it is packed."""

    kind: bytes
    packed: bytes
    offset: int

    def content(self) -> bytes:
        """The content, unpacked. Raises ``DamageError``."""
        import zstandard  # noqa: PLC0415 - few runs need it

        try:
            if not 0 <= zstandard.frame_content_size(self.packed) <= MAX_BYTES:
                raise DamageError(self.offset, is_torn=False)
            return zstandard.ZstdDecompressor().decompress(self.packed, max_output_size=MAX_BYTES)
        except zstandard.ZstdError:
            raise DamageError(self.offset, is_torn=False) from None


def block_bytes(kind: bytes, content: bytes) -> bytes:
    """The bytes of a block."""
    import zstandard  # noqa: PLC0415 - few runs need it

    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
    return _FRAME.pack(kind, len(packed), zlib.crc32(packed, zlib.crc32(kind))) + packed


def read_blocks(file: BinaryIO, size: int) -> Iterator[Block]:
    """The blocks of a segment of ``size`` bytes, up to the first that is not whole. Raises ``DamageError`` there."""
    if file.read(len(MAGIC)) != MAGIC:
        raise DamageError(0, is_torn=size < len(MAGIC))
    offset = len(MAGIC)
    while offset < size:
        head = file.read(_FRAME.size)
        if len(head) < _FRAME.size:
            raise DamageError(offset, is_torn=True)
        kind, length, check = _FRAME.unpack(head)
        end = offset + _FRAME.size + length
        is_last = end >= size
        packed = file.read(length) if length <= MAX_BYTES and end <= size else b""
        if len(packed) != length or zlib.crc32(packed, zlib.crc32(kind)) != check:
            raise DamageError(offset, is_torn=is_last)
        yield Block(kind, packed, offset)
        offset = end
