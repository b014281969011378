"""Reports for a terminal: blocks drawn with rich, in any length from one screen to everything.

Lines break at spaces only: a name wider than the page overflows in a report; a screen shortens it in the middle.
Color adds to words and symbols and never replaces them, and is the last step: without it, the text is the same.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from io import StringIO
from itertools import chain
from string import ascii_uppercase
from typing import Literal, NamedTuple

from msgspec import Struct
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.text import Text
from rich.tree import Tree as Branch

from kpreempt.report.amounts import count
from kpreempt.report.blocks import (
    Align,
    Block,
    Cards,
    Code,
    Fold,
    Hint,
    Listing,
    Node,
    Picture,
    Report,
    Role,
    Rows,
    Section,
    Sentence,
    Span,
    Table,
    Timeline,
    Tree,
    Words,
    joined,
    phrase_of,
    spans_of,
    text_of,
)
from kpreempt.report.escape import printable
from kpreempt.report.options import Extent, RenderOptions

_STYLES: dict[Role, str] = {
    "strong": "bold",
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "dim": "dim",
    "heading": "bold cyan",
    "code": "dim",
}
# The marks of cards.
_MARKS: dict[Role, str] = {"good": "✓ ", "bad": "✗ ", "warn": "! "}
_WORD = re.compile(r" *[^ ]+ *")
_INDENT = 2
_GAP = 2
# The column of the text after a section's label.
_LABEL_COLUMN = 14
# More than a name of Kubernetes has characters.
_CUTS_TRIED = 256
# If less width is left, a last column is not wrapped in place.
_NARROWEST_COLUMN = 24
# A table with this many columns is a list of labels, not columns to compare.
_NARROW_TABLE = 2
# The width that rich draws for each level of a tree.
_GUIDE = 4
_DEEPEST = 4
# On a screen: lines for the command line and the prompt, and the limits for the first sentences, facts, and an item.
_AROUND = 2
_LINES_OF_LEAD = 8
_LINES_OF_FACTS = 2
_LINES_OF_ITEM = 5
# A section is cut to this many lines before others are omitted.
_MIN_LINES = 2
_CUT = " … (-v)"
# A name is not shortened further to keep a line from wrapping.
_SHORTEST_NAME = 12
# What may follow a name in a sentence.
_PUNCTUATION = ".,:;()"


class _Chunk(NamedTuple):
    """Lines that stay together; ``noun`` is the name of an item if they are one of several.

    A chunk without lines stands for a ``number`` of items that don't fit on any screen. One that ``is_complete`` is not
    cut. ``mark`` ends the last line of a cut chunk. ``parts`` are the last lines of a chunk that is cut between them:
    the number of lines of each, and of the things it stands for, whose noun is ``part``. ``head`` is the number of
    lines that are cut so that one of those below them stays.
    """

    lines: list[Text]
    noun: str = ""
    number: int = 1
    is_complete: bool = False
    mark: str = _CUT
    parts: Sequence[tuple[int, int]] = ()
    part: str = ""
    head: int = 0


def render_text(report: Report, options: RenderOptions) -> str:
    """The report as text, with as much of it as ``options.extent`` requests."""
    if options.extent is Extent.LINE:
        # At full width: the program that it is pasted into wraps the lines.
        lines = [_text(words) for words in (report.lead, *(section.lead for section in report.sections)) if words]
    elif options.extent is Extent.SCREEN and not report.is_complete:
        lines = _screen(report, options)
    else:
        lines = _full(report, options)
    return "".join(_written(line, is_colored=options.color) for line in lines)


def _written(line: Text, *, is_colored: bool) -> str:
    """The line without trailing spaces, with escape sequences for the 16 basic colors if ``is_colored``."""
    line.rstrip()
    if not is_colored:
        return f"{line.plain}\n"
    segments = line.render(_console(), end="\n")
    return "".join(
        style.render(text, color_system=ColorSystem.STANDARD) if style else text for text, style, _ in segments
    )


@cache
def _console() -> Console:
    """A console that prints nothing and ignores the environment, so that drawing depends on nothing else."""
    return Console(file=StringIO(), width=80, height=25, color_system=None, legacy_windows=False, _environ={})


def _full(report: Report, options: RenderOptions) -> list[Text]:
    """Every section below the first sentences."""
    drawing = _Drawing("" if options.verbose else report.hint)
    lines = _wrapped(report.lead, options.width) if report.lead else []
    for fact in report.facts:
        lines += _indented(_wrapped(_text(fact, "dim"), options.width - _INDENT, _INDENT), _INDENT)
    for section in report.shown_sections():
        if lines:
            lines += [Text()] if section.label else [Text(), Text("─" * options.width, "dim"), Text()]
        lines += _lines_of(drawing.section(section, options.width))
    return lines


def _screen(report: Report, options: RenderOptions) -> list[Text]:
    """The most important sections, cut until all fit, and how to see more."""
    width, gap = options.width, 0 if report.is_compact else 1
    lead = report.short_lead or report.lead
    head = _clipped(_wrapped(lead, width), _LINES_OF_LEAD, width) if lead else []
    end = []
    if facts := _text(report.short_facts or joined(report.facts, " · "), "dim"):
        if report.is_compact:
            end = _clipped(_next_to(Text(), _wrapped(facts, width - _LABEL_COLUMN)), 1, width)
        else:
            head += _clipped(_indented(_wrapped(facts, width - _INDENT, _INDENT), _INDENT), _LINES_OF_FACTS, width)
    if report.more:
        end.append(_more(report.more, width))
    names = _Names(report, options.height)
    drawing = _Drawing(height=options.height, names=names)
    ranked = sorted(report.shown_sections("screen"), key=lambda section: -section.priority)
    ranked = [each for each in ranked if each.priority and not (each.short or each).is_empty]
    sections = [
        [
            chunk if chunk.is_complete or chunk.parts or not chunk.noun else _cut(chunk, _LINES_OF_ITEM, width)
            for chunk in drawing.section(section.short or section, width, is_compact=report.is_compact)
        ]
        for section in ranked
    ]
    space = options.height - _AROUND - len(head) - len(end) - 1 - gap
    lines = head
    for number, shown in enumerate(_fitted(sections, ranked, space, gap, width)):
        lines += [*([] if number and not gap else [Text()]), *shown]
    lines += [*([Text()] if gap and end else []), *end]
    return [_elided(line, width, names) for line in lines]


class _Names:
    """The words on a page, among which a shortened one stays distinguishable."""

    def __init__(self, report: Report, most: int) -> None:
        self._report, self._most = report, most

    @cached_property
    def _words(self) -> set[str]:
        parts = [self._report.lead, self._report.short_lead, self._report.facts, self._report.sections]
        return {word.strip(_PUNCTUATION) for text in _texts(parts, self._most) for word in text.split(" ")}

    def shorten(self, text: str, cells: int) -> str:
        """Shorten a text in the middle to at most ``cells`` cells, but at least one.

        If possible, no other word begins and ends like the result: the cut is moved from the middle, or the part that
        differs is kept between two cuts.
        """
        keep, half = max(cells, 1) - 1, max(cells - 1, 0) // 2
        even = f"{_ending(text, half, 1)}…{_ending(text, keep - half, -1)}"
        rivals = [word for word in self._words if _matches(even, word) and word != text]
        if not rivals:
            return even
        others = {word for word in self._words if word != text}
        heads = sorted(range(keep + 1), key=lambda head: abs(head - half))[:_CUTS_TRIED]
        cuts: Iterator[str] = (f"{_ending(text, head, 1)}…{_ending(text, keep - head, -1)}" for head in heads)
        cuts = chain(cuts, self._cut_twice(text, keep, max(_common(text, word) for word in rivals)))
        return next((cut for cut in cuts if not any(_matches(cut, word) for word in others)), even)

    @staticmethod
    def _cut_twice(text: str, keep: int, differs: int) -> Iterator[str]:
        """The text with two cuts, around the position where it differs; none if there is no space for that."""
        if keep:
            side = (keep - 1) // 3
            window = _ending(text[max(differs - side // 2, 0) :], keep - 1 - 2 * side, 1)
            yield f"{_ending(text, side, 1)}…{window}…{_ending(text, side, -1)}"


def _texts(part: object, most: int) -> Iterator[str]:
    """The texts of a part of a report: of each sequence, the first ``most``."""
    match part:
        case str():
            yield part
        case Cards():
            for item in part.items[:most]:
                yield from _texts(part.draw(item), most)
        case Struct():
            for field in part.__struct_fields__:
                yield from _texts(getattr(part, field), most)
        case list() | tuple():
            for each in part[:most]:
                yield from _texts(each, most)


def _ending(text: str, cells: int, step: Literal[1, -1]) -> str:
    """As much of the beginning of the text as fits, or of its end for the step -1."""

    def part(size: int) -> str:
        """Return the beginning or the end of this size."""
        return text[:size] if step > 0 else text[len(text) - size :]

    return part(bisect_right(range(min(cells, len(text)) + 1), cells, key=lambda size: cell_len(part(size))) - 1)


def _common(one: str, other: str) -> int:
    """The length of the common beginning of two different words."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _matches(shortened: str, word: str) -> bool:
    """Whether a word may be what was shortened."""
    head, *middle, tail = shortened.split("…")
    inner = word[len(head) : len(word) - len(tail)]
    is_long = len(word) > len(head) + len(tail)
    return is_long and word.startswith(head) and word.endswith(tail) and all(each in inner for each in middle)


