"""What a report is made of, written once: blocks, which ``terminal``, ``markdown`` and ``html.report`` render.

A report is a ``Report`` of ``Section``s, and a section holds blocks: sentences, rows of terms, tables, lists, trees,
timelines and code. Text stands in ``Span``s, which have a role (what the text is) and no color. Whatever comes from the
input goes into a span as it is: each renderer makes it harmless.

A block with ``items`` holds all that there are; ``shown`` says how many of them a report for a terminal has unless it
leaves nothing out. Pages and Markdown have limits of their own. A screen has the sections with a ``priority``, in their
short form if they have one, and cuts the longest until all fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

# ``strong`` is what the eye should find first, ``name`` a name from the input, ``code`` what is typed or quoted.
Role = Literal["", "strong", "name", "code", "good", "bad", "warn", "dim", "heading"]
Align = Literal["left", "right"]
Tone = Literal["good", "warn", "bad"]


class Span(NamedTuple):
    """Text in one role; ``link`` is an address, or ``#`` and the anchor of a section, which only pages show."""

    text: str
    style: Role = ""
    link: str = ""


Part = str | Span
Phrase = tuple[Part, ...]
# What may be given for a phrase: a text alone, a span alone, or several.
Words = str | Span | Phrase


def strong(text: str) -> Span:
    """Text that the eye should find first."""
    return Span(text, "strong")


def name(text: str) -> Span:
    """A name from the input."""
    return Span(text, "name")


def phrase_of(words: Words) -> Phrase:
    """The words as a phrase."""
    return (words,) if isinstance(words, (str, Span)) else words


def spans_of(words: Words) -> list[Span]:
    """The words as spans, without those that are empty."""
    spans = (part if isinstance(part, Span) else Span(part) for part in phrase_of(words))
    return [span for span in spans if span.text]


def text_of(words: Words) -> str:
    """The words without their roles, as they are."""
    return "".join(part.text if isinstance(part, Span) else part for part in phrase_of(words))


def joined(several: Iterable[Words], separator: Words = ", ") -> Phrase:
    """Several phrases as one."""
    parts: list[Part] = []
    for number, words in enumerate(several):
        parts += [*(phrase_of(separator) if number else ()), *phrase_of(words)]
    return tuple(parts)


class Sentence(msgspec.Struct, frozen=True):
    """A paragraph."""

    words: Words


class Code(msgspec.Struct, frozen=True):
    """Text to the letter, of one line or several: a message, a file, or, if ``is_command``, what never breaks."""

    text: str | Sequence[str]
    is_command: bool = False

    @property
    def lines(self) -> Sequence[str]:
        """The lines, in each of which a line feed is shown as what it is."""
        return [self.text] if isinstance(self.text, str) else self.text


class Hint(msgspec.Struct, frozen=True):
    """How to see more, or how to read what stands there: for a terminal alone."""

    words: Words


class Rows(msgspec.Struct, frozen=True):
    """Terms with what they are."""

    rows: Sequence[tuple[Words, Words]]


class Column(NamedTuple):
    """The title of a column, and on which side its cells stand."""

    title: str
    align: Align = "left"


def columns(*titles: str, right: Iterable[str] = ()) -> list[Column]:
    """Columns of these titles, of which the ``right`` ones hold numbers."""
    numbers = set(right)
    return [Column(title, "right" if title in numbers else "left") for title in titles]


class Table(msgspec.Struct, frozen=True):
    """Rows of cells below titles. ``noun`` is what a row is called; only pages show the ``caption``.

    The last column, if on the left, wraps in place. ``is_untitled`` leaves titles out of text; ``is_lettered`` has
    titles too long for the page letters, explained above. On a screen names lose their middle if the table
    ``is_dense``, so that a row is a line. What a page is about (``is_main``) may be long there. If it ``has_details``,
    the last column stands below each row unless the page is wide enough, as do others for which there is no room, and a
    screen leaves it out first. ``numbers`` says of each row how many of the ``noun`` it stands for, if not 1.
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
    """Items of one or more phrases, each phrase on a line of its own, those after the first indented.

    On a screen an item of several phrases is there as a whole or not at all.
    """

    items: Sequence[Sequence[Words]]
    noun: str = "line"
    shown: int = 0
    is_numbered: bool = False


class Node(msgspec.Struct, frozen=True):
    """A line of a tree, and what hangs from it."""

    words: Words
    children: Sequence[Node] = ()


class Tree(msgspec.Struct, frozen=True):
    """Lines that follow from one another. What hangs below is of the same ``noun`` if ``is_alike``, and counts, too."""

    items: Sequence[Node]
    noun: str = "line"
    shown: int = 0
    is_alike: bool = False

    def size(self, nodes: Sequence[Node]) -> int:
        """How many items these are."""
        return sum(1 + (self.size(node.children) if self.is_alike else 0) for node in nodes)


class Timeline(msgspec.Struct, frozen=True):
    """What happens, by the clock: a time in words, and what happens then."""

    items: Sequence[tuple[str, Words]]
    noun: str = "step"
    shown: int = 0


class Picture(msgspec.Struct, frozen=True):
    """What only a page can show: ``draw`` makes the markup, as trusted as the page's own."""

    draw: Callable[[], str]


