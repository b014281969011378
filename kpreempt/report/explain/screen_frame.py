"""What keeps an answer on one screen: labels beside sections, lines that are cut, names that are shortened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kpreempt.report.escape import printable
from kpreempt.report.layout import Line, Page, Span, Style, width_of
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict

# Where the text beside a label starts; "ELSEWHERE" is the longest.
COLUMN = 10
_CUT = " … (-v)"
_MARK = "…"
# How much of a name that is too long is its start; the end tells pods of one workload apart.
_START = 0.5


class Room(NamedTuple):
    """How many lines each section may take, of lists how many items."""

    replicas: int
    capacity: int
    sentence: int
    victims: int
    groups: int
    elsewhere: int
    event: int
    changes: int
    assumed: int
    steps: int


# The field of ``Room`` that a section goes by, and what writes it.
Section = tuple[str, Callable[[Verdict, RenderOptions, Room], list[Line]]]


def beside(label: str, page: Page, style: Style = "heading") -> list[Line]:
    """The page's lines with a label before the first; they are narrower than the screen by ``COLUMN``."""
    lines: list[Line] = []
    for number, line in enumerate(page.lines):
        start = Span("" if number else label, style), Span(" " * (COLUMN - (0 if number else len(label))))
        lines.append((*(span for span in start if span.text), *line))
    return lines


def clipped(lines: Sequence[Line], most: int, width: int) -> list[Line]:
    """At most so many lines; where some are left out the last one says so."""
    if len(lines) <= most:
        return list(lines)
    last: list[Span] = []
    used, room = 0, width - len(_CUT)
    for text, style, _ in lines[most - 1]:
        # As many words as fit, or what fits of the only one.
        start = _start_of(text, room - used)
        kept = start if start == text or " " not in start.strip() else start[: start.rindex(" ")]
        last.append(Span(kept, style))
        used += width_of(kept)
        if kept != text:
            break
    if last:
        last[-1] = Span(last[-1].text.rstrip(), last[-1].style)
    return [*lines[: most - 1], (*last, Span(_CUT, "dim"))]


def elided(line: Line, width: int) -> Line:
    """The line with its longest words shortened in the middle until it fits."""
    over = _width(line) - width
    while over > 0:
        words = [(at, word) for at, span in enumerate(line) for word in span.text.split(" ")]
        at, word = max(words, key=lambda each: width_of(each[1]), default=(0, ""))
        if width_of(word) <= 1:
            break
        short = shortened(word, max(width_of(word) - over, 1))
        line = (*line[:at], Span(line[at].text.replace(word, short, 1), line[at].style), *line[at + 1 :])
        over = _width(line) - width
    return line


def shortened(text: str, width: int) -> str:
    """The text, or its start and its end with a mark between them, in so many cells."""
    text = printable(text)
    if width_of(text) <= width:
        return text
    if width <= 1:
        return _MARK
    start = _start_of(text, int((width - 1) * _START))
    end = _start_of(text[::-1], width - 1 - width_of(start))[::-1]
    return f"{start}{_MARK}{end}"


def _start_of(text: str, width: int) -> str:
    """As many characters as fit."""
    if width_of(text) <= width:
        return text
    end = used = 0
    for character in text:
        used += width_of(character)
        if used > width:
            break
        end += 1
    return text[:end]


def _width(line: Line) -> int:
    return sum(width_of(span.text) for span in line)
