"""YAML to JSON at the speed that big dumps need, with rapidyaml, where the result is that of ``yaml_reference``.

What the fast reader may be given is decided line by line and by the structure of the lines; PyYAML reads the rest.
"""

from __future__ import annotations

from itertools import compress

import msgspec
import ryml

from kpreempt.snapshot.yaml_lines import UNKNOWN, Outliner, outline_of_text
from kpreempt.snapshot.yaml_outline import is_plain_structure

_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_MAX_KNOWN = 4096


class FastReader:
    """Reads texts, and remembers the structures that it has checked."""

    def __init__(self) -> None:
        self._tree = ryml.Tree()
        self._known: dict[bytes, bool] = {}
        self._buffer = bytearray()
        self._outline_of = Outliner().outline_of

    def read_plain(self, text: bytes) -> bytes | None:
        """The JSON of one document, or ``None`` where PyYAML has to read it. ``text`` ends with a newline."""
        lines = text.split(b"\n")
        lines.pop()
        return self._to_json(text) if self._is_plain(b"\n".join(map(self._outline_of, lines)), text) else None

    def read_items(self, text: bytes, separator: bytes) -> list[msgspec.Raw | bytes]:
        """The items of a block sequence: the JSON of each, or its text where PyYAML has to read it.

        ``text`` begins with an item and ends with a newline; ``separator`` is the newline, indentation and dash with
        which every other one begins.
        """
        lines = text.split(b"\n")
        outline_of = self._outline_of
        outline_by_line = {line: outline_of(line) for line in set(lines)}
        outline = b"\n".join([outline_by_line[line] for line in lines[:-1]])
        start = separator[1:]
        texts = [start + item + b"\n" for item in text[len(start) : -1].split(separator)]
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
