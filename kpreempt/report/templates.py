"""``-o jsonpath=TEMPLATE`` and ``-o custom-columns=HEADER:PATH,...``, as kubectl writes them, from the JSON document.

Text from the document is written so that no terminal obeys it; the template's own text stands as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from kpreempt.errors import UsageError
from kpreempt.report.escape import printable, printable_json
from kpreempt.report.jsonpath import JsonPath, JsonPathError, TemplateText, relaxed

_EXAMPLES = {
    "jsonpath": "-o jsonpath='{range .items[*]}{.pod}{\"\\n\"}{end}'",
    "custom-columns": "-o custom-columns=POD:.pod,OUTCOME:.outcome",
}
# Of the tab writer that kubectl writes tables with: GetNewTabWriter in cli-runtime/pkg/printers.
_LEAST_WIDTH, _PADDING = 6, 3


class _Column(NamedTuple):
    header: str
    path: JsonPath


def check_template(format: str, template: str) -> None:  # noqa: A002 - the option's name
    """Raise ``UsageError`` with the place where the template of one of ``answers.TEMPLATE_FORMATS`` is wrong."""
    if not template:
        raise UsageError(f"-o {format}: the template is missing", hint=_EXAMPLES[format])
    _jsonpath(template) if format == "jsonpath" else _columns(template)


def render_template(answer: msgspec.Struct, format: str, template: str) -> str:  # noqa: A002 - the option's name
    """The answer's document by a template. Raises ``UsageError`` where the two do not fit."""
    document = msgspec.to_builtins(answer)
    return _filled(_jsonpath(template), document) if format == "jsonpath" else _table(_columns(template), document)


def _jsonpath(template: str) -> JsonPath:
    try:
        # kubectl prints a path without braces as it stands, which nobody wants.
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
    """A row for each item of a list, else one for the document."""
    items = document.get("items")
    shown = items if isinstance(items, list) else [document]
    rows = [[each.header for each in columns], *([_cell(each, item) for each in columns] for item in shown)]
    widths = [max(_LEAST_WIDTH, max(map(len, cells)) + _PADDING) for cells in zip(*rows, strict=True)]
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
        # As Go encodes it: keys in order, and nothing that could be HTML.
        json = printable_json(msgspec.json.encode(value, order="deterministic").decode())
        return json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return "null" if value is None else printable(_go_text(value))


def _go_text(value: Any) -> str:
    """A value as Go's ``fmt`` prints it."""
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
    """The fewest digits that mean the number, with an exponent outside of 1e-4 to 1e6."""
    if value == 0 or not math.isfinite(value):
        return repr(value).removesuffix(".0")
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if -4 <= exponent < 6:
        return format(number, "f")
    return f"{format(number.scaleb(-exponent), 'f')}e{exponent:+03d}"
