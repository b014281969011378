"""Unpacking gzip, zstandard and tar streams within limits, never onto the disk under their own names.

Archives are not read with ``tarfile``, which keeps a record of each entry, recurses into chains of headers as deep as
the stack, and reads headers of any size into memory and through a regular expression; none of that can be limited from
outside. After POSIX.1-2008 (``pax``) and GNU tar's ``src/tar.h`` (long names, base-256 sizes).
"""

from __future__ import annotations

import gzip
import io
import mmap
from collections.abc import Iterator
from typing import Protocol, TypeVar

import msgspec

from kpreempt.errors import InputError, UsageError
from kpreempt.files import unreadable
from kpreempt.model.quantity import quantity

MAX_UNPACKED = 2**30
# Data that unpacks to more than this, and by more than the ratio below, is not a cluster.
_RATIO_FROM = 2**20
_MAX_RATIO = 1000
# Neither is a longer text with a comma, or a line, in fewer bytes than this: each decoded value takes ten times as
# much.
_DENSE_FROM = 8 * 2**20
_MIN_BYTES_PER_VALUE = 10
_STEP = 2**20
_MAX_LAYERS = 4
_HEAD = 512
_TAR_MAGIC_AT = 257
_MAX_ZSTD_WINDOW = 2**27
# A single call can unpack at most some 43,000 times this: a run of equal bytes takes 3 bytes for 128 KiB.
_ZSTD_INPUT = 1024

_T = TypeVar("_T")

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class Readable(Protocol):
    """An object from which bytes can be read."""

    def read(self, size: int, /) -> bytes:
        """Read up to ``size`` bytes; empty only at the end."""


class SkippedInput(msgspec.Struct):
    """Files that the readers skip: those without objects, those ``not_read`` due to their names, and ``bad`` ones.

    A bad file is an error unless ``skips_bad``; then reading continues without it. ``kustomizations`` are files that
    describe how to build others, which kpreempt reads as they are.
    """

    skips_bad: bool = False
    files: list[str] = []
    not_read: list[str] = []
    bad: list[InputError] = []
    kustomizations: list[str] = []

    def objects_of(self, name: str, objects: Iterator[_T]) -> Iterator[_T]:
        """Yield the objects of the file ``name``, up to where it becomes unreadable. Raises ``InputError``."""
        is_empty = True
        try:
            for each in objects:
                is_empty = False
                yield each
        except InputError as error:
            self.skip(error)
        else:
            if is_empty:
                self.files.append(name)

    def skip(self, error: InputError) -> None:
        """Skip the subject of the error, or raise it."""
        if not self.skips_bad:
            raise error
        self.bad.append(error)


class InputLimits:
    """Tracks how much has been unpacked, over all inputs that share it. ``follows_links`` applies to directories.

    ``limit`` is the maximum number of bytes that all of them may unpack to.
    """

    def __init__(self, max_unpacked: int = MAX_UNPACKED, *, follows_links: bool = False) -> None:
        self.follows_links = follows_links
        self.limit = max_unpacked
        self._left = max_unpacked
        # What readers skipped, to be listed in the answer.
        self.skipped = SkippedInput()

    @property
    def is_spent(self) -> bool:
        """Whether the inputs have unpacked to more than the limit."""
        return self._left < 0

    def restart(self) -> None:
        """Reset the count: the unpacked data is gone, and the inputs are read again."""
        self._left = self.limit

    def take_skipped(self) -> SkippedInput:
        """Return what was skipped since the last call."""
        taken, self.skipped = self.skipped, SkippedInput()
        self.skipped.skips_bad = taken.skips_bad
        return taken

    def spend(self, count: int, name: str) -> None:
        """Count ``count`` unpacked bytes of ``name``. Raises ``InputError`` above the limit."""
        self._left -= count
        if self._left < 0:
            words = (f"{self.limit // unit} {each}" for each, unit in _UNITS if self.limit % unit == 0)
            raise InputError(
                f"the input unpacks to more than {next(words, f'{self.limit:,} bytes')}",
                source=name,
                hint="--max-unpacked SIZE, if the size is expected",
            )


