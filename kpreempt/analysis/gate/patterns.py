"""Names with ``*`` for any text, matched in time that grows with the text and no faster."""

from __future__ import annotations


def matches(pattern: str, text: str) -> bool:
    """Whether the whole ``text`` is what ``pattern`` says; ``*`` stands for any characters, also none or a slash."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        # The earliest place is as good as any other: what follows then has the most room.
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
