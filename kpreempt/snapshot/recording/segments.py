"""The files of a recording: each has a base and the changes after it, appended block by block, within a size limit.

A block has its kind, its length and a checksum, and is compressed with zstd; it is either complete or ignored, because
the checksum reveals blocks torn by a kill. A segment gets its name once its base is on the disk, and blocks are on the
disk before ``append`` returns, so a kill at any time leaves all earlier data intact.

Every line is checked here, once, before it is passed on. A checksum only proves that the file holds what was written,
which may not have been kpreempt. Readers decode checked lines without further checks.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from kpreempt.errors import InputError
from kpreempt.files import name_of, open_file, unreadable
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.archives import InputLimits, check_ratio
from kpreempt.snapshot.batches import TOP_LEVEL, Batch, batch_of_header
from kpreempt.snapshot.collect import Collector
from kpreempt.snapshot.decode import BadObjectError, Json, describe, parse_json, record_of
from kpreempt.snapshot.kinds import RECORDED
from kpreempt.snapshot.recording.changes import OBJECT_CHANGES, BaseEnd, Change, ChangeType, Key
from kpreempt.snapshot.recording.pods import pod_line
from kpreempt.snapshot.write import pieces
from kpreempt.verdict import Assumption

MAGIC = b"kprec 1\n"
# Objects of the base, one per line; other data at its end; changes, one per line.
BASE, BASE_END, CHANGES = b"B", b"E", b"C"

_FRAME = Struct("<cII")
_LEVEL = 3
# The maximum size of a block, compressed or not. Writers stay far below it.
MAX_BYTES = 64 * 2**20


class DamageError(Exception):
    """The data at ``offset`` is not a complete block. ``is_torn`` means that it is the last one, as after a kill."""

    def __init__(self, offset: int, *, is_torn: bool) -> None:
        super().__init__(offset)
        self.offset = offset
        self.is_torn = is_torn


class Block(NamedTuple):
    """A complete block: its kind, and its compressed content."""

    kind: bytes
    packed: bytes
    offset: int

    def content(self) -> bytes:
        """Return the uncompressed content. Raises ``DamageError``."""
        import zstandard  # noqa: PLC0415 - few runs need it

        try:
            if not 0 <= zstandard.frame_content_size(self.packed) <= MAX_BYTES:
                raise DamageError(self.offset, is_torn=False)
            return zstandard.ZstdDecompressor().decompress(self.packed, max_output_size=MAX_BYTES)
        except zstandard.ZstdError:
            raise DamageError(self.offset, is_torn=False) from None


def block_bytes(kind: bytes, content: bytes) -> bytes:
    """Return the bytes of a block."""
    import zstandard  # noqa: PLC0415 - few runs need it

    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
    return _FRAME.pack(kind, len(packed), zlib.crc32(packed, zlib.crc32(kind))) + packed


def read_blocks(file: BinaryIO, size: int) -> Iterator[Block]:
    """Yield the blocks of a segment of ``size`` bytes, up to the first incomplete one. Raises ``DamageError`` there."""
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


_L = TypeVar("_L")
_T = TypeVar("_T")

# Readers add and subtract less than this.
_MARGIN = timedelta(days=1)
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC) + _MARGIN, datetime.max.replace(tzinfo=UTC) - _MARGIN
# The location of the line at the end of a base.
END = (BASE_END, 1)
_NOT_OURS = "contains data that kpreempt does not write"


class _NamedMeta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class NamedLine(msgspec.Struct, frozen=True, rename="camel"):
    """The identity of the object in a line."""

    kind: str
    api_version: str
    metadata: _NamedMeta

    @property
    def key(self) -> Key:
        """The object's namespace and name."""
        return self.metadata.namespace, self.metadata.name


_END = msgspec.json.Decoder(BaseEnd)
_CHANGE = msgspec.json.Decoder(Change)
_NAME_DECODER = msgspec.json.Decoder(NamedLine)


