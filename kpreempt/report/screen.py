"""An answer on one screen: blocks of which as much is shown as there is room for, and what is left out is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_first_assumption
from kpreempt.report.colour import finished
from kpreempt.report.explain.screen_frame import clipped, elided
from kpreempt.report.layout import Align, Line, Page, Phrase, Span
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Assumption

_INDENT = 2
_LINES_OF_HEAD = 3
# An empty line, and how many are left out with their blocks.
_LINES_OF_REST = 2


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
    return clipped(page.lines, most, options.width) if most else page.lines


def titled(options: RenderOptions, label: Span, words: str = "") -> list[Line]:
    """The head of a block: its label, and what it is about."""
    return paragraph(options, label, f"  {words}" if words else "", indent=0, most=_LINES_OF_HEAD)


def table_block(
    options: RenderOptions,
    head: Sequence[Line],
    rows: Sequence[tuple[Phrase, ...]],
    noun: str,
    *,
    aligns: Sequence[Align],
    most: int = 2,
    is_needed: bool = False,
) -> Block:
    """A table whose first row is the titles, each of the others an item of ``most`` lines at most."""
    page = Page(options.width)
    titles, *items = [clipped(each, most, options.width) for each in page.rows(rows, aligns=aligns, indent=_INDENT)]
    return Block([*head, *titles], items, noun, is_needed)


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
    page.lines = [elided(line, options.width) for line in page.lines]
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
