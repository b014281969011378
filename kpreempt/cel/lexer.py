"""An expression's text as tokens, as in cel-go v0.26.0 ``parser/gen/CEL.g4``."""

from __future__ import annotations

import re
from typing import NamedTuple

from kpreempt.cel.source import Problems

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
        r'[rR]"""[\s\S]*?"""',
        r"[rR]'''[\s\S]*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
_TOKEN = re.compile(
    "|".join(
        (
            r"(?P<SKIP>[\t \r\n\f]+|//[^\n]*)",
            rf"(?P<BYTES>[bB](?:{_STRING}))",
            rf"(?P<STRING>{_STRING})",
            r"(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])",
            r"(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)",
            r"(?P<OPERATOR>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        )
    )
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
# What follows an opening quote that is never closed: up to where no string can go on.
_OPEN_STRING = {
    quote: re.compile(rf"{quote}(?:{_ESCAPE}|[^\\{quote[0]}\n\r])*(?:\\?[^{quote[0]}]|\\)?") for quote in ('"', "'")
}


class Token(NamedTuple):
    """``kind`` is a name of the grammar, or the text itself for operators and keywords; the last is ``<EOF>``."""

    kind: str
    text: str
    offset: int


def tokens(text: str, problems: Problems) -> list[Token]:
    """All tokens; what is none is reported and passed over."""
    found = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            end = _unrecognised(text, place)
            problems.report(place, f"Syntax error: token recognition error at: '{text[place:end]}'")
            place = end
            continue
        kind = match.lastgroup or ""
        if kind == "OPERATOR" or match[0] in _KEYWORDS:
            kind = match[0]
        if kind != "SKIP":
            found.append(Token(kind, match[0], place))
        place = match.end()
    found.append(Token("<EOF>", "<EOF>", len(text)))
    return found


def _unrecognised(text: str, place: int) -> int:
    """Where what starts no token ends: it takes one character more than could still have become one."""
    if text[place] in _OPEN_STRING:
        match = _OPEN_STRING[text[place]].match(text, place)
        return match.end() if match else place + 1
    return min(place + (2 if text[place] in "&|=" else 1), len(text))
