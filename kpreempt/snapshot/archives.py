"""Unpacking gzip, zstandard and tar streams, within bounds and never onto the disk under their own names."""

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
# Nor is a longer text with a comma, or a line, for fewer bytes than this: decoded, each value takes ten times as many.
_DENSE_FROM = 8 * 2**20
_MIN_BYTES_PER_VALUE = 10
_STEP = 2**20
_MAX_LAYERS = 4
_HEAD = 512
_TAR_MAGIC_AT = 257
_MAX_ZSTD_WINDOW = 2**27
# The most that one call can unpack is some 43,000 times this: a run of equal bytes takes 3 bytes for 128 KiB.
_ZSTD_INPUT = 1024

_T = TypeVar("_T")

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none only at the end."""


class PassedOver:
    """What the readers of inputs pass over: ``files`` without objects, those ``not_read`` by their names, ``bad`` ones.

    A bad file is an error unless ``skips_bad``; then reading goes on without it. ``kustomizations`` are files that say
    how others are built, which kpreempt reads as they are.
    """

    def __init__(self) -> None:
        self.skips_bad = False
        self.files: list[str] = []
        self.not_read: list[str] = []
        self.bad: list[InputError] = []
        self.kustomizations: list[str] = []

    def objects_of(self, name: str, objects: Iterator[_T]) -> Iterator[_T]:
        """The objects of the file ``name``, up to where it cannot be read. Raises ``InputError``."""
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
        """Go on without what the error is about, or raise it."""
        if not self.skips_bad:
            raise error
        self.bad.append(error)


class Intake:
    """How much has been unpacked so far, over all inputs that share it. ``follows_links`` is about folders."""

    def __init__(self, max_unpacked: int = MAX_UNPACKED, *, follows_links: bool = False) -> None:
        self.follows_links = follows_links
        self._limit = max_unpacked
        self._left = max_unpacked
        # What readers pass over, for the answer to list it.
        self.passed_over = PassedOver()

    @property
    def limit(self) -> int:
        """How many bytes all of them may unpack to."""
        return self._limit

    @property
    def is_spent(self) -> bool:
        """Whether the inputs have unpacked to more than they may."""
        return self._left < 0

    def restart(self) -> None:
        """Forget what has been unpacked: it is gone, and the inputs are read anew."""
        self._left = self._limit

    def take_passed_over(self) -> PassedOver:
        """What has been passed over since it was last taken."""
        taken, self.passed_over = self.passed_over, PassedOver()
        self.passed_over.skips_bad = taken.skips_bad
        return taken

    def spend(self, count: int, name: str) -> None:
        """Count ``count`` bytes of what ``name`` unpacks to. Raises ``InputError`` when there are too many."""
        self._left -= count
        if self._left < 0:
            raise InputError(
                f"the input unpacks to more than {_in_words(self._limit)}",
                source=name,
                hint="--max-unpacked allows more, if it is what you expect",
            )


def check_ratio(packed: int, unpacked: int, name: str) -> None:
    """Raise ``InputError`` if ``packed`` bytes unpack to more than a cluster can be."""
    if unpacked > _RATIO_FROM and unpacked > _MAX_RATIO * packed:
        raise InputError(
            f"unpacks to more than {_MAX_RATIO:,} times its size",
            source=name,
            hint="if it is what you expect, unpack it first",
        )


def check_density(content: bytes | mmap.mmap, name: str) -> None:
    """Raise ``InputError`` for a text that is little but tiny values, which would take many times its size."""
    if len(content) <= _DENSE_FROM:
        return
    import numpy as np  # noqa: PLC0415 - few inputs are large

    commas = lines = 0
    for at in range(0, len(content), _STEP):
        part = np.frombuffer(content[at : at + _STEP], np.uint8)
        commas += int(np.count_nonzero(part == ord(",")))
        lines += int(np.count_nonzero(part == ord("\n")))
    if max(commas, lines) * _MIN_BYTES_PER_VALUE > len(content):
        problem = f"has more than one value for every {_MIN_BYTES_PER_VALUE} bytes, which no cluster has"
        raise InputError(problem, source=name)


def parse_size(text: str, option: str = "--max-unpacked") -> int:
    """A size in bytes that ``option`` says, as Kubernetes writes amounts: ``4Gi``, ``500Mi``. Raises ``UsageError``."""
    try:
        size = quantity(text).value
    except ValueError:
        size = 0
    if size <= 0:
        raise UsageError(f'{option}: "{text[:40]}" is not a size', hint="4Gi, 500Mi")
    return size


def _in_words(size: int) -> str:
    return next((f"{size // unit} {name}" for name, unit in _UNITS if size % unit == 0), f"{size:,} bytes")


_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


class InputStream(io.RawIOBase):
    """Bytes with a name; the first of them can be looked at before they are read. Errors carry the name."""

    def __init__(
        self,
        raw: Readable,
        name: str,
        intake: Intake | None = None,
        packing: str = "",
        packed: InputStream | None = None,
    ) -> None:
        """What is read counts for ``intake``, if there is one; ``packed`` is what it is in."""
        super().__init__()
        self.raw = raw
        self.name = name
        self.num_read = 0
        # Of all that was unpacked from it, layer by layer.
        self.num_unpacked = 0
        self._intake = intake
        self._packing = packing
        self._packed = packed
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
            # zlib.error, BadGzipFile and ZstdError have no base of their own in common.
            if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
                raise unreadable(self.name, error) from error
            raise self._damaged("is damaged") from error
        self.num_read += len(chunk)
        if self._intake is not None:
            self._intake.spend(len(chunk), self.name)
            outer = self._packed
            while outer is not None:
                outer.num_unpacked += len(chunk)
                check_ratio(outer.num_read, outer.num_unpacked, outer.name)
                outer = outer._packed
        return chunk

    def _ends_early(self) -> InputError:
        return self._damaged("ends early", "the file may not have been copied whole")

    def _damaged(self, problem: str, hint: str = "") -> InputError:
        return InputError(f"the {self._packing or 'packed'} data {problem}", source=self.name, hint=hint)


class Member(msgspec.Struct, frozen=True):
    """A stream without packing; ``is_member`` where it is one of the files of an archive."""

    stream: InputStream
    is_member: bool


def unpacked(stream: InputStream, intake: Intake, *, is_member: bool = False, layers: int = 0) -> Iterator[Member]:
    """The streams in a stream, with every layer of packing taken off; each must be read before the next is asked for.

    Raises ``InputError``.
    """
    head = stream.peek()
    if layers > _MAX_LAYERS:
        raise InputError(f"is packed more than {_MAX_LAYERS} times", source=stream.name)
    if head.startswith(_GZIP):
        file = gzip.GzipFile(fileobj=stream)
        inner = InputStream(file, stream.name, intake, "gzip", stream)
        yield from unpacked(inner, intake, is_member=is_member, layers=layers + 1)
    elif head.startswith(_ZSTD):
        inner = InputStream(_ZstdFrames(stream), stream.name, intake, "zstandard", stream)
        yield from unpacked(inner, intake, is_member=is_member, layers=layers + 1)
    elif head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar":
        from kpreempt.snapshot.tar import tar_members  # noqa: PLC0415 - few inputs need it

        for member in tar_members(stream, stream.name):
            # Its bytes are those of the archive, which count already.
            inner = InputStream(member, f"{stream.name}:{member.name}", packing="tar", packed=stream)
            yield from unpacked(inner, intake, is_member=True, layers=layers + 1)
    else:
        yield Member(stream, is_member)


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