def _fitted(
    sections: list[list[_Chunk]], ranked: Sequence[Section], space: int, gap: int, width: int
) -> list[list[Text]]:
    """The lines of as many sections as fit, with a last line about those that are omitted.

    The longest section is cut line by line until all fit (the last of several equally long ones), not counting reserved
    lines. If that is not enough, asides are omitted, then reserved lines are cut, and then the last section is omitted.
    Complete items with parts are not cut; if a screen has any, other sections are cut further before one is omitted.
    """
    complete = [
        sum(len(chunk.lines) if chunk.is_complete else 1 + bool(chunk.parts) for chunk in chunks)
        if any(chunk.is_complete and chunk.parts for chunk in chunks)
        else 0
        for chunks in sections
    ]
    left: list[int] = []
    while True:
        shown = {
            at: _shortened(chunks, max(space, _MIN_LINES), width)
            for at, chunks in enumerate(sections)
            if at not in left
        }
        while shown and sum(len(lines) + gap for lines in shown.values()) - gap + (1 + gap) * bool(left) > space:
            longest = {
                at: (len(lines) - max(ranked[at].reserved_lines, complete[at]), at)
                for at, lines in shown.items()
                if len(lines) > max(ranked[at].min_lines, complete[at])
            }
            last = max(shown, key=lambda at: (ranked[at].aside, at))
            if not longest and any(complete) and not ranked[last].aside:
                longest = {
                    at: (len(lines), at) for at, lines in shown.items() if len(lines) > max(_MIN_LINES, complete[at])
                }
            if not longest or (ranked[last].aside and max(longest.values())[0] <= _MIN_LINES):
                left.append(last)
                break
            at = max(longest, key=lambda at: longest[at])
            shown[at] = _shortened(sections[at], len(shown[at]) - 1, width)
        else:
            break
    # List the most important ones first.
    omitted: Counter[str] = Counter()
    labels = []
    for at in sorted(left):
        items = [chunk for chunk in sections[at] if chunk.noun]
        _count(omitted, items)
        labels += [] if items else [(ranked[at].short or ranked[at]).label]
    rest = _left_out(omitted, labels=labels)
    return [*shown.values(), *([_clipped(_wrapped(rest, width), 1, width)] if left else [])]


