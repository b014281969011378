"""Reports as pages: one file that needs nothing else, of about 2 MB at most whatever the report holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from kpreempt.report.amounts import plural
from kpreempt.report.blocks import (
    Block,
    Cards,
    Code,
    Fold,
    Listing,
    Node,
    Picture,
    Report,
    Rows,
    Section,
    Sentence,
    Table,
    Timeline,
    Tree,
    Words,
    answer_first,
    spans_of,
    text_of,
)
from kpreempt.report.html.markup import (
    TABLE_LIMIT,
    Html,
    badge,
    cut_note,
    fold,
    folded,
    folded_list,
    join,
    name,
    table,
    tag,
    text,
    within,
)
from kpreempt.report.html.markup import (
    section as titled,
)
from kpreempt.report.html.page import Part, banner, footer, whole_page
from kpreempt.report.html.phrases import phrase
from kpreempt.report.html.search import search_box
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import API_VERSION

_T = TypeVar("_T")
_REPORTS_LIMIT = 1_900_000
_LIST_LIMIT = 130_000
_MAIN_LIMIT = 600_000
_CARDS_SHOWN = 3
_LINKS_SHOWN = 12
_LINES_SHOWN = 12
_MOMENTS_SHOWN = 30
# The API server cuts the message of an event at 1,024.
_CODE_LENGTH = 4_000
# Longer chains go on below one another.
_DEEPEST = 8


def render_page(report: Report, options: RenderOptions) -> str:
    """The document. What is cut says so; with ``verbose`` everything is unfolded."""
    facts = [*map(text_of, report.facts), *report.page_facts, *options.facts_of_time(options.now)]
    head = banner(report.tone, _title(report.title), report.counts, " · ".join(facts), phrase(report.lead))
    sections = answer_first(report.shown_sections("page"))
    contents, left = within(partial(_content, prefix="", level=2), sections, _REPORTS_LIMIT)
    parts = [Part(each.address, each.title, each.title, shown) for each, shown in zip(sections, contents, strict=False)]
    if left:
        note = cut_note(left, plural(sections[-1].noun))
        parts.append(Part("left-out", "Left out", "Left out", note))
    end = footer(report.command, API_VERSION)
    title = text_of(report.title)
    search = Html("") if report.standings is None else search_box(report.standings)
    page = whole_page(title, head, parts, end, is_unfolded=options.verbose, links=_LINKS_SHOWN, search=search)
    for section in sections[len(contents) :]:
        # In text the mark-up is escaped, and so is not found.
        page = re.sub(f'<a href="#{re.escape(section.address)}">(.*?)</a>', r"\1", page)
    return page


def _title(words: Words) -> Html:
    """The heading of the page, in which what has a role, unless it is a name, is in the color of its tone."""
    return join(
        name(span.text) if span.style == "name" else tag("span", span.text) if span.style else span.text
        for span in spans_of(words)
    )


def _content(section: Section, prefix: str, level: int) -> Html:
    """The section below its heading: its lead, its blocks, and the sections within it."""
    identifier = f"{prefix}{section.address}"
    lead = tag("p", phrase(section.lead)) if text_of(section.lead) else Html("")
    return lead + _blocks(section.blocks, section, f"{identifier}-", level + 1)


def _blocks(blocks: Sequence[Block | Section], section: Section, prefix: str, level: int) -> Html:
    whole = Html("")
    for block in blocks if section.label else answer_first(blocks):
        if not isinstance(block, Section):
            whole += _block(block, section, prefix, level)
        elif not block.is_empty and block.only != "screen":
            whole += titled(f"{prefix}{block.address}", block.title, _content(block, prefix, level), level=level)
    return whole


def _drawn_card(draw: Callable[[Any], Section], item: Any, prefix: str, level: int) -> Html:
    """An item that is a section."""
    section = draw(item)
    lead = tag("p", phrase(section.lead)) if text_of(section.lead) else Html("")
    mark = [badge(section.standing, section.style), " "] if section.standing else []
    title = tag(f"h{level}", *mark, phrase(section.label))
    blocks = _blocks(section.blocks, section, prefix, level + 1)
    article = tag(
        "article", title, lead, blocks, class_=f"card {section.standing}".rstrip(), data_standing=section.standing
    )
    return article + Html("\n")


def _block(block: Block, section: Section, prefix: str, level: int) -> Html:
    match block:
        case Sentence():
            return tag("p", phrase(block.words)) if text_of(block.words) else Html("")
        case Code():
            return tag("p", join((text(each, limit=_CODE_LENGTH) for each in block.lines), Html("\n")), class_="event")
        case Rows():
            rows = join(tag("dt", phrase(term)) + tag("dd", phrase(words)) for term, words in block.rows)
            return tag("dl", rows, class_="rows") + Html("\n")
        case Fold():
            return fold(block.summary, _blocks(block.blocks, section, prefix, level))
        case Picture():
            return Html(block.draw())
        case Cards():
            show = partial(_drawn_card, block.draw, prefix=prefix, level=level)
            cards, left = within(show, block.items, _MAIN_LIMIT if block.is_main else _LIST_LIMIT)
            what = plural(block.noun)
            return folded(cards, max(block.shown, _CARDS_SHOWN), what) + cut_note(left, what)
        case Table() if block.items:
            return _table(block, section)
        case Listing() if block.items:
            kind = "ol" if block.is_numbered and len(block.items) > 1 else "ul"
            return _list(kind, _line, block.items, block.noun, "lines", _LINES_SHOWN)
        case Timeline() if block.items:
            return _list("ul", _moment, block.items, block.noun, "clock", _MOMENTS_SHOWN)
        case Tree() if block.items:
            nodes = [line for node in block.items for line in _lines_of(node, 1)]
            return _list("ol", _branch, nodes, block.noun, "tree", _MOMENTS_SHOWN)
    return Html("")


def _table(block: Table, section: Section) -> Html:
    heads = [column.title.capitalize() if column.title.isupper() else column.title for column in block.columns]
    caption = block.caption or text_of(section.lead) or section.title
    limit = _MAIN_LIMIT if block.is_main else TABLE_LIMIT
    return table(caption, heads, partial(map, phrase), block.items, limit=limit, what=plural(block.noun))


def _list(kind: str, show: Callable[[_T], Html], items: Sequence[_T], noun: str, class_: str, shown: int) -> Html:
    return folded_list(kind, show, items, limit=_LIST_LIMIT, what=plural(noun), shown=shown, class_=class_)


def _line(item: Sequence[Words]) -> Html:
    first, *others = item
    return tag("li", phrase(first), *(tag("div", phrase(words)) for words in others)) + Html("\n")


def _moment(item: tuple[str, Words]) -> Html:
    clock, words = item
    return tag("li", tag("time", clock), tag("div", phrase(words))) + Html("\n")


def _lines_of(node: Node, depth: int) -> list[tuple[int, Words]]:
    return [(depth, node.words), *(line for child in node.children for line in _lines_of(child, depth + 1))]


def _branch(line: tuple[int, Words]) -> Html:
    depth, words = line
    return tag("li", phrase(words), class_=f"d{min(depth, _DEEPEST)}") + Html("\n")
