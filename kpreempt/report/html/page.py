"""The frame of a page: one file that needs nothing else, and reads on a screen and on paper.

It runs no script but that of its search, where it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kpreempt.report.html.markup import Html, join, section, tag, unfolded, void
from kpreempt.report.html.search import SCRIPT
from kpreempt.report.html.style import STYLE, policy

_HEAD_LINES = (
    void("meta", name="referrer", content="no-referrer"),
    void("meta", name="viewport", content="width=device-width, initial-scale=1"),
    void("meta", name="robots", content="noindex"),
)
_NO_SEARCH = Html("")
# A number with its words, and whether it is bad.
Count = tuple[str, int, bool]


class Part(NamedTuple):
    """A section: anchor, words of the link to it, its heading, and its content, without which it is not shown."""

    anchor: str
    link: str
    heading: str
    content: Html


def whole_page(
    title: str,
    head: Html,
    parts: Sequence[Part],
    end: Html,
    *,
    is_unfolded: bool = False,
    links: int | None = None,
    search: Html = _NO_SEARCH,
) -> str:
    """The document: what is at its head, links to the parts (the first ``links``), the parts, and its end.

    ``search`` is the box of a page that can be searched.
    """
    shown = [part for part in parts if part.content]
    listed = (tag("li", tag("a", part.link, href=f"#{part.anchor}")) for part in shown[:links])
    contents = tag("nav", tag("ul", *listed), aria_label="Contents") + Html("\n") if len(shown) > 1 else Html("")
    style = Html(f"<style>{STYLE}</style>")
    charset = void("meta", charset="utf-8")
    lets_in = void("meta", http_equiv="Content-Security-Policy", content=policy(SCRIPT if search else ""))
    lines = join([charset, lets_in, *_HEAD_LINES, tag("title", title), style], Html("\n"))
    main = tag("main", Html("\n"), head, contents, search, sections(shown))
    script = Html(f"<script>{SCRIPT}</script>\n") if search else Html("")
    body = tag("body", Html("\n"), main, Html("\n"), end, Html("\n"), script)
    page = tag("html", Html("\n"), tag("head", Html("\n"), lines, Html("\n")), Html("\n"), body, lang="en")
    if is_unfolded:
        page = unfolded(page)
    return f"<!DOCTYPE html>\n{page}\n"


def sections(parts: Iterable[Part], *, prefix: str = "", level: int = 2) -> Html:
    """The parts that have content, under headings of that level; ``prefix`` keeps their anchors apart from others'."""
    return join(
        section(f"{prefix}{part.anchor}", part.heading, part.content, level=level) for part in parts if part.content
    )


def banner(tone: str, title: str, counts: Iterable[Count], facts: str, lead: str = "") -> Html:
    """The head of the page, in a ``tone`` of good, warn or bad: title, perhaps a ``lead``, numbers, and facts."""
    numbers = join(_number(*each) for each in counts)
    told = tag("p", lead, class_="lead") if lead else Html("")
    counted = tag("dl", numbers, class_="counts") if numbers else Html("")
    return tag(
        "header", tag("h1", title), told, counted, tag("p", facts, class_="facts"), class_=f"banner {tone}"
    ) + Html("\n")


def footer(command: str, api_version: str) -> Html:
    """The end of the page: what wrote it, and where all is that is cut."""
    return tag("footer", f"Written by kpreempt {command} ({api_version}). -o json has everything that is cut here.")


def _number(label: str, number: int, is_bad: bool) -> Html:
    return tag("div", tag("dt", label), tag("dd", f"{number:,}"), class_="bad" if is_bad else None)
