"""The report for a terminal: the answer first, then the scheduler's steps in its own order, each with its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.aftermath_section import add_aftermath_section
from kpreempt.report.changes_section import add_changes_section
from kpreempt.report.choice_section import add_choice_section
from kpreempt.report.closing_section import (
    add_admission_section,
    add_assumptions_section,
    add_effects_section,
    add_event_section,
    add_nearest_section,
)
from kpreempt.report.colour import finished
from kpreempt.report.dry_run_section import add_dry_run_section, add_eligibility_section
from kpreempt.report.extenders_section import add_extenders_section
from kpreempt.report.filter_section import add_filter_section
from kpreempt.report.headline import cluster_facts, headline, pod_facts, pod_name
from kpreempt.report.layout import Page, Phrase, Span
from kpreempt.report.node_section import add_node_section
from kpreempt.report.options import RenderOptions
from kpreempt.report.score_section import add_score_section
from kpreempt.report.summary import name_destinations, outcome_in_words
from kpreempt.report.victims_section import add_victims_section
from kpreempt.report.volumes_section import add_volumes_section
from kpreempt.verdict import Outcome, Verdict


def render(verdicts: Sequence[Verdict], options: RenderOptions) -> str:
    """Each report; several are separated by a line and closed by a table of all."""
    page = Page(options.width)
    for number, verdict in enumerate(verdicts):
        if number:
            _add_separator(page)
        _add_report(page, verdict, options)
    if len(verdicts) > 1:
        _add_separator(page)
        _add_summary(page, verdicts)
    return finished(page, options)


def _add_report(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    page.paragraph(*headline(verdict))
    page.paragraph(*pod_facts(verdict), indent=2, hanging=2)
    page.paragraph(*cluster_facts(verdict, options), indent=2, hanging=2)
    if verdict.outcome != Outcome.NOT_SCHEDULED:
        add_filter_section(page, verdict, options)
        add_volumes_section(page, verdict, options)
        add_score_section(page, verdict, options)
        add_eligibility_section(page, verdict)
        add_dry_run_section(page, verdict, options)
        add_choice_section(page, verdict, options)
        add_extenders_section(page, verdict, options)
        add_victims_section(page, verdict, options)
        add_nearest_section(page, verdict, options)
        add_changes_section(page, verdict, options)
        add_node_section(page, verdict, options)
    add_event_section(page, verdict)
    add_effects_section(page, verdict, options)
    add_aftermath_section(page, verdict, options)
    add_admission_section(page, verdict, options)
    add_assumptions_section(page, verdict.assumptions, options)


def _add_separator(page: Page) -> None:
    page.blank()
    page.paragraph(Span("─" * page.width, "dim"))
    page.blank()


def _add_summary(page: Page, verdicts: Sequence[Verdict]) -> None:
    titles = ("POD", "NODE", "OUTCOME")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    rows += [((pod_name(each),), (name_destinations(each),), outcome_in_words(each)) for each in verdicts]
    page.table(rows, aligns=("left", "left", "left"))
