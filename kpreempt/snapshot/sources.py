"""The bytes of an input: files, directories, standard input, packed or not, detected by content only."""

from __future__ import annotations

import mmap
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO

import msgspec

from kpreempt.errors import InputError
from kpreempt.files import name_of, open_file, unreadable
from kpreempt.snapshot.archives import InputLimits, InputStream, unpacked

STDIN = "-"
STDIN_NAME = "standard input"
# Larger files are memory-mapped, so that they do not count as the process's own memory.
_MAP_FROM = 4 * 2**20
# Unpacked data stays in memory up to this size, and goes to a temporary file beyond.
_MAX_IN_MEMORY = 64 * 2**20
_CHUNK = 2**20

_NO_TEXT = {
    b"PK\x03\x04": ("is a zip archive", "unzip it first"),
    b"BZh": ("is packed with bzip2", "bunzip2 it first"),
    b"\xfd7zXZ": ("is packed with xz", "unxz it first"),
}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Files with these extensions are expected to contain objects.
_OF_OBJECTS = re.compile(r"\.(?:ya?ml|json)(?:\.(?:gz|zst))*\Z", re.IGNORECASE)
# In UTF-16 without a byte order mark, every second byte at the beginning is a NUL.
_UTF_16_PREFIX = 32

Content = bytes | mmap.mmap
_STEP = 2**20


class Source(msgspec.Struct, frozen=True):
    """The text of one file in UTF-8; ``content`` is ``None`` if it is not text.

    ``is_named`` distinguishes a file that the user named from one found in a directory or archive. ``error`` is why it
    could not be read.
    """

    name: str
    content: Content | None
    is_named: bool
    error: InputError | None = None

    @property
    def is_of_objects(self) -> bool:
        """Whether it should contain objects: the user named it, or its name ends like a manifest's."""
        return self.is_named or _OF_OBJECTS.search(self.name) is not None


def read_sources(
    path: str,
    stdin: BinaryIO | None,
    input_limits: InputLimits | None = None,
    *,
    endings: tuple[str, ...] = (),
    skipped: list[str] | None = None,
) -> Iterator[Source]:
    """Yield the files of ``path``, each valid until the next is requested.

    Unreadable files, and the rest of an archive that ends early, have an ``error`` instead of content. Raises
    ``InputError`` if the path does not exist, or if the inputs are too large.

    In a directory, only files with one of the ``endings`` are read, if there are any; others go to ``skipped``.
    ``input_limits`` is shared with other inputs.
    """
    input_limits = input_limits or InputLimits()
    if path == STDIN:
        if stdin is None:
            raise InputError("closed", source=STDIN_NAME)
        yield from _read_stream(stdin, STDIN_NAME, input_limits, is_named=True)
    elif not path:
        # The operating system would read the current directory; more likely, a shell variable is not set.
        raise InputError("the path is empty", hint="a file, a directory, or - for standard input")
    elif "\0" in path:
        raise InputError("is not a path: it holds a NUL", source=path.replace("\0", "?"))
    elif _is_folder(path):
        for file in files_below(path, endings, skipped, follows_links=input_limits.follows_links):
            try:
                yield from _read_file(file, input_limits, is_named=False)
            except InputError as error:
                if input_limits.is_spent:
                    raise
                yield Source(name_of(file), None, is_named=False, error=error)
    else:
        yield from _read_file(path, input_limits, is_named=True)


def read_bytes(content: bytes, name: str, input_limits: InputLimits | None = None) -> Iterator[Source]:
    """Yield the texts in data in memory, like those of a file of that name. Raises ``InputError``."""
    yield from _read_stream(BytesIO(content), name, input_limits or InputLimits(), is_named=True)


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError as error:
        raise unreadable(name_of(path), error) from error


def _read_file(path: str, input_limits: InputLimits, *, is_named: bool) -> Iterator[Source]:
    with open_file(path) as file:
        yield from _read_stream(file, name_of(path), input_limits, is_named=is_named)


def _read_stream(stream: BinaryIO, name: str, input_limits: InputLimits, *, is_named: bool) -> Iterator[Source]:
    """Yield the texts in a stream: itself, or those packed in it."""
    try:
        for member in unpacked(InputStream(stream, name, input_limits), input_limits):
            yield from _read_text(member.stream, stream, is_named=is_named and not member.is_member)
    except InputError as error:
        if input_limits.is_spent:
            raise
        yield Source(error.source or name, None, is_named, error)


def _read_text(inner: InputStream, outer: BinaryIO, *, is_named: bool) -> Iterator[Source]:
    """Yield the text of an unpacked stream, which may be part of the ``outer`` one."""
    found = Source(inner.name, None, is_named)
    head = inner.peek()
    encoding = _utf_16(head)
    unless_packed = ("is not text: contains a NUL" if b"\0" in head else "", "")
    problem, hint = next((why for magic, why in _NO_TEXT.items() if head.startswith(magic)), unless_packed)
    if problem and not encoding:
        error = InputError(problem, source=inner.name, hint=hint) if found.is_of_objects else None
        yield msgspec.structs.replace(found, error=error)
        return
    content = (_mapped(outer, len(head)) if inner.raw is outer else None) or _gathered(inner)
    try:
        if not encoding:
            yield msgspec.structs.replace(found, content=content)
            return
        try:
            text = content[:].decode(encoding).encode()
        except UnicodeError:
            problem = f"begins like {encoding.upper()} but is not valid"
            yield msgspec.structs.replace(found, error=InputError(problem, source=inner.name))
        else:
            yield msgspec.structs.replace(found, content=text)
    finally:
        if isinstance(content, mmap.mmap):
            # An exception on its way up may still refer to a part; the file is unmapped with the last reference.
            with suppress(BufferError):
                content.close()


