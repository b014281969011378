"""The regular files of a tar archive as a stream, with every header bounded.

``tarfile`` keeps a record of each entry, follows chains of headers as deep as the stack, and reads a header of any size
into memory and through a regular expression; none of that can be bounded from outside. After POSIX.1-2008 (``pax``) and
GNU tar's ``src/tar.h`` (long names, base-256 sizes).
"""

from __future__ import annotations

from collections.abc import Iterator

from kpreempt.errors import InputError
from kpreempt.snapshot.archives import Readable

_BLOCK = 512
_CHUNK = 2**16
# Of names and the like for one entry: how many headers in a row, and how long each may be.
_MAX_HEADERS = 8
_MAX_HEADER_BYTES = 2**16

_REGULAR = (b"0", b"\0", b"7")
# Links, devices, folders and pipes, which have no content whatever size they state.
_EMPTY = (b"1", b"2", b"3", b"4", b"5", b"6")
_LONG_NAME, _LONG_LINK, _GNU_SPARSE = b"L", b"K", b"S"
_PAX, _PAX_GLOBAL = (b"x", b"X"), b"g"


class TarMember:
    """A regular file of an archive; can be read until the next one is asked for. Its name is only for messages."""

    def __init__(self, name: str, size: int, stream: Readable) -> None:
        self.name = name
        self._left = size
        self._padding = -size % _BLOCK
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes. Raises ``EOFError`` where the archive ends within the file."""
        if not self._left:
            return b""
        chunk = self._stream.read(min(size, self._left))
        if not chunk:
            raise EOFError
        self._left -= len(chunk)
        return chunk

    def skip(self) -> None:
        """Read past what is left of the file. Raises ``EOFError``."""
        self._left, self._padding = self._left + self._padding, 0
        while self.read(_CHUNK):
            continue


def tar_members(stream: Readable, name: str) -> Iterator[TarMember]:
    """The regular files of the archive ``name``, in its order. Raises ``InputError``."""
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
        """The next entry, or ``None`` at the end; one that is no regular file has no name."""
        name, size = "", None
        for _ in range(_MAX_HEADERS + 1):
            block = self._read(_BLOCK)
            if not block.strip(b"\0"):
                return None
            kind, stated = block[156:157], self._size_in(block)
            if kind == _GNU_SPARSE:
                raise self._sparse()
            if kind in (_LONG_NAME, _LONG_LINK, _PAX_GLOBAL) or kind in _PAX:
                content = self._extension(stated)
                if kind == _LONG_NAME:
                    name = _text(content.partition(b"\0")[0])
                elif kind in _PAX:
                    path, replaced = self._pax(content)
                    name, size = path or name, replaced if replaced is not None else size
                continue
            name = name or _name_in(block)
            is_regular = kind in _REGULAR and not (kind == b"\0" and name.endswith("/"))
            length = 0 if kind in _EMPTY else stated if size is None else size
            return TarMember((name or "?") if is_regular else "", length, self._stream)
        raise InputError(f"an entry of the tar archive has more than {_MAX_HEADERS} headers", source=self._archive)

    def _read(self, count: int) -> bytes:
        """So many bytes, or none at the end of the stream."""
        content = b""
        while len(content) < count and (chunk := self._stream.read(count - len(content))):
            content += chunk
        if content and len(content) < count:
            raise _damaged(self._archive)
        return content

    def _size_in(self, block: bytes) -> int:
        """What the header states. Raises ``InputError`` where it is none."""
        stated = _number(block[148:156])
        # The sum is taken with blanks in its own place.
        if stated is None or stated != sum(block) - sum(block[148:156]) + 8 * ord(" "):
            raise _damaged(self._archive)
        size = _number(block[124:136])
        if size is None:
            raise _damaged(self._archive)
        return size

    def _extension(self, size: int) -> bytes:
        if size > _MAX_HEADER_BYTES:
            limit = f"{_MAX_HEADER_BYTES // 2**10} KiB"
            raise InputError(f"an entry of the tar archive has a header of more than {limit}", source=self._archive)
        content = self._read(size + -size % _BLOCK)
        if size and not content:
            raise _damaged(self._archive)
        return content[:size]

    def _pax(self, content: bytes) -> tuple[str, int | None]:
        """The name and the size that a header of ``LENGTH KEY=VALUE`` lines gives, each if it does."""
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
            "the tar archive has a sparse file, which is not read", source=self._archive, hint="tar without --sparse"
        )


def _number(field: bytes) -> int | None:
    """A number in octal digits or, with the first bit set, in base 256; ``None`` where it is neither, or below 0."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.partition(b"\0")[0].strip()
    try:
        return int(digits or b"0", 8) if digits.isdigit() or not digits else None
    except ValueError:
        return None


def _name_in(block: bytes) -> str:
    name, prefix = (field.partition(b"\0")[0] for field in (block[:100], block[345:500]))
    # GNU tar has other things where POSIX has the folders.
    is_posix = block[257:263] == b"ustar\0"
    return _text(prefix + b"/" + name if prefix and is_posix else name)


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _damaged(archive: str) -> InputError:
    return InputError("the tar archive is damaged or ends early", source=archive)