def _shortened(chunks: Sequence[_Chunk], most: int, width: int) -> list[Text]:
    """Limit a section to ``most`` lines: first shorten items, then omit the last ones, which are counted."""
    shown = list(chunks)
    size, left, indent = sum(len(chunk.lines) for chunk in shown), Counter[str](), 0
    items = [at for at, chunk in enumerate(shown) if chunk.noun]
    for lines in range(max((len(shown[at].lines) for at in items), default=0) - 1, 0, -1):
        for at in reversed(items):
            if size > most and not shown[at].is_complete and len(shown[at].lines) > lines:
                size -= len(shown[at].lines)
                shown[at] = _cut(chunks[at], lines, width)
                size += len(shown[at].lines)
    # The first item stays if it is on the label's line, because the label must stay.
    while items and items[-1] and (size + bool(left) > most or not shown[items[-1]].lines):
        last = shown.pop(items.pop())
        size -= len(last.lines)
        _count(left, [last])
        if last.lines:
            first = last.lines[0].plain
            indent = len(first) - len(first.lstrip(" "))
    rest = _indented([_left_out(left)], indent) if left else []
    return [*_clipped(_lines_of(shown), most - len(rest), width), *rest]


def _cut(chunk: _Chunk, most: int, width: int) -> _Chunk:
    """Limit a chunk to ``most`` lines: between its parts, with a line that counts the omitted ones, or in its text."""
    if 1 < most < len(chunk.lines) and 1 < chunk.head < len(chunk.lines):
        sentence = _clipped(chunk.lines[: chunk.head], most - 1, width, " …")
        below = _clipped(chunk.lines[chunk.head :], most - len(sentence), width, chunk.mark)
        return chunk._replace(lines=[*sentence, *below], head=len(sentence))
    head = len(chunk.lines) - sum(lines for lines, _ in chunk.parts)
    if not chunk.parts or len(chunk.lines) <= most or head >= most:
        return chunk._replace(lines=_clipped(chunk.lines, most, width, chunk.mark))
    at, kept = head, 0
    while at + chunk.parts[kept][0] < most:
        at += chunk.parts[kept][0]
        kept += 1
    first = chunk.lines[head].plain
    rest = _left_out(Counter({chunk.part: sum(number for _, number in chunk.parts[kept:])}), is_more=kept > 0)
    return chunk._replace(lines=[*chunk.lines[:at], *_indented([rest], len(first) - len(first.lstrip(" ")))])


