"""A source's text to objects. The beginning of the text decides between JSON and YAML; this is the reader for JSON.

JSON is one value, several values, or one per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.archives import check_density
from kpreempt.snapshot.batches import (
    INCOMPLETE,
    TOP_LEVEL,
    Batch,
    ReadsWithoutKind,
    TopLevel,
    WithoutKind,
    batches_of_value,
)
from kpreempt.snapshot.sources import Content, LineCounter, Source

_JSON_START = re.compile(rb'\{\s*["}]|\[')
# What may precede a document: document marks, comments and white space.
_LEAD = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t\r\n]++|---(?=[ \t\r\n])|#[^\n]*+)*+")
# Up to this size, a text that begins like JSON but is not is tried as YAML, which includes JSON.
_SMALL = 4 * 2**20
# Objects in these may be quotations.
_LOGS_AND_PAGES = re.compile(r"\.(?:log|html?|md)(?:\.(?:gz|zst|[0-9]+))*\Z", re.IGNORECASE)
_PREFIX_BYTES = 2**16
_OBJECT_SIGNS = re.compile(
    rb"""^(?:\xef\xbb\xbf)?[ ]*+(?:[-?][ ]+)?["']?(?:apiVersion|serverVersion)["']?[ ]*:"""
    rb"""|\A(?:\xef\xbb\xbf)?\s*[\[{][^\0]*"(?:apiVersion|serverVersion)\"""",
    re.MULTILINE,
)
_OBJECT_START = re.compile(rb"""[\[{]|["']?(?:apiVersion|kind|items|metadata)["']?[ ]*:""")
_SPACE = re.compile(rb"[ \t\r\n]*")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_AT_BYTE = re.compile(r" \(byte (\d+)\)")
_NOT_JSON = "is not JSON: "
# ``kubectl cluster-info dump`` prints the logs of pods between its objects.
_LOGS = re.compile(rb"==== START logs [^\n]*\n(?:(?!==== END logs )[^\n]*\n)*+==== END logs [^\n]*\n?")
_SKIPPER = msgspec.json.Decoder(msgspec.Raw)


def read_batches(source: Source, without_kind: WithoutKind) -> Iterator[Batch]:
    """Yield the objects of a source; ``without_kind`` handles values that have no kind.

    Files in a directory or archive that are not named like manifests are read only if they look like ``kubectl``'s
    output. Raises ``InputError``.
    """
    if source.error is not None:
        raise source.error
    content = source.content
    if content is None:
        return
    check_density(content, source.name)
    of_this_file = partial(without_kind, is_named=source.is_named)
    if source.is_of_objects:
        yield from _documents(source.name, content, of_this_file)
    elif _OBJECT_SIGNS.search(content[:_PREFIX_BYTES]):
        try:
            yield from _documents(source.name, content, of_this_file)
        except InputError:
            begins = _OBJECT_START.match(content, _after_lead(content, 0))
            if begins and not _LOGS_AND_PAGES.search(source.name):
                raise


def _documents(name: str, content: Content, without_kind: ReadsWithoutKind) -> Iterator[Batch]:
    """Yield the objects of all documents; each document is JSON or YAML."""
    position = 0
    while position < len(content):
        start = _after_lead(content, position)
        if not _JSON_START.match(content, start):
            break
        following = len(content)
        documents = json_batches(name, content, start, without_kind)
        if len(content) <= _SMALL:
            try:
                documents = iter(list(documents))
            except InputError as error:
                if not error.problem.startswith(_NOT_JSON) or not _is_yaml(content, position):
                    raise
                break
        for each in documents:
            if isinstance(each, int):
                following = each
            else:
                yield each
        position = following
    if position < len(content):
        from kpreempt.snapshot.yaml_text import yaml_batches  # noqa: PLC0415 - PyYAML and rapidyaml take a while

        yield from yaml_batches(name, content, position, without_kind)


def _after_lead(content: Content, position: int) -> int:
    lead = _LEAD.match(content, position)
    return lead.end() if lead else position


def _is_yaml(content: Content, start: int) -> bool:
    """Return whether a text that is not JSON is YAML because of a tag, a comment or an extra comma."""
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        # Any document may begin with a byte order mark.
        text = content[start:].decode("utf-8-sig").replace("\n\ufeff", "\n")
        return bool(list(load_documents(text)))
    except (YamlError, UnicodeDecodeError):
        return False


def json_batches(name: str, content: Content, start: int, without_kind: ReadsWithoutKind) -> Iterator[Batch | int]:
    """Yield the objects of the JSON values from ``start`` on. Raises ``InputError``.

    If a ``---`` indicates another document, its offset comes last.
    """
    text = _JsonText(name, content)
    position = text.after_space(start)
    while position < len(content):
        if content[position : position + 3] == b"---":
            yield position
            return
        if logs := _LOGS.match(content, position):
            position = text.after_space(logs.end())
            continue
        end, top = text.first_value(position)
        yield from batches_of_value(
            name,
            text.view[position:end] if top is None else top,
            partial(text.line_at, position),
            _ItemLines(text, position).line_of,
            without_kind,
        )
        position = text.after_space(end)


class _JsonText:
    """A text with JSON values."""

    def __init__(self, name: str, content: Content) -> None:
        self.content = content
        self.view = memoryview(content)
        self.line_at = LineCounter(content).line_at
        self._name = name

    def after_space(self, position: int) -> int:
        """Return the next position of anything other than white space."""
        match = _SPACE.match(self.content, position)
        return match.end() if match else position

    def first_value(self, position: int) -> tuple[int, TopLevel | None]:
        """Return the end of the value at ``position``, and the value itself if it is a list that extends to the end.

        A big dump is such a list, and is then parsed only once. Raises ``InputError``.
        """
        top = None
        try:
            try:
                top = TOP_LEVEL.decode(self.view[position:])
            except (msgspec.ValidationError, UnicodeDecodeError):
                _SKIPPER.decode(self.view[position:])
        except msgspec.DecodeError as error:
            return self._end_or_error(error, position), None
        except RecursionError:
            raise self._error("is nested too deeply", position) from None
        return len(self.content), top if top is not None and top.is_list else None

    def _end_or_error(self, error: msgspec.DecodeError, position: int) -> int:
        message = str(error)
        trailing = _TRAILING.search(message)
        if trailing:
            # The reader has already read one byte of the next value when it reports this.
            return position + int(trailing[1]) - 1
        if "truncated" in message:
            raise self._error("ends in the middle of a JSON value", len(self.content), INCOMPLETE) from None
        at = _AT_BYTE.search(message)
        problem = _AT_BYTE.sub("", message.removeprefix("JSON is malformed: "))
        raise self._error(f"{_NOT_JSON}{problem}", position + int(at[1]) if at else position) from None

    def _error(self, problem: str, offset: int, hint: str = "") -> InputError:
        return InputError(problem, source=self._name, line=self.line_at(offset), hint=hint)


class _ItemLines:
    """The lines of the items of a list, found by scanning their texts in order."""

    def __init__(self, text: _JsonText, start: int) -> None:
        self._text = text
        self._start = start
        self._next = 0
        self._position = start

    def line_of(self, top: TopLevel, index: int) -> int:
        """Return the line of an item; scanning forward is fast, going back is not."""
        items = top.items or []
        if index < self._next:
            self._next, self._position = 0, self._start
        for item in items[self._next : index]:
            content = bytes(item)
            self._position = self._text.content.find(content, self._position) + len(content)
        self._next = index
        return self._text.line_at(self._text.content.find(bytes(items[index]), self._position))
