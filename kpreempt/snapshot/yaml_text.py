"""YAML texts to objects: documents and the items of lists are split, so that no big dump is read in one piece.

Plain parts go to the fast reader, the rest to PyYAML, item by item if a list has one entry after another. If an item
means something else on its own (because of an alias), the document is read in one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, partial

import msgspec
import yaml

from kpreempt.errors import InputError
from kpreempt.snapshot.batches import TOP_LEVEL, Batch, ReadsWithoutKind, TopLevel, batch_of_header, batches_of_value
from kpreempt.snapshot.sources import BYTE_ORDER_MARK, Content, LineCounter
from kpreempt.snapshot.yaml_fast import FastReader
from kpreempt.snapshot.yaml_reference import YamlError, load_documents

# A document up to this size is read again in one piece if its items cannot be read one by one.
_SMALL = 4 * 2**20

_TEMPLATE = re.compile(r"\{\{.*\}\}")
# kubectl's mark between documents.
_MARK = re.compile(rb"---[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)")
_NOTHING = re.compile(rb"(?:[ \r]*(?:#[^\n]*)?(?:\n|\Z))*+\Z")
# How much of a list is read at a time.
_CHUNK = 2**20
_MAX_HEADER = 2**20
_ITEMS = re.compile(rb"items: *\r?\n( *)- ")
_NEXT_KEY = re.compile(rb"\n(?=[^ \n\r-])")


def yaml_batches(name: str, content: Content, start: int, without_kind: ReadsWithoutKind) -> Iterator[Batch]:
    """Yield the objects of the YAML documents from ``start`` on. Raises ``InputError``."""
    reader, lines = FastReader(), LineCounter(content)
    for begin, end in _documents(content, start):
        yield from _Document(name, content, begin, end, lines, without_kind).batches(reader)


def _documents(content: Content, start: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the documents between ``---`` lines.

    If a document has directives, an end mark or anything else on the line of its mark, the rest is one piece.
    """
    position = start
    while position < len(content):
        position += _mark_length(content, position)
        mark = _MARK.match(content, position)
        begin = mark.end() if mark else position
        begin += _mark_length(content, begin)
        following = content.find(b"\n---", max(begin - 1, 0))
        end = len(content) if following < 0 else following + 1
        end_mark = content.find(b"\n...", max(begin - 1, 0), end)
        is_odd = content[begin : begin + 1] == b"%" or content[begin : begin + 3] == b"..." or end_mark >= 0
        if is_odd or (following >= 0 and not _MARK.match(content, end)):
            yield position, len(content)
            return
        yield begin, end
        position = end


def _mark_length(content: Content, position: int) -> int:
    """Return the length of a byte order mark; files that begin with one may have been concatenated."""
    return len(BYTE_ORDER_MARK) if content[position : position + 3] == BYTE_ORDER_MARK else 0


