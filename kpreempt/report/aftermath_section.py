"""``AFTERMATH``: what happens after the scheduler's decision, told by the clock."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.layout import LABEL_COLUMN, Page, Span
from kpreempt.report.options import RenderOptions
from kpreempt.report.play_words import INDENT, add_displaced, budget_phrase, play_summary, tell_step_by_step
from kpreempt.verdict import Verdict

_LINES_SHOWN = 12


def add_aftermath_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """The steps by the clock, who is displaced for whom, what is left waiting, and what budgets came to."""
    play = verdict.aftermath
    if play is None:
        return
    page.blank()
    page.labelled(Span("AFTERMATH", "heading"), *play_summary(play), column=LABEL_COLUMN)
    lines = tell_step_by_step(play.steps)
    shown = lines if options.verbose else lines[:_LINES_SHOWN]
    for line in shown:
        page.labelled(Span(f"  {line.clock}", "dim"), *line.words, column=LABEL_COLUMN)
    if len(lines) > len(shown):
        rest = f"… and {count(len(lines) - len(shown), 'more step')} (--verbose)"
        page.labelled("", Span(rest, "dim"), column=LABEL_COLUMN)
    if play.depth > 1:
        page.paragraph("one after the other:", indent=INDENT)
        chain = play.displaced if options.verbose else play.displaced[:_LINES_SHOWN]
        add_displaced(page, chain)
        if len(play.displaced) > len(chain):
            rest = f"… and {len(play.displaced) - len(chain):,} more (--verbose)"
            page.paragraph(Span(rest, "dim"), indent=2 * INDENT)
    for budget in play.budgets:
        page.paragraph(*budget_phrase(budget), indent=INDENT, hanging=2)
