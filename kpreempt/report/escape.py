r"""Make text from the input safe to show.

Names and messages may contain escape sequences that control a terminal, marks that reverse the reading order, or
commands that a CI system executes from a job's log. These are shown escaped (``\x1b``, ``\u202e``); of a command, only
the first sign is escaped (``\x3a:add-mask``, ``\x23#vso[``).
"""

from __future__ import annotations

import re
import unicodedata

# Control, format (bidi marks, zero-width), surrogate, private and unassigned characters; line and paragraph separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# GitHub's runner accepts ``##[...]`` anywhere in a line, Azure's agent ``##vso[...]``, TeamCity ``##teamcity[...]``.
_ANYWHERE = r"##(?=[A-Za-z-]*\[)"
# GitHub's ``::set-output name=x::`` starts a line, where a name may end up if lines break at spaces.
_AT_START = r"(?<![^ ])::(?=[A-Za-z])"
_SUSPECT = re.compile(rf"[^\x20-\x7e]|{_AT_START}|{_ANYWHERE}")
_JSON_SUSPECT = re.compile(rf"[^\x20-\x7e\n]|{_ANYWHERE}")
_COMMAND = re.compile(rf"(?<!\S)::(?=[A-Za-z])|{_ANYWHERE}")

# The lengths shown of the start and the end: of a word, such as a path, and of a whole message.
_WORD = 200, 60
_MESSAGE = 1_500, 400
_LONG_WORD = re.compile(rf"\S{{{sum(_WORD) + 1},}}")


def shortened(message: str) -> str:
    """Shorten a message by omitting the middle of very long words, and of the message itself if it is too long."""
    message = _LONG_WORD.sub(lambda word: _without_middle(word[0], *_WORD), message)
    return _without_middle(message, *_MESSAGE) if len(message) > sum(_MESSAGE) else message


def _without_middle(text: str, head: int, tail: int) -> str:
    return f"{text[:head]}…{text[-tail:]}"


def printable(text: str) -> str:
    r"""``text`` with every character that does not show as itself written as ``\xNN``, ``\uNNNN`` or ``\UNNNNNNNN``.

    The first sign of anything that a CI system would execute is escaped, too.
    """
    return _SUSPECT.sub(_shown, text)


def printable_json(document: str) -> str:
    r"""A JSON document with the same characters as ``\uNNNN`` inside its strings; the data stays the same.

    Lines of JSON never start with text, so only commands that may occur anywhere matter.
    """
    return _JSON_SUSPECT.sub(_shown_json, document)


def printable_json_bytes(document: bytes) -> bytes:
    """``printable_json`` for UTF-8; returns documents that need no escaping unchanged, because they can be large."""
    if document.isascii() and b"##" not in document and b"\x7f" not in document:
        return document
    return printable_json(document.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")


def has_command(text: str) -> bool:
    """Whether a CI system could read part of the text as a command, once its lines are broken at spaces."""
    return _COMMAND.search(text) is not None


def quoted_without_commands(document: str) -> str:
    r"""YAML in which every text that ``has_command`` is double-quoted, with the command's first sign as ``\xNN``."""
    return _COMMAND.sub(_shown, document)


def is_hidden(character: str) -> bool:
    """Whether a character does not show as itself. The plain space does; other kinds of space could mislead."""
    category = unicodedata.category(character)
    return category in _HIDDEN_CATEGORIES or (category == "Zs" and character != " ")


def _shown(match: re.Match[str]) -> str:
    character, rest = match[0][:1], match[0][1:]
    if not rest and not is_hidden(character):
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}{rest}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _shown_json(match: re.Match[str]) -> str:
    character, rest = match[0][:1], match[0][1:]
    if not rest and not is_hidden(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2)) + rest
