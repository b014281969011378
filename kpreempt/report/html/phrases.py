"""Sentences of the terminal's reports as markup: what stands out there stands out here."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.blocks import Part, Role, Span, Words, spans_of
from kpreempt.report.html.markup import Html, join, name, tag, text
from kpreempt.verdict import BudgetUse

_CLASSES: dict[Role, str] = {"good": "good", "bad": "bad", "warn": "warn", "dim": "dim"}
_BUDGETS_SHOWN = 6


def phrase(words: Words) -> Html:
    """The words, each part in its role and kept apart from the others whichever way it is written.

    They may hold names of any length, so that they break anywhere; nothing where they say nothing.
    """
    shown = join(map(_styled, spans_of(words)))
    return tag("span", shown, class_="message") if shown else shown


def paragraph(*parts: Part) -> Html:
    """A paragraph of a phrase; nothing where it says nothing."""
    shown = phrase(parts)
    return tag("p", shown) if shown else Html("")


def budget_uses(budgets: Sequence[BudgetUse]) -> Html:
    """Each budget with the disruptions that it allows before and after; those that are overdrawn are marked."""
    told = [
        join([name(use.budget), f" {_signed(use.allowed)} → {_signed(use.left)}", _overdrawn(use)])
        for use in budgets[:_BUDGETS_SHOWN]
    ]
    if rest := len(budgets) - len(told):
        told.append(text(f"{rest:,} more"))
    return join(told, ", ")


def _overdrawn(use: BudgetUse) -> Html:
    return join([" ", tag("span", "✗ violated", class_="badge bad")]) if use.left < 0 else Html("")


def _signed(number: int) -> str:
    return f"{number:,}".replace("-", "−")  # noqa: RUF001 - a minus


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
