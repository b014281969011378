"""Where the bytes come from: files, folders, standard input; packed or not, known by their content only."""

from __future__ import annotations

import mmap
import os
import stat
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.archives import Budget, InputStream, name_of, unpacked, unreadable

STDIN = "-"
STDIN_NAME = "standard input"
# Larger ones are mapped, so that they do not count as the process's own memory.
_MAP_FROM = 4 * 2**20
_CHUNK = 2**20

_NO_TEXT = {
    b"PK\x03\x04": ("is a zip archive", "unzip it first"),
    b"BZh": ("is packed with bzip2", "bunzip2 it first"),
    b"\xfd7zXZ": ("is packed with xz", "unxz it first"),
    b"\xff\xfe": ("is UTF-16, not UTF-8", "save it as UTF-8"),
    b"\xfe\xff": ("is UTF-16, not UTF-8", "save it as UTF-8"),
}

Content = bytes | mmap.mmap
_STEP = 2**20


class Source(msgspec.Struct, frozen=True):
    """One file's worth of text; ``content`` is ``None`` where it is no text.

    ``is_named`` tells what the user named from what was found in a folder or archive.
    """

    name: str
    content: Content | None
    is_named: bool


def read_sources(
    path: str, stdin: BinaryIO | None, *, endings: tuple[str, ...] = (), left_out: list[str] | None = None
) -> Iterator[Source]:
    """The files that ``path`` means, each of them valid until the next is asked for. Raises ``InputError``.

    Of a folder only files with one of the ``endings`` are read, if there are any; others go to ``left_out``.
    """
    budget = Budget()
    if path == STDIN:
        if stdin is None:
            raise InputError("it is closed", source=STDIN_NAME)
        yield from _read_stream(stdin, STDIN_NAME, budget, is_named=True)
    elif not path:
        # To the system it would be the current folder; it is rather a variable that is not set.
        raise InputError("the path is empty", hint="a file, a folder, or - for standard input")
    elif "\0" in path:
        raise InputError("is not a path: it holds a NUL", source=path.replace("\0", "?"))
    elif _is_folder(path):
        for file in _files_below(path):
            if not endings or file.endswith(endings):
                yield from _read_file(file, budget, is_named=False)
            elif left_out is not None:
                left_out.append(name_of(file))
    else:
        yield from _read_file(path, budget, is_named=True)


def read_bytes(content: bytes, name: str) -> Iterator[Source]:
    """The texts in what is in memory already, as those of a file of that name. Raises ``InputError``."""
    yield from _read_stream(BytesIO(content), name, Budget(), is_named=True)


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError as error:
        raise unreadable(path, error) from error


def _files_below(folder: str) -> Iterator[str]:
    """All files below a folder in the order of their names. Links are followed, but never into a folder's parents."""
    pending: list[tuple[Path, frozenset[tuple[int, int]]]] = [(Path(folder), frozenset())]
    while pending:
        path, parents = pending.pop()
        try:
            status = path.stat()
            identity = (status.st_dev, status.st_ino)
            if stat.S_ISREG(status.st_mode):
                yield str(path)
            elif stat.S_ISDIR(status.st_mode) and identity not in parents:
                below = sorted(path.iterdir(), reverse=True)
                pending += [(each, parents | {identity}) for each in below]
        except OSError as error:
            # A link to nowhere, or to itself, is nobody's file.
            if not path.is_symlink():
                raise unreadable(str(path), error) from error


def _read_file(path: str, budget: Budget, *, is_named: bool) -> Iterator[Source]:
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - what fails within the block below is another's failure
    except OSError as error:
        raise unreadable(path, error) from error
    with file:
        yield from _read_stream(file, name_of(path), budget, is_named=is_named)


def _read_stream(stream: BinaryIO, name: str, budget: Budget, *, is_named: bool) -> Iterator[Source]:
    """The texts in a stream: itself, or what is packed in it."""
    for member in unpacked(InputStream(stream, name, budget), budget):
        inner = member.stream
        is_wanted = is_named and not member.is_member
        problem, hint = _no_text(inner.peek())
        if problem and is_wanted:
            raise InputError(problem, source=inner.name, hint=hint)
        content: Content | None = None
        if not problem:
            content = (_mapped(stream, len(inner.peek())) if inner.raw is stream else None) or _spooled(inner)
        try:
            yield Source(inner.name, content, is_wanted)
        finally:
            _close(content)


def _no_text(head: bytes) -> tuple[str, str]:
    """Why this cannot be the beginning of a text, with advice; empty where it can."""
    for magic, problem in _NO_TEXT.items():
        if head.startswith(magic):
            return problem
    return ("is not text: it holds a NUL", "") if b"\0" in head else ("", "")


def _mapped(stream: IO[bytes], seen: int) -> mmap.mmap | None:
    """The file mapped into memory, or ``None`` where it is small, no regular file, or more than ``seen`` was read."""
    try:
        status = os.fstat(stream.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size >= _MAP_FROM and stream.tell() == seen:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, AttributeError):
        return None
    return None


def _spooled(stream: InputStream) -> Content:
    """All that is left in a stream: in memory while it is small, else in a mapped file that has no name."""
    with tempfile.SpooledTemporaryFile(max_size=_MAP_FROM) as spool:
        size = 0
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            spool.write(chunk)
        if size <= _MAP_FROM:
            spool.seek(0)
            return spool.read()
        spool.flush()
        return mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ)


def _close(content: Content | None) -> None:
    if isinstance(content, mmap.mmap):
        try:
            content.close()
        except BufferError:
            # An exception on its way up still looks at a part; the file is unmapped with the last of these.
            return


class LineCounter:
    """Counts lines, and goes on from where it was: many errors in one file must not count it all over each time."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._offset = 0
        self._line = 1

    def line_at(self, offset: int) -> int:
        """The line, from 1, of an offset."""
        if offset < self._offset:
            self._offset, self._line = 0, 1
        for at in range(self._offset, offset, _STEP):
            self._line += self._content[at : min(offset, at + _STEP)].count(b"\n")
        self._offset = offset
        return self._line
