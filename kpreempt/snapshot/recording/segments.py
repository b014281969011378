"""The files of a recording: each a base and what changed after it, appended block by block, and bounded together.

A segment gets its name once its base is on the disk, and blocks are on the disk before ``append`` returns, so that a
kill at any moment leaves all that came before whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import msgspec

from kpreempt.errors import InputError
from kpreempt.files import name_of
from kpreempt.snapshot.recording.blocks import BASE, BASE_END, CHANGES, MAGIC, block_bytes
from kpreempt.snapshot.recording.changes import BaseEnd, Change
from kpreempt.snapshot.recording.folder import ENDING, began, name_at, segments_in

_OWNER_ONLY = 0o600
_PIECE = 2**20
# A base takes at most this part of the disk, and so do the changes of a segment: else old ones could not go.
_SHARE = 4

_ENCODER = msgspec.json.Encoder()


class Limits(msgspec.Struct, frozen=True):
    """How long a recording is kept, how many bytes it may take, and how often a base begins a new segment."""

    keep: timedelta = timedelta(hours=24)
    max_size: int = 2 * 2**30
    base_every: timedelta = timedelta(hours=1)


class Segments:
    """A recording as it is written, by one process alone. Its files are for their owner only.

    All methods raise ``InputError`` where the disk does not take what is written.
    """

    def __init__(self, folder: str, limits: Limits) -> None:
        """Open a folder, which is made where it is not there."""
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
        """Begin a segment with the lines of a base, and let old segments go."""
        path = self._next_path(end.taken_at)
        part = path.with_name(f"{path.name}.part")
        with self._reported():
            self.close_segment()
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY), "wb") as file:
                file.write(MAGIC)
                for piece in _pieces(base):
                    file.write(block_bytes(BASE, piece))
                file.write(block_bytes(BASE_END, _ENCODER.encode(end)))
                _onto_disk(file)
                size = file.tell()
            if size * _SHARE > self._limits.max_size:
                part.unlink()
                raise InputError(
                    f"the cluster alone takes {size:,} bytes, more than a quarter of --max-size",
                    source=name_of(str(self._folder)),
                    hint=f"--max-size {-(-size * _SHARE // 2**20)}Mi",
                )
            part.rename(path)
            _folder_onto_disk(self._folder)
            self._file = path.open("ab")
        self._began, self._grown = end.taken_at, 0
        self._let_go(end.taken_at)

    def append(self, changes: Sequence[Change]) -> None:
        """Append changes as one block, and return once they are on the disk."""
        assert self._file is not None
        block = block_bytes(CHANGES, b"\n".join(map(_ENCODER.encode, changes)))
        with self._reported():
            self._file.write(block)
            _onto_disk(self._file)
        self._grown += len(block)

    def wants_base(self, now: datetime) -> bool:
        """Whether it is time for a new segment."""
        assert self._began is not None
        return now - self._began >= self._limits.base_every or self._grown * _SHARE > self._limits.max_size

    @property
    def size(self) -> int:
        """How many bytes all segments take."""
        with self._reported():
            return sum(path.stat().st_size for path in segments_in(str(self._folder)))

    def close_segment(self) -> None:
        """End the segment; nothing is appended to it any more."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Let another process record here."""
        self.close_segment()
        os.close(self._lock)

    def _next_path(self, now: datetime) -> Path:
        """The path of a segment that begins now; later than all others, though the clock may have been put back."""
        paths = segments_in(str(self._folder))
        if paths:
            now = max(now, began(paths[-1]) + timedelta(microseconds=1))
        return self._folder / name_at(now)

    def _let_go(self, now: datetime) -> None:
        """Delete the oldest segments, of which nothing is wanted or there is no room for. The last one stays."""
        with self._reported():
            paths = segments_in(str(self._folder))
            sizes = [path.stat().st_size for path in paths]
            for index, (path, follower) in enumerate(pairwise(paths)):
                # The rest is for changes, and for the next base before old segments go.
                has_room = sum(sizes[index:]) * 2 <= self._limits.max_size
                if has_room and now - began(follower) <= self._limits.keep:
                    return
                path.unlink()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(
                f"cannot be written: {reason[:1].lower()}{reason[1:]}", source=name_of(str(self._folder))
            ) from error


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    ready: list[bytes] = []
    size = 0
    for line in lines:
        ready.append(line)
        size += len(line)
        if size >= _PIECE:
            yield b"\n".join(ready)
            ready, size = [], 0
    if ready:
        yield b"\n".join(ready)


def _onto_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _folder_onto_disk(folder: Path) -> None:
    # Not every system opens folders.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _lock(folder: Path) -> int:
    """The handle that holds the folder. Raises ``InputError`` where another process does."""
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
            "another kpreempt records here", source=name_of(str(folder)), hint="--to another folder"
        ) from None
    return handle
