"""What pages are made of: markup, in which text is escaped.

Lists stop where a page would grow too long.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Self, TypeVar

from kpreempt.report.escape import printable

# Longer than any name that Kubernetes knows with its namespace, and than most messages.
_TEXT_SHOWN = 600
# So many bytes of most tables; what is beyond is counted.
TABLE_LIMIT = 75_000
# So many rows are shown at once; the others unfold, and are there on paper.
_ROWS_SHOWN = 12
_LONG_WORD = 18
# A few more than would be shown are shown, too.
_WORTH_FOLDING = 4 / 3
_T = TypeVar("_T")
_FOLDED = '<details class="fold">'
_UNFOLDED = '<details class="fold" open>'


class Html(str):
    """Markup. Everything else that is put into a page is text, and escaped."""

    __slots__ = ()

    def __add__(self, other: str) -> Self:
        return type(self)(str(self) + _markup(other))


def _markup(part: str) -> str:
    return str(part) if isinstance(part, Html) else text(part)


def text(words: str, *, limit: int = _TEXT_SHOWN) -> Html:
    """Words as text: what does not show as itself is written as what it is, and very long ones are cut."""
    if len(words) > limit:
        words = f"{words[:limit]}… ({len(words) - limit:,} more characters)"
    return Html(html.escape(printable(words)))


def join(parts: Iterable[str], separator: str = "") -> Html:
    """The parts one after the other, text escaped."""
    return Html(_markup(separator).join(_markup(part) for part in parts))


def tag(element: str, *content: str, **attributes: str | int | None) -> Html:
    """An element with its content. ``class_`` is the attribute ``class``, ``aria_label`` ``aria-label``.

    Attributes that are ``None`` or empty are left out.
    """
    return Html(f"<{element}{_attributes(attributes)}>{join(content)}</{element}>")


def void(element: str, **attributes: str | int | None) -> Html:
    """An element that has no content and no end."""
    return Html(f"<{element}{_attributes(attributes)}>")


def _attributes(attributes: dict[str, str | int | None]) -> str:
    named = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    return "".join(f' {name}="{text(str(value))}"' for name, value in named if value is not None and value != "")


def name(of: str) -> Html:
    """A name from the input, kept apart from the words around it whichever way it is written."""
    return tag("bdi", of)


def names(several: Iterable[str], *, limit: int, total: int | None = None) -> Html:
    """Names with commas, the first ``limit`` of them and how many more there are."""
    listed = list(several)
    shown = join((name(each) for each in listed[:limit]), ", ")
    left = (len(listed) if total is None else total) - min(len(listed), limit)
    return shown + f" and {left:,} more" if left > 0 else shown


def badge(words: str, tone: str) -> Html:
    """A word that stands out; ``tone`` is ``good``, ``bad``, ``warn`` or ``dim``."""
    return tag("span", words, class_=f"badge {tone}")


def table(
    caption: str,
    columns: Iterable[str],
    row: Callable[[_T], Iterable[str]],
    items: Sequence[_T],
    *,
    limit: int,
    what: str,
) -> Html:
    """A table with a ``row`` for each of the items, which begins with its heading; ``what`` names them.

    Rows beyond the first ones unfold, and those after about ``limit`` bytes are left out.
    """
    heads = list(columns)
    lines, left = within(lambda item: _row(heads, row(item)), items, limit)
    head = tag("thead", tag("tr", *map(_head, heads)))
    shown = _ROWS_SHOWN if len(lines) > _ROWS_SHOWN * _WORTH_FOLDING else len(lines)
    whole = tag("table", tag("caption", caption), head, tag("tbody", *lines[:shown]), class_="stack") + Html("\n")
    if lines[shown:]:
        again = tag("caption", f"{caption}, continued")
        rest = tag("table", again, head, tag("tbody", *lines[shown:]), class_="stack")
        whole += fold(f"{len(lines) - shown:,} more {what}", rest)
    return whole + cut_note(left, what)


def _head(words: str) -> Html:
    """The head of a column, whose words break only where they are as long as names of plugins."""
    is_long = max(map(len, words.split()), default=0) > _LONG_WORD
    return tag("th", words, scope="col", class_="long" if is_long else None)


def _row(heads: list[str], cells: Iterable[str]) -> Html:
    first, *others = cells
    # A narrow screen shows the head of the column beside each cell.
    rest = (tag("td", cell, data_label=head) for head, cell in zip(heads[1:], others, strict=True))
    return tag("tr", tag("th", first, scope="row"), *rest) + Html("\n")


def fold(summary: str, content: str) -> Html:
    """Content that unfolds on a screen, and that is there on paper folded or not.

    What a closed ``details`` holds is lost in print in many browsers, so it stands after it, and the style hides it.
    """
    switch = Html(f"{_FOLDED}{tag('summary', summary)}</details>")
    return switch + tag("div", content, class_="folded") + Html("\n")


def unfolded(page: Html) -> Html:
    """The page with everything unfolded from the start; in text the mark-up is escaped, and so is not found."""
    return Html(page.replace(_FOLDED, _UNFOLDED))


def within(show: Callable[[_T], Html], items: Sequence[_T], limit: int) -> tuple[list[Html], int]:
    """The first items as ``show`` has them, as many as ``limit`` bytes hold (one at least), and how many are left."""
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
    kind: str, show: Callable[[_T], Html], items: Sequence[_T], *, limit: int, what: str, shown: int, class_: str
) -> Html:
    """A list (``kind`` is ``ol`` or ``ul``) of what ``show`` makes of the items; those after ``shown`` unfold."""
    lines, left = within(show, items, limit)
    if len(lines) <= shown * _WORTH_FOLDING:
        shown = len(lines)
    whole = tag(kind, *lines[:shown], class_=class_) + Html("\n")
    if lines[shown:]:
        start = shown + 1 if kind == "ol" else None
        whole += fold(f"{len(lines) - shown:,} more {what}", tag(kind, *lines[shown:], class_=class_, start=start))
    return whole + cut_note(left, what)


def folded(pieces: Sequence[Html], shown: int, what: str, together: Callable[[Sequence[Html]], Html] = join) -> Html:
    """The pieces, those after the first ``shown`` unfold; ``together`` puts either lot into one."""
    if len(pieces) <= shown * _WORTH_FOLDING:
        shown = len(pieces)
    whole = together(pieces[:shown])
    if rest := pieces[shown:]:
        whole += fold(f"{len(rest):,} more {what}", together(rest))
    return whole


def cut_note(left: int, what: str) -> Html:
    """That ``left`` of something are not on the page, and where they are; nothing where none are."""
    if not left:
        return Html("")
    words = f"{left:,} more {what} are left out here, so that the page stays small; -o json has them all."
    return tag("p", words, class_="note") + Html("\n")


def section(identifier: str, heading: str, *content: str, level: int = 2) -> Html:
    """A section of the page under its heading, of that level."""
    title = tag(f"h{level}", heading, id=identifier)
    return tag("section", title, Html("\n"), *content, aria_labelledby=identifier) + Html("\n")
