"""An answer cut to a size: lists, maps and texts are shortened, and it is said which."""

from __future__ import annotations

import json
from typing import Any

# How many entries of a list or map, and how many characters of a text, are kept: tried from the left.
_STEPS = ((1000, 4000), (300, 4000), (100, 2000), (30, 1000), (10, 500), (5, 300), (3, 200), (1, 120), (0, 80))
# A record has fewer fields than that, and keeps them all; anything larger is a map by names from the cluster.
_MOST_FIELDS = 50
_MOST_TOLD = 20


def cut(document: dict[str, Any], size: int) -> tuple[dict[str, Any], list[str]]:
    """The document as JSON of at most ``size`` characters, and what of it is missing, in words.

    Of the same document and size it is always the same. What is first in a list stays.
    """
    if len(_encoded(document)) <= size:
        return document, []
    for entries, characters in _STEPS:
        missing: list[str] = []
        shorter = _shortened(document, entries, characters, "", missing)
        told = _told(missing)
        if len(_encoded([shorter, told])) <= size:
            return shorter, told
    plain = {key: value for key, value in document.items() if not isinstance(value, list | dict)}
    return _shortened(plain, 0, _STEPS[-1][1], "", []), ["all but the plain fields"]


def _shortened(value: Any, entries: int, characters: int, path: str, missing: list[str]) -> Any:
    if isinstance(value, str) and len(value) > characters:
        missing.append(f"{path or 'text'}: {characters} of {len(value):,} characters")
        return value[:characters] + "…"
    if isinstance(value, list):
        if len(value) > entries:
            missing.append(f"{path}: {entries} of {len(value):,}")
        return [_shortened(each, entries, characters, f"{path}[]", missing) for each in value[:entries]]
    if isinstance(value, dict):
        items = list(value.items())
        if len(items) > max(entries, _MOST_FIELDS) or (entries < 1 and path and items):
            missing.append(f"{path}: {entries} of {len(items):,}")
            items = items[:entries]
        return {key: _shortened(each, entries, characters, f"{path}.{key}".lstrip("."), missing) for key, each in items}
    return value


def _told(missing: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(missing))
    more = len(distinct) - _MOST_TOLD
    return [*distinct[:_MOST_TOLD], *([f"and at {more:,} more places"] if more > 0 else [])]


def _encoded(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
