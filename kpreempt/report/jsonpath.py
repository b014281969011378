r"""``-o jsonpath=TEMPLATE`` and ``-o custom-columns=HEADER:PATH,...``, as in kubectl, applied to the JSON document.

Text from the document is escaped for terminals; the template's own text is printed unchanged:
``{range .items[*]}{.pod}{"\n"}{end}``.

The dialect is that of ``k8s.io/client-go/util/jsonpath`` v0.36 (``parser.go``, ``jsonpath.go``): filters compare with
one operator, and missing keys yield nothing. No Python library supports it: the available ones implement RFC 9535's or
Goessner's paths, without templates, ``range``, text or relaxed paths. In contrast to kubectl, an unclosed ``range`` is
an error, strings have no parts, and maps keep the document's order. Steps map lists of values to lists of values, like
``walk`` in ``jsonpath.go``. Work is limited: a step returns at most a million values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple, NoReturn

import msgspec

from kpreempt.errors import UsageError
from kpreempt.report.escape import printable, printable_json

_LONGEST_TEMPLATE = 10_000


class JsonPath:
    """A parsed template."""

    def __init__(self, template: str) -> None:
        """Raises ``JsonPathError``."""
        if len(template) > _LONGEST_TEMPLATE:
            raise JsonPathError(f"the template has more than {_LONGEST_TEMPLATE:,} characters")
        self._actions = list(_actions(template))
        self._ends = _ends(self._actions)

    def results(self, document: Any) -> Iterator[Values]:
        """The values of each text and each action, in output order. Raises ``JsonPathError``."""
        self._left = MAX_VALUES
        return self._run(0, len(self._actions), document)

    def _run(self, start: int, stop: int, value: Any) -> Iterator[Values]:
        index = start
        while index < stop:
            action = self._actions[index]
            found = action.run([value])
            self._left -= len(found)
            if self._left < 0:
                raise error_at(action.at, f"more than {MAX_VALUES:,} values")
            if action.keyword == "range":
                for each in found:
                    yield from self._run(index + 1, self._ends[index], each)
                index = self._ends[index]
            else:
                yield found
            index += 1


def relaxed(path: str) -> str:
    """A path as a template: ``metadata.name``, ``.metadata.name`` and ``{metadata.name}`` are ``{.metadata.name}``.

    Raises ``JsonPathError`` for anything else (``kubectl/pkg/cmd/get/customcolumn.go``).
    """
    match = re.fullmatch(r"\{\.?([^{}]+)\}|\.?([^{}]+)", path)
    if match is None:
        raise JsonPathError(f"{path!r} is not a path: expected .name1.name2 or {{.name1.name2}}")
    return f"{{.{match[1] or match[2]}}}"


def _ends(actions: list[Action]) -> dict[int, int]:
    """The index of each range's end, by the range's. Raises ``JsonPathError`` if they do not match."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for index, action in enumerate(actions):
        if action.keyword == "range":
            opened.append(index)
        elif action.keyword == "end":
            if not opened:
                raise error_at(action.at, "end without range")
            ends[opened.pop()] = index
    if opened:
        raise error_at(actions[opened[-1]].at, "the range has no {end}")
    return ends


def _actions(template: str) -> Iterator[Action]:
    at = 0
    while at < len(template):
        brace = template.find("{", at)
        text = template[at:] if brace < 0 else template[at:brace]
        if text:
            yield Action(at, [Step(at, constant(TemplateText(text)))])
        if brace < 0:
            return
        reader = _Reader(template, brace + 1)
        yield Action(brace, *reader.read())
        at = reader.at


# Matches up to the end of a name: isTerminator in parser.go.
_NAME = re.compile(r"(?:\\.?|[^ \t\r\n.,\[\]$@{}\\])*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[\d.]*")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")


