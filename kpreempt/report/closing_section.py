"""What ends a report: what its answer does not evaluate and could change it."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.blocks import Listing, Phrase, Section, Sentence, Span, Words
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import absent_sentence

# What could not be read comes first; what only informs, or stands in the first lines, last.
_ORDER_SHOWN = {AssumptionKind.UNREADABLE: 0, AssumptionKind.NOTE: 2, AssumptionKind.ABSENT: 2}
# The last sections of a screen.
_ASSUMED = 10
_LINES_SHOWN = 4


def assumption_sections(assumptions: Sequence[Assumption], *, shown: int = _LINES_SHOWN) -> list[Section]:
    """``ASSUMED``: what the answer does not evaluate and could change it. ``FILES``: those without objects."""
    listed = [each for each in assumptions if each.lists_files]
    others = [each for each in assumptions if not each.lists_files]
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


def _assumption(assumption: Assumption) -> Phrase:
    subject = " ".join(part for part in (assumption.subject, assumption.field) if part)
    return (f"{subject}: " if subject else "", assumption.message)
