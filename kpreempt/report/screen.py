"""An answer on one screen: blocks of which as much is shown as there is room for, and what is left out is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_first_assumption
from kpreempt.report.colour import finished
from kpreempt.report.escape import printable
from kpreempt.report.layout import Line, Page, Span, width_of
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Assumption

_INDENT = 2
_LINES_OF_HEAD = 3
# An empty line, and how many are left out with their blocks.
_LINES_OF_REST = 2
_CUT = " … (-v)"
_MARK = "…"
# How much of a name that is too long is its start; the end tells pods of one workload apart.
_START = 0.5


class Block(NamedTuple):
    """Lines that stand above, and items of some lines each; ``noun`` is what one is called that is left out.

    One that ``is_needed`` is there on any screen, if only by the number of its items.
    """

    head: Sequence[Line]
    items: Sequence[Sequence[Line]]
    noun: str
    is_needed: bool = False


def paragraph(
    options: RenderOptions, *phrase: str | Span, indent: int = _INDENT, hanging: int = 2, most: int = 0
) -> list[Line]:
    """The lines of a paragraph, ``most`` of them at most unless that is 0; what is cut says so."""
    page = Page(options.width)
    page.paragraph(*phrase, indent=indent, hanging=hanging)
    return _clipped(page.lines, most, options.width) if most else page.lines


def titled(options: RenderOptions, label: Span, words: str = "") -> list[Line]:
    """The head of a block: its label, and what it is about."""
    return paragraph(options, label, f"  {words}" if words else "", indent=0, most=_LINES_OF_HEAD)


def fill(
    page: Page, blocks: Sequence[Block], assumptions: Sequence[Assumption], more: str, options: RenderOptions
) -> str:
    """The page, on which the sentence is, with as much of the blocks as a screen holds, and ``more`` in the last line.

    Each block gets its first item while there is room, in their order, and then as many as fit.
    """
    closing = Page(options.width)
    add_first_assumption(closing, assumptions)
    closing.paragraph(Span(f"More: {more}", "dim"), most=1)
    told = [block for block in blocks if block.items]
    room = options.room_of_blocks(len(page.lines) + len(closing.lines))
    shown = _shown(told, room)
    if _left_out(told, shown):
        shown = _shown(told, room - _LINES_OF_REST)
    for block, number in zip(told, shown, strict=True):
        if lines := _lines(block, number):
            page.blank()
            page.lines += lines
    if rest := _left_out(told, shown):
        page.blank()
        page.paragraph(Span(f"… and {rest} (-v)", "dim"), most=1)
    page.blank()
    page.lines += closing.lines
    page.lines = [_elided(line, options.width) for line in page.lines]
    return finished(page, options)


def _shown(blocks: Sequence[Block], room: int) -> list[int]:
    """How many items of each block are shown."""
    shown = [0] * len(blocks)

    def add(at: int) -> bool:
        """One item more, if it fits."""
        longer = [*shown[:at], shown[at] + 1, *shown[at + 1 :]]
        fits = longer[at] <= len(blocks[at].items) and _size(blocks, longer) <= room
        shown[at] = longer[at] if fits else shown[at]
        return fits

    for at in range(len(blocks)):
        add(at)
    for at in range(len(blocks)):
        while add(at):
            pass
    return shown


def _left_out(blocks: Sequence[Block], shown: Sequence[int]) -> str:
    """What is in blocks that are not there at all."""
    numbers: dict[str, int] = {}
    for block, number in zip(blocks, shown, strict=True):
        if not number and not block.is_needed:
            numbers[block.noun] = numbers.get(block.noun, 0) + len(block.items)
    return ", ".join(count(number, f"more {noun}") for noun, number in numbers.items())


def _size(blocks: Sequence[Block], shown: Sequence[int]) -> int:
    """The lines of the blocks, with an empty one before each."""
    sizes = [len(_lines(block, number)) for block, number in zip(blocks, shown, strict=True)]
    return sum(size + 1 for size in sizes if size)


def _lines(block: Block, shown: int) -> list[Line]:
    if not shown and not block.is_needed:
        return []
    lines = [*block.head, *(line for item in block.items[:shown] for line in item)]
    if rest := len(block.items) - shown:
        lines.append((Span(" " * _INDENT), Span(f"… and {count(rest, f'more {block.noun}')} (-v)", "dim")))
    return lines


def _clipped(lines: Sequence[Line], most: int, width: int) -> list[Line]:
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


def _elided(line: Line, width: int) -> Line:
    """The line with its longest words shortened in the middle until it fits."""
    over = _width(line) - width
    while over > 0:
        words = [(at, word) for at, span in enumerate(line) for word in span.text.split(" ")]
        at, word = max(words, key=lambda each: width_of(each[1]), default=(0, ""))
        if width_of(word) <= 1:
            break
        short = _shortened(word, max(width_of(word) - over, 1))
        line = (*line[:at], Span(line[at].text.replace(word, short, 1), line[at].style), *line[at + 1 :])
        over = _width(line) - width
    return line


def _shortened(text: str, width: int) -> str:
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
