"""YAML to JSON at the speed that big dumps need, with rapidyaml, if the result equals that of ``yaml_reference``.

Which texts the fast reader gets is decided line by line and by the structure of the lines; PyYAML reads the rest. The
structure is represented by outlines (``outline_of``), of which a dump has few different ones: objects of one kind
mostly differ only in their values.

The fast reader gets lines that every YAML reader reads alike: entries of a mapping or a list with at most one simple
scalar. Anything that YAML versions disagree on (``yes``, ``~``, ``0o17``, ``1e3``, tags, anchors, flow collections,
comments, tabs, odd escapes) is excluded. Nearly all of kubectl's output consists of simple lines. Bytes, not text, for
speed.
"""

from __future__ import annotations

import re
from itertools import compress
from typing import Any

import msgspec

try:
    import ryml
except ImportError:
    # There are no wheels for musl.
    ryml = None

IS_INSTALLED = ryml is not None
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_MAX_KNOWN = 4096
# The fast reader's own limit is 64.
_MAX_DEPTH = 60


class FastReader:
    """Reads texts, and caches the structures that it has checked. Without rapidyaml, PyYAML has to read everything."""

    def __init__(self) -> None:
        self._tree: Any = ryml.Tree() if IS_INSTALLED else None
        self._known: dict[bytes, bool] = {}
        self._buffer = bytearray()
        self._outline_of = Outliner().outline_of

    def read_plain(self, text: bytes) -> bytes | None:
        """Return the JSON of one document, or ``None`` if PyYAML has to read it. ``text`` ends with a newline."""
        if not IS_INSTALLED:
            return None
        lines = text.split(b"\n")
        lines.pop()
        return self._to_json(text) if self._is_plain(b"\n".join(map(self._outline_of, lines)), text) else None

    def read_items(self, text: bytes, separator: bytes) -> list[msgspec.Raw | bytes]:
        """Return the items of a block sequence: the JSON of each, or its text if PyYAML has to read it.

        ``text`` begins with an item and ends with a newline; ``separator`` is the newline, indentation and dash before
        every other item.
        """
        start = separator[1:]
        texts = [start + item + b"\n" for item in text[len(start) : -1].split(separator)]
        if not IS_INSTALLED:
            return list(texts)
        lines = text.split(b"\n")
        outline_of = self._outline_of
        outline_by_line = {line: outline_of(line) for line in set(lines)}
        outline = b"\n".join([outline_by_line[line] for line in lines[:-1]])
        outlines = [start + item for item in outline[len(start) :].split(separator)]
        plain = [self._is_plain(each, item) for each, item in zip(outlines, texts, strict=True)]
        json = self._to_json(text if all(plain) else b"".join(compress(texts, plain))) if any(plain) else None
        if json is None:
            return list(texts)
        items = iter(_ITEMS.decode(json))
        return [next(items) if is_plain else item for item, is_plain in zip(texts, plain, strict=True)]

    def _is_plain(self, outline: bytes, text: bytes) -> bool:
        """Return whether the fast reader reads a text like PyYAML."""
        if UNKNOWN in outline:
            longer = outline_of_text(text.split(b"\n")[:-1])
            if longer is None:
                return False
            outline = b"\n".join(longer)
        known = self._known.get(outline)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            # Block collections that every YAML reader reads alike: each line has the indentation that it should, and no
            # key is repeated.
            known = self._known[outline] = all(map(_Structure().takes, outline.split(b"\n")))
        return known

    def _to_json(self, text: bytes) -> bytes | None:
        self._tree.clear()
        self._tree.clear_arena()
        try:
            ryml.parse_in_arena(text, self._tree)
            return self._emitted(len(text))
        except (ryml.ExceptionBasic, RuntimeError):
            return None

    def _emitted(self, size: int) -> bytes | None:
        """Return the tree as JSON, using a single buffer, because rapidyaml never frees its own."""
        while True:
            if len(self._buffer) < 3 * size:
                self._buffer = bytearray(3 * size)
            try:
                json = ryml.emit_json_in_place(self._tree, self._buffer)
            except IndexError:
                size *= 2
                continue
            return bytes(json) if json is not None else None


