"""JSON texts to objects: one value, several after each other, or one a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.batches import Batch, TopLevel, batches_of_value, line_at
from kpreempt.snapshot.sources import Content

_SPACE = re.compile(rb"[ \t\r\n]*")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_AT_BYTE = re.compile(r" \(byte (\d+)\)")
_SKIPPER = msgspec.json.Decoder(msgspec.Raw)


def json_batches(name: str, content: Content, start: int, *, is_named: bool) -> Iterator[Batch | int]:
    """The objects of the JSON values from ``start`` on. Raises ``InputError``.

    Where a ``---`` says that YAML follows, its offset comes last.
    """
    view = memoryview(content)
    position = _after_space(content, start)
    while position < len(content):
        if content[position : position + 3] == b"---":
            yield position
            return
        end = _end_of_value(name, content, view, position)
        yield from batches_of_value(
            name,
            view[position:end],
            partial(line_at, content, position),
            partial(_line_of_item, content, position),
            is_named=is_named,
        )
        position = _after_space(content, end)


def _after_space(content: Content, position: int) -> int:
    match = _SPACE.match(content, position)
    return match.end() if match else position


def _end_of_value(name: str, content: Content, view: memoryview, position: int) -> int:
    """Where the value ends that begins at ``position``."""
    try:
        _SKIPPER.decode(view[position:])
    except msgspec.DecodeError as error:
        if trailing := _TRAILING.search(str(error)):
            return position + int(trailing[1])
        raise _not_json(name, content, str(error), position) from None
    except RecursionError:
        raise InputError("is nested too deeply", source=name, line=line_at(content, position)) from None
    return len(content)


def _not_json(name: str, content: Content, message: str, position: int) -> InputError:
    if "truncated" in message:
        line = line_at(content, len(content))
        hint = "the file may not have been copied whole"
        return InputError("ends in the middle of a JSON value", source=name, line=line, hint=hint)
    at = _AT_BYTE.search(message)
    line = line_at(content, position + int(at[1]) if at else position)
    return InputError(
        f"is not JSON: {_AT_BYTE.sub('', message.removeprefix('JSON is malformed: '))}", source=name, line=line
    )


def _line_of_item(content: Content, start: int, top: TopLevel, index: int) -> int:
    """Where an item of a list is written: its text is looked for, past the items before it."""
    position = start
    for item in (top.items or [])[: index + 1]:
        position = content.find(bytes(item), position) + (0 if item is (top.items or [])[index] else len(bytes(item)))
    return line_at(content, position)
