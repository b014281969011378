"""A page as plain text, or in colour, which adds to words and symbols and never replaces them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from kpreempt.report.layout import Line, Page, Style, to_plain
from kpreempt.report.options import RenderOptions

if TYPE_CHECKING:
    from rich.style import Style as TerminalStyle


def finished(page: Page, options: RenderOptions) -> str:
    """The page as text, in colour if that is wanted."""
    return to_coloured(page.lines) if options.colour else to_plain(page.lines)


def to_coloured(lines: Iterable[Line]) -> str:
    """The lines with escape sequences of the 16 basic colours; without those it is the plain text."""
    return "".join("".join(_render(text, style) for text, style, _ in line) + "\n" for line in lines)


def _render(text: str, style: Style) -> str:
    if style in ("", "name", "code"):
        return text
    from rich.color import ColorSystem  # noqa: PLC0415 - only loaded for colour

    return _styles()[style].render(text, color_system=ColorSystem.STANDARD)


@cache
def _styles() -> dict[Style, TerminalStyle]:
    from rich.style import Style as TerminalStyle  # noqa: PLC0415 - only loaded for colour

    return {
        "strong": TerminalStyle(bold=True),
        "heading": TerminalStyle(bold=True, color="cyan"),
        "good": TerminalStyle(color="green"),
        "bad": TerminalStyle(color="red", bold=True),
        "warn": TerminalStyle(color="yellow"),
        "dim": TerminalStyle(dim=True),
    }