class _Document:
    """One document, or several that are better read in one piece."""

    def __init__(
        self,
        name: str,
        content: Content,
        begin: int,
        end: int,
        lines: LineCounter,
        without_kind: ReadsWithoutKind,
    ) -> None:
        self._name = name
        self._content = content
        self._begin = begin
        self._end = end
        self._lines = lines
        self._without_kind = without_kind

    def batches(self, reader: FastReader) -> Iterator[Batch]:
        """Yield the document's objects. Raises ``InputError``."""
        items = find_items(self._name, self._content, self._begin, self._end, reader, self._lines)
        if items is None:
            yield from self._in_one_piece(reader)
            return
        done = 0
        try:
            for batch in items.batches(reader):
                yield batch
                done += len(batch.objects)
        except ItemError as error:
            # An alias can refer to an anchor in another item. A big text that is simply invalid is not read twice.
            if self._end - self._begin > _SMALL and "alias" not in error.problem:
                raise self._error(error.problem, error.line) from None
            yield from self._by_reference(done)

    def _in_one_piece(self, reader: FastReader) -> Iterator[Batch]:
        text = self._text().encode().replace(b"\r\n", b"\n")
        if _NOTHING.match(text):
            return
        json = reader.read_plain(text) if text.endswith(b"\n") else None
        if json is None:
            yield from self._by_reference(0)
        else:
            first = re.search(rb"^[^#\n]", text, re.MULTILINE)
            yield from self._batches_of(json, self._first_line() + text.count(b"\n", 0, first.start() if first else 0))

    def _by_reference(self, done: int) -> Iterator[Batch]:
        """Yield the objects after the first ``done``, reading the document in one piece with PyYAML."""
        first = self._first_line() - 1
        try:
            for line, document in load_documents(self._text()):
                if document is None:
                    continue
                for batch in self._batches_of(msgspec.json.encode(document), first + line):
                    skipped = min(done, len(batch.objects))
                    done -= skipped
                    objects, line_of = batch.objects[skipped:], batch.line_of
                    yield msgspec.structs.replace(
                        batch, objects=objects, line_of=lambda at, of=line_of, by=skipped: of(at + by)
                    )
        except YamlError as error:
            raise self._error(error.problem, first + error.line) from None

    def _batches_of(self, json: bytes, line: int) -> Iterator[Batch]:
        line_of_item = partial(self._line_of_item, line)
        return batches_of_value(self._name, json, lambda: line, line_of_item, self._without_kind)

    def _line_of_item(self, line: int, _: TopLevel, index: int) -> int:
        """Return the line of an item of the list that begins on ``line``."""
        lines = self._item_lines.get(line, [])
        return lines[index] if index < len(lines) else line

    @cached_property
    def _item_lines(self) -> dict[int, list[int]]:
        """Return the lines of the items of each list, by the line on which it begins; reads the text once more."""
        first = self._first_line()
        found = {}
        for node in yaml.compose_all(self._text(), Loader=yaml.CSafeLoader):
            for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
                if key.value == "items" and isinstance(value, yaml.SequenceNode):
                    found[first + node.start_mark.line] = [first + each.start_mark.line for each in value.value]
        return found

    def _first_line(self) -> int:
        return self._lines.line_at(self._begin)

    def _text(self) -> str:
        return decode_text(self._name, self._content, self._begin, self._end).replace("\n\ufeff", "\n")

    def _error(self, problem: str, line: int) -> InputError:
        """Build the error for text that violates YAML's grammar or kubectl's rules; detects unrendered templates."""
        if _TEMPLATE.search(self._text()):
            hint = "use the output of helm template CHART"
            return InputError("is a template that was not rendered", source=self._name, line=line, hint=hint)
        return InputError(problem, source=self._name, line=line)


def decode_text(name: str, content: Content, begin: int, end: int) -> str:
    """Decode a part of a text. Raises ``InputError`` if it is not UTF-8."""
    try:
        return content[begin:end].decode()
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8", source=name, line=LineCounter(content).line_at(begin + error.start)) from None


class ItemError(YamlError):
    """An item that cannot be read on its own. ``line`` counts within the file."""


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
        # The lines of items in the part that was last requested: errors come one after another.
        self._offsets: list[int] = []

    def batches(self, reader: FastReader) -> Iterator[Batch]:
        """Yield the items, in order. Raises ``ItemError`` and, for text that is not UTF-8, ``InputError``."""
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
        decode_text(self._name, self._content, begin, end)
        text = self._content[begin:end].replace(b"\r\n", b"\n")
        if not text.endswith(b"\n"):
            raise ItemError("the last line has no end", self._lines.line_at(end))
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
        """Return the line of an item by its index in the text from ``begin`` to ``end``."""
        if self._offsets[:1] != [begin]:
            self._offsets = [begin]
            while (found := self._content.find(self._separator, self._offsets[-1], end)) >= 0:
                self._offsets.append(found + 1)
        return self._lines.line_at(self._offsets[index])


def find_items(
    name: str, content: Content, begin: int, end: int, reader: FastReader, lines: LineCounter
) -> Items | None:
    """Find the items of the list that a document is; ``None`` if it is something else, or not written plainly."""
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
    if top is None or not top.kind or top.items is not msgspec.UNSET:
        return None
    return Items(name, content, indentation, items_end, separator, top, lines)


def _header(text: bytes, reader: FastReader) -> TopLevel | None:
    """Return a list's statements about itself, without its items."""
    try:
        json = reader.read_plain(text.replace(b"\r\n", b"\n")) if text.endswith(b"\n") else None
        if json is None:
            ((_, document),) = load_documents(text.decode())
            json = msgspec.json.encode(document)
        return TOP_LEVEL.decode(json)
    except (YamlError, ValueError, msgspec.DecodeError):
        return None
