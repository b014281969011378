"""Strings and regular expressions.

Strings are version 2 of cel-go v0.26.0 ``ext/strings.go`` and those of the standard library; regular expressions are
cel-go's ``matches`` and Kubernetes' ``library/regex.go``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kpreempt.cel.functions import (
    TRAVERSAL,
    Cost,
    declare,
    declare_operator,
    full_size,
    per_character,
    regex_cost,
    size_of,
    traversal,
)
from kpreempt.cel.libraries.format_strings import format_string
from kpreempt.cel.libraries.operators import checked_text
from kpreempt.cel.libraries.texts import shown
from kpreempt.cel.regex import Regex, RegexError, RegexWorkError, compile_regex
from kpreempt.cel.values import NO_SUCH_OVERLOAD, Failure, List, TooLargeError, Value

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SPACE = " \t\n\v\f\r\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _out_of_range(index: int) -> Failure:
    return Failure(f"index out of range: {index}")


def _plain(test: Callable[[str, str], bool]) -> Callable[[Value, Value], Value]:
    """A test of two strings, which says nothing of the types of others."""

    def run(text: Value, other: Value) -> Value:
        return test(text, other) if type(text) is str and type(other) is str else NO_SUCH_OVERLOAD

    return run


def _index_of(text: str, part: str, offset: int = 0) -> Value:
    if not part:
        return offset
    if offset < 0:
        return _out_of_range(offset)
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> Value:
    if not part:
        return len(text) if offset is None else offset
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        return _out_of_range(offset)
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> Value:
    times = text.count(old) if count < 0 else min(count, text.count(old))
    checked_text(len(text) + times * (len(new) - len(old)))
    return text.replace(old, new, times)


def _split(text: str, separator: str, count: int = -1) -> Value:
    if count == 0:
        return List()
    if not separator:
        if count < 0 or count >= len(text):
            return List(text)
        return List([*text[: count - 1], text[count - 1 :]])
    return List(text.split(separator, count - 1 if count > 0 else -1))


def _substring(text: str, start: int, end: int | None = None) -> Value:
    if end is not None and start > end:
        return Failure(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, len(text) if end is None else end):
        if not 0 <= index <= len(text):
            return _out_of_range(index)
    return text[start:end]


def _join(items: List, separator: str = "") -> Value:
    for item in items:
        if type(item) is not str:
            return Failure(f"join: invalid input: {shown(item)}")
    checked_text(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def _product(args: Sequence[Value], _result: Value) -> int:
    return math.ceil(full_size(args[0]) * TRAVERSAL) * math.ceil(full_size(args[1]) * TRAVERSAL)


_ONCE: Cost = per_character()
_TWICE: Cost = per_character(factor=2 * TRAVERSAL)

declare("contains", "string.(string) -> bool", _plain(lambda text, part: part in text),
        overload_cost=_product, unguarded=True)  # fmt: skip
declare("startsWith", "string.(string) -> bool", _plain(str.startswith),
        overload_cost=lambda args, _result: math.ceil(full_size(args[0]) * TRAVERSAL), unguarded=True)  # fmt: skip
declare("endsWith", "string.(string) -> bool", _plain(str.endswith),
        overload_cost=lambda args, _result: math.ceil(full_size(args[0]) * TRAVERSAL), unguarded=True)  # fmt: skip
declare(
    "charAt",
    "string.(int) -> string",
    lambda text, index: text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index),
)
declare("indexOf", "string.(string) -> int", _index_of, cost=traversal)
declare("indexOf", "string.(string, int) -> int", _index_of)
declare("lastIndexOf", "string.(string) -> int", _last_index_of, cost=traversal)
declare("lastIndexOf", "string.(string, int) -> int", _last_index_of)
declare("lowerAscii", "string.() -> string", lambda text: text.translate(_LOWER), cost=_ONCE)
declare("upperAscii", "string.() -> string", lambda text: text.translate(_UPPER), cost=_ONCE)
declare("trim", "string.() -> string", lambda text: text.strip(_SPACE), cost=_ONCE)
declare("replace", "string.(string, string) -> string", _replace, cost=_TWICE)
declare("replace", "string.(string, string, int) -> string", _replace)
declare("split", "string.(string) -> list(string)", _split, cost=_TWICE)
declare("split", "string.(string, int) -> list(string)", _split)
declare("substring", "string.(int) -> string", _substring, cost=_ONCE)
declare("substring", "string.(int, int) -> string", _substring)
declare(
    "join", "list(string).() -> string", _join, cost=lambda _args, result: math.ceil(size_of(result) * 2 * TRAVERSAL)
)
declare("join", "list(string).(string) -> string", _join)
declare("strings.quote", "(string) -> string", lambda text: f'"{text.translate(_QUOTED)}"', overload_cost=_ONCE)
declare("format", "string.(list(dyn)) -> string", format_string, overload_cost=_ONCE, early=True)


def _compiled(pattern: str) -> Regex:
    regex = compile_regex(pattern)
    # What was left over from elsewhere does not count.
    regex.work()
    return regex


def _matches(text: Value, pattern: Value) -> Value:
    if type(text) is not str:
        return Failure("no such overload: matches")
    if type(pattern) is not str:
        return NO_SUCH_OVERLOAD
    try:
        return _compiled(pattern).matches(text)
    except RegexError as error:
        return Failure(str(error))
    except RegexWorkError as error:
        raise TooLargeError(str(error)) from None


def _find(text: str, pattern: str) -> Value:
    try:
        match = _compiled(pattern).find(text)
    except RegexError as error:
        return Failure(f"Illegal regex: {error}")
    except RegexWorkError as error:
        raise TooLargeError(str(error)) from None
    return text[match[0] : match[1]] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    try:
        return List(_compiled(pattern).find_all(text, limit))
    except RegexError as error:
        return Failure(f"Illegal regex: {error}")
    except RegexWorkError as error:
        raise TooLargeError(str(error)) from None


declare_operator(
    "matches",
    _matches,
    "(string, string) -> bool",
    "string.(string) -> bool",
    costs={"string.(string) -> bool": regex_cost},
)
declare("find", "string.(string) -> string", _find, cost=regex_cost)
declare("findAll", "string.(string) -> list(string)", _find_all, cost=regex_cost)
declare("findAll", "string.(string, int) -> list(string)", _find_all)
