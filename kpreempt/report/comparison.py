"""Nodes side by side: a row for each rule or plugin, a column for each node; transposed where the nodes are many."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from kpreempt.report.layout import Page, Phrase, Span, columns_of_numbers, strong

_INDENT = 2
_MOST_COLUMNS = 6
_FEWEST_COLUMNS = 2

Row = tuple[str, list[Phrase]]


def add_comparison(
    page: Page, nodes: Sequence[str], rows: Sequence[Row], last: tuple[str, list[Phrase]] | None = None
) -> None:
    """Print the rows, with ``last`` (a title and a cell for each row) as one more column.

    Names that are too long for columns get letters, explained above. Where even so the page is too narrow, columns are
    left out from the right if there is a ``last`` that speaks for them; otherwise each node gets a row.
    """
    most = len(nodes) if len(nodes) <= _MOST_COLUMNS else 0
    fewest = most if last is None else _FEWEST_COLUMNS
    for shown in range(most, fewest - 1, -1):
        for headings in (nodes[:shown], ascii_uppercase[:shown]):
            table = _table(headings, rows, last)
            if shown and page.fits(table, indent=_INDENT):
                _add_legend(page, headings, nodes[:shown])
                page.table(table, aligns=columns_of_numbers(len(table[0]) - 1), indent=_INDENT)
                return
    _add_transposed(page, nodes, rows)


def _table(headings: Sequence[str], rows: Sequence[Row], last: tuple[str, list[Phrase]] | None) -> list[list[Phrase]]:
    table: list[list[Phrase]] = [[("",), *((strong(heading),) for heading in headings)]]
    table += [[(label,), *cells[: len(headings)]] for label, cells in rows]
    if last is not None:
        for line, cell in zip(table, [(Span(last[0], "dim"),), *last[1]], strict=True):
            line.append(cell)
    return table


def _add_legend(page: Page, headings: Sequence[str], names: Sequence[str]) -> None:
    for heading, name in zip(headings, names, strict=False):
        if heading != name:
            page.paragraph(strong(heading), "  ", name, indent=_INDENT, hanging=3)


def _add_transposed(page: Page, nodes: Sequence[str], rows: Sequence[Row]) -> None:
    headings = ascii_uppercase[: len(rows)]
    _add_legend(page, headings, [label for label, _ in rows])
    table: list[list[Phrase]] = [[("",), *((strong(heading),) for heading in headings)]]
    table += [[(strong(node),), *(cells[at] for _, cells in rows)] for at, node in enumerate(nodes)]
    page.table(table, aligns=columns_of_numbers(len(rows)), indent=_INDENT)
