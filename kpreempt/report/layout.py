"""Lines of styled text that keep to a width: paragraphs, hanging indents and tables.

Everything that is shown passes ``Span``s, which are made safe here, so no control character reaches the output. Colour
is a last step over the same lines; without it they are the plain text. Words break at spaces only: a name that is wider
than the page runs over it rather than being cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from kpreempt.report.blocks import Align, Part, Phrase, Span, strong
from kpreempt.report.blocks import Role as Style
from kpreempt.report.escape import printable

__all__ = ["Align", "Page", "Part", "Phrase", "Span", "Style", "strong"]

Line = tuple[Span, ...]

COLUMN_GAP = 2
# Ends a line of which the rest is left out.
ELLIPSIS = Span("…", "dim")
# Where the text beside a section's label starts.
LABEL_COLUMN = 12
# A table of so many is a list of labels, and none of columns to compare.
_FEW_COLUMNS = 2
# Below this width a last column is not worth wrapping in place.
_NARROWEST_COLUMN = 24


def plain(phrase: Iterable[Part]) -> str:
    """A phrase without its styles, made safe."""
    return "".join(span.text for span in _safe(phrase))


def width_of(text: str) -> int:
    """How many terminal cells the text takes."""
    return len(text) if text.isascii() else cell_len(text)


def wrap(phrase: Iterable[Part], width: int, first: int = 0) -> list[Line]:
    """Break a phrase at spaces into lines of at most ``width`` cells, the first of ``first`` fewer."""
    lines: list[list[Span]] = [[]]
    used, room = 0, width - first
    for word in _words(phrase):
        length = sum(width_of(span.text) for span in word)
        if lines[-1] and used + 1 + length > room:
            lines.append([])
            used, room = 0, width
        if lines[-1]:
            lines[-1].append(Span(" "))
            used += 1
        lines[-1].extend(word)
        used += length
    return [_join_equal_styles(line) for line in lines]


class Page:
    """Collects lines of at most ``width`` cells."""

    def __init__(self, width: int) -> None:
        self.width = max(width, 1)
        self.lines: list[Line] = []

    def blank(self) -> None:
        """An empty line, unless there is one already or nothing before it."""
        if self.lines and self.lines[-1]:
            self.lines.append(())

    def paragraph(self, *phrase: Part, indent: int = 0, hanging: int = 0, most: int = 0) -> None:
        """A wrapped paragraph; lines after the first are indented ``hanging`` cells more.

        Of more than ``most`` lines, unless that is 0, the rest is left out, which shows.
        """
        room = self._room(indent + hanging)
        lines = wrap(phrase, room, -hanging)
        if most and len(lines) > most:
            lines = [*lines[: most - 1], _cut_line(lines[most - 1], room + (hanging if most == 1 else 0))]
        for number, line in enumerate(lines):
            self._add(indent + (hanging if number else 0), line)

    def labelled(self, label: Part, *phrase: Part, indent: int = 0, column: int, hanging: int = 0) -> None:
        """A label, and a paragraph that starts and stays at ``column``; below the label where that is longer.

        Lines after the first are indented ``hanging`` cells more.
        """
        start = indent + column
        lines = wrap(phrase, self._room(start + hanging), -hanging)
        label_line = _safe((label,))
        gap = column - width_of_line(label_line)
        if gap >= 1:
            self._add(indent, (*label_line, Span(" " * gap), *lines[0]))
        else:
            self._add(indent, label_line)
            self._add(start, lines[0])
        for line in lines[1:]:
            self._add(start + hanging, line)

    def table(self, rows: Sequence[Sequence[Phrase]], *, aligns: Sequence[Align], indent: int = 0) -> None:
        """Columns as wide as their widest cell; the last one, if on the left, wraps in place.

        Where the page is too narrow for that, the first column stands above the others, and where that does not help,
        each row becomes a paragraph.
        """
        blocks = self._in_columns(rows, aligns, indent)
        if blocks is None and len(aligns) > _FEW_COLUMNS:
            blocks = self._stacked(rows, aligns, indent)
        for row in blocks if blocks is not None else [self._as_paragraph(row, indent) for row in rows]:
            self.lines += row

    def _as_paragraph(self, row: Sequence[Phrase], indent: int) -> list[Line]:
        page = Page(self.width)
        cells = [cell for cell in row if plain(cell)]
        parts = (part for cell in cells for part in (*cell, " " * COLUMN_GAP))
        page.paragraph(*parts, indent=indent, hanging=COLUMN_GAP)
        return page.lines

    def _in_columns(
        self, rows: Sequence[Sequence[Phrase]], aligns: Sequence[Align], indent: int
    ) -> list[list[Line]] | None:
        """The lines of each row, or ``None`` where the page is too narrow for the columns."""
        columns = len(aligns)
        widths = [max((_phrase_width(row[column]) for row in rows), default=0) for column in range(columns)]
        is_last_wrapped = aligns[-1] == "left"
        before_last = indent + sum(widths[:-1]) + COLUMN_GAP * (columns - 1)
        needed = min(_NARROWEST_COLUMN, widths[-1]) if is_last_wrapped else widths[-1]
        if before_last + max(needed, _longest_word(row[-1] for row in rows)) > self.width:
            return None
        blocks = []
        for row in rows:
            fixed = row[:-1] if is_last_wrapped else row
            line = _joined_cells([_aligned(cell, widths[at], aligns[at]) for at, cell in enumerate(fixed)])
            block = Page(self.width)
            if is_last_wrapped:
                first, *rest = wrap(row[-1], self._room(before_last))
                block._add(indent, (*line, Span(" " * COLUMN_GAP if line else ""), *first))
                for following in rest:
                    block._add(before_last, following)
            else:
                block._add(indent, line)
            blocks.append(block.lines)
        return blocks

    def _stacked(
        self, rows: Sequence[Sequence[Phrase]], aligns: Sequence[Align], indent: int
    ) -> list[list[Line]] | None:
        """The first cell of each row above the others, which are in columns, or ``None`` where these do not fit."""
        others = self._in_columns([row[1:] for row in rows], aligns[1:], indent + COLUMN_GAP)
        if others is None:
            return None
        blocks = []
        for row, lines in zip(rows, others, strict=True):
            block = Page(self.width)
            block.paragraph(*row[0], indent=indent, hanging=COLUMN_GAP)
            blocks.append([*block.lines, *lines])
        return blocks

    def fits(self, rows: Sequence[Sequence[Phrase]], *, indent: int = 0) -> bool:
        """Whether a table of these rows keeps to the width without wrapping."""
        if not rows:
            return True
        columns = len(rows[0])
        total = sum(max(_phrase_width(row[column]) for row in rows) for column in range(columns))
        return indent + total + COLUMN_GAP * (columns - 1) <= self.width

    def _room(self, indent: int) -> int:
        return max(self.width - indent, 1)

    def _add(self, indent: int, line: Line) -> None:
        stripped = _strip_end(line)
        self.lines.append((Span(" " * indent), *stripped) if indent and stripped else stripped)


def columns_of_numbers(numbers: int) -> list[Align]:
    """Alignments for a column of names and ``numbers`` columns of numbers."""
    aligns: list[Align] = ["right"] * (numbers + 1)
    aligns[0] = "left"
    return aligns


def to_plain(lines: Iterable[Line]) -> str:
    """The lines as text, each ended by a newline."""
    return "".join("".join(span.text for span in line) + "\n" for line in lines)


def _safe(phrase: Iterable[Part]) -> Line:
    """The phrase as spans that show what they hold."""
    spans = (part if isinstance(part, Span) else Span(part) for part in phrase)
    return tuple(Span(printable(text), style) for text, style, _ in spans)


def _words(phrase: Iterable[Part]) -> list[list[Span]]:
    """The words between spaces; a word may change its style in the middle, and is empty between two spaces."""
    words: list[list[Span]] = [[]]
    for text, style, _ in _safe(phrase):
        for index, piece in enumerate(text.split(" ")):
            if index:
                words.append([])
            if piece:
                words[-1].append(Span(piece, style))
    return words


def _join_equal_styles(line: list[Span]) -> Line:
    joined: list[Span] = []
    for span in line:
        if joined and (span.style == joined[-1].style or span.text.isspace()):
            joined[-1] = Span(joined[-1].text + span.text, joined[-1].style)
        else:
            joined.append(span)
    return tuple(joined)


def width_of_line(line: Line) -> int:
    """How many terminal cells a line takes."""
    return sum(width_of(span.text) for span in line)


def _cut_line(line: Line, width: int) -> Line:
    """The line with an ellipsis at its end, without the words that leave no room for that."""
    words = _words(line)
    while len(words) > 1 and sum(width_of_line(tuple(word)) for word in words) + len(words) + 1 > width:
        words.pop()
    spaced: list[Span] = []
    for word in words:
        spaced += [*word, Span(" ")]
    return (*_join_equal_styles(spaced), ELLIPSIS)


def _phrase_width(phrase: Phrase) -> int:
    return width_of_line(_safe(phrase))


def _longest_word(phrases: Iterable[Phrase]) -> int:
    return max((width_of_line(tuple(word)) for phrase in phrases for word in _words(phrase)), default=0)


def _aligned(cell: Phrase, width: int, align: Align) -> Line:
    line = _safe(cell)
    padding = Span(" " * max(width - width_of_line(line), 0))
    return (padding, *line) if align == "right" else (*line, padding)


def _joined_cells(cells: Sequence[Line]) -> Line:
    joined: list[Span] = []
    for index, cell in enumerate(cells):
        joined.extend((Span(" " * COLUMN_GAP), *cell) if index else cell)
    return tuple(joined)


def _strip_end(line: Line) -> Line:
    kept = list(line)
    while kept:
        text, style, _ = kept.pop()
        if stripped := text.rstrip(" "):
            return (*kept, Span(stripped, style))
    return ()
