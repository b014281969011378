"""Markup for pages, in which text is escaped.

Lists stop before a page becomes too long.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Self, TypeVar

from kpreempt.report.escape import printable

# Longer than any Kubernetes name with its namespace, and than most messages.
_TEXT_SHOWN = 600
# The maximum size of most tables in bytes; further rows are counted.
TABLE_LIMIT = 75_000
# Rows that are always visible; the others are collapsed, but printed on paper.
_ROWS_SHOWN = 12
_LONG_WORD = 18
# A few more items than this are shown without collapsing.
_WORTH_FOLDING = 4 / 3
_T = TypeVar("_T")
_FOLDED = '<details class="fold">'
_UNFOLDED = '<details class="fold" open>'


class Html(str):
    """Markup. Everything else that is added to a page is text, and escaped."""

    __slots__ = ()

    def __add__(self, other: str) -> Self:
        return type(self)(str(self) + _markup(other))


def _markup(part: str) -> str:
    return str(part) if isinstance(part, Html) else text(part)


def text(words: str, *, limit: int = _TEXT_SHOWN) -> Html:
    """Words as text: hidden characters are escaped, and very long words are cut."""
    if len(words) > limit:
        words = f"{words[:limit]}… ({len(words) - limit:,} more characters)"
    return Html(html.escape(printable(words)))


def join(parts: Iterable[str], separator: str = "") -> Html:
    """The parts in sequence, with text escaped."""
    return Html(_markup(separator).join(_markup(part) for part in parts))


def tag(element: str, *content: str, **attributes: str | int | None) -> Html:
    """An element with its content. ``class_`` is the attribute ``class``, ``aria_label`` is ``aria-label``.

    Attributes that are ``None`` or empty are omitted.
    """
    return Html(f"<{element}{_attributes(attributes)}>{join(content)}</{element}>")


def void(element: str, **attributes: str | int | None) -> Html:
    """An element without content and end tag."""
    return Html(f"<{element}{_attributes(attributes)}>")


def _attributes(attributes: dict[str, str | int | None]) -> str:
    named = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    return "".join(f' {name}="{text(str(value))}"' for name, value in named if value is not None and value != "")


def name(of: str) -> Html:
    """A name from the input, isolated from the words around it whatever its text direction."""
    return tag("bdi", of)


def names(several: Iterable[str], *, limit: int, total: int | None = None) -> Html:
    """Names separated by commas: the first ``limit`` of them, and the number of others."""
    listed = list(several)
    shown = join((name(each) for each in listed[:limit]), ", ")
    left = (len(listed) if total is None else total) - min(len(listed), limit)
    return shown + f" and {left:,} more" if left > 0 else shown


def badge(words: str, tone: str) -> Html:
    """A highlighted word; ``tone`` is ``good``, ``bad``, ``warn`` or ``dim``."""
    return tag("span", words, class_=f"badge {tone}")


def table(
    caption: str,
    columns: Iterable[str],
    row: Callable[[_T], Iterable[str]],
    items: Sequence[_T],
    *,
    limit: int,
    noun: str,
) -> Html:
    """A table with a ``row`` per item, starting with its heading; ``noun`` is the name of the items.

    Rows beyond the first ones are collapsed, and those after about ``limit`` bytes are omitted.
    """
    heads = list(columns)
    lines, omitted = within(lambda item: _row(heads, row(item)), items, limit)
    head = tag("thead", tag("tr", *map(_head, heads)))
    shown = _ROWS_SHOWN if len(lines) > _ROWS_SHOWN * _WORTH_FOLDING else len(lines)
    shown_table = tag("table", tag("caption", caption), head, tag("tbody", *lines[:shown]), class_="stack") + Html("\n")
    if lines[shown:]:
        continued = tag("caption", f"{caption}, continued")
        rest = tag("table", continued, head, tag("tbody", *lines[shown:]), class_="stack")
        shown_table += fold(f"{len(lines) - shown:,} more {noun}", rest)
    return shown_table + cut_note(omitted, noun)


def _head(words: str) -> Html:
    """The heading of a column; its words only break if they are as long as plugin names."""
    is_long = max(map(len, words.split()), default=0) > _LONG_WORD
    return tag("th", words, scope="col", class_="long" if is_long else None)


def _row(heads: list[str], cells: Iterable[str]) -> Html:
    first, *others = cells
    # A narrow screen shows the column's heading next to each cell.
    rest = (tag("td", cell, data_label=head) for head, cell in zip(heads[1:], others, strict=True))
    return tag("tr", tag("th", first, scope="row"), *rest) + Html("\n")


def fold(summary: str, content: str) -> Html:
    """Content that is collapsed on a screen, but always printed on paper.

    Many browsers don't print the content of a closed ``details``, so it follows the element, and the style hides it.
    """
    switch = Html(f"{_FOLDED}{tag('summary', summary)}</details>")
    return switch + tag("div", content, class_="folded") + Html("\n")


def unfolded(page: Html) -> Html:
    """The page with everything expanded; text is escaped, so it contains no match."""
    return Html(page.replace(_FOLDED, _UNFOLDED))


def within(show: Callable[[_T], Html], items: Sequence[_T], limit: int) -> tuple[list[Html], int]:
    """The first items rendered by ``show``, up to ``limit`` bytes but at least one, and the number of others."""
    taken: list[Html] = []
    size = 0
    for item in items:
        piece = show(item)
        size += len(piece.encode())
        if taken and size > limit:
            break
        taken.append(piece)
    return taken, len(items) - len(taken)


def folded_list(
    kind: str, show: Callable[[_T], Html], items: Sequence[_T], *, limit: int, noun: str, shown: int, class_: str
) -> Html:
    """A list (``kind`` is ``ol`` or ``ul``) of the items rendered by ``show``; those after ``shown`` are collapsed."""
    lines, omitted = within(show, items, limit)
    if len(lines) <= shown * _WORTH_FOLDING:
        shown = len(lines)
    markup = tag(kind, *lines[:shown], class_=class_) + Html("\n")
    if lines[shown:]:
        start = shown + 1 if kind == "ol" else None
        markup += fold(f"{len(lines) - shown:,} more {noun}", tag(kind, *lines[shown:], class_=class_, start=start))
    return markup + cut_note(omitted, noun)


def folded(pieces: Sequence[Html], shown: int, what: str, together: Callable[[Sequence[Html]], Html] = join) -> Html:
    """The pieces; those after the first ``shown`` are collapsed. ``together`` combines pieces."""
    if len(pieces) <= shown * _WORTH_FOLDING:
        shown = len(pieces)
    markup = together(pieces[:shown])
    if rest := pieces[shown:]:
        markup += fold(f"{len(rest):,} more {what}", together(rest))
    return markup


def cut_note(omitted: int, what: str) -> Html:
    """A note that ``omitted`` items are not on the page, and where to find them; empty if there are none."""
    if not omitted:
        return Html("")
    words = f"{omitted:,} more {what} are omitted to keep the page small; -o json has them all."
    return tag("p", words, class_="note") + Html("\n")


def section(identifier: str, heading: str, *content: str, level: int = 2) -> Html:
    """A section of the page below its heading."""
    title = tag(f"h{level}", heading, id=identifier)
    return tag("section", title, Html("\n"), *content, aria_labelledby=identifier) + Html("\n")