def _count(numbers: Counter[str], chunks: Iterable[_Chunk]) -> None:
    for chunk in chunks:
        numbers[chunk.noun] += chunk.number


def _left_out(numbers: Counter[str], *, labels: Sequence[str] = (), is_more: bool = True) -> Text:
    """The numbers of omitted items, which are ``more`` than the shown ones or all items, and omitted sections."""
    more = "more " if is_more else ""
    counted = ", ".join([*(count(number, f"{more}{noun}") for noun, number in numbers.items()), *labels])
    return _text(Span(f"… {'and ' if is_more else ''}{counted} (-v)", "dim"))


def _lines_of(chunks: Iterable[_Chunk]) -> list[Text]:
    return [line.copy() for chunk in chunks for line in chunk.lines]


def _more(options: Iterable[tuple[str, str]], width: int) -> Text:
    """``More:`` and as many options as fit on a line, with their descriptions if these fit."""
    line = _text(Span("More:", "dim"))
    for option, what in options:
        for words in (f" ({what})" if what else "", ""):
            longer = Text.assemble(
                line, _text(("  " if len(line) > len("More:") else " ", Span(option, "strong"), Span(words, "dim")))
            )
            if longer.cell_len <= width:
                line = longer
                break
    return line


class _Drawing:
    """Draws blocks. ``hint`` is the option that lists what is omitted; if it is empty, nothing is omitted.

    On a screen, ``height`` is the maximum number of items per block, and ``names`` are shortened.
    """

    def __init__(self, hint: str = "", height: int = 0, names: _Names | None = None) -> None:
        self._hint = hint
        self._height = height
        self._names = names

    def section(self, section: Section, width: int, *, is_compact: bool = False) -> list[_Chunk]:
        """The label with the lead, and the blocks next to it or below; on a compact screen next to it if they fit."""
        label, lead = _text(Span(section.label, section.style)), phrase_of(section.lead)
        is_long = label.cell_len >= _LABEL_COLUMN
        is_inline = (is_compact or section.is_inline) and bool(section.label) and not is_long
        chunks: list[_Chunk] = []
        if is_long:
            chunks.append(_Chunk(_wrapped((Span(section.label, section.style), "  ", *lead), width, _INDENT)))
        elif not section.label and lead != ("",):
            chunks.append(_Chunk(_wrapped(lead, width, _INDENT)))
        elif section.label and (spans_of(lead) or not is_inline):
            chunks.append(_Chunk(_next_to(label, _wrapped(lead, width - _LABEL_COLUMN))))
        indent = _LABEL_COLUMN if is_inline else _INDENT if section.label else 0
        if is_inline and chunks and is_compact and self._needs_gap(section.blocks, width):
            indent = _INDENT
        for chunk in self._stacked(section.blocks, width - indent):
            is_first = is_inline and not chunks
            lines = _next_to(label, chunk.lines) if is_first else _indented(chunk.lines, indent)
            chunks.append(chunk._replace(lines=lines))
        return chunks

    def _needs_gap(self, blocks: Sequence[Block | Section], width: int) -> bool:
        """Whether a table has details, or its rows only fit on one line each if it starts at the left margin."""
        for block in blocks:
            if isinstance(block, Table) and block.has_details:
                return True
            if isinstance(block, Table) and block.items:
                rows = [[_text(cell) for cell in row] for row in block.items[: self._height or None]]
                needed = sum(_width(column) + _GAP for column in zip(*rows, strict=True)) - _GAP
                if width - _LABEL_COLUMN < needed <= width - _INDENT:
                    return True
        return False

    def _stacked(self, blocks: Sequence[Block | Section], width: int) -> list[_Chunk]:
        """Blocks in sequence; blocks after a sentence that ends with a colon are indented."""
        chunks: list[_Chunk] = []
        is_introduced = False
        for block in blocks:
            if isinstance(block, Section):
                if not block.is_empty and not block.only:
                    chunks += [_Chunk([Text()]), *self.section(block, width)]
                continue
            indent = _INDENT if is_introduced and not isinstance(block, Sentence) else 0
            if isinstance(block, Sentence) and spans_of(block.words):
                is_introduced = text_of(block.words).endswith(":")
            for chunk in self.block(block, width - indent):
                chunks.append(chunk._replace(lines=_indented(chunk.lines, indent)))
        return chunks

    def _card(self, section: Section, noun: str, width: int) -> _Chunk:
        """An item that is a section: a paragraph that starts with the label, and the blocks below it."""
        mark = Span(_MARKS.get(section.style, ""), section.style)
        lines = _wrapped((mark, Span(section.label, "strong"), "  ", *phrase_of(section.lead)), width, _INDENT)
        below = _indented(_lines_of(self._stacked(section.blocks, width - _INDENT)), _INDENT)
        return _Chunk([*lines, *below], noun, head=len(lines))

    def block(self, block: Block, width: int) -> list[_Chunk]:
        """The lines of a block, grouped by item."""
        match block:
            case Sentence():
                return [_Chunk(_wrapped(block.words, width, _INDENT))] if spans_of(block.words) else []
            case Hint():
                return [_Chunk(_wrapped(_text(block.words, "dim"), width, _INDENT))]
            case Code():
                lines = [
                    line
                    for each in block.lines
                    for line in ([_text(each)] if block.is_command else _wrapped(each, width))
                ]
                return [_Chunk(lines)]
            case Rows():
                return _terms(block.rows, width, "")
            case Fold() if block.is_brief and self._height:
                return []
            case Fold() if block.is_brief and self._hint:
                return [_Chunk(_wrapped(_text(block.summary, "dim"), width, _INDENT))]
            case Fold():
                return self._stacked(block.blocks, width)
            case Picture():
                return []
        if not block.items:
            return []
        limit = self._height or (block.shown if self._hint and block.shown else len(block.items))
        rest = len(block.items) - limit
        if isinstance(block, Table | Cards) and block.numbers:
            rest = sum(block.numbers[limit:])
        if isinstance(block, Cards):
            cards = [self._card(block.draw(item), block.noun, width) for item in block.items[:limit]]
            if block.numbers:
                cards = [card._replace(number=number) for card, number in zip(cards, block.numbers, strict=False)]
            return cards if block.is_summarized else [*cards, *self._rest(rest, block.noun, width)]
        if isinstance(block, Tree):
            rest = block.size(block.items[limit:])
        return [*_items(block, limit, width, self._names), *self._rest(rest, block.noun, width)]

    def _rest(self, rest: int, noun: str, width: int) -> list[_Chunk]:
        """A line about omitted items."""
        if rest <= 0:
            return []
        if self._height:
            return [_Chunk([], noun, rest)]
        return [_Chunk(_wrapped(Span(f"… and {count(rest, f'more {noun}')} ({self._hint})", "dim"), width, _INDENT))]


