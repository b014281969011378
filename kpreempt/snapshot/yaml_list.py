"""The items of a YAML list, read some at a time as if each were alone.

An item that means something else when it is alone (by an alias) is no item here: the reader then falls back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.batches import TOP_LEVEL, Batch, TopLevel, batch_of_header
from kpreempt.snapshot.lines import LineCounter
from kpreempt.snapshot.sources import Content
from kpreempt.snapshot.yaml_fast import FastReader
from kpreempt.snapshot.yaml_reference import YamlError, load_documents

# How much of a list is read at a time.
_CHUNK = 2**20
_MAX_HEADER = 2**20
_ITEMS = re.compile(rb"items: *\r?\n( *)- ")
_NEXT_KEY = re.compile(rb"\n(?=[^ \n\r-])")


class ItemError(Exception):
    """An item that cannot be read alone. ``line`` is that of the file."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


class Items:
    """The items of a list: from ``begin`` to ``end`` of a text, with ``separator`` before each but the first."""

    def __init__(
        self, name: str, content: Content, begin: int, end: int, separator: bytes, top: TopLevel, lines: LineCounter
    ) -> None:
        self._name = name
        self._content = content
        self._begin = begin
        self._end = end
        self._separator = separator
        self._top = top
        self._lines = lines
        # Where items are in the part that was last asked for: errors come one after the other.
        self._offsets: list[int] = []

    def batches(self, reader: FastReader) -> Iterator[Batch]:
        """The items, in order. Raises ``ItemError`` and, for a text that is not UTF-8, ``InputError``."""
        yield batch_of_header(self._name, self._top)
        kind = self._top.kind.removesuffix("List")
        position = self._begin
        while position < self._end:
            cut = self._content.find(self._separator, position + _CHUNK, self._end)
            end = self._end if cut < 0 else cut + 1
            yield Batch(
                self._name,
                self._read(reader, position, end),
                partial(self._line_of, position, end),
                kind=kind,
                api_version=self._top.api_version if kind else "",
                share=(position - self._begin) / (self._end - self._begin),
            )
            position = end

    def _read(self, reader: FastReader, begin: int, end: int) -> list[msgspec.Raw | bytes]:
        text = self._content[begin:end]
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise InputError("is not UTF-8", source=self._name, line=self._lines.line_at(begin + error.start)) from None
        text = text.replace(b"\r\n", b"\n")
        if not text.endswith(b"\n"):
            raise ItemError("the last line does not end", self._lines.line_at(end))
        objects = reader.read_items(text, self._separator)
        for index, item in enumerate(objects):
            if isinstance(item, bytes):
                objects[index] = self._by_reference(item, begin, end, index)
        return objects

    def _by_reference(self, item: bytes, begin: int, end: int, index: int) -> bytes:
        try:
            ((_, (document,)),) = load_documents(item.decode())
        except YamlError as error:
            raise ItemError(error.problem, self._line_of(begin, end, index) + error.line - 1) from None
        except (TypeError, ValueError):
            raise ItemError("is not one item", self._line_of(begin, end, index)) from None
        return msgspec.json.encode(document)

    def _line_of(self, begin: int, end: int, index: int) -> int:
        """The line of an item by its index in the text from ``begin`` to ``end``."""
        if self._offsets[:1] != [begin]:
            self._offsets = [begin]
            while (found := self._content.find(self._separator, self._offsets[-1], end)) >= 0:
                self._offsets.append(found + 1)
        return self._lines.line_at(self._offsets[index])


def find_items(
    name: str, content: Content, begin: int, end: int, reader: FastReader, lines: LineCounter
) -> Items | None:
    """The items of the list that a document is; ``None`` where it is something else, or is not plainly written."""
    at = begin if content[begin : begin + 6] == b"items:" else content.find(b"\nitems:", begin, end) + 1
    match = _ITEMS.match(content, at, end) if at > 0 or begin == 0 else None
    if match is None:
        return None
    indentation = match.start(1)
    separator = b"\n" + match[1] + b"- "
    last = content.rfind(separator, at, end)
    following = _NEXT_KEY.search(content, max(last, indentation), end)
    items_end = following.start() + 1 if following else end
    header = content[begin:at] + content[items_end:end]
    top = _header(header, reader) if len(header) < _MAX_HEADER else None
    if top is None or not top.kind.endswith("List") or top.items is not msgspec.UNSET:
        return None
    return Items(name, content, indentation, items_end, separator, top, lines)


def _header(text: bytes, reader: FastReader) -> TopLevel | None:
    """What a list says of itself besides its items."""
    try:
        json = reader.read_plain(text.replace(b"\r\n", b"\n")) if text.endswith(b"\n") else None
        if json is None:
            ((_, document),) = load_documents(text.decode())
            json = msgspec.json.encode(document)
        return TOP_LEVEL.decode(json)
    except (YamlError, ValueError, msgspec.DecodeError):
        return None
