"""The blocks of a report, which ``terminal``, ``markdown`` and ``html.report`` render.

A ``Report`` has ``Section``s, and a section has blocks: sentences, rows of terms, tables, lists, trees, timelines and
code. Text is in ``Span``s, which have a role and no color. Text from the input goes into spans unchanged: each renderer
escapes it.

A block with ``items`` holds all of them; ``shown`` is the number that a terminal report shows unless it is verbose.
Pages and Markdown have their own limits. A screen shows the sections that have a ``priority``, in their short form if
they have one, and cuts the longest until all fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

# ``strong`` is what readers should notice first, ``name`` a name from the input, ``code`` text to type or a quotation.
Role = Literal["", "strong", "name", "code", "good", "bad", "warn", "dim", "heading"]
Align = Literal["left", "right"]
Tone = Literal["good", "warn", "bad"]


class Span(NamedTuple):
    """Text in one role; ``link`` is a URL, or ``#`` and the anchor of a section, and only shown on pages."""

    text: str
    style: Role = ""
    link: str = ""


Part = str | Span
Phrase = tuple[Part, ...]
# What may be passed as a phrase: a text, a span, or several.
Words = str | Span | Phrase


def strong(text: str) -> Span:
    """Text that readers should notice first."""
    return Span(text, "strong")


def name(text: str) -> Span:
    """A name from the input."""
    return Span(text, "name")


def phrase_of(words: Words) -> Phrase:
    """The words as a phrase."""
    return (words,) if isinstance(words, (str, Span)) else words


def spans_of(words: Words) -> list[Span]:
    """The words as spans, without empty ones."""
    spans = (part if isinstance(part, Span) else Span(part) for part in phrase_of(words))
    return [span for span in spans if span.text]


def text_of(words: Words) -> str:
    """The words without their roles, unescaped."""
    return "".join(part.text if isinstance(part, Span) else part for part in phrase_of(words))


def joined(several: Iterable[Words], separator: Words = ", ") -> Phrase:
    """Join several phrases into one."""
    parts: list[Part] = []
    for number, words in enumerate(several):
        parts += [*(phrase_of(separator) if number else ()), *phrase_of(words)]
    return tuple(parts)


class Sentence(msgspec.Struct, frozen=True):
    """A paragraph."""

    words: Words


class Code(msgspec.Struct, frozen=True):
    """Verbatim text, one line or several: a message, a file, or, if ``is_command``, text that never wraps."""

    text: str | Sequence[str]
    is_command: bool = False

    @property
    def lines(self) -> Sequence[str]:
        """The lines; a line feed within a line is shown escaped."""
        return [self.text] if isinstance(self.text, str) else self.text


class Hint(msgspec.Struct, frozen=True):
    """How to see more, or how to read the section; only shown in a terminal."""

    words: Words


class Rows(msgspec.Struct, frozen=True):
    """Terms with their descriptions."""

    rows: Sequence[tuple[Words, Words]]


class Column(NamedTuple):
    """The title of a column, and its alignment."""

    title: str
    align: Align = "left"


def columns(*titles: str, right: Iterable[str] = ()) -> list[Column]:
    """Columns with these titles; those in ``right`` are right-aligned."""
    numbers = set(right)
    return [Column(title, "right" if title in numbers else "left") for title in titles]


class Table(msgspec.Struct, frozen=True):
    """Rows of cells below titles. ``noun`` is what a row is called; the ``caption`` is only shown on pages.

    The last column wraps in place if it is left-aligned. ``is_untitled`` omits the titles in text; ``is_lettered``
    replaces titles that are too wide by letters with a legend. If the table ``is_dense``, a screen shortens names in
    the middle to keep rows on one line. A page may show many rows of its main table (``is_main``). If the table
    ``has_details``, its last column moves below each row unless the page is wide enough, as do other columns that don't
    fit, and a screen omits it first. ``numbers`` is the number of things each row stands for, if not 1.
    """

    columns: Sequence[Column]
    items: Sequence[Sequence[Words]]
    noun: str = "row"
    caption: str = ""
    shown: int = 0
    is_untitled: bool = False
    is_lettered: bool = False
    is_dense: bool = False
    is_main: bool = False
    has_details: bool = False
    numbers: Sequence[int] = ()


class Listing(msgspec.Struct, frozen=True):
    """Items of one or more phrases, one line per phrase; lines after the first are indented.

    A screen shows an item of several phrases completely or not at all, and every item if it is a listing of
    ``whole`` items. If the later phrases of items are ``parts`` of that noun instead, a screen omits the last ones and
    counts them; ``numbers`` is the number of things that each of them stands for. It shows the items at the positions
    ``whole_items`` completely or not at all, and shortens names (``name``) to keep parts on one line.
    """

    items: Sequence[Sequence[Words]]
    noun: str = "line"
    shown: int = 0
    is_numbered: bool = False
    is_whole: bool = False
    parts: str = ""
    numbers: Sequence[Sequence[int]] = ()
    whole_items: Collection[int] = ()


class Node(msgspec.Struct, frozen=True):
    """A line of a tree with its children."""

    words: Words
    children: Sequence[Node] = ()


class Tree(msgspec.Struct, frozen=True):
    """Lines that follow from one another. If ``is_alike``, children are of the same ``noun`` and count as items."""

    items: Sequence[Node]
    noun: str = "line"
    shown: int = 0
    is_alike: bool = False

    def size(self, nodes: Sequence[Node]) -> int:
        """The number of items in these nodes."""
        return sum(1 + (self.size(node.children) if self.is_alike else 0) for node in nodes)