def _items(block: Timeline | Table | Listing | Tree, limit: int, width: int, names: _Names | None) -> list[_Chunk]:
    match block:
        case Timeline():
            return _terms(block.items[:limit], width, block.noun)
        case Table():
            return _table(block, block.items[:limit], width, names)
        case Listing():
            return _listing(block, block.items[:limit], width, names)
        case Tree():
            return [
                _branch(node, width, block.noun)._replace(number=block.size([node])) for node in block.items[:limit]
            ]


def _terms(rows: Sequence[tuple[Words, Words]], width: int, noun: str) -> list[_Chunk]:
    """Terms, with their descriptions in a column to the right."""
    terms = [_text(term, "dim") for term, _ in rows]
    column = _width(terms) + _GAP
    return [
        _Chunk(_next_to(term, _wrapped(words, width - column), column), noun)
        for term, (_, words) in zip(terms, rows, strict=True)
    ]


def _listing(block: Listing, items: Sequence[Sequence[Words]], width: int, names: _Names | None) -> list[_Chunk]:
    chunks = []

    def drawn(words: Words, width: int, hanging: int = _INDENT) -> list[Text]:
        """Wrapped, or on one line if names may be shortened for it."""
        if block.parts and names is not None:
            return _on_one_line(words, width, hanging, names)
        return _wrapped(words, width, hanging)

    for number, (first, *others) in enumerate(items, 1):
        ordinal = f"{number}. " if block.is_numbered and len(block.items) > 1 else ""
        indent = len(ordinal) or _INDENT
        lines = drawn((ordinal, *phrase_of(first)), width, indent)
        below = [_indented(drawn(words, width - indent), indent) for words in others]
        lines += [line for each in below for line in each]
        if block.parts:
            numbers = block.numbers[number - 1] if block.numbers else [1] * len(below)
            parts = list(zip(map(len, below), numbers, strict=True))
            whole = number - 1 in block.whole_items
            chunks.append(_Chunk(lines, block.noun, is_complete=whole, parts=parts, part=block.parts))
        else:
            chunks.append(_Chunk(lines, block.noun, is_complete=bool(others) or block.is_whole))
    return chunks


