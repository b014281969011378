"""The line on which a field of a manifest is written, found in the text only when a message needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import yaml

# How much of an object is searched: little first, as most are small, and there may be many of them.
_SEARCHED = (2**14, 2**20)


def line_of_field(text: bytes, line: int, path: Sequence[str | int]) -> int:
    """The line (from 1) of the key that ``path`` leads to in the object that begins on ``line`` of a YAML or JSON text.

    The object's own line if the text doesn't show it there, as when the key comes from an anchor elsewhere.
    """
    begin = _line_starts(text)[line - 1]
    for size in _SEARCHED:
        # JSON may be indented by tabs, and YAML may not.
        part = text[begin : begin + size].decode("utf-8-sig", "replace").replace("\t", " ")
        try:
            return line + _line_along(path, yaml.parse(part, Loader=yaml.CSafeLoader))
        except (yaml.YAMLError, LookupError, StopIteration):
            continue
    return line


@lru_cache(maxsize=1)
def _line_starts(text: bytes) -> list[int]:
    """Where lines begin; many objects of one text may be asked about, one after the other."""
    return [0, *(match.end() for match in re.finditer(b"\n", text))]


def _line_along(path: Sequence[str | int], events: Iterator[Any]) -> int:
    """The line from 0 of the last key of ``path``. Raises ``LookupError`` if the first object has no such key."""
    line = 0
    # The first event of the first document.
    event = next(event for event in events if not isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)))
    # An item of a list begins with its dash: what is read is then a list, of which it is the first item.
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
    """The line from 0 of a key of the mapping that has begun; the next event is its value."""
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        if isinstance(event, yaml.ScalarEvent) and event.value == key:
            return event.start_mark.line if event.start_mark else 0
        _skip(event, events)
        _skip(next(events), events)
    raise LookupError


def _skip(event: Any, events: Iterator[Any]) -> None:
    """Pass over what begins with an event. Raises ``LookupError`` for the end of a collection, where nothing begins."""
    if isinstance(event, yaml.CollectionEndEvent):
        raise LookupError
    depth = int(isinstance(event, yaml.CollectionStartEvent))
    while depth:
        event = next(events)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
