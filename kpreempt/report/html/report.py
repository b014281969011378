"""Reports as pages: one self-contained file of at most about 2 MB, whatever the size of the report.

It is readable on screen and on paper, with the same highlights as the terminal's report. The only script is that of the
search, if there is one: without scripts, only the search box is missing. The search covers cards, rows, list items and
lanes: those that don't contain all the words are hidden, and collapsed content is searched as well. Findings can be
filtered by status.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
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
    Role,
    Rows,
    Section,
    Sentence,
    Span,
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
    unfolded,
    void,
    within,
)
from kpreempt.report.html.markup import section as titled
from kpreempt.report.html.style import STYLE, policy
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import API_VERSION

_T = TypeVar("_T")
_REPORTS_LIMIT = 1_900_000
_LIST_LIMIT = 130_000
_MAIN_LIMIT = 600_000
_CARDS_SHOWN = 3
_LINKS_SHOWN = 12
_LINES_SHOWN = 12
_TIMES_SHOWN = 30
# The API server truncates event messages at 1,024 characters.
_CODE_LENGTH = 4_000
# Longer chains continue without further indentation.
_DEEPEST = 8


def render_page(report: Report, options: RenderOptions) -> str:
    """The document. Whatever is cut is noted; with ``verbose``, everything is expanded."""
    sections = answer_first(report.shown_sections("page"))
    contents, omitted = within(partial(_content, prefix="", level=2), sections, _REPORTS_LIMIT)
    # The anchor, the heading and the content of each part.
    parts = [(each.address, each.title, shown) for each, shown in zip(sections, contents, strict=False) if shown]
    if omitted:
        parts.append(("omitted", "Omitted", cut_note(omitted, plural(sections[-1].noun))))
    listed = (tag("li", tag("a", heading, href=f"#{anchor}")) for anchor, heading, _ in parts[:_LINKS_SHOWN])
    links = tag("nav", tag("ul", *listed), aria_label="Contents") + Html("\n") if len(parts) > 1 else Html("")
    search = Html("") if report.statuses is None else search_box(report.statuses)
    below = (titled(anchor, heading, content) for anchor, heading, content in parts)
    main = tag("main", Html("\n"), _banner(report, options), links, search, *below)
    written = f"Written by kpreempt {report.command} ({API_VERSION}). -o json has everything that is omitted here."
    script = Html(f"<script>{SCRIPT}</script>\n") if search else Html("")
    body = tag("body", Html("\n"), main, Html("\n"), tag("footer", written), Html("\n"), script)
    head = [
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=policy(SCRIPT if search else "")),
        void("meta", name="referrer", content="no-referrer"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="robots", content="noindex"),
        tag("title", text_of(report.title)),
        Html(f"<style>{STYLE}</style>"),
    ]
    lines = tag("head", Html("\n"), join(head, Html("\n")), Html("\n"))
    page = tag("html", Html("\n"), lines, Html("\n"), body, lang="en")
    document = f"<!DOCTYPE html>\n{unfolded(page) if options.verbose else page}\n"
    for section in sections[len(contents) :]:
        # Text is escaped, so it contains no match.
        document = re.sub(f'<a href="#{re.escape(section.address)}">(.*?)</a>', r"\1", document)
    return document


def _banner(report: Report, options: RenderOptions) -> Html:
    """The top of the page: title, lead if any, numbers, and facts."""
    # Text with a role, unless it is a name, is in the color of the page's tone.
    title = join(
        name(span.text) if span.style == "name" else tag("span", span.text) if span.style else span.text
        for span in spans_of(report.title)
    )
    numbers = join(
        tag("div", tag("dt", each.words), tag("dd", f"{each.number:,}"), class_="bad" if each.is_bad else None)
        for each in report.counts
    )
    lead = phrase(report.lead)
    lead_paragraph = tag("p", lead, class_="lead") if lead else Html("")
    counted = tag("dl", numbers, class_="counts") if numbers else Html("")
    facts = " · ".join([*map(text_of, report.facts), *report.page_facts, *options.facts_of_time(options.now)])
    content = (tag("h1", title), lead_paragraph, counted, tag("p", facts, class_="facts"))
    return tag("header", *content, class_=f"banner {report.tone}") + Html("\n")


def _content(section: Section, prefix: str, level: int) -> Html:
    """The content of a section: its lead, its blocks, and nested sections."""
    lead = tag("p", phrase(section.lead)) if text_of(section.lead) else Html("")
    return lead + _blocks(section.blocks, section, f"{prefix}{section.address}-", level + 1)


def _blocks(blocks: Sequence[Block | Section], section: Section, prefix: str, level: int) -> Html:
    content = Html("")
    for block in blocks if section.label else answer_first(blocks):
        if not isinstance(block, Section):
            content += _block(block, section, prefix, level)
        elif not block.is_empty and block.only != "screen":
            content += titled(f"{prefix}{block.address}", block.title, _content(block, prefix, level), level=level)
    return content


def _drawn_card(draw: Callable[[Any], Section], item: Any, prefix: str, level: int) -> Html:
    """A card for an item."""
    section = draw(item)
    lead = tag("p", phrase(section.lead)) if text_of(section.lead) else Html("")
    mark = [badge(section.status, section.style), " "] if section.status else []
    title = tag(f"h{level}", *mark, phrase(section.label))
    blocks = _blocks(section.blocks, section, prefix, level + 1)
    article = tag("article", title, lead, blocks, class_=f"card {section.status}".rstrip(), data_status=section.status)
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
            cards, omitted = within(show, block.items, _MAIN_LIMIT if block.is_main else _LIST_LIMIT)
            what = plural(block.noun)
            return folded(cards, max(block.shown, _CARDS_SHOWN), what) + cut_note(omitted, what)
        case Table() if block.items:
            return _table(block, section)
        case Listing() if block.items:
            kind = "ol" if block.is_numbered and len(block.items) > 1 else "ul"
            return _list(kind, _line, block.items, block.noun, "lines", _LINES_SHOWN)
        case Timeline() if block.items:
            return _list("ul", _moment, block.items, block.noun, "clock", _TIMES_SHOWN)
        case Tree() if block.items:
            nodes = [line for node in block.items for line in _lines_of(node, 1)]
            return _list("ol", _branch, nodes, block.noun, "tree", _TIMES_SHOWN)
    return Html("")


def _table(block: Table, section: Section) -> Html:
    heads = [column.title.capitalize() if column.title.isupper() else column.title for column in block.columns]
    caption = block.caption or text_of(section.lead) or section.title
    limit = _MAIN_LIMIT if block.is_main else TABLE_LIMIT
    return table(caption, heads, partial(map, phrase), block.items, limit=limit, noun=plural(block.noun))


def _list(kind: str, show: Callable[[_T], Html], items: Sequence[_T], noun: str, class_: str, shown: int) -> Html:
    return folded_list(kind, show, items, limit=_LIST_LIMIT, noun=plural(noun), shown=shown, class_=class_)


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


_CLASSES: dict[Role, str] = {"good": "good", "bad": "bad", "warn": "warn", "dim": "dim"}


def phrase(words: Words) -> Html:
    """The words, each part in its role and isolated from the others whatever its text direction.

    They may contain names of any length, so they break anywhere. Empty if there are no words.
    """
    shown = join(map(_styled, spans_of(words)))
    return tag("span", shown, class_="message") if shown else shown


def _styled(span: Span) -> Html:
    shown, role = text(span.text), span.style
    if role in ("strong", "heading"):
        shown = tag("b", shown, dir="auto")
    elif role == "name":
        shown = name(span.text)
    elif role == "code":
        shown = tag("code", shown, dir="auto")
    elif role:
        shown = tag("span", shown, class_=_CLASSES[role], dir="auto")
    return tag("a", shown, href=span.link) if span.link else shown


SCRIPT = """
(() => {
  const box = document.querySelector(".search");
  const [words, kind, output] = ["input", "select", "output"].map(each => box.querySelector(each));
  const found = [...document.querySelectorAll(".card, tbody tr, .tree > li, .clock > li, .lane, .map")];
  const texts = found.map(each => each.textContent.toLowerCase());
  const folds = [...document.querySelectorAll(".fold")];
  const closed = folds.filter(each => !each.open);
  const update = () => {
    const terms = words.value.toLowerCase().split(/\\s+/).filter(Boolean);
    const status = kind ? kind.value : "";
    let shown = 0;
    found.forEach((each, place) => {
      const fits = terms.every(word => texts[place].includes(word));
      const matches = !status || !each.dataset.status || each.dataset.status === status;
      each.hidden = !(fits && matches);
      if (!each.hidden) shown += 1;
    });
    const searches = terms.length > 0 || status !== "";
    closed.forEach(each => { each.open = searches; });
    output.textContent = searches ? shown + " of " + found.length + " shown" : "";
  };
  words.addEventListener("input", update);
  if (kind) kind.addEventListener("change", update);
  box.hidden = false;
})();
""".strip()


def search_box(statuses: Iterable[str]) -> Html:
    """The search box, hidden until the script runs; with a filter if findings have several statuses."""
    listed = list(statuses)
    parts = [tag("label", "Search ", void("input", type="search", autocomplete="off"))]
    if len(listed) > 1:
        options = (tag("option", f"only: {each}", value=each) for each in listed)
        parts.append(tag("label", "Findings ", tag("select", Html('<option value="">all</option>'), *options)))
    parts.append(Html('<output aria-live="polite"></output>'))
    return Html('<div class="search" role="search" hidden>') + join(parts) + Html("</div>\n")
