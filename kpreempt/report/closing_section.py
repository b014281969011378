"""What ends a report: what its answer does not evaluate and could change it."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.blocks import Listing, Section, Sentence, Words
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, plain
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import absent_sentence

# What could not be read comes first; what only informs, or stands in the first lines, last.
_ORDER_SHOWN = {AssumptionKind.UNREADABLE: 0, AssumptionKind.NOTE: 2, AssumptionKind.ABSENT: 2}
# The last sections of a screen.
_ASSUMED = 10
_LINES_SHOWN = 4


def add_assumptions_section(
    page: Page, assumptions: Sequence[Assumption], options: RenderOptions, *, hint: str = "-v"
) -> None:
    """``ASSUMED``: what the answer does not evaluate and could change it; ``hint`` is the option that lists all.

    ``FILES``: those without objects.
    """
    listed, others = _divided(assumptions)
    shown = others if options.verbose else others[:_LINES_SHOWN]
    lines = [_assumption(each) for each in shown]
    _add_listed(page, Span("ASSUMED", "warn"), lines, len(others) - len(shown), hint)
    _add_listed(page, Span("FILES", "heading"), [_assumption(each) for each in listed], 0, hint)


def assumption_sections(assumptions: Sequence[Assumption], *, shown: int = _LINES_SHOWN) -> list[Section]:
    """``ASSUMED``: what the answer does not evaluate and could change it. ``FILES``: those without objects."""
    listed, others = _divided(assumptions)
    first: Words = ""
    if others:
        weightiest = _assumption(min(others, key=lambda each: _ORDER_SHOWN.get(each.kind, 1)))
        first = (f"{len(others):,} things (-v); the first: " if len(others) > 1 else "", *weightiest)
    return [
        Section(
            "ASSUMED",
            blocks=[Listing([[_assumption(each)] for each in others], noun="assumption", shown=shown)],
            heading="What is assumed",
            anchor="assumptions",
            is_beside=True,
            style="warn",
            priority=_ASSUMED,
            short=Section("ASSUMED", blocks=[Sentence(first)], is_beside=True, style="warn"),
        ),
        Section(
            "FILES",
            blocks=[Listing([[_assumption(each)] for each in listed], noun="file")],
            is_beside=True,
            priority=_ASSUMED - 1,
        ),
    ]


def absent_facts(assumptions: Sequence[Assumption]) -> list[Words]:
    """Which kinds the input has none of although they could change the answer; empty if there are none."""
    absent = absent_sentence(assumptions)
    return [Span(absent, "warn")] if absent else []


def add_first_assumption(page: Page, assumptions: Sequence[Assumption]) -> None:
    """How many assumptions there are, and one, in two lines at most: of what could not be read, if anything was.

    Files without objects are listed after it.
    """
    listed, others = _divided(assumptions)
    if others:
        first = min(others, key=lambda each: _ORDER_SHOWN.get(each.kind, 1))
        label = f"Assumed (1 of {len(others):,}, -v): " if len(others) > 1 else "Assumed: "
        page.paragraph(Span(label, "warn"), *_assumption(first), hanging=2, most=2)
    for each in listed:
        page.paragraph(Span(plain(_assumption(each)), "dim"), hanging=2, most=2)


def _divided(assumptions: Sequence[Assumption]) -> tuple[list[Assumption], list[Assumption]]:
    """The files without objects, and what is assumed."""
    listed = [each for each in assumptions if each.lists_files]
    return listed, [each for each in assumptions if not each.lists_files]


def add_absent_kinds(page: Page, assumptions: Sequence[Assumption]) -> None:
    """Which kinds the input has none of though they could change the answer, in three lines at most."""
    if unknown := absent_sentence(assumptions):
        page.paragraph(Span(unknown, "warn"), hanging=2, most=3)


def _assumption(assumption: Assumption) -> Phrase:
    subject = " ".join(part for part in (assumption.subject, assumption.field) if part)
    return (f"{subject}: " if subject else "", assumption.message)


def _add_listed(page: Page, label: Span, lines: Sequence[Phrase], rest: int, hint: str) -> None:
    if not lines:
        return
    page.blank()
    for number, line in enumerate(lines):
        page.labelled("" if number else label, *line, column=LABEL_COLUMN)
    if rest:
        page.labelled("", Span(f"… and {rest:,} more ({hint})", "dim"), column=LABEL_COLUMN)
