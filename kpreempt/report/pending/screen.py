"""The pending pods on one screen: the sentence, a row for each kind of pod, and what the answer rests on.

Of four layouts the one is taken that shows most rows: details beside the columns, below them, below with the node, or
each pod in lines of its own. Pods for which there is no room are counted: ``-v`` has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_absent_kinds, add_first_assumption
from kpreempt.report.colour import finished
from kpreempt.report.layout import (
    COLUMN_GAP,
    ELLIPSIS,
    Align,
    Line,
    Page,
    Phrase,
    Span,
    plain,
    strong,
    width_of,
    width_of_line,
)
from kpreempt.report.options import RenderOptions
from kpreempt.report.pending.more_nodes import more_nodes_in_words
from kpreempt.report.pending.summary import changes_in_words, facts_in_words, notes_in_words, summary
from kpreempt.report.pending.words import brief_fate, details_in_words, nothing_pending
from kpreempt.verdict.pending import TELLING_STATES, PendingPod, PendingPods

_LINES_OF_SUMMARY = 4
_LINES_OF_CHANGES = 3
_LINES_OF_NODES = 2
_LINES_OF_DETAILS = 2
_NARROWEST_DETAILS = 24
# Wider than any page: rows are measured there.
_ENDLESS = 100_000
_TITLES = ("#", "POD", "PRIO", "OUTCOME", "NODE")
_ALIGNS: tuple[Align, ...] = ("right", "left", "right", "left", "left")
_AS_ABOVE: Phrase = (Span("as above", "dim"),)
_HEADING: Phrase = (Span("DETAILS", "dim"),)
_MORE = "More: -v (every pod in full)  -o wide (nodes by reason, smallest changes)"


class _Row(NamedTuple):
    """A kind of pod: the cells of the table, the node among them, and what else is to say."""

    cells: tuple[Phrase, ...]
    details: Phrase
    pods: int


class _Version(NamedTuple):
    """A row as lines, and how much of its details is left out: none of them, some or all."""

    lines: list[Line]
    left_out: int


# The versions of each row, the shortest first; the header has one.
_Layout = list[list[_Version]]


def render_screen(pending: PendingPods, options: RenderOptions) -> str:
    """At most ``options.height`` lines, with the command line and the prompt."""
    page = Page(options.width)
    if pending.items:
        page.paragraph(*summary(pending, is_short=True), most=_LINES_OF_SUMMARY)
    else:
        page.paragraph(nothing_pending(pending))
    add_absent_kinds(page, pending.assumptions)
    if changes := changes_in_words(pending):
        page.paragraph(*changes, hanging=2, most=_LINES_OF_CHANGES)
    if more := more_nodes_in_words(pending, is_short=True):
        page.paragraph(*more, hanging=2, most=_LINES_OF_NODES)
    closing = _closing(pending, options)
    if pending.items:
        page.blank()
        room = options.room_of_table(len(page.lines) + len(closing))
        rows = [_row(row, pending.at) for row in _alike(pending.items)]
        page.lines += _table(rows, room, options.width)
    if closing:
        page.blank()
        page.lines += closing
    return finished(page, options)


def _alike(items: Sequence[PendingPod]) -> list[list[PendingPod]]:
    """Pods of one owner that fare alike, together."""
    rows: dict[tuple[object, ...], list[PendingPod]] = {}
    for item in items:
        is_told = item.state in TELLING_STATES
        key = (
            item.owner or item.pod,
            item.pod.partition("/")[0],
            item.priority,
            item.state if is_told else item.outcome,
            item.nominated_node_name if is_told else "",
            item.cause,
            *item.nodes,
            *(victim.pod for each in item.victims.values() for victim in each),
        )
        rows.setdefault(key, []).append(item)
    return list(rows.values())


def _row(row: Sequence[PendingPod], at: datetime | None) -> _Row:
    item = row[0]
    outcome, nodes = brief_fate(item)
    more = Span(f" +{len(row) - 1:,}", "dim") if len(row) > 1 else ""
    place = f"{item.position:,}" if item.position is not None else "-"
    cells: tuple[Phrase, ...] = ((place,), (strong(item.pod), more), (f"{item.priority:,}",), (outcome,), (nodes,))
    return _Row(cells, details_in_words(item, at), len(row))


def _table(rows: Sequence[_Row], room: int, width: int) -> list[Line]:
    """As many rows as there is room for, and how many pods are in the others."""
    layouts = _layouts(_without_repeats(rows[:room]), width)
    shown = max((_shown(layout, len(rows), room) for layout in layouts), key=_worth)
    lines = [line for version in shown for line in version.lines]
    if rest := sum(row.pods for row in rows[len(shown) - 1 :]):
        lines += _paragraph((Span(f"… and {count(rest, 'more pod')} (-v)", "dim"),), width, COLUMN_GAP)
    return lines


def _without_repeats(rows: Sequence[_Row]) -> list[_Row]:
    """The rows, where two have the same details the second without them."""
    before = [(), *(row.details for row in rows)]
    return [
        row._replace(details=_AS_ABOVE) if row.details and row.details == last else row
        for row, last in zip(rows, before, strict=False)
    ]


def _shown(layout: _Layout, rows: int, room: int) -> list[_Version]:
    """The header and the rows for which there is room, with as much of their details as there is.

    Where rows are left out, a line of the room is for their number.
    """
    sizes = list(accumulate(len(versions[0].lines) for versions in layout))
    if len(layout) <= rows or sizes[-1] > room:
        room -= 1
    number = max(sum(size <= room for size in sizes), 2)
    left = room - sizes[number - 1]
    shown = []
    for versions in layout[:number]:
        least = len(versions[0].lines)
        best = max(
            (each for each in versions if len(each.lines) - least <= max(left, 0)), key=lambda each: -each.left_out
        )
        left -= len(best.lines) - least
        shown.append(best)
    return shown


def _worth(shown: list[_Version]) -> tuple[int, int]:
    """More rows come first, then fewer details that are left out."""
    return len(shown), -sum(version.left_out for version in shown)


def _layouts(rows: Sequence[_Row], width: int) -> Iterator[_Layout]:
    """The header and each row, in the layouts that keep to the width; of the last one the names alone may not."""
    indent = max(len(_TITLES[0]), *(width_of(plain(row.cells[0])) for row in rows)) + COLUMN_GAP
    details = [row.details for row in rows]
    full, left = _columns(rows, len(_TITLES))
    beside = left + COLUMN_GAP
    if width - beside >= _NARROWEST_DETAILS:
        [title, *lines] = full
        told = (_beside(line, each, beside, width) for line, each in zip(lines, details, strict=True))
        yield [_beside(title, _HEADING, beside, width)[:1], *told]
    if left <= width:
        yield _below(full, details, indent, width)
    without_node, left = _columns(rows, len(_TITLES) - 1)
    placed = [_placed(row) for row in rows]
    if left <= width:
        yield _below(without_node, placed, indent, width)
    else:
        names, _ = _columns(rows, 2)
        fates = [
            (f"priority {plain(row.cells[2])}, ", *row.cells[3], *_after(each))
            for row, each in zip(rows, placed, strict=True)
        ]
        yield [
            versions[:1] if not number else versions[1:]
            for number, versions in enumerate(_below(names, fates, indent, width))
        ]


def _columns(rows: Sequence[_Row], number: int) -> tuple[list[Line], int]:
    """The title and each row as a line of so many columns, and how wide the widest is."""
    page = Page(_ENDLESS)
    titles = tuple((Span(title, "dim"),) for title in _TITLES[:number])
    page.table([titles, *(row.cells[:number] for row in rows)], aligns=_ALIGNS[:number])
    return page.lines, max(map(width_of_line, page.lines))


def _placed(row: _Row) -> Phrase:
    """The details after the node."""
    node = plain(row.cells[4])
    return (f"on {node}", *_after(row.details)) if node else row.details


def _after(details: Phrase) -> Phrase:
    return (": ", *details) if details else ()


def _beside(line: Line, details: Phrase, column: int, width: int) -> list[_Version]:
    """The details beside the line, cut to one line and to more."""
    if not plain(details):
        return [_Version([line], 0)]
    gap = Span(" " * (column - width_of_line(line)))
    versions = []
    for most in range(1, _LINES_OF_DETAILS + 1):
        [first, *others] = _paragraph(details, width, column, most)
        versions.append(_Version([(*line, gap, *first[1:]), *others], _is_cut([first, *others])))
    return versions


def _below(lines: Sequence[Line], details: Sequence[Phrase], indent: int, width: int) -> _Layout:
    """The details below each line: none of them, cut to one line, and to more."""
    title, *rows = lines
    layout = [[_Version([title], 0)]]
    for line, each in zip(rows, details, strict=True):
        versions = [_Version([line], 2 if plain(each) else 0)]
        for most in range(1, _LINES_OF_DETAILS + 1):
            told = _paragraph(each, width, indent, most)
            versions.append(_Version([line, *told], _is_cut(told)))
        layout.append(versions)
    return layout


def _is_cut(lines: Sequence[Line]) -> int:
    return int(any(line[-1:] == (ELLIPSIS,) for line in lines))


def _paragraph(phrase: Phrase, width: int, indent: int, most: int = 0) -> list[Line]:
    """Nothing where there is nothing to say; else lines of which the first span is the indent."""
    page = Page(width)
    if plain(phrase):
        page.paragraph(*phrase, indent=indent, most=most)
    return page.lines


def _closing(pending: PendingPods, options: RenderOptions) -> list[Line]:
    """What the answer rests on, in few lines, and where the rest is."""
    page = Page(options.width)
    if pending.items:
        page.paragraph(Span(notes_in_words(pending), "dim"), most=3)
    add_first_assumption(page, pending.assumptions)
    if pending.items:
        page.paragraph(Span(facts_in_words(pending), "dim"), most=1)
        page.paragraph(Span(_MORE, "dim"), most=1)
    return page.lines