def check_ratio(packed: int, unpacked: int, name: str) -> None:
    """Raise ``InputError`` if ``packed`` bytes unpack to more than a cluster can be."""
    if unpacked > _RATIO_FROM and unpacked > _MAX_RATIO * packed:
        raise InputError(
            f"unpacks to more than {_MAX_RATIO:,} times its size",
            source=name,
            hint="if the size is expected, unpack it first",
        )


def check_density(content: bytes | mmap.mmap, name: str) -> None:
    """Raise ``InputError`` for a text that consists mostly of tiny values, which would take many times its size."""
    if len(content) <= _DENSE_FROM:
        return
    import numpy as np  # noqa: PLC0415 - few inputs are large

    commas = lines = 0
    for at in range(0, len(content), _STEP):
        part = np.frombuffer(content[at : at + _STEP], np.uint8)
        commas += int(np.count_nonzero(part == ord(",")))
        lines += int(np.count_nonzero(part == ord("\n")))
    if max(commas, lines) * _MIN_BYTES_PER_VALUE > len(content):
        problem = f"has more than one value per {_MIN_BYTES_PER_VALUE} bytes, which no cluster has"
        raise InputError(problem, source=name)


def parse_size(text: str, option: str = "--max-unpacked") -> int:
    """Parse the size of ``option`` in bytes, in Kubernetes' notation: ``4Gi``, ``500Mi``. Raises ``UsageError``."""
    try:
        size = quantity(text).value
    except ValueError:
        size = 0
    if size <= 0:
        raise UsageError(f'{option}: "{text[:40]}" is not a size', hint="4Gi, 500Mi")
    return size


_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


class InputStream(io.RawIOBase):
    """A named byte stream whose first bytes can be peeked at. Errors include the name."""

    def __init__(
        self,
        raw: Readable,
        name: str,
        input_limits: InputLimits | None = None,
        packing: str = "",
        packed: InputStream | None = None,
    ) -> None:
        """Bytes that are read count for ``input_limits``, if any; ``packed`` is the stream it was unpacked from."""
        super().__init__()
        self.raw = raw
        self.name = name
        self.num_read = 0
        # Number of bytes unpacked from it, over all layers.
        self.num_unpacked = 0
        self._input_limits = input_limits
        self._packing = packing
        self._packed = packed
        self._head = b""
        self._is_peeked = False

    def readable(self) -> bool:
        return True

    def peek(self) -> bytes:
        """Return the first 512 bytes, or all if there are fewer."""
        if not self._is_peeked:
            self._is_peeked = True
            while len(self._head) < _HEAD and (chunk := self._read_raw(_HEAD - len(self._head))):
                self._head += chunk
        return self._head

    def read(self, size: int = -1) -> bytes:
        """Read up to ``size`` bytes (not negative); empty only at the end.

        Raises ``InputError`` for a damaged stream.
        """
        if self._head:
            part, self._head = self._head[:size], self._head[size:]
            return part
        return self._read_raw(size)

    def _read_raw(self, size: int) -> bytes:
        try:
            chunk = self.raw.read(size)
        except InputError:
            raise
        except EOFError as error:
            raise self._damaged("ends early", "the file may have been copied incompletely") from error
        except Exception as error:
            # zlib.error, BadGzipFile and ZstdError have no common base class.
            if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
                raise unreadable(self.name, error) from error
            raise self._damaged("is damaged") from error
        self.num_read += len(chunk)
        if self._input_limits is not None:
            self._input_limits.spend(len(chunk), self.name)
            outer = self._packed
            while outer is not None:
                outer.num_unpacked += len(chunk)
                check_ratio(outer.num_read, outer.num_unpacked, outer.name)
                outer = outer._packed
        return chunk

    def _damaged(self, problem: str, hint: str = "") -> InputError:
        return InputError(f"the {self._packing or 'packed'} data {problem}", source=self.name, hint=hint)


