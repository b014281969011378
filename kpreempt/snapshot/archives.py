"""Unpacking gzip, zstandard and tar streams, in bounded memory and never onto the disk under their own names."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from typing import Protocol

import msgspec

from kpreempt.errors import InputError

MAX_BYTES = 8 * 2**30
_MAX_LAYERS = 4
_HEAD = 512
_TAR_MAGIC_AT = 257
_TAR_HEADER = 512
_MAX_ZSTD_WINDOW = 2**27
# The most that one call can unpack is some 43,000 times this: a run of equal bytes takes 3 bytes for 128 KiB.
_ZSTD_INPUT = 1024

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class Budget:
    """How much may be unpacked from one path, over all that is in it."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = MAX_BYTES if limit is None else limit
        self._left = self._limit

    def spend(self, count: int, name: str) -> None:
        """Count ``count`` unpacked bytes. Raises ``InputError`` when there are too many."""
        self._left -= count
        if self._left < 0:
            raise InputError(f"unpacks to more than {self._limit // 2**20} MiB", source=name)


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none only at the end."""


class InputStream(io.RawIOBase):
    """Bytes with a name; the first of them can be looked at before they are read. Errors carry the name."""

    def __init__(self, raw: Readable, name: str, budget: Budget, packing: str = "") -> None:
        super().__init__()
        self.raw = raw
        self.name = name
        self._budget = budget
        self._packing = packing
        self._head = b""
        self._is_peeked = False

    def readable(self) -> bool:
        return True

    def peek(self) -> bytes:
        """The first 512 bytes, or all if there are fewer."""
        if not self._is_peeked:
            self._is_peeked = True
            while len(self._head) < _HEAD and (chunk := self._read_raw(_HEAD - len(self._head))):
                self._head += chunk
        return self._head

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes (not negative); none only at the end. Raises ``InputError`` for a damaged stream."""
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
            raise self._ends_early() from error
        except Exception as error:
            # zlib.error, BadGzipFile, tarfile.ReadError and ZstdError have no base of their own in common.
            if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile | tarfile.ReadError):
                raise unreadable(self.name, error) from error
            # A tar archive that is cut off within a member.
            if "unexpected end" in str(error):
                raise self._ends_early() from error
            raise self._damaged("is damaged") from error
        self._budget.spend(len(chunk), self.name)
        return chunk

    def _ends_early(self) -> InputError:
        return self._damaged("ends early", "the file may not have been copied whole")

    def _damaged(self, problem: str, hint: str = "") -> InputError:
        return InputError(f"the {self._packing or 'packed'} data {problem}", source=self.name, hint=hint)


def name_of(path: str) -> str:
    r"""How sources are called: the path, with a byte that is no UTF-8 as ``\xNN``. Answers are text, and name them."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def unreadable(name: str, error: OSError) -> InputError:
    """The error for a file that the operating system does not give."""
    reason = error.strerror or str(error)
    return InputError(f"cannot be read: {reason[:1].lower()}{reason[1:]}", source=name)


class Member(msgspec.Struct, frozen=True):
    """A stream without packing; ``is_member`` where it is one of the files of an archive."""

    stream: InputStream
    is_member: bool


def unpacked(stream: InputStream, budget: Budget, *, is_member: bool = False, layers: int = 0) -> Iterator[Member]:
    """The streams in a stream, with every layer of packing taken off; each must be read before the next is asked for.

    Raises ``InputError``.
    """
    head = stream.peek()
    if layers > _MAX_LAYERS:
        raise InputError(f"is packed more than {_MAX_LAYERS} times", source=stream.name)
    if head.startswith(_GZIP):
        file = gzip.GzipFile(fileobj=stream)
        inner = InputStream(file, stream.name, budget, "gzip")
        yield from unpacked(inner, budget, is_member=is_member, layers=layers + 1)
    elif head.startswith(_ZSTD):
        inner = InputStream(_ZstdFrames(stream), stream.name, budget, "zstandard")
        yield from unpacked(inner, budget, is_member=is_member, layers=layers + 1)
    elif head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar":
        yield from _tar_members(stream, budget, layers)
    else:
        yield Member(stream, is_member)


def _tar_members(stream: InputStream, budget: Budget, layers: int) -> Iterator[Member]:
    """The regular files of a tar archive, in its order. Their names are only shown, never opened."""
    damaged = InputError("the tar archive is damaged or ends early", source=stream.name)
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for entry in archive:
                budget.spend(_TAR_HEADER, stream.name)
                file = archive.extractfile(entry) if entry.isreg() else None
                if file is not None:
                    inner = InputStream(file, f"{stream.name}:{name_of(entry.name)}", budget, "tar")
                    yield from unpacked(inner, budget, is_member=True, layers=layers + 1)
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise damaged from error


class _ZstdFrames:
    """A file object over zstandard frames. Unlike the package's own reader it notices a frame that ends early."""

    def __init__(self, stream: InputStream) -> None:
        import zstandard  # noqa: PLC0415 - few inputs need it

        self._stream = stream
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._is_started = False
        self._ready = b""

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes. Raises ``EOFError`` where the input ends within a frame."""
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
