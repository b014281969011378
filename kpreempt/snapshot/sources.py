"""Where the bytes come from: files, folders, standard input; packed or not, known by their content only."""

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
# Larger files are mapped, so that they do not count as the process's own memory.
_MAP_FROM = 4 * 2**20
# What is unpacked stays in memory up to this, and goes to a temporary file beyond.
_MAX_IN_MEMORY = 64 * 2**20
_CHUNK = 2**20

_NO_TEXT = {
    b"PK\x03\x04": ("is a zip archive", "unzip it first"),
    b"BZh": ("is packed with bzip2", "bunzip2 it first"),
    b"\xfd7zXZ": ("is packed with xz", "unxz it first"),
}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Files whose names end like this are expected to hold objects.
_OF_OBJECTS = re.compile(r"\.(?:ya?ml|json)(?:\.(?:gz|zst))*\Z", re.IGNORECASE)
# At the beginning of a text in UTF-16 without a byte order mark every second byte is a NUL.
_UTF_16_PREFIX = 32

Content = bytes | mmap.mmap
_STEP = 2**20


class Source(msgspec.Struct, frozen=True):
    """One file's worth of text in UTF-8; ``content`` is ``None`` if it is not text.

    ``is_named`` distinguishes a file that the user named from one that was found in a folder or archive. ``error`` is
    why it could not be read.
    """

    name: str
    content: Content | None
    is_named: bool
    error: InputError | None = None

    @property
    def is_of_objects(self) -> bool:
        """Whether it is expected to hold objects: the user named it, or its name ends like that of a manifest."""
        return self.is_named or _OF_OBJECTS.search(self.name) is not None


def read_sources(
    path: str,
    stdin: BinaryIO | None,
    input_limits: InputLimits | None = None,
    *,
    endings: tuple[str, ...] = (),
    skipped: list[str] | None = None,
) -> Iterator[Source]:
    """The files that ``path`` means, each of them valid until the next is asked for.

    Those that cannot be read, and the rest of an archive that ends early, have an ``error`` instead of content. Raises
    ``InputError`` if there is no such path, or if the inputs are too large.

    Of a folder only files with one of the ``endings`` are read, if there are any; others go to ``skipped``.
    ``input_limits`` is what they share with other inputs.
    """
    input_limits = input_limits or InputLimits()
    if path == STDIN:
        if stdin is None:
            raise InputError("it is closed", source=STDIN_NAME)
        yield from _read_stream(stdin, STDIN_NAME, input_limits, is_named=True)
    elif not path:
        # To the system it would be the current folder; it is rather a variable that is not set.
        raise InputError("the path is empty", hint="a file, a folder, or - for standard input")
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
    """The texts in what is in memory already, as those of a file of that name. Raises ``InputError``."""
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
    """The texts in a stream: itself, or what is packed in it."""
    try:
        for member in unpacked(InputStream(stream, name, input_limits), input_limits):
            yield from _read_text(member.stream, stream, is_named=is_named and not member.is_member)
    except InputError as error:
        if input_limits.is_spent:
            raise
        yield Source(error.source or name, None, is_named, error)


def _read_text(inner: InputStream, outer: BinaryIO, *, is_named: bool) -> Iterator[Source]:
    """The text of a stream that is not packed, which may be a part of the ``outer`` one."""
    found = Source(inner.name, None, is_named)
    head = inner.peek()
    encoding = _utf_16(head)
    unless_packed = ("is not text: it holds a NUL" if b"\0" in head else "", "")
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
            problem = f"is not {encoding.upper()}, as which it begins"
            yield msgspec.structs.replace(found, error=InputError(problem, source=inner.name))
        else:
            yield msgspec.structs.replace(found, content=text)
    finally:
        if isinstance(content, mmap.mmap):
            # An exception on its way up may still look at a part; the file is unmapped with the last of these.
            with suppress(BufferError):
                content.close()


def _utf_16(head: bytes) -> str:
    """The encoding of a text that begins like one in UTF-16, with or without a byte order mark; else empty."""
    for mark, nul_at, encoding in ((b"\xff\xfe", 1, "utf-16-le"), (b"\xfe\xff", 0, "utf-16-be")):
        if head.startswith(mark):
            return encoding
        seen = head[:_UTF_16_PREFIX]
        if len(seen) > 1 and not any(seen[nul_at::2]) and all(seen[1 - nul_at :: 2]):
            return encoding
    return ""


def _mapped(stream: IO[bytes], seen: int) -> mmap.mmap | None:
    """The file mapped into memory, or ``None`` where it is small, no regular file, or more than ``seen`` was read."""
    try:
        status = os.fstat(stream.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size >= _MAP_FROM and stream.tell() == seen:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, AttributeError):
        return None
    return None


def _gathered(stream: InputStream) -> Content:
    """All that is left in a stream: in memory, or where that is much in a mapped file that has no name."""
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
            f"cannot be unpacked into a temporary file: {reason[:1].lower()}{reason[1:]}",
            source=stream.name,
            hint="TMPDIR=DIR, a folder with room for it; or unpack it first",
        ) from error


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


def files_below(
    folder: str, endings: tuple[str, ...], skipped: list[str] | None, *, follows_links: bool
) -> Iterator[str]:
    """The files below a folder in the order of their names, each folder once. Raises ``InputError``.

    Where there are ``endings``, files with other ones go to ``skipped``. A link to what is read under its own name
    is passed over; one that leads out of the folder is refused, or with ``follows_links`` followed.
    """
    endings = endings or ("",)
    root = Path(os.path.realpath(folder))
    visited: set[tuple[int, int]] = set()
    # Folders that links lead to. They come last, for a link from there may lead back.
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
                # What has the name of one that is read, and is inside, is read under that.
                is_new = not target.name.endswith(endings) if is_inside else path.name.endswith(endings)
                is_file = is_new and stat.S_ISREG(status.st_mode)
                if not is_inside and (is_file or is_folder):
                    if not follows_links:
                        raise InputError(
                            f"is a link that leads out of {name_of(folder)}, to {name_of(str(target))}",
                            source=name_of(str(path)),
                            hint="--follow-links, if it is what you expect",
                        )
                    elsewhere += [path] if is_folder else []
            elif stat.S_ISDIR(status.st_mode):
                # What is in a folder, the first last; nothing the second time.
                identity = (status.st_dev, status.st_ino)
                if identity not in visited:
                    visited.add(identity)
                    pending += sorted(path.iterdir(), reverse=True)
            else:
                is_file = stat.S_ISREG(status.st_mode)
        except OSError as error:
            # A link to nowhere, or to itself, is not a file, unless it has the name of one that is read.
            if (all(endings) and path.name.endswith(endings)) or not path.is_symlink():
                raise unreadable(str(path), error) from error
        if is_file and path.name.endswith(endings):
            yield str(path)
        elif is_file and skipped is not None:
            skipped.append(name_of(str(path)))
        is_followed = not pending
        if is_followed:
            pending, elsewhere = elsewhere[:1], elsewhere[1:]