class Timeline(msgspec.Struct, frozen=True):
    """Events over time: a clock text, and what happens then."""

    items: Sequence[tuple[str, Words]]
    noun: str = "step"
    shown: int = 0


class Picture(msgspec.Struct, frozen=True):
    """Content that only a page can show: ``draw`` returns trusted markup."""

    draw: Callable[[], str]


class Fold(msgspec.Struct, frozen=True):
    """Blocks that are collapsed on a page and in Markdown; in text they are always shown.

    If it ``is_brief``, an abridged report shows only the summary, and a screen nothing.
    """

    summary: str
    blocks: Sequence[Block | Section]
    is_brief: bool = False


class Cards(msgspec.Struct, frozen=True):
    """Items that ``draw`` turns into sections when they are shown: cards on a page.

    If they are ``is_summarized``, another block describes the items that a report omits. A page may show many of its
    main cards (``is_main``). ``numbers`` is the number of things each item stands for, if not 1.
    """

    items: Sequence[Any]
    draw: Callable[[Any], Section]
    noun: str = "item"
    shown: int = 0
    is_summarized: bool = False
    is_main: bool = False
    numbers: Sequence[int] = ()


class Section(msgspec.Struct, frozen=True):
    """Blocks below a label. ``lead`` follows the label on its line; if ``is_inline``, the blocks follow there, too.

    ``heading`` is the title on a page, and ``anchor`` its fragment; both default to the label. A section without lead
    and blocks is not shown. Pages put sections with ``is_reasoning`` last, and Markdown collapses them. Sections with a
    ``priority`` are on a screen, highest first, as ``short`` if that is given.

    A card is marked if its ``style`` is good, bad or warn; ``status`` is the word that a page's search filters by.

    A section without a label is a report in itself, one of several of that ``noun``. ``only`` limits it to screens or
    to pages. ``reserved_lines`` don't count when the longest section of a screen is chosen to be cut; at least
    ``min_lines`` lines are shown as long as the section is. Sections that are an ``aside``, the one with the highest
    number first, are omitted before others lose their reserved lines.
    """

    label: str
    lead: Words = ""
    blocks: Sequence[Block | Section] = ()
    heading: str = ""
    anchor: str = ""
    is_inline: bool = False
    is_reasoning: bool = False
    style: Role = "heading"
    priority: int = 0
    short: Section | None = None
    noun: str = "section"
    reserved_lines: int = 0
    min_lines: int = 2
    aside: int = 0
    only: Literal["", "screen", "page"] = ""
    status: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.lead and not any(map(_has_content, self.blocks))

    @property
    def title(self) -> str:
        """The heading on a page."""
        return self.heading or self.label.lstrip("0123456789 ").capitalize()

    @property
    def address(self) -> str:
        """The fragment of the section's address on a page."""
        return self.anchor or self.label.lstrip("0123456789 ").lower().replace(" ", "-")


Block = Sentence | Code | Hint | Rows | Table | Listing | Tree | Timeline | Cards | Picture | Fold


_B = TypeVar("_B", bound="Block | Section")


def _has_content(block: Block | Section) -> bool:
    match block:
        case Section():
            return not block.is_empty
        case Sentence():
            return bool(text_of(block.words))
        case Rows():
            return bool(block.rows)
        case Table() | Listing() | Tree() | Timeline() | Cards():
            return bool(block.items)
    return True


def answer_first(blocks: Iterable[_B]) -> list[_B]:
    """The blocks, with the sections that only explain the answer moved to the end."""
    return sorted(blocks, key=lambda block: isinstance(block, Section) and block.is_reasoning)


class Count(NamedTuple):
    """A number at the top of a page, with its label, and whether it is bad."""

    words: str
    number: int
    is_bad: bool = False


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer.

    ``lead`` is its first sentences, and ``facts`` is the input it is based on; a screen uses ``short_lead`` and
    ``short_facts``. ``title`` is the heading of a page, in a ``tone``, and of Markdown; ``counts`` and ``page_facts``
    are only on pages. ``more`` lists options that show more with a description, ``hint`` is the option that lists what
    a report omits, and ``command`` is the command that wrote it. A page gets a search if the ``statuses`` of its cards
    are given, which it can filter by. Markdown collapses the reasoning below the title ``folded``, together with the
    facts unless ``always_facts``. On a screen that ``is_compact``, sections follow their labels without blank lines,
    and the facts come last. A report that ``is_complete`` is never cut to a screen.
    """

    lead: Words
    sections: Sequence[Section]
    title: Words = ""
    tone: Tone = "good"
    facts: Sequence[Words] = ()
    counts: Sequence[Count] = ()
    page_facts: Sequence[str] = ()
    more: Sequence[tuple[str, str]] = ()
    short_lead: Words = ""
    short_facts: Words = ""
    hint: str = "-v"
    command: str = ""
    statuses: Sequence[str] | None = None
    folded: str = "The reasoning"
    always_facts: bool = False
    is_compact: bool = False
    is_complete: bool = False

    def shown_sections(self, medium: Literal["", "screen", "page"] = "") -> list[Section]:
        """The sections with content, including those only for this medium."""
        return [section for section in self.sections if not section.is_empty and section.only in ("", medium)]
