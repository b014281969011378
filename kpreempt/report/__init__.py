"""Verdicts as text: pure functions from records to a string, one module per format.

Nothing here decides anything about scheduling, prints, or reads the clock; time, width and colour come in
``RenderOptions``. ``render`` loads a format's module when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from kpreempt.errors import UsageError
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict

_MODULES = {
    "text": "kpreempt.report.format_text",
    "json": "kpreempt.report.format_json",
    "yaml": "kpreempt.report.format_yaml",
    "jsonl": "kpreempt.report.format_jsonl",
    "name": "kpreempt.report.format_name",
    "wide": "kpreempt.report.format_wide",
    "markdown": "kpreempt.report.format_markdown",
}
FORMATS = tuple(_MODULES)


class _Format(Protocol):
    def render(self, verdicts: Sequence[Verdict], options: RenderOptions, /) -> str: ...


def render(verdicts: Sequence[Verdict], format: str, *, options: RenderOptions | None = None) -> str:  # noqa: A002 - the option's name
    """The verdicts in one of ``FORMATS``, in the order given, ending with a newline unless empty.

    Raises ``UsageError`` for a format that there is not.
    """
    if format not in _MODULES:
        raise UsageError(f"there is no output format {format!r}", hint=", ".join(FORMATS))
    module = cast(_Format, import_module(_MODULES[format]))
    return module.render(verdicts, options or RenderOptions())


__all__ = ["FORMATS", "RenderOptions", "render"]
