"""The line of a field in a manifest, found in the text only if a message needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import yaml

# How much of an object is searched: little at first, because most are small and there may be many of them.
_SEARCHED = (2**14, 2**20)


def line_of_field(text: bytes, line: int, path: Sequence[str | int]) -> int:
    """Return the line (from 1) of the key at ``path`` in the object that begins on ``line`` of a YAML or JSON text.

    Returns the object's line if the text does not show the key, as when it comes from an anchor elsewhere.
    """
    begin = _line_starts(text)[line - 1]
    for size in _SEARCHED:
        # JSON may be indented with tabs, YAML may not.
        part = text[begin : begin + size].decode("utf-8-sig", "replace").replace("\t", " ")
        try:
            return line + _line_along(path, yaml.parse(part, Loader=yaml.CSafeLoader))
        except (yaml.YAMLError, LookupError, StopIteration):
            continue
    return line


@lru_cache(maxsize=1)
def _line_starts(text: bytes) -> list[int]:
    """Return the offsets of lines; cached, because a text may have many objects with messages."""
    return [0, *(match.end() for match in re.finditer(b"\n", text))]


def _line_along(path: Sequence[str | int], events: Iterator[Any]) -> int:
    """Return the line (from 0) of the last key of ``path``.

    Raises ``LookupError`` if the first object has no such key.
    """
    line = 0
    # The first event of the first document.
    event = next(event for event in events if not isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)))
    # An item of a list begins with its dash, so the text is read as a list with it as the first item.
    if isinstance(event, yaml.SequenceStartEvent):
        event = next(events)
    for part in path:
        if isinstance(part, int) and isinstance(event, yaml.SequenceStartEvent):
            event = next(events)
            for _ in range(part):
                _skip(event, events)
                event = next(events)
        elif isinstance(part, str) and isinstance(event, yaml.MappingStartEvent):
            line = _line_of_key(part, events)
            event = next(events)
        else:
            raise LookupError
    return line


def _line_of_key(key: str, events: Iterator[Any]) -> int:
    """Return the line (from 0) of a key of the current mapping; the next event is its value."""
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        if isinstance(event, yaml.ScalarEvent) and event.value == key:
            return event.start_mark.line if event.start_mark else 0
        _skip(event, events)
        _skip(next(events), events)
    raise LookupError


def _skip(event: Any, events: Iterator[Any]) -> None:
    """Skip the node that begins with an event. Raises ``LookupError`` for the end of a collection."""
    if isinstance(event, yaml.CollectionEndEvent):
        raise LookupError
    depth = int(isinstance(event, yaml.CollectionStartEvent))
    while depth:
        event = next(events)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
