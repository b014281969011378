"""YAML to JSON at the speed that big dumps need, with rapidyaml, where the result is that of ``yaml_reference``.

What the fast reader may be given is decided line by line and by the structure of the lines; PyYAML reads the rest.
The structure is looked at in outlines (``yaml_lines.outline_of``), of which a dump has few different ones: objects of
one kind mostly differ in their values only.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import Any

import msgspec

from kpreempt.snapshot.yaml_lines import UNKNOWN, Outliner, outline_of_text

try:
    import ryml
except ImportError:
    # There are no wheels of it for musl.
    ryml = None

IS_INSTALLED = ryml is not None
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_MAX_KNOWN = 4096
# The fast reader's own limit is 64.
_MAX_DEPTH = 60


class FastReader:
    """Reads texts, and remembers the structures that it has checked. Without rapidyaml PyYAML has to read them all."""

    def __init__(self) -> None:
        self._tree: Any = ryml.Tree() if IS_INSTALLED else None
        self._known: dict[bytes, bool] = {}
        self._buffer = bytearray()
        self._outline_of = Outliner().outline_of

    def read_plain(self, text: bytes) -> bytes | None:
        """The JSON of one document, or ``None`` where PyYAML has to read it. ``text`` ends with a newline."""
        if not IS_INSTALLED:
            return None
        lines = text.split(b"\n")
        lines.pop()
        return self._to_json(text) if self._is_plain(b"\n".join(map(self._outline_of, lines)), text) else None

    def read_items(self, text: bytes, separator: bytes) -> list[msgspec.Raw | bytes]:
        """The items of a block sequence: the JSON of each, or its text where PyYAML has to read it.

        ``text`` begins with an item and ends with a newline; ``separator`` is the newline, indentation and dash with
        which every other one begins.
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
        """Whether the fast reader reads a text as PyYAML does."""
        if UNKNOWN in outline:
            longer = outline_of_text(text.split(b"\n")[:-1])
            if longer is None:
                return False
            outline = b"\n".join(longer)
        known = self._known.get(outline)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[outline] = is_plain_structure(outline.split(b"\n"))
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
        """The tree as JSON. It goes through one buffer, because rapidyaml never frees those that it makes itself."""
        while True:
            if len(self._buffer) < 3 * size:
                self._buffer = bytearray(3 * size)
            try:
                json = ryml.emit_json_in_place(self._tree, self._buffer)
            except IndexError:
                size *= 2
                continue
            return bytes(json) if json is not None else None


def is_plain_structure(outline: Iterable[bytes]) -> bool:
    """Whether the lines are block collections that every reader of YAML reads alike.

    Each line is where its indentation belongs, and no key is there twice.
    """
    structure = _Structure()
    return all(structure.takes(line) for line in outline)


class _Structure:
    """The collections that are open at a line, outermost first: the column of each, and the keys of a mapping."""

    def __init__(self) -> None:
        self._columns: list[int] = []
        # ``None`` for a sequence.
        self._keys: list[set[bytes] | None] = []
        # Whether the entry before has no value yet, so that a collection may begin.
        self._is_open = True

    def takes(self, line: bytes) -> bool:
        """Whether the line fits; it is then part of the structure."""
        rest = line.lstrip(b" ")
        column = len(line) - len(rest)
        while rest.startswith(b"- "):
            if not self._enters_sequence(column):
                return False
            column, rest = column + 2, rest[2:]
        if rest == b"=":
            self._is_open = False
            return True
        return self._enters_mapping(column, rest)

    def _enters_sequence(self, column: int) -> bool:
        self._close_to(column)
        if self._columns and self._columns[-1] == column and self._keys[-1] is None:
            self._is_open = True
            return True
        # A sequence may stand in the column of the mapping whose value it is.
        if not self._is_open or (self._columns and self._columns[-1] > column):
            return False
        return self._push(column, None)

    def _enters_mapping(self, column: int, rest: bytes) -> bool:
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

    def _close_to(self, column: int) -> None:
        """End the collections that are further in than ``column``; what was open in them ends without a value."""
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