class Member(msgspec.Struct, frozen=True):
    """An unpacked stream; ``is_member`` if it is a file in an archive."""

    stream: InputStream
    is_member: bool


def unpacked(
    stream: InputStream, input_limits: InputLimits, *, is_member: bool = False, layers: int = 0
) -> Iterator[Member]:
    """Yield the streams in a stream, with every layer of packing removed; read each before requesting the next.

    Raises ``InputError``.
    """
    head = stream.peek()
    if layers > _MAX_LAYERS:
        raise InputError(f"is packed more than {_MAX_LAYERS} times", source=stream.name)
    if head.startswith(_GZIP):
        inner = InputStream(gzip.GzipFile(fileobj=stream), stream.name, input_limits, "gzip", stream)
        yield from unpacked(inner, input_limits, is_member=is_member, layers=layers + 1)
    elif head.startswith(_ZSTD):
        inner = InputStream(_ZstdFrames(stream), stream.name, input_limits, "zstandard", stream)
        yield from unpacked(inner, input_limits, is_member=is_member, layers=layers + 1)
    elif head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar":
        for member in tar_members(stream, stream.name):
            # Its bytes are those of the archive, which are already counted.
            inner = InputStream(member, f"{stream.name}:{member.name}", packing="tar", packed=stream)
            yield from unpacked(inner, input_limits, is_member=True, layers=layers + 1)
    else:
        yield Member(stream, is_member)


class _ZstdFrames:
    """A file object over zstandard frames. Unlike the package's own reader, it detects a frame that ends early."""

    def __init__(self, stream: InputStream) -> None:
        import zstandard  # noqa: PLC0415 - few inputs need it

        self._stream = stream
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._is_started = False
        self._ready = b""

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes. Raises ``EOFError`` if the input ends within a frame."""
        while not self._ready:
            packed = b""
            if self._frame.eof:
                packed = self._frame.unused_data
                self._frame, self._is_started = self._decompressor.decompressobj(), False
            packed = packed or self._stream.read(_ZSTD_INPUT)
            if not packed:
                if self._is_started:
                    raise EOFError
                return b""
            self._is_started = True
            self._ready = self._frame.decompress(packed)
        part, self._ready = self._ready[:size], self._ready[size:]
        return part


_BLOCK = 512
_CHUNK = 2**16
# Limits on the extended headers of an entry: how many in a row, and the size of each.
_MAX_HEADERS = 8
_MAX_HEADER_BYTES = 2**16

_REGULAR = (b"0", b"\0", b"7")
# Links, devices, directories and pipes, which have no content whatever size they state.
_EMPTY = (b"1", b"2", b"3", b"4", b"5", b"6")
_LONG_NAME, _LONG_LINK, _GNU_SPARSE = b"L", b"K", b"S"
_PAX, _PAX_GLOBAL = (b"x", b"X"), b"g"


class TarMember:
    """A regular file in an archive, readable until the next one is requested. The name is only for messages."""

    def __init__(self, name: str, size: int, stream: Readable) -> None:
        self.name = name
        self._left = size
        self._padding = -size % _BLOCK
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes. Raises ``EOFError`` if the archive ends within the file."""
        if not self._left:
            return b""
        chunk = self._stream.read(min(size, self._left))
        if not chunk:
            raise EOFError
        self._left -= len(chunk)
        return chunk

    def skip(self) -> None:
        """Skip the rest of the file. Raises ``EOFError``."""
        self._left, self._padding = self._left + self._padding, 0
        while self.read(_CHUNK):
            continue


def tar_members(stream: Readable, name: str) -> Iterator[TarMember]:
    """Yield the regular files of the archive ``name``, in order. Raises ``InputError``."""
    headers = _Headers(stream, name)
    while (member := headers.next_member()) is not None:
        if member.name:
            yield member
        try:
            member.skip()
        except EOFError:
            raise _damaged(name) from None