def _on_one_line(words: Words, width: int, hanging: int, names: _Names) -> list[Text]:
    """A phrase on one line, if it fits after the names in it are shortened; otherwise wrapped."""
    spans = [span._replace(text=printable(span.text)) for span in spans_of(words)]
    sizes = {at: cell_len(span.text) for at, span in enumerate(spans) if span.style == "name"}
    over = _text(words).cell_len - width
    while over > 0 and sizes and max(sizes.values()) > _SHORTEST_NAME:
        sizes[max(sizes, key=lambda at: sizes[at])] -= 1
        over -= 1
    if over > 0:
        return _wrapped(words, width, hanging)
    shortened = (
        span._replace(text=names.shorten(span.text, sizes[at])) if cell_len(span.text) > sizes.get(at, width) else span
        for at, span in enumerate(spans)
    )
    return [_text(tuple(shortened))]


def _table(table: Table, rows: Sequence[Sequence[Words]], width: int, names: _Names | None) -> list[_Chunk]:
    """A line for the titles, and the lines of each row, in columns if these fit the width.

    Otherwise titles may become letters, or details may move below their row; failing that, the first column moves above
    the others, or each row becomes a paragraph.
    """
    cells = [[_text(cell) for cell in row] for row in rows]
    aligns = [column.align for column in table.columns]
    full = [] if table.is_untitled else [[_text(Span(column.title, "dim")) for column in table.columns]]
    legend: list[Text] = []
    if names is not None and table.is_dense:
        cells = _squeezed([*full, *cells], width, names)[len(full) :]
    elif names is not None and table.has_details:
        # Long names move no other column below the row.
        narrow = _squeezed([row[:-1] for row in [*full, *cells]], width, names)[len(full) :]
        cells = [[*row, last] for row, (*_, last) in zip(narrow, cells, strict=True)]
    lines = _in_columns([*full, *cells], aligns, width)
    if lines is None and table.is_lettered:
        titles = dict(zip(ascii_uppercase, (column.title for column in table.columns[1:]), strict=False))
        letters = [full[0][0], *(_text(Span(letter, "dim")) for letter in titles)]
        lines = _in_columns([letters, *cells], aligns, width) if len(letters) == len(aligns) else None
        if lines is not None:
            legend = _wrapped(joined(f"{letter}={title}" for letter, title in titles.items()), width, _INDENT)
    is_complete, gap = lines is None and not table.has_details, Text(" " * _GAP)
    for shown in range(len(aligns) - 1, 1, -1) if table.has_details else ():
        widths = [_width(column) + _GAP for column in zip(*(row[:shown] for row in [*full, *cells]), strict=True)]
        if lines is None and sum(widths) - _GAP <= width:
            columns = _in_columns([row[:shown] for row in [*full, *cells]], aligns[:shown], width) or []
            rest = [gap.join(cell for cell in row[shown:] if cell.plain) for row in cells]
            details = [_wrapped(text, width - widths[0]) if text.plain else [] for text in rest]
            lines = [
                [*line, *_indented(more, widths[0])]
                for line, more in zip(columns, [*([[]] * len(full)), *details], strict=True)
            ]
    if lines is None and len(aligns) > _NARROW_TABLE:
        below = _in_columns([row[1:] for row in [*full, *cells]], aligns[1:], width - _INDENT)
        if below is not None:
            lines = [
                [*_wrapped(first, width, _INDENT), *_indented(others, _INDENT)]
                for (first, *_), others in zip([*full, *cells], below, strict=True)
            ]
    if lines is None:
        lines = [_wrapped(gap.join(cell for cell in row if cell.plain), width, _INDENT) for row in [*full, *cells]]
    head = [_Chunk([*legend, *(line for each in lines[: len(full)] for line in each)])] if full else []
    numbers, mark = table.numbers or [1] * len(rows), " …" if table.has_details else _CUT
    items = zip(lines[len(full) :], numbers, strict=False)
    return [*head, *(_Chunk(each, table.noun, number, is_complete, mark) for each, number in items)]


