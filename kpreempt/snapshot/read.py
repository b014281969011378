"""A source's text to objects. Which reader it is for, JSON or YAML, is known by its beginning; here is that for JSON.

JSON is one value, several after each other, or one a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.archives import check_density
from kpreempt.snapshot.batches import TOP_LEVEL, Batch, TopLevel, batches_of_value
from kpreempt.snapshot.sources import Content, LineCounter, Source

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_JSON_START = re.compile(rb'\s*(?:\{\s*["}]|\[)')
_LOOKED_AT = 2**16
# Up to this size a text that is no JSON is tried as YAML.
_SMALL = 4 * 2**20
_OBJECT_SIGNS = re.compile(
    rb'^(?:- | {0,4})(?:apiVersion|serverVersion):|\A\s*[\[{][^\0]*"(?:apiVersion|serverVersion)"', re.MULTILINE
)
_SPACE = re.compile(rb"[ \t\r\n]*")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_AT_BYTE = re.compile(r" \(byte (\d+)\)")
# Between its objects ``kubectl cluster-info dump`` prints the logs of pods.
_LOGS = re.compile(rb"==== START logs [^\n]*\n(?:(?!==== END logs )[^\n]*\n)*+==== END logs [^\n]*\n?")
_SKIPPER = msgspec.json.Decoder(msgspec.Raw)


def read_batches(source: Source) -> Iterator[Batch]:
    """The objects of a source. Nothing comes from a found file that holds no objects. Raises ``InputError``."""
    content = source.content
    if content is None or (not source.is_named and not _OBJECT_SIGNS.search(content[:_LOOKED_AT])):
        return
    check_density(content, source.name)
    start: int | None = len(_BYTE_ORDER_MARK) if content[:3] == _BYTE_ORDER_MARK else 0
    if _JSON_START.match(content, start or 0) and not _is_flow_yaml(content):
        position, start = start or 0, None
        for each in json_batches(source.name, content, position, is_named=source.is_named):
            if isinstance(each, int):
                start = each
            else:
                yield each
    if start is not None:
        from kpreempt.snapshot.yaml_text import yaml_batches  # noqa: PLC0415 - PyYAML and rapidyaml take a while

        yield from yaml_batches(source.name, content, start, is_named=source.is_named)


def _is_flow_yaml(content: Content) -> bool:
    """Whether a text that begins like JSON is YAML with brackets: a tag, a comment or a comma too many is in it."""
    if len(content) > _SMALL:
        return False
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if "malformed" not in str(error) or "trailing characters" in str(error):
            return False
    else:
        return False
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        return any(True for _ in load_documents(content[:].decode()))
    except (YamlError, UnicodeDecodeError):
        return False


def json_batches(name: str, content: Content, start: int, *, is_named: bool) -> Iterator[Batch | int]:
    """The objects of the JSON values from ``start`` on. Raises ``InputError``.

    Where a ``---`` says that YAML follows, its offset comes last.
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
            is_named=is_named,
        )
        position = text.after_space(end)


class _JsonText:
    """A text with JSON values in it."""

    def __init__(self, name: str, content: Content) -> None:
        self.content = content
        self.view = memoryview(content)
        self.line_at = LineCounter(content).line_at
        self._name = name

    def after_space(self, position: int) -> int:
        """Where something other than white space comes next."""
        match = _SPACE.match(self.content, position)
        return match.end() if match else position

    def first_value(self, position: int) -> tuple[int, TopLevel | None]:
        """Where the value ends that begins at ``position``; and the value, where it is a list that goes to the end.

        A big dump is such a list, and is then looked through only once. Raises ``InputError``.
        """
        try:
            top = TOP_LEVEL.decode(self.view[position:])
            return len(self.content), top if top.is_list else None
        except (msgspec.ValidationError, UnicodeDecodeError):
            return self._end_of_value(position), None
        except msgspec.DecodeError as error:
            return self._end_or_error(error, position), None
        except RecursionError:
            raise self._too_deep(position) from None

    def _end_of_value(self, position: int) -> int:
        try:
            _SKIPPER.decode(self.view[position:])
        except msgspec.DecodeError as error:
            return self._end_or_error(error, position)
        except RecursionError:
            raise self._too_deep(position) from None
        return len(self.content)

    def _end_or_error(self, error: msgspec.DecodeError, position: int) -> int:
        message = str(error)
        trailing = _TRAILING.search(message)
        if trailing:
            # The reader has looked at one byte of the next value when it says so.
            return position + int(trailing[1]) - 1
        if "truncated" in message:
            hint = "the file may not have been copied whole"
            raise self._error("ends in the middle of a JSON value", len(self.content), hint) from None
        at = _AT_BYTE.search(message)
        problem = _AT_BYTE.sub("", message.removeprefix("JSON is malformed: "))
        raise self._error(f"is not JSON: {problem}", position + int(at[1]) if at else position) from None

    def _too_deep(self, position: int) -> InputError:
        return self._error("is nested too deeply", position)

    def _error(self, problem: str, offset: int, hint: str = "") -> InputError:
        return InputError(problem, source=self._name, line=self.line_at(offset), hint=hint)


class _ItemLines:
    """The lines on which the items of a list are: their texts are looked for, one after the other."""

    def __init__(self, text: _JsonText, start: int) -> None:
        self._text = text
        self._start = start
        self._next = 0
        self._position = start

    def line_of(self, top: TopLevel, index: int) -> int:
        """The line of an item. Going on is quick, going back is not."""
        items = top.items or []
        if index < self._next:
            self._next, self._position = 0, self._start
        for item in items[self._next : index]:
            content = bytes(item)
            self._position = self._text.content.find(content, self._position) + len(content)
        self._next = index
        return self._text.line_at(self._text.content.find(bytes(items[index]), self._position))