class Fold(msgspec.Struct, frozen=True):
    """Blocks that unfold on a page and in Markdown; in text they are just there.

    If it ``is_brief``, a report that leaves things out has only the summary, and a screen nothing.
    """

    summary: str
    blocks: Sequence[Block | Section]
    is_brief: bool = False


class Cards(msgspec.Struct, frozen=True):
    """Items that are sections, each made of its item by ``draw`` when it is to be shown: cards on a page.

    If they are ``is_summarized``, another block says what those are that a report leaves out. There may be many of them
    on a page that is about them (``is_main``). ``numbers`` says how many of the ``noun`` each stands for, if not 1.
    """

    items: Sequence[Any]
    draw: Callable[[Any], Section]
    noun: str = "item"
    shown: int = 0
    is_summarized: bool = False
    is_main: bool = False
    numbers: Sequence[int] = ()


class Section(msgspec.Struct, frozen=True):
    """Blocks below a label. ``lead`` stands beside the label; if ``is_beside``, the blocks do, too.

    ``heading`` is that of a page and ``anchor`` the end of its address, both made of the label if they are not given. A
    section without a lead and blocks is not shown. Pages have the sections that are reasoning after the others, and
    Markdown folds them. Those with a ``priority`` are on a screen, the highest first, as ``short`` if that is given.

    A card has a mark if its ``style`` is good, bad or warn; ``standing`` is the word to which a search keeps it.

    Without a label a section is a report of its own, one of several of that ``noun``. One that is there for screens or
    pages ``only`` is nowhere else. So many lines as it ``keeps`` do not count if the longest section of a screen is to
    be cut; ``least`` of them are there as long as the section is.
    """

    label: str
    lead: Words = ""
    blocks: Sequence[Block | Section] = ()
    heading: str = ""
    anchor: str = ""
    is_beside: bool = False
    is_reasoning: bool = False
    style: Role = "heading"
    priority: int = 0
    short: Section | None = None
    noun: str = "section"
    keeps: int = 0
    least: int = 2
    only: Literal["", "screen", "page"] = ""
    standing: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.lead and not any(map(_has_content, self.blocks))

    @property
    def title(self) -> str:
        """The heading of a page."""
        return self.heading or self.label.lstrip("0123456789 ").capitalize()

    @property
    def address(self) -> str:
        """The end of the section's address on a page."""
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
    """The blocks with the sections that only explain the answer at the end."""
    return sorted(blocks, key=lambda block: isinstance(block, Section) and block.is_reasoning)


class Count(NamedTuple):
    """A number at the head of a page, with its words, and whether it is bad."""

    words: str
    number: int
    is_bad: bool = False


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer.

    ``lead`` is its first sentences, ``facts`` what it rests on; ``short_lead`` and ``short_facts`` are for a screen.
    ``title`` heads a page, in a ``tone``, and Markdown; ``counts`` and ``page_facts`` are on pages alone. ``more`` are
    options that show more, with what they show, ``hint`` the one that lists what a report leaves out. ``command`` wrote
    it. A page has a search if the ``standings`` of its cards are given, to which it can keep. Markdown has the
    reasoning below the words ``folded``, and with it the facts, unless it has these always. On a screen that
    ``is_compact`` sections stand beside their labels without lines between them, and the facts are below. One that
    ``is_whole`` is never cut to a screen.
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
    standings: Sequence[str] | None = None
    folded: str = "The reasoning"
    always_facts: bool = False
    is_compact: bool = False
    is_whole: bool = False

    def shown_sections(self, medium: Literal["", "screen", "page"] = "") -> list[Section]:
        """The sections that have something in them, with those that are for this medium only."""
        return [section for section in self.sections if not section.is_empty and section.only in ("", medium)]
