"""Which lines of YAML the fast reader may be given: those that every reader of YAML reads alike.

A line is an entry of a mapping or of a list with at most one simple scalar on it. Whatever YAML's versions disagree on
(``yes``, ``~``, ``0o17``, ``1e3``, tags, anchors, flow collections, comments, tabs, odd escapes) is no such line. This
is how kubectl writes nearly all of its output. Bytes, not text, for speed.
"""

from __future__ import annotations

import re

# Lines longer than one, and the line breaks and marks beyond ASCII on which readers differ.
_ODD_UTF8 = re.compile(rb"\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]|\xf4\x8f\xbf")

_BOOL_OR_NULL = rb"[yYnN]|[yY]es|YES|[nN]o|NO|[oO]n|ON|[oO]ff|OFF|True|TRUE|False|FALSE|Null|NULL"
_NOT_FINITE = rb"[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN]"
_PART = rb"[^\x00-\x20\x7f:]"
# A colon within a word is followed by more of it, and a word does not begin a comment.
_REST_OF_WORD = _PART + rb"*+(?::++" + _PART + rb"++)*+"
_WORD = rb"(?:[^\x00-\x20\x7f:#]" + _REST_OF_WORD + rb"|:++" + _PART + rb"++(?::++" + _PART + rb"++)*+)"
_REST = _REST_OF_WORD + rb"(?: ++" + _WORD + rb")*+"

_PLAIN = rb"(?!-{0,2}(?:" + _BOOL_OR_NULL + rb"|" + _NOT_FINITE + rb")$)(?:[A-Za-z_/$(]|--?[A-Za-z])" + _REST
_NUMBER = rb"(?:0|-?[1-9][0-9]{0,17}+|(?:0|[1-9][0-9]{0,8}+)\.[0-9]{1,6}+)(?=$)"
# Digits first, but in no notation a number: 500Gi, 10.0.0.1, a UID, a hash.
_DIGITS_FIRST = (
    rb"(?!0[xX][0-9a-fA-F_]*+$|0[bBoO][0-9_]*+$|[0-9_.]*+[eE][-+]?[0-9_]*+$)"
    rb"(?:[0-9][0-9_.]*+[A-Za-z]|[0-9a-f]++-[0-9a-f]++-|[0-9]++\.[0-9]++\.[0-9])" + _REST
)
_SINGLE_QUOTED = rb"'[^'\x00-\x1f\x7f]*+(?:''[^'\x00-\x1f\x7f]*+)*+'"
_DOUBLE_QUOTED = rb'"[^"\\\x00-\x1f\x7f]*+(?:\\["\\nt][^"\\\x00-\x1f\x7f]*+)*+"'
_SCALAR = b"|".join((_PLAIN, _DOUBLE_QUOTED, _NUMBER, _DIGITS_FIRST, rb"\{\}|\[\]", _SINGLE_QUOTED))
_KEY = (
    rb"(?!(?:" + _BOOL_OR_NULL + rb"|true|false|null):(?: |$))"
    rb"(?:[A-Za-z_/$][\w./$@+~-]*+(?::++[\w./$@+~-]++)*+|\.|'[^'\x00-\x1f\x7f]*+'|\"[^\"\\\x00-\x1f\x7f]*+\")"
)
_ENTRY = rb"(?P<entry> *+(?:- )*+" + _KEY + rb":)"
_LINE = re.compile(_ENTRY + rb"(?P<value> (?:" + _SCALAR + rb"))?|(?P<item> *+(?:- )++)(?:" + _SCALAR + rb")")
_LITERAL = re.compile(_ENTRY + rb" \|[-+]?")
_OPEN_QUOTE = re.compile(_ENTRY + rb" '(?:[^'\x00-\x1f\x7f]|'')*+")
_MORE_QUOTED = re.compile(rb" *+(?:[^'\x00-\x1f\x7f]|'')*+(?P<end>')?")
_MORE_PLAIN = re.compile(rb" ++(?![-?][ ]|[&*!|>'\"%@`{}\[\],?-])" + _WORD + rb"(?: ++" + _WORD + rb")*+")
_LITERAL_TEXT = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*+")

UNKNOWN = b"\x00"


def outline_of(line: bytes) -> bytes:
    """What a line contributes to the structure: indentation, dashes, key, and ``=`` where it has a value.

    ``UNKNOWN`` for a line that is not simple.
    """
    match = _LINE.fullmatch(line)
    if match is None or (not line.isascii() and _ODD_UTF8.search(line)):
        return UNKNOWN
    entry, value, item = match.group("entry", "value", "item")
    if entry is None:
        return bytes(item) + b"="
    return bytes(entry) if value is None else bytes(entry) + b"="