class _Reader:
    """Reads an action from the character after its opening brace to the closing one."""

    def __init__(self, text: str, at: int = 0, shift: int = 0) -> None:
        """``shift`` is the position of the text in the template."""
        self._text = text
        self.at = at
        self._shift = shift
        self._steps: list[Step] = []
        self._keyword = ""

    def read(self) -> tuple[list[Step], str]:
        while not self._text.startswith("}", self.at):
            self._read_step()
        self.at += 1
        return self._steps, self._keyword

    def _fail(self, problem: str, at: int | None = None) -> NoReturn:
        raise error_at((self.at if at is None else at) + self._shift, problem)

    def _add(self, at: int, run: Run) -> None:
        self._steps.append(Step(at + self._shift, run))

    def _read_step(self) -> None:
        start, character = self.at, self._text[self.at : self.at + 1]
        if self._text.startswith("[?(", start):
            self._read_filter()
        elif self._text.startswith("..", start):
            self.at += 2
            if self._steps and self._steps[-1].run is descendants:
                self._fail("two consecutive ..", start)
            self._add(start, descendants)
            if re.match(r"\w", self._text[self.at : self.at + 1]):
                self._read_field()
        elif character in ("", "\r", "\n"):
            self._fail("the action has no closing }")
        elif character in " @$":
            self.at += 1
        elif character == "[":
            self._read_subscript()
        elif character in "\"'":
            self._read_quoted(character)
        elif character == ".":
            self.at += 1
            self._read_field()
        elif character in "+-" or character.isdecimal():
            self._read_number()
        elif character == "_" or character.isalpha():
            self._read_word()
        else:
            self._fail(f"unexpected {character!r}")

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self.at)
        assert match is not None
        self.at = match.end()
        return match[0]

    def _read_field(self) -> None:
        start = self.at
        name = self._take(_NAME)
        self._add(start, children if name == "*" else field(name.replace("\\", "")))

    def _read_number(self) -> None:
        start = self.at
        text = self._take(_NUMBER)
        try:
            self._add(start, constant(int(text) if "." not in text else float(text)))
        except ValueError:
            self._fail(f"{text!r} is not a number", start)

    def _read_word(self) -> None:
        start = self.at
        word = self._take(_NAME)
        if word in ("true", "false"):
            self._add(start, constant(word == "true"))
        elif word in ("range", "end"):
            self._keyword = word
            if word == "end":
                self._add(start, lambda _values: [])
        else:
            self._fail(f"{word!r} is neither range nor end: a path starts with a dot, as in {{.{word}}}", start)

    def _read_quoted(self, quote: str) -> None:
        start = self.at
        match = re.compile(rf"{quote}((?:[^{quote}\n\\]|\\[^\n])*){quote}").match(self._text, start)
        if match is None:
            self._fail("the quoted text is not closed")
        self.at = match.end()
        try:
            self._add(start, constant(TemplateText(_unquoted(match[1]))))
        except ValueError:
            self._fail(f"{match[0]} has an invalid escape", start)

    def _read_subscript(self) -> None:
        start = self.at
        end = self._text.find("]", start)
        if end < 0 or "\n" in self._text[start:end]:
            self._fail("[ has no closing ]")
        inner = self._text[start + 1 : end]
        self.at = end + 1
        parts = inner.split(",")
        if len(parts) > 1:
            union = [Action(start, *self._within(f"[{part.strip(' ')}]", start)) for part in parts]
            self._add(start, lambda values: bounded(chain.from_iterable(each.run(values) for each in union)))
        elif key := _KEY.fullmatch(inner):
            self._steps += self._within(f".{key[1]}", start)[0]
        elif match := _SLICE.fullmatch(":" if inner == "*" else inner):
            try:
                self._add(start, picking(*match.groups()))
            except ValueError:
                self._fail(f"[{inner}] is not an index", start)
        else:
            self._fail(f"[{inner}] is not an index", start)

    def _within(self, text: str, start: int) -> tuple[list[Step], str]:
        """Parse a part of the action separately."""
        return _Reader(f"{text}}}", 0, start + self._shift).read()

    def _read_filter(self) -> None:
        start = self.at
        # Parentheses within the first quoted text belong to it.
        match = re.compile(r"""\[\?\(([^"')\n]*(?:(["'])(?:\\.|(?!\2)[^\n])*\2[^)\n]*)?)\)\]""").match(
            self._text, start
        )
        if match is None:
            self._fail("the filter [?( has no closing )]")
        self.at = match.end()
        sides = _COMPARISON.fullmatch(match[1])
        inner = start + 3
        if sides is None:
            self._add(start, existing(Action(inner, *self._within(match[1], inner))))
        elif sides[2] not in COMPARISONS:
            self._fail(f"unknown operator {sides[2]}", inner + sides.start(2))
        else:
            left = Action(inner, *self._within(sides[1], inner))
            right = Action(inner, *self._within(sides[3], inner + sides.start(3)))
            self._add(start, comparing(left, sides[2], right))


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _unquoted(text: str) -> str:
    """Replace Go's escapes (``strconv.UnquoteChar``). Raises ``ValueError``."""

    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if escape in _ESCAPES or escape in "\\'\"":
            return _ESCAPES.get(escape, escape)
        return chr(int(escape[1:], 16) if escape[0] in "xuU" else int(escape, 8))

    return re.sub(r"\\(x[^\\]{2}|u[^\\]{4}|U[^\\]{8}|[0-7]{3}|.)", character, text)


