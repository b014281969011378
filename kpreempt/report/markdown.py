"""Markdown in which nothing from the input is markup: text, code spans, fenced blocks and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tabulate import tabulate

from kpreempt.report.escape import printable
from kpreempt.report.layout import Phrase, Span, plain

_SPECIAL = re.compile(r"[\\`*_\[\]<>#|~!&$]|://|(?i:www\.)")
_BACKTICKS = re.compile(r"`+")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], aligns: Sequence[str]) -> str:
    """A table with padded columns, of cells that are Markdown already."""
    return tabulate(rows, headers=headers, tablefmt="pipe", colalign=aligns, disable_numparse=True)


def escaped(text: str) -> str:
    """Text of which no character is markup, and that no one turns into a link."""
    return _SPECIAL.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", printable(text))


def emphasised(phrase: Phrase) -> str:
    """A phrase with what stands out in bold type."""
    parts = []
    for part in phrase:
        text, style = part if isinstance(part, Span) else (part, "")
        shown = escaped(text)
        is_bold = style in ("strong", "bad") and shown.strip()
        parts.append(f"{shown[: len(shown) - len(shown.lstrip())]}**{shown.strip()}**" if is_bold else shown)
    return "".join(parts)


def code(text: str) -> str:
    """Text in a code span that also holds inside a table."""
    shown = plain((text,)).replace("|", "\\|")
    if not shown:
        return ""
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    padding = " " if "`" in shown else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def fenced_report(text: str) -> str:
    """A report for a terminal, which shows no hidden characters any more, as a block that keeps its columns."""
    return _in_fence(text.rstrip("\n"))


def fenced(text: str) -> str:
    """Text as a block that keeps its columns."""
    return _in_fence(printable(text))


def _in_fence(shown: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    return f"{fence}text\n{shown}\n{fence}"