def _squeezed(rows: Sequence[Sequence[Text]], width: int, names: _Names) -> list[list[Text]]:
    """Shorten the cells of the widest columns in the middle until each row fits on one line."""
    widths = [_width(column) for column in zip(*rows, strict=True)]
    while (over := sum(widths) + _GAP * (len(widths) - 1) - width) > 0 and max(widths) > 1:
        widest = widths.index(max(widths))
        second = max([each for at, each in enumerate(widths) if at != widest], default=1)
        widths[widest] -= min(over, max(widths[widest] - second, 1))
    return [
        [
            cell if cell.cell_len <= space else _without_middle(cell, 0, len(cell), space, names)
            for cell, space in zip(row, widths, strict=True)
        ]
        for row in rows
    ]


def _in_columns(rows: Sequence[Sequence[Text]], aligns: Sequence[Align], width: int) -> list[list[Text]] | None:
    """The lines of each row in columns; a left-aligned last column wraps. ``None`` if the columns are too wide."""
    widths = [_width(column) for column in zip(*rows, strict=True)]
    before = sum(widths[:-1]) + _GAP * (len(widths) - 1)
    needed = widths[-1]
    if aligns[-1] == "left":
        longest = max(cell_len(word) for row in rows for word in row[-1].plain.split(" "))
        needed = max(longest, min(needed, _NARROWEST_COLUMN))
        widths[-1] = min(widths[-1], max(width - before, 1))
    if before + needed > width:
        return None
    drawn = []
    # Not with rich, which takes 0.2 ms per table cell.
    for row in rows:
        last, *others = _wrapped(row[-1], widths[-1])
        parts: list[str | Text] = []
        for cell, align, cells in zip((*row[:-1], last), aligns, widths, strict=True):
            padding = " " * (cells - cell.cell_len)
            parts += (padding, cell, " " * _GAP) if align == "right" else (cell, padding, " " * _GAP)
        line = Text.assemble(*parts)
        line.rstrip()
        drawn.append([line, *_indented(others, before)])
    return drawn