# More values would exhaust the memory; no answer has as many.
MAX_VALUES = 1_000_000

Values = list[Any]
Run = Callable[[Values], Values]


class JsonPathError(ValueError):
    """A template that cannot be parsed or does not fit the document; the message has the character position."""


class TemplateText(str):
    """Literal text of the template."""

    __slots__ = ()


class Step(NamedTuple):
    """One step of an action, and its position in the template, from 0."""

    at: int
    run: Run


class Action(NamedTuple):
    """The content of braces: steps, and whether it is ``range`` or ``end``; text outside of braces is also one."""

    at: int
    steps: list[Step]
    keyword: str = ""

    def run(self, values: Values) -> Values:
        """Apply the steps to the values. Raises ``JsonPathError``."""
        for step in self.steps:
            try:
                values = step.run(values)
            except ValueError as error:
                if isinstance(error, JsonPathError):
                    raise
                raise error_at(step.at, str(error)) from None
            if len(values) > MAX_VALUES:
                raise error_at(step.at, f"more than {MAX_VALUES:,} values")
        return values


def error_at(at: int, problem: str) -> JsonPathError:
    """The error at a position of the template, counted from 0."""
    return JsonPathError(f"character {at + 1}: {problem}")


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def bounded(values: Iterable[Any]) -> Values:
    """The values, cut off just above the maximum."""
    return list(islice(values, MAX_VALUES + 1))


def constant(value: Any) -> Run:
    """The value once per input value; literal text once."""
    return lambda values: [value] * (1 if isinstance(value, TemplateText) else len(values))


def field(name: str) -> Run:
    """The values of a key, for the maps that have it."""
    return lambda values: [each[name] for each in values if isinstance(each, dict) and name in each]