def _utf_16(head: bytes) -> str:
    """Return the encoding of a text that begins like UTF-16, with or without a byte order mark; otherwise empty."""
    for mark, nul_at, encoding in ((b"\xff\xfe", 1, "utf-16-le"), (b"\xfe\xff", 0, "utf-16-be")):
        if head.startswith(mark):
            return encoding
        seen = head[:_UTF_16_PREFIX]
        if len(seen) > 1 and not any(seen[nul_at::2]) and all(seen[1 - nul_at :: 2]):
            return encoding
    return ""


def _mapped(stream: IO[bytes], seen: int) -> mmap.mmap | None:
    """Map the file into memory; ``None`` if it is small, not a regular file, or more than ``seen`` was read."""
    try:
        status = os.fstat(stream.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size >= _MAP_FROM and stream.tell() == seen:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, AttributeError):
        return None
    return None


def _gathered(stream: InputStream) -> Content:
    """Read the rest of a stream: into memory or, if it is large, into a mapped temporary file."""
    chunks, size = [], 0
    while chunk := stream.read(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > _MAX_IN_MEMORY:
            return _in_temporary_file(chunks, stream)
    return b"".join(chunks)


def _in_temporary_file(chunks: list[bytes], stream: InputStream) -> mmap.mmap:
    try:
        with tempfile.TemporaryFile() as file:
            file.writelines(chunks)
            chunks.clear()
            while chunk := stream.read(_CHUNK):
                file.write(chunk)
            file.flush()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot unpack into a temporary file: {reason[:1].lower()}{reason[1:]}",
            source=stream.name,
            hint="set TMPDIR to a directory with enough space, or unpack it first",
        ) from error


class LineCounter:
    """Counts lines from its last position on, so that many errors in a file don't each count from the start."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._offset = 0
        self._line = 1

    def line_at(self, offset: int) -> int:
        """Return the line (from 1) of an offset."""
        if offset < self._offset:
            self._offset, self._line = 0, 1
        for at in range(self._offset, offset, _STEP):
            self._line += self._content[at : min(offset, at + _STEP)].count(b"\n")
        self._offset = offset
        return self._line


def files_below(
    folder: str, endings: tuple[str, ...], skipped: list[str] | None, *, follows_links: bool
) -> Iterator[str]:
    """Yield the files below a directory in the order of their names, each directory once. Raises ``InputError``.

    If there are ``endings``, files with others go to ``skipped``. A link to something that is read under its own name
    is skipped; one that leads out of the directory is rejected, or followed with ``follows_links``.
    """
    endings = endings or ("",)
    root = Path(os.path.realpath(folder))
    visited: set[tuple[int, int]] = set()
    # Directories that links lead to. They come last, because a link from there may lead back.
    elsewhere: list[Path] = []
    pending, is_followed = [Path(folder)], True
    while pending:
        path = pending.pop()
        is_file = False
        try:
            status = path.stat()
            if path.is_symlink() and not is_followed:
                target, is_folder = Path(os.path.realpath(path)), stat.S_ISDIR(status.st_mode)
                is_inside = target.is_relative_to(root)
                # A target inside that has a name to be read is read under that name.
                is_new = not target.name.endswith(endings) if is_inside else path.name.endswith(endings)
                is_file = is_new and stat.S_ISREG(status.st_mode)
                if not is_inside and (is_file or is_folder):
                    if not follows_links:
                        raise InputError(
                            f"is a link that leads out of {name_of(folder)}, to {name_of(str(target))}",
                            source=name_of(str(path)),
                            hint="--follow-links, if this is expected",
                        )
                    elsewhere += [path] if is_folder else []
            elif stat.S_ISDIR(status.st_mode):
                # The entries of a directory, the first last; empty the second time.
                identity = (status.st_dev, status.st_ino)
                if identity not in visited:
                    visited.add(identity)
                    pending += sorted(path.iterdir(), reverse=True)
            else:
                is_file = stat.S_ISREG(status.st_mode)
        except OSError as error:
            # A link to nowhere, or to itself, is not a file, unless it has a name to be read.
            if (all(endings) and path.name.endswith(endings)) or not path.is_symlink():
                raise unreadable(str(path), error) from error
        if is_file and path.name.endswith(endings):
            yield str(path)
        elif is_file and skipped is not None:
            skipped.append(name_of(str(path)))
        is_followed = not pending
        if is_followed:
            pending, elsewhere = elsewhere[:1], elsewhere[1:]
