r"""Text from the input, made safe to show.

Names and messages may hold escape sequences that drive a terminal, or marks that reverse what one reads. They are shown
as what they are (``\x1b``, ``\u202e``).
"""

from __future__ import annotations

import re
import unicodedata

# Control, format (bidi marks, zero-width), surrogate, private and unassigned characters; line and paragraph separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SUSPECT = re.compile(r"[^\x20-\x7e]")
_JSON_SUSPECT = re.compile(r"[^\x20-\x7e\n]")


def printable(text: str) -> str:
    r"""``text`` with every character that does not show as itself written as ``\xNN``, ``\uNNNN`` or ``\UNNNNNNNN``."""
    return _SUSPECT.sub(_shown, text)


def printable_json(document: str) -> str:
    r"""A JSON document with the same characters as ``\uNNNN`` inside its strings; the data stays the same."""
    return _JSON_SUSPECT.sub(_shown_json, document)


def is_hidden(character: str) -> bool:
    """Whether a character does not show as itself. The plain space does; other kinds of space could mislead."""
    category = unicodedata.category(character)
    return category in _HIDDEN_CATEGORIES or (category == "Zs" and character != " ")


def _shown(match: re.Match[str]) -> str:
    character = match[0]
    if not is_hidden(character):
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _shown_json(match: re.Match[str]) -> str:
    character = match[0]
    if not is_hidden(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))