class _Headers:
    def __init__(self, stream: Readable, archive: str) -> None:
        self._stream = stream
        self._archive = archive

    def next_member(self) -> TarMember | None:
        """Return the next entry, or ``None`` at the end; entries that are not regular files have no name."""
        name, size = "", None
        for _ in range(_MAX_HEADERS + 1):
            block = self._read(_BLOCK)
            if not block.strip(b"\0"):
                return None
            kind, stated = block[156:157], _number(block[124:136])
            # The checksum is computed with blanks in its own field.
            if stated is None or _number(block[148:156]) != sum(block) - sum(block[148:156]) + 8 * ord(" "):
                raise _damaged(self._archive)
            if kind == _GNU_SPARSE:
                raise self._sparse()
            if kind in (_LONG_NAME, _LONG_LINK, _PAX_GLOBAL) or kind in _PAX:
                if stated > _MAX_HEADER_BYTES:
                    problem = f"an entry of the tar archive has a header of more than {_MAX_HEADER_BYTES // 2**10} KiB"
                    raise InputError(problem, source=self._archive)
                content = self._read(stated + -stated % _BLOCK)[:stated]
                if stated and not content:
                    raise _damaged(self._archive)
                if kind == _LONG_NAME:
                    name = _text(content.partition(b"\0")[0])
                elif kind in _PAX:
                    path, replaced = self._pax(content)
                    name, size = path or name, replaced if replaced is not None else size
                continue
            if not name:
                name, prefix = (_text(field.partition(b"\0")[0]) for field in (block[:100], block[345:500]))
                # GNU tar uses this field of POSIX for other data.
                name = f"{prefix}/{name}" if prefix and block[257:263] == b"ustar\0" else name
            is_regular = kind in _REGULAR and not (kind == b"\0" and name.endswith("/"))
            length = 0 if kind in _EMPTY else stated if size is None else size
            return TarMember((name or "?") if is_regular else "", length, self._stream)
        raise InputError(f"an entry of the tar archive has more than {_MAX_HEADERS} headers", source=self._archive)

    def _read(self, count: int) -> bytes:
        """Read ``count`` bytes, or none at the end of the stream."""
        content = b""
        while len(content) < count and (chunk := self._stream.read(count - len(content))):
            content += chunk
        if content and len(content) < count:
            raise _damaged(self._archive)
        return content

    def _pax(self, content: bytes) -> tuple[str, int | None]:
        """Return the name and the size in a header of ``LENGTH KEY=VALUE`` lines, if it has them."""
        name, size = "", None
        at = 0
        while at < len(content):
            digits, space, _ = content[at : at + 8].partition(b" ")
            length = int(digits) if space and digits.isdigit() else 0
            key, equals, value = content[at + len(digits) + 1 : at + length].partition(b"=")
            if not equals or not value.endswith(b"\n") or at + length > len(content):
                raise _damaged(self._archive)
            value = value[:-1]
            if key.startswith(b"GNU.sparse."):
                raise self._sparse()
            if key == b"path":
                name = _text(value)
            elif key == b"size":
                if not value.isdigit() or len(value) > 20:
                    raise _damaged(self._archive)
                size = int(value)
            at += length
        return name, size

    def _sparse(self) -> InputError:
        return InputError(
            "the tar archive has a sparse file, which is not supported",
            source=self._archive,
            hint="tar without --sparse",
        )


def _number(field: bytes) -> int | None:
    """Parse a number in octal digits or, if the first bit is set, in base 256; ``None`` if invalid or negative."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.partition(b"\0")[0].strip()
    try:
        return int(digits or b"0", 8) if digits.isdigit() or not digits else None
    except ValueError:
        return None


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _damaged(archive: str) -> InputError:
    return InputError("the tar archive is damaged or ends early", source=archive)