class _Structure:
    """The collections that are open at a line, outermost first: the column of each, and the keys of a mapping."""

    def __init__(self) -> None:
        self._columns: list[int] = []
        # ``None`` for a sequence.
        self._keys: list[set[bytes] | None] = []
        # Whether the previous entry has no value yet, so that a collection may begin.
        self._is_open = True

    def takes(self, line: bytes) -> bool:
        """Return whether the line fits; it is then part of the structure."""
        rest = line.lstrip(b" ")
        column = len(line) - len(rest)
        while rest.startswith(b"- "):
            if not self._enters_sequence(column):
                return False
            column, rest = column + 2, rest[2:]
        if rest == b"=":
            self._is_open = False
            return True
        key, has_value = (rest[:-2], True) if rest.endswith(b":=") else (rest[:-1], False)
        self._close_to(column)
        if self._columns and self._columns[-1] == column and self._keys[-1] is None:
            self._pop()
        keys = self._keys[-1] if self._columns and self._columns[-1] == column else None
        if keys is None:
            keys = set()
            if not self._is_open or not self._push(column, keys):
                return False
        if key[:1] in (b"'", b'"'):
            key = key[1:-1]
        if key in keys:
            return False
        keys.add(key)
        self._is_open = not has_value
        return True

    def _enters_sequence(self, column: int) -> bool:
        self._close_to(column)
        if self._columns and self._columns[-1] == column and self._keys[-1] is None:
            self._is_open = True
            return True
        # A sequence may be in the column of the mapping whose value it is.
        if not self._is_open or (self._columns and self._columns[-1] > column):
            return False
        return self._push(column, None)

    def _close_to(self, column: int) -> None:
        """Close the collections beyond ``column``; entries without a value in them stay without one."""
        while self._columns and self._columns[-1] > column:
            self._pop()

    def _pop(self) -> None:
        self._columns.pop()
        self._keys.pop()
        self._is_open = False

    def _push(self, column: int, keys: set[bytes] | None) -> bool:
        self._columns.append(column)
        self._keys.append(keys)
        return len(self._columns) <= _MAX_DEPTH


# Line breaks, marks and non-ASCII control characters on which readers differ.
_ODD_UTF8 = re.compile(rb"\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]|\xf4\x8f\xbf")

_BOOL_OR_NULL = rb"[yYnN]|[yY]es|YES|[nN]o|NO|[oO]n|ON|[oO]ff|OFF|True|TRUE|False|FALSE|Null|NULL"
_NOT_FINITE = rb"[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN]"
_PART = rb"[^\x00-\x20\x7f:]"
# A colon within a word is followed by more of the word, and a word does not begin a comment.
_REST_OF_WORD = _PART + rb"*+(?::++" + _PART + rb"++)*+"
_WORD = rb"(?:[^\x00-\x20\x7f:#]" + _REST_OF_WORD + rb"|:++" + _PART + rb"++(?::++" + _PART + rb"++)*+)"
_REST = _REST_OF_WORD + rb"(?: ++" + _WORD + rb")*+"

_PLAIN = rb"(?!-{0,2}(?:" + _BOOL_OR_NULL + rb"|" + _NOT_FINITE + rb")$)(?:[A-Za-z_/$(]|--?[A-Za-z])" + _REST
_NUMBER = rb"(?:0|-?[1-9][0-9]{0,17}+|(?:0|[1-9][0-9]{0,8}+)\.[0-9]{1,6}+)(?=$)"
# Begins with digits but is not a number in any notation: 500Gi, 10.0.0.1, a UID, a hash.
_DIGITS_FIRST = (
    rb"(?!0[xXbBoO][0-9a-fA-F.]*+(?:[pP][-+]?[0-9]*+)?$|[0-9.]*+[eE][-+]?[0-9]*+$|[^_ ]*+_)"
    rb"(?:[0-9][0-9.]*+[A-Za-z]|[0-9a-f]++-[0-9a-f]++-|[0-9]++\.[0-9]++\.[0-9])" + _REST
)
_SINGLE_QUOTED = rb"'[^'\x00-\x1f\x7f]*+(?:''[^'\x00-\x1f\x7f]*+)*+'"
_DOUBLE_QUOTED = rb'"[^"\\\x00-\x1f\x7f]*+(?:\\["\\nt][^"\\\x00-\x1f\x7f]*+)*+"'
_SCALAR = b"|".join((_PLAIN, _DOUBLE_QUOTED, _NUMBER, _DIGITS_FIRST, rb"\{\}|\[\]", _SINGLE_QUOTED))
_KEY = (
    # The fast reader takes even a quoted key for a number that is not finite.
    rb"(?!['\"]?[-+]?(?:" + _NOT_FINITE + rb")['\"]?:(?: |$)|(?:" + _BOOL_OR_NULL + rb"|true|false|null):(?: |$))"
    rb"(?:[A-Za-z_/$][\w./$@+~-]*+(?::++[\w./$@+~-]++)*+|\.|'[^'\x00-\x1f\x7f]*+'|\"[^\"\\\x00-\x1f\x7f]*+\")"
)
_ENTRY = rb"(?P<entry> *+(?:- )*+" + _KEY + rb":)"
_LINE = re.compile(_ENTRY + rb"(?: (?:" + _SCALAR + rb"))?|( *+(?:- )++)(?:" + _SCALAR + rb")")
_ENTRY_ALONE = re.compile(_ENTRY)
_VALUE = re.compile(rb" (?:" + _SCALAR + rb")")
_MAX_ENTRIES = 100_000
_PREFIX = re.compile(rb" *+(?:- )*+")
_LITERAL = re.compile(_ENTRY + rb" \|[-+]?")
_OPEN_QUOTE = re.compile(_ENTRY + rb" '(?:[^'\x00-\x1f\x7f]|'')*+")
_MORE_QUOTED = re.compile(rb" *+(?:[^'\x00-\x1f\x7f]|'')*+(?P<end>')?")
_MORE_PLAIN = re.compile(rb" ++(?![&*!|>'\"%@`{}\[\],?-])" + _WORD + rb"(?: ++" + _WORD + rb")*+")
_LITERAL_TEXT = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*+")

