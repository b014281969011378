"""Colour for a terminal: adds to words and symbols, never replaces them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.color import ColorSystem
from rich.style import Style as TerminalStyle

from kpreempt.report.layout import Line, Style

_STYLES: dict[Style, TerminalStyle] = {
    "strong": TerminalStyle(bold=True),
    "heading": TerminalStyle(bold=True, color="cyan"),
    "good": TerminalStyle(color="green"),
    "bad": TerminalStyle(color="red", bold=True),
    "warn": TerminalStyle(color="yellow"),
    "dim": TerminalStyle(dim=True),
}


def to_coloured(lines: Iterable[Line]) -> str:
    """The lines with escape sequences of the 16 basic colours; without those it is the plain text."""
    return "".join("".join(_render(text, style) for text, style in line) + "\n" for line in lines)


def _render(text: str, style: Style) -> str:
    if not style:
        return text
    return _STYLES[style].render(text, color_system=ColorSystem.STANDARD)
