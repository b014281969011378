"""Nodes side by side: a row for each rule or plugin, a column for each node."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.layout import Page, Phrase, Span, columns_of_numbers, strong

_INDENT = 2
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FEWEST_COLUMNS = 2

Row = tuple[str, list[Phrase]]


def add_comparison(
    page: Page, nodes: Sequence[str], rows: Sequence[Row], last: tuple[str, list[Phrase]] | None = None
) -> None:
    """Print the rows, with ``last`` (a title and a cell for each row) as one more column.

    Names that are too long for columns get letters, explained above; where even so the page is too narrow, columns are
    left out from the right, and at last the nodes come one below the other.
    """
    for shown in range(len(nodes), min(_FEWEST_COLUMNS, len(nodes)) - 1, -1):
        for headings in (list(nodes[:shown]), [*_LETTERS[:shown]]):
            table = _table(headings, rows, last)
            if len(headings) == shown and page.fits(table, indent=_INDENT):
                if headings != list(nodes[:shown]):
                    _add_legend(page, headings, nodes)
                page.table(table, aligns=columns_of_numbers(len(table[0]) - 1), indent=_INDENT)
                _add_left_out(page, len(nodes) - shown)
                return
    _add_stacked(page, nodes, rows)


def _table(headings: Sequence[str], rows: Sequence[Row], last: tuple[str, list[Phrase]] | None) -> list[list[Phrase]]:
    table: list[list[Phrase]] = [[("",), *((strong(heading),) for heading in headings)]]
    table += [[(label,), *cells[: len(headings)]] for label, cells in rows]
    if last is not None:
        for line, cell in zip(table, [(Span(last[0], "dim"),), *last[1]], strict=True):
            line.append(cell)
    return table


def _add_legend(page: Page, letters: Sequence[str], nodes: Sequence[str]) -> None:
    for letter, node in zip(letters, nodes, strict=False):
        page.paragraph(strong(letter), "  ", node, indent=_INDENT, hanging=3)


def _add_left_out(page: Page, number: int) -> None:
    if number:
        page.paragraph(Span(f"… and {number:,} more, for which the page is too narrow", "dim"), indent=_INDENT)


def _add_stacked(page: Page, nodes: Sequence[str], rows: Sequence[Row]) -> None:
    for column, node in enumerate(nodes):
        page.paragraph(strong(node), indent=_INDENT)
        values = [((label,), cells[column]) for label, cells in rows if cells[column] != ("",)]
        page.table(values, aligns=("left", "left"), indent=2 * _INDENT)