UNKNOWN = b"\x00"


class Outliner:
    """Computes outlines of lines, caching the beginnings of lines, of which a dump has few."""

    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}

    def outline_of(self, line: bytes) -> bytes:
        """Return what a line contributes to the structure: indentation, dashes, key, and ``=`` if it has a value.

        A line that is not simple has its indentation and dashes, and ``UNKNOWN``.
        """
        end = line.find(b": ") + 1
        if not end or not line.isascii():
            return _outline_of(line)
        entry = line[:end]
        outline = self._entries.get(entry)
        if outline is None:
            outline = entry + b"=" if _ENTRY_ALONE.fullmatch(entry) else b""
            if len(self._entries) < _MAX_ENTRIES:
                self._entries[entry] = outline
        return outline if outline and _VALUE.fullmatch(line, end) else _outline_of(line)


def _outline_of(line: bytes) -> bytes:
    match = _LINE.fullmatch(line)
    if match is None or (not line.isascii() and _ODD_UTF8.search(line)):
        prefix = _PREFIX.match(line)
        return (prefix[0] if prefix else b"") + UNKNOWN
    end = match.end(1)
    if end < 0:
        end = match.end(2)
    return line if end == len(line) else line[:end] + b"="


def outline_of_text(lines: list[bytes]) -> list[bytes] | None:
    """Return the outline of lines of which some belong to longer scalars, or ``None`` if a line is still not simple.

    Longer scalars are literal ones (``|``), and folded single-quoted and plain ones.
    """
    outline = []
    at = 0
    while at < len(lines):
        line = lines[at]
        simple = _outline_of(line)
        if simple.endswith(UNKNOWN):
            match = _LITERAL.fullmatch(line) or _OPEN_QUOTE.fullmatch(line)
            if match is None or _is_odd(line):
                return None
            simple = match["entry"] + b"="
            end = (_end_of_quoted if line[match.end("entry") + 1] == _QUOTE else _end_of_literal)(lines, at)
        else:
            end = _end_of_plain(lines, at, simple)
        if end is None:
            return None
        outline.append(simple)
        at = end
    return outline


_QUOTE = ord("'")


def _key_column(line: bytes) -> int:
    prefix = _PREFIX.match(line)
    return prefix.end() if prefix else 0


def _indentation(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" "))


def _is_odd(line: bytes) -> bool:
    """Return whether a line of a longer scalar contains anything that readers treat differently."""
    return line.endswith(b" ") or (not line.isascii() and _ODD_UTF8.search(line) is not None)


def _end_of_literal(lines: list[bytes], start: int) -> int | None:
    """Return the end of the literal scalar that begins on line ``start``; its first line determines the indentation."""
    at = start + 1
    indentation = _indentation(lines[at]) if at < len(lines) else 0
    if indentation <= _key_column(lines[start]) or not lines[at].strip():
        return None
    while at < len(lines) and (not lines[at] or _indentation(lines[at]) >= indentation):
        if not _LITERAL_TEXT.fullmatch(lines[at]) or _is_odd(lines[at]) or lines[at].lstrip(b" ").startswith(b"\t"):
            return None
        at += 1
    # A less indented line must be the next entry, not a part of this scalar that was moved out.
    is_next = at == len(lines) or (lines[at].strip() and _indentation(lines[at]) <= _key_column(lines[start]))
    return at if is_next else None


def _end_of_quoted(lines: list[bytes], start: int) -> int | None:
    """Return the end of a single-quoted scalar that begins on line ``start`` and does not end there."""
    column = _key_column(lines[start])
    for at in range(start + 1, len(lines)):
        line = lines[at]
        match = _MORE_QUOTED.fullmatch(line)
        if match is None or _is_odd(line) or (line and _indentation(line) <= column):
            return None
        if match["end"]:
            return at + 1
    return None


def _end_of_plain(lines: list[bytes], start: int, outline: bytes) -> int | None:
    """Return the end of a plain scalar that begins on line ``start``: there, or after continuation lines."""
    at = start + 1
    column = _key_column(lines[start])
    while at < len(lines) and _outline_of(lines[at]).endswith(UNKNOWN) and _MORE_PLAIN.fullmatch(lines[at]):
        first = lines[start][len(outline) - 1 :].lstrip(b" ")[:1]
        if not outline.endswith(b"=") or first in (b"'", b'"', b"{", b"[") or _is_odd(lines[at]):
            return None
        if _indentation(lines[at]) <= column:
            return None
        at += 1
    return at
