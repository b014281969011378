"""Strings and regular expressions.

String functions are those of the standard library and version 2 of cel-go v0.26.0 ``ext/strings.go``; regular
expressions are cel-go's ``matches`` and Kubernetes' ``library/regex.go``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from kpreempt.cel.functions import (
    TRAVERSAL,
    Cost,
    Overload,
    declare,
    full_size,
    operator,
    per_character,
    regex_cost,
    size_of,
    traversal,
)
from kpreempt.cel.libraries.conversions import format_string
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


def _plain(test: Callable[[str, str], bool], text: Value, other: Value) -> Value:
    """Test two strings; other types are not checked."""
    return test(text, other) if type(text) is str and type(other) is str else NO_SUCH_OVERLOAD


def _index_of(text: str, part: str, offset: int = 0) -> Value:
    if not part:
        return offset
    return _out_of_range(offset) if offset < 0 else text.find(part, offset)


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


_ONCE: Cost = per_character()
_TWICE: Cost = per_character(factor=2 * TRAVERSAL)


def _searched(search: Callable[[Regex, str], Value], text: str, pattern: str, head: str = "Illegal regex: ") -> Value:
    """Search the text for the pattern."""
    try:
        regex = compile_regex(pattern)
        # Work left over from other searches does not count.
        regex.work()
        return search(regex, text)
    except RegexError as error:
        return Failure(f"{head}{error}")
    except RegexWorkError as error:
        raise TooLargeError(str(error)) from None


def _matches(text: Value, pattern: Value) -> Value:
    if type(text) is not str:
        return Failure("no such overload: matches")
    return _searched(Regex.matches, text, pattern, "") if type(pattern) is str else NO_SUCH_OVERLOAD


def _find(regex: Regex, text: str) -> str:
    match = regex.find(text)
    return text[match[0] : match[1]] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    return _searched(lambda regex, _: List(regex.find_all(text, limit)), text, pattern)


declare(
    Overload(
        "contains",
        "string.(string) -> bool",
        partial(_plain, str.__contains__),
        overload_cost=lambda args, _result: (
            math.ceil(full_size(args[0]) * TRAVERSAL) * math.ceil(full_size(args[1]) * TRAVERSAL)
        ),
        unguarded=True,
    ),
    Overload(
        "startsWith",
        "string.(string) -> bool",
        partial(_plain, str.startswith),
        overload_cost=lambda args, _result: math.ceil(full_size(args[0]) * TRAVERSAL),
        unguarded=True,
    ),
    Overload(
        "endsWith",
        "string.(string) -> bool",
        partial(_plain, str.endswith),
        overload_cost=lambda args, _result: math.ceil(full_size(args[0]) * TRAVERSAL),
        unguarded=True,
    ),
    Overload(
        "charAt",
        "string.(int) -> string",
        lambda text, index: text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index),
    ),
    Overload("indexOf", "string.(string) -> int", _index_of, traversal),
    Overload("indexOf", "string.(string, int) -> int", _index_of),
    Overload("lastIndexOf", "string.(string) -> int", _last_index_of, traversal),
    Overload("lastIndexOf", "string.(string, int) -> int", _last_index_of),
    Overload("lowerAscii", "string.() -> string", lambda text: text.translate(_LOWER), _ONCE),
    Overload("upperAscii", "string.() -> string", lambda text: text.translate(_UPPER), _ONCE),
    Overload("trim", "string.() -> string", lambda text: text.strip(_SPACE), _ONCE),
    Overload("replace", "string.(string, string) -> string", _replace, _TWICE),
    Overload("replace", "string.(string, string, int) -> string", _replace),
    Overload("split", "string.(string) -> list(string)", _split, _TWICE),
    Overload("split", "string.(string, int) -> list(string)", _split),
    Overload("substring", "string.(int) -> string", _substring, _ONCE),
    Overload("substring", "string.(int, int) -> string", _substring),
    Overload(
        "join", "list(string).() -> string", _join, lambda _args, result: math.ceil(size_of(result) * 2 * TRAVERSAL)
    ),
    Overload("join", "list(string).(string) -> string", _join),
    Overload("strings.quote", "(string) -> string", lambda text: f'"{text.translate(_QUOTED)}"', overload_cost=_ONCE),
    Overload("format", "string.(list(dyn)) -> string", format_string, overload_cost=_ONCE, early=True),
    *operator(
        "matches",
        _matches,
        "(string, string) -> bool",
        "string.(string) -> bool",
        costs={"string.(string) -> bool": regex_cost},
    ),
    Overload("find", "string.(string) -> string", partial(_searched, _find), regex_cost),
    Overload("findAll", "string.(string) -> list(string)", _find_all, regex_cost),
    Overload("findAll", "string.(string, int) -> list(string)", _find_all),
)
