"""Sentences of the terminal's reports as markup: what stands out there stands out here."""

from __future__ import annotations

from kpreempt.report.blocks import Role, Span, Words, spans_of
from kpreempt.report.html.markup import Html, join, name, tag, text

_CLASSES: dict[Role, str] = {"good": "good", "bad": "bad", "warn": "warn", "dim": "dim"}


def phrase(words: Words) -> Html:
    """The words, each part in its role and kept apart from the others whichever way it is written.

    They may hold names of any length, so that they break anywhere; nothing where they say nothing.
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