def object_name_of_line(line: Json) -> NamedLine:
    """Return the identity of the object in a line."""
    return _NAME_DECODER.decode(line)


class Segment:
    """A segment, whose changes can be read repeatedly. ``damage`` is any damage found while reading.

    Errors in a line raise ``InputError`` with the segment and the line's number: first the lines of the base, then the
    one at its end, then those of the changes.
    """

    def __init__(self, path: Path) -> None:
        """Read the data at the end of its base. Raises ``InputError``, also if the base is incomplete."""
        self.name = name_of(str(path))
        self.damage: DamageError | None = None
        self._path = path
        # The current line, and the number of lines checked, by the kind of block.
        self._at = END
        self._checked = {BASE: 0, CHANGES: 0}
        ends = [self._checked_line(line, self._end) for line in self._lines(BASE_END)]
        if not ends:
            raise InputError("has no complete base", source=self.name)
        self.end: BaseEnd = ends[0]

    @property
    def version(self) -> int:
        """The version up to which the base has all kinds, if it is the same for all; no kind is at a later one."""
        return max((number for label, number in self.end.versions.items() if not label.startswith("Event")), default=0)

    @cached_property
    def header(self) -> Batch:
        """The base's metadata, without objects."""
        for line in self._lines(BASE):
            return self._checked_line(line, self._header)
        raise InputError("has no complete base", source=self.name)

    def header_cluster(self) -> tuple[ClusterSnapshot, list[Assumption]]:
        """Return the cluster of the header, without objects, and the assumptions made when it was read."""
        collector = Collector(defaults_namespace=True)
        collector.add(self.header)
        return collector.cluster(), collector.assumptions

    def base(self, input_limits: InputLimits) -> Iterator[bytes]:
        """Yield the lines of the base's objects. They count for ``input_limits``."""
        _ = self.header
        for number, line in enumerate(self._lines(BASE, input_limits), start=1):
            if number == 1:
                continue
            if number > self._checked[BASE]:
                self._checked_line(line, _check_object)
                self._checked[BASE] = number
            yield line

    def changes(self) -> Iterator[Change]:
        """Yield the changes after the base, in the order in which they were seen."""
        for number, line in enumerate(self._lines(CHANGES), start=1):
            change = self._checked_line(line, _CHANGE.decode)
            if number > self._checked[CHANGES]:
                self._checked_line(change, _check_change)
                self._checked[CHANGES] = number
            yield change

    def bad_line(self, error: BadObjectError, at: tuple[bytes, int] | None = None) -> InputError:
        """Build the error about the last line that was returned, or about one ``at`` another place."""
        kind, number = at or self._at
        if kind != BASE:
            number += sum(1 for _ in self._lines(BASE)) + (kind == CHANGES)
        return error.at(self.name, number)

    def _lines(self, kind: bytes, input_limits: InputLimits | None = None) -> Iterator[bytes]:
        number = 0
        for content in self._contents(kind, input_limits or InputLimits()):
            # Split a block while reading, because it may consist mostly of line breaks.
            for line in BytesIO(content) if content else (b"",):
                number += 1
                self._at = kind, number
                yield line.removesuffix(b"\n")

    def _contents(self, kind: bytes, input_limits: InputLimits) -> Iterator[bytes]:
        with open_file(str(self._path)) as file:
            try:
                for block in read_blocks(file, self._path.stat().st_size):
                    if block.kind == kind:
                        content = block.content()
                        check_ratio(len(block.packed), len(content), self.name)
                        if kind == BASE:
                            input_limits.spend(len(content), self.name)
                        yield content
                    if kind != CHANGES and block.kind == BASE_END:
                        return
            except DamageError as error:
                self.damage = error

    def _checked_line(self, line: _L, check: Callable[[_L], _T]) -> _T:
        """Return the result of ``check`` for a line. Raises ``InputError`` for any of its errors."""
        try:
            return check(line)
        except BadObjectError as error:
            raise self.bad_line(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.bad_line(BadObjectError("", "", _NOT_OURS)) from None

    def _end(self, line: bytes) -> BaseEnd:
        end = _END.decode(line)
        _check_time(end.taken_at)
        return end

    def _header(self, line: bytes) -> Batch:
        header = batch_of_header(self.name, TOP_LEVEL.decode(line))
        if not header.is_own:
            raise BadObjectError("", "", _NOT_OURS)
        try:
            Collector(defaults_namespace=True).add(header)
        except InputError as error:
            raise BadObjectError("", error.path, error.problem) from None
        return header


def _check_object(line: Json) -> tuple[str, str, str]:
    """Check that a line is a recorded object. Raises ``BadObjectError`` and decoders' errors."""
    named = object_name_of_line(line)
    kind = RECORDED.get(named.kind)
    if kind is None or named.api_version.rpartition("/")[0] not in kind.groups:
        raise BadObjectError("", "", f'"{named.api_version[:40]} {named.kind[:40]}" is not a recorded kind')
    if not named.metadata.name:
        raise BadObjectError(named.kind, "metadata.name", "is missing")
    if named.kind in KINDS:
        record_of(kind, line)
    elif not isinstance(parse_json(line), dict):
        raise BadObjectError("", "", _NOT_OURS)
    if named.kind == "Pod":
        pod_line(line)
    return named.kind, *named.key


def _check_change(change: Change) -> None:
    _check_time(change.seen)
    if change.what in (ChangeType.ALIVE, ChangeType.SCHEDULER):
        return
    if change.kind not in RECORDED:
        raise BadObjectError("", "kind", f'"{change.kind[:40]}" is not a recorded kind')
    if change.what not in OBJECT_CHANGES:
        return
    key = (change.kind, change.namespace, change.name)
    name = describe(change.kind, {"metadata": {"namespace": change.namespace, "name": change.name}})
    if not change.name:
        raise BadObjectError(name, "name", "is missing")
    if change.what is not ChangeType.DELETED and _check_object(change.object) != key:
        raise BadObjectError(name, "object", "is another object")


def _check_time(time: datetime) -> None:
    if not _EARLIEST <= time <= _LATEST:
        raise BadObjectError("", "", "a time is before the year 1 or after the year 9999 in UTC")


ENDING = ".kprec"
_STEM = "%Y%m%dT%H%M%S%fZ"
_NAME = re.compile(r"[0-9]{8}T[0-9]{12}Z\.kprec")


def segments_in(folder: str) -> list[Path]:
    """List the segments of a recording, oldest first; empty if the directory is not a recording.

    Raises ``InputError``, also for a segment that is not named after a time.
    """
    paths = _has_segment_name(folder)
    for path in paths:
        began(path)
    return paths


def is_recording(path: str) -> bool:
    """Return whether the path is a directory with a recording. Never raises."""
    try:
        return Path(path).is_dir() and bool(_has_segment_name(path))
    except (OSError, ValueError, InputError):
        return False


def began(path: Path) -> datetime:
    """Parse the start of a segment from its name. Raises ``InputError`` if that is not a time."""
    try:
        return datetime.strptime(path.stem, _STEM).replace(tzinfo=UTC)
    except ValueError:
        problem = "is not named after a time, like a recording's segments"
        raise InputError(problem, source=name_of(str(path)), hint="20261121T030000000000Z.kprec") from None


def _has_segment_name(folder: str) -> list[Path]:
    try:
        return sorted(path for path in Path(folder).iterdir() if _NAME.fullmatch(path.name))
    except (OSError, ValueError) as error:
        raise unreadable(name_of(folder), error) from error


_OWNER_ONLY = 0o600
# The maximum share of the disk space for a base, and for the changes of a segment; otherwise old ones could not be
# deleted.
_SHARE = 4

_ENCODER = msgspec.json.Encoder()


class Limits(msgspec.Struct, frozen=True):
    """How long a recording is kept, its maximum size in bytes, and how often a base begins a new segment."""

    keep: timedelta = timedelta(hours=24)
    max_size: int = 2 * 2**30
    base_every: timedelta = timedelta(hours=1)


class Segments:
    """A recording while it is written, by a single process. Only its owner can read the files.

    All methods raise ``InputError`` if writing fails.
    """

    def __init__(self, folder: str, limits: Limits) -> None:
        """Open a directory, creating it if missing."""
        self._folder = Path(folder)
        self._limits = limits
        self._file: BinaryIO | None = None
        self._began: datetime | None = None
        self._grown = 0
        with self._reported():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self._folder)
            for left in self._folder.glob(f"*{ENDING}.part"):
                left.unlink()

    def begin(self, base: Iterable[bytes], end: BaseEnd) -> None:
        """Begin a segment with the lines of a base, and delete old segments."""
        paths, now = segments_in(str(self._folder)), end.taken_at
        if paths:
            # Later than all others, even if the clock was set back.
            now = max(now, began(paths[-1]) + timedelta(microseconds=1))
        path = self._folder / f"{now.astimezone(UTC).strftime(_STEM)}{ENDING}"
        part = path.with_name(f"{path.name}.part")
        with self._reported():
            self.close_segment()
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY), "wb") as file:
                file.write(MAGIC)
                for lines in pieces(base):
                    file.write(block_bytes(BASE, b"\n".join(lines)))
                file.write(block_bytes(BASE_END, _ENCODER.encode(end)))
                _onto_disk(file)
                size = file.tell()
            if size * _SHARE > self._limits.max_size:
                part.unlink()
                raise InputError(
                    f"the cluster takes {size:,} bytes, more than a quarter of --max-size",
                    source=name_of(str(self._folder)),
                    hint=f"--max-size {-(-size * _SHARE // 2**20)}Mi",
                )
            part.rename(path)
            # Not every system can open directories.
            with suppress(OSError):
                handle = os.open(self._folder, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
            self._file = path.open("ab")
        self._began, self._grown = end.taken_at, 0
        self._delete_old(end.taken_at)

    def append(self, changes: Sequence[Change]) -> None:
        """Append changes as one block, and return once they are on the disk."""
        assert self._file is not None
        block = block_bytes(CHANGES, b"\n".join(map(_ENCODER.encode, changes)))
        with self._reported():
            self._file.write(block)
            _onto_disk(self._file)
        self._grown += len(block)

    def needs_base(self, now: datetime) -> bool:
        """Return whether it is time for a new segment."""
        assert self._began is not None
        return now - self._began >= self._limits.base_every or self._grown * _SHARE > self._limits.max_size

    @property
    def size(self) -> int:
        """The size of all segments in bytes."""
        with self._reported():
            return sum(path.stat().st_size for path in segments_in(str(self._folder)))

    def close_segment(self) -> None:
        """End the segment; nothing more is appended to it."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Let another process record here."""
        self.close_segment()
        os.close(self._lock)

    def _delete_old(self, now: datetime) -> None:
        """Delete the oldest segments if they are too old or too large. The last one is kept."""
        with self._reported():
            paths = segments_in(str(self._folder))
            sizes = [path.stat().st_size for path in paths]
            for index, (path, follower) in enumerate(pairwise(paths)):
                # The rest is for changes, and for the next base before old segments are deleted.
                has_space = sum(sizes[index:]) * 2 <= self._limits.max_size
                if has_space and now - began(follower) <= self._limits.keep:
                    return
                path.unlink()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(
                f"cannot write: {reason[:1].lower()}{reason[1:]}", source=name_of(str(self._folder))
            ) from error


def _onto_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _lock(folder: Path) -> int:
    """Return the handle that locks the directory. Raises ``InputError`` if another process holds it."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        return handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InputError(
            "another kpreempt is recording here", source=name_of(str(folder)), hint="--to another directory"
        ) from None
    return handle