def _branch(node: Node, width: int, noun: str) -> _Chunk:
    """A line of a tree with its children, drawn by rich; a name wider than the page overflows.

    Levels deeper than ``_DEEPEST`` are not indented further.
    """
    longest = width

    def grown(node: Node, depth: int) -> list[Branch]:
        nonlocal longest
        lines = _wrapped(node.words, max(width - _GUIDE * depth, 1))
        longest = max(longest, _width(lines) + _GUIDE * depth)
        branch = Branch(Text("\n").join(lines), guide_style="dim")
        below = [each for child in node.children for each in grown(child, min(depth + 1, _DEEPEST))]
        if depth == _DEEPEST:
            return [branch, *below]
        branch.children = below
        return [branch]

    [tree] = grown(node, 0)
    console = _console()
    lines = console.render_lines(tree, console.options.update(width=max(longest, 1)), pad=False)
    return _Chunk([Text.assemble(*((text, style or "") for text, style, _ in line)) for line in lines], noun)


def _text(words: Words, style: str = "") -> Text:
    """The words, escaped; words without a role are in ``style``."""
    return Text.assemble(*((printable(text), _STYLES.get(role, style)) for text, role, _ in spans_of(words)))


def _wrapped(words: Words | Text, width: int, hanging: int = 0) -> list[Text]:
    """Break text at spaces into lines of at most ``width`` cells; later lines are indented ``hanging`` cells."""
    text = words if isinstance(words, Text) else _text(words)
    breaks: list[int] = []
    used, space = 0, width
    for word in _WORD.finditer(text.plain):
        if used and used + cell_len(word[0].rstrip(" ")) > space:
            breaks.append(word.start())
            used, space = 0, width - hanging
        used += cell_len(word[0])
    first, *others = text.divide(breaks)
    for line in (first, *others):
        line.rstrip()
    return [first, *_indented(others, hanging)]


def _indented(lines: Iterable[Text], cells: int) -> list[Text]:
    """Indent the lines by ``cells``; empty lines stay empty."""
    indented = list(lines)
    for line in indented:
        if line.plain:
            line.pad_left(cells)
    return indented


def _next_to(label: Text, lines: Sequence[Text], column: int = _LABEL_COLUMN) -> list[Text]:
    """The label, with the lines in a column to its right."""
    start = label.copy()
    start.pad_right(max(column - start.cell_len, 1))
    first, *others = lines or [Text()]
    return [start.append_text(first), *_indented(others, column)]


def _clipped(lines: Sequence[Text], most: int, width: int, mark: str = _CUT) -> list[Text]:
    """At most ``most`` lines; if some are omitted, ``mark`` ends the last one."""
    if len(lines) <= most:
        return list(lines)
    last = lines[most - 1].copy()
    if last.plain.endswith(" …"):
        last.right_crop(2)
    space = width - len(mark)
    if last.cell_len > space:
        last.truncate(space)
        if " " in last.plain.strip():
            last.right_crop(len(last) - last.plain.rindex(" "))
    last.rstrip()
    last.append(mark, "dim")
    return [*lines[: most - 1], last]


def _elided(line: Text, width: int, names: _Names) -> Text:
    """Shorten the longest words of the line in the middle until it fits."""
    while (over := line.cell_len - width) > 0:
        word = max(re.finditer("[^ ]+", line.plain), key=lambda word: cell_len(word[0]), default=None)
        if word is None or cell_len(word[0]) <= 1:
            break
        name = word[0].rstrip(_PUNCTUATION)
        name = name if cell_len(name) > over + 1 else word[0]
        line = _without_middle(line, word.start(), word.start() + len(name), cell_len(name) - over, names)
    return line


def _without_middle(line: Text, begin: int, end: int, cells: int, names: _Names) -> Text:
    """Shorten the text between two positions of the line to at most ``cells`` cells, but at least one."""
    head, *middle, tail = names.shorten(line.plain[begin:end], cells).split("…")
    between = "…".join(["", *middle, ""]) if middle else "…"
    ends = line[begin : begin + len(head)], line[end - len(tail) : end]
    return Text.assemble(line[:begin], ends[0], between, ends[1], line[end:])


def _width(lines: Iterable[Text]) -> int:
    return max((line.cell_len for line in lines), default=0)
