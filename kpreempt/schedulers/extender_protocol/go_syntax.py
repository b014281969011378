"""What Go's ``encoding/json`` says of text that is no JSON (``scanner.go`` and ``stream.go``, Go 1.24).

Only called for text that has been refused already: it finds the first character that cannot stand where it does.
"""

from __future__ import annotations

from typing import NamedTuple

EMPTY = "EOF"
CUT_OFF = "unexpected EOF"
_TOO_DEEP = "exceeded max depth"
MAX_DEPTH = 10_000
_SPACE = " \t\r\n"
_ESCAPES = '"\\/bfnrt'
_DIGITS = "0123456789"
_HEX = "0123456789abcdefABCDEF"
_VALUE = "looking for beginning of value"
_KEY = "looking for beginning of object key string"
_IN_NUMBER = "in numeric literal"


class _FoundError(Exception):
    """The message, once it is found."""


class _Cursor:
    """A text, and the place in it that comes next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1

    def peek(self) -> str:
        """The next character; where there is none, the text is cut off."""
        if self.at >= len(self.text):
            raise _FoundError(CUT_OFF)
        return self.text[self.at]

    def ends_or(self, characters: str) -> bool:
        return self.at < len(self.text) and self.text[self.at] in characters

    def expect(self, characters: str, context: str) -> str:
        found = self.peek()
        if found not in characters:
            raise _FoundError(f"invalid character {_quoted(found)} {context}")
        self.at += 1
        return found


class _Open(NamedTuple):
    """What has been opened and not closed: ``}`` or ``]``."""

    end: str


def problem_of(text: str) -> str:
    """Go's message for the first value of a text that is not JSON; empty if nothing is wrong with it."""
    cursor = _Cursor(text)
    cursor.skip_space()
    if cursor.at >= len(text):
        return EMPTY
    try:
        _values(cursor)
    except _FoundError as problem:
        return str(problem)
    return ""


def _values(cursor: _Cursor) -> None:
    """Go through one value with all that is in it, however deep."""
    stack: list[_Open] = []
    while True:
        cursor.skip_space()
        if cursor.peek() in "{[":
            stack.append(_Open("}" if cursor.expect("{[", _VALUE) == "{" else "]"))
            if len(stack) > MAX_DEPTH:
                raise _FoundError(_TOO_DEEP)
            cursor.skip_space()
            if cursor.peek() != stack[-1].end:
                if stack[-1].end == "}":
                    _key(cursor)
                continue
            cursor.at += 1
            stack.pop()
        else:
            _scalar(cursor)
        while stack:
            cursor.skip_space()
            end = stack[-1].end
            after = "after object key:value pair" if end == "}" else "after array element"
            if cursor.expect(f",{end}", after) == ",":
                cursor.skip_space()
                if end == "}":
                    _key(cursor)
                break
            stack.pop()
        if not stack:
            return


def _key(cursor: _Cursor) -> None:
    cursor.expect('"', _KEY)
    _string(cursor)
    cursor.skip_space()
    cursor.expect(":", "after object key")


def _scalar(cursor: _Cursor) -> None:
    first = cursor.peek()
    if first == '"':
        cursor.at += 1
        _string(cursor)
    elif first == "-" or first in _DIGITS:
        _number(cursor)
    else:
        word = {"t": "true", "f": "false", "n": "null"}.get(first)
        if word is None:
            cursor.expect("", _VALUE)
            return
        for character in word:
            cursor.expect(character, f"in literal {word} (expecting {_quoted(character)})")


def _string(cursor: _Cursor) -> None:
    while True:
        character = cursor.peek()
        if character < " ":
            cursor.expect("", "in string literal")
        cursor.at += 1
        if character == '"':
            return
        if character == "\\" and cursor.expect(f"{_ESCAPES}u", "in string escape code") == "u":
            for _ in range(4):
                cursor.expect(_HEX, "in \\u hexadecimal character escape")


def _number(cursor: _Cursor) -> None:
    if cursor.ends_or("-"):
        cursor.at += 1
    if cursor.expect(_DIGITS, _IN_NUMBER) != "0":
        _digits(cursor)
    if cursor.ends_or("."):
        cursor.at += 1
        cursor.expect(_DIGITS, "after decimal point in numeric literal")
        _digits(cursor)
    if cursor.ends_or("eE"):
        cursor.at += 1
        if cursor.ends_or("+-"):
            cursor.at += 1
        cursor.expect(_DIGITS, "in exponent of numeric literal")
        _digits(cursor)


def _digits(cursor: _Cursor) -> None:
    while cursor.ends_or(_DIGITS):
        cursor.at += 1


def _quoted(character: str) -> str:
    """A character between quotes, as ``quoteChar`` has it; what does not show is escaped."""
    special = {"'": "'\\''", '"': "'\"'", "\\": "'\\\\'", "\n": "'\\n'", "\r": "'\\r'", "\t": "'\\t'"}
    if character in special:
        return special[character]
    # Go looks at bytes.
    byte = character.encode("utf-8", "replace")[0]
    return f"'{character}'" if " " <= character <= "~" else f"'{_latin(byte)}'"


def _latin(byte: int) -> str:
    shown = chr(byte)
    return shown if shown.isprintable() else f"\\x{byte:02x}"