def _parts(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def children(values: Values) -> Values:
    """``*``: the values of maps and the elements of lists."""
    return bounded(part for each in values for part in _parts(each))


def descendants(values: Values) -> Values:
    """``..``: all values that have parts, each before its parts, and the strings."""
    return bounded(_descendants(values))


def _descendants(values: Values) -> Iterator[Any]:
    for each in values:
        if parts := _parts(each):
            yield each
            yield from _descendants(parts)
        elif isinstance(each, str) and each:
            yield each


def picking(first: str, last: str | None, every: str | None) -> Run:
    """``[first:last:every]`` or ``[first]``. Raises ``ValueError``, as does the returned function."""
    start = int(first) if first else None
    stop = int(last[1:]) if last and last != ":" else None
    step = int(every[1:]) if every and every != ":" else 1
    is_index = last is None

    def pick(values: Values) -> Values:
        found: Values = []
        for each in values:
            if each is None:
                continue
            if not isinstance(each, list):
                raise ValueError(f"{_kind(each)} has no elements")
            low, high = _bounds(start, (start or 0) + 1 if is_index else stop, len(each), is_index)
            if low == high or len(found) > MAX_VALUES:
                return found
            if step <= 0:
                raise ValueError("the step must be greater than 0")
            found += each[low:high:step]
        return found

    return pick


def _bounds(start: int | None, stop: int | None, length: int, is_index: bool) -> tuple[int, int]:
    low = start or 0
    low += length if low < 0 else 0
    high = length if stop is None else stop
    high += length if high < 0 or (high == 0 and is_index) else 0
    if low != high:
        if not 0 <= low < length:
            raise ValueError(f"index {low} is out of bounds: the length is {length}")
        if not 0 <= high <= length:
            raise ValueError(f"index {high - 1} is out of bounds: the length is {length}")
        if low > high:
            raise ValueError(f"the start {low} is after the end {high}")
    return low, high


def _elements(values: Values) -> Iterator[Any]:
    for each in values:
        if not isinstance(each, list):
            raise ValueError(f"{_kind(each)} has no elements to filter")
        yield from each


def existing(path: Action) -> Run:
    """``[?(path)]``: the elements that have the path."""
    return lambda values: [each for each in _elements(values) if path.run([each])]


def comparing(left: Action, operator: str, right: Action) -> Run:
    """``[?(left operator right)]``: the elements that match; both sides must have the same type."""

    def holds(element: Any) -> bool:
        sides = [left.run([element]), right.run([element])]
        if any(len(each) > 1 for each in sides):
            raise ValueError("only single values can be compared, but there are several")
        if not all(sides):
            return False
        (first,), (second,) = sides
        kinds = {_kind(first), _kind(second)}
        if len(kinds) > 1 or not kinds <= _COMPARABLE or (kinds == {"a boolean"} and operator not in ("==", "!=")):
            raise ValueError(f"{_kind(first)} {operator} {_kind(second)} cannot be compared")
        return COMPARISONS[operator](first, second)

    return lambda values: [each for each in _elements(values) if holds(each)]


_COMPARABLE = {"a text", "an integer", "a number", "a boolean"}


def _kind(value: Any) -> str:
    for kind, name in ((bool, "a boolean"), (int, "an integer"), (float, "a number"), (str, "a text"), (dict, "a map")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "a list"


_EXAMPLES = {
    "jsonpath": "-o jsonpath='{range .items[*]}{.pod}{\"\\n\"}{end}'",
    "custom-columns": "-o custom-columns=POD:.pod,OUTCOME:.outcome",
}
# The parameters of kubectl's table writer: GetNewTabWriter in cli-runtime/pkg/printers.
_MIN_WIDTH, _PADDING = 6, 3


class _Column(NamedTuple):
    header: str
    path: JsonPath


def check_template(format: str, template: str) -> None:  # noqa: A002 - the option's name
    """Check the template of one of ``answers.TEMPLATE_FORMATS``. Raises ``UsageError`` with the error's position."""
    if not template:
        raise UsageError(f"-o {format}: the template is missing", hint=_EXAMPLES[format])
    _jsonpath(template) if format == "jsonpath" else _columns(template)


def render_template(answer: msgspec.Struct, format: str, template: str) -> str:  # noqa: A002 - the option's name
    """Render the answer's document with a template. Raises ``UsageError`` if the two do not fit."""
    document = msgspec.to_builtins(answer)
    return _filled(_jsonpath(template), document) if format == "jsonpath" else _table(_columns(template), document)


def _jsonpath(template: str) -> JsonPath:
    try:
        # kubectl prints a path without braces as literal text, which is never useful.
        return JsonPath(template if "{" in template else relaxed(template))
    except JsonPathError as error:
        raise UsageError(f"-o jsonpath: {error}", hint=_EXAMPLES["jsonpath"]) from None


def _filled(path: JsonPath, document: Any) -> str:
    try:
        return "".join(" ".join(map(_text, values)) for values in path.results(document))
    except JsonPathError as error:
        raise UsageError(f"-o jsonpath: {error}") from None


def _columns(spec: str) -> list[_Column]:
    return [_column(part) for part in spec.split(",")]


def _column(part: str) -> _Column:
    header, colon, path = part.partition(":")
    if not colon or not path:
        raise UsageError(f"-o custom-columns: {part!r} is not HEADER:PATH", hint=_EXAMPLES["custom-columns"])
    try:
        return _Column(header, JsonPath(relaxed(path)))
    except JsonPathError as error:
        raise UsageError(f"-o custom-columns: {header}: {error}", hint=_EXAMPLES["custom-columns"]) from None


def _table(columns: Sequence[_Column], document: Any) -> str:
    """A row per item of a list, else one for the document."""
    items = document.get("items")
    shown = items if isinstance(items, list) else [document]
    rows = [[each.header for each in columns], *([_cell(each, item) for each in columns] for item in shown)]
    widths = [max(_MIN_WIDTH, max(map(len, cells)) + _PADDING) for cells in zip(*rows, strict=True)]
    return "".join(
        "".join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)), row[-1]]) + "\n"
        for row in rows
    )


def _cell(column: _Column, item: Any) -> str:
    try:
        values = [value for values in column.path.results(item) for value in values]
    except JsonPathError as error:
        raise UsageError(f"-o custom-columns: {column.header}: {error}") from None
    return ",".join(printable(_go_text(value)) for value in values) or "<none>"


def _text(value: Any) -> str:
    if isinstance(value, TemplateText):
        return str(value)
    if isinstance(value, dict | list):
        # As Go encodes it: keys sorted, and HTML characters escaped.
        json = printable_json(msgspec.json.encode(value, order="deterministic").decode())
        return json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return "null" if value is None else printable(_go_text(value))


def _go_text(value: Any) -> str:
    """A value as printed by Go's ``fmt``."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_text, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "<nil>"
    return _go_float(value) if isinstance(value, float) else str(value)


def _go_float(value: float) -> str:
    """The shortest digits that represent the number, with an exponent outside of 1e-4 to 1e6."""
    if value == 0 or not math.isfinite(value):
        return repr(value).removesuffix(".0")
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if -4 <= exponent < 6:
        return format(number, "f")
    return f"{format(number.scaleb(-exponent), 'f')}e{exponent:+03d}"
