"""Sentences of the terminal's reports as markup: what stands out there stands out here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.report.html.markup import Html, join, name, tag, text
from kpreempt.report.layout import Part, Span
from kpreempt.verdict import BudgetUse

_CLASSES = {"good": "good", "bad": "bad", "warn": "warn", "dim": "dim"}
_BUDGETS_SHOWN = 6


def phrase(parts: Iterable[Part]) -> Html:
    """The parts one after the other, each in its style and kept apart from the others whichever way it is written.

    They may hold names of any length, so that they break anywhere; nothing where they say nothing.
    """
    shown = join(_styled(part) if isinstance(part, Span) else text(part) for part in parts)
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
    if span.style in ("strong", "heading"):
        return tag("b", span.text, dir="auto")
    return tag("span", span.text, class_=_CLASSES[span.style], dir="auto") if span.style else text(span.text)
