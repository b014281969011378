"""The report for a terminal: the answer first, then the scheduler's steps in its own order, each with its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import (
    add_admission_section,
    add_assumptions_section,
    add_effects_section,
    add_event_section,
    add_nearest_section,
)
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.changes import add_changes_section
from kpreempt.report.explain.choice import add_choice_section, add_score_section
from kpreempt.report.explain.dry_run import add_dry_run_section, add_eligibility_section
from kpreempt.report.explain.extenders import add_extenders_section
from kpreempt.report.explain.filters import add_filter_section
from kpreempt.report.explain.headline import cluster_facts, headline, pod_facts
from kpreempt.report.explain.summary import name_destinations, name_subject, outcome_in_words
from kpreempt.report.explain.victims import add_victims_section
from kpreempt.report.explain.volumes import competitions
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Outcome, Verdict

_LINES_SHOWN = 12

_GROUPS_SHOWN = 5
_NAMES_SHOWN = 4


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
    add_workload(page, verdict, options)
    page.paragraph(*headline(verdict))
    page.paragraph(*pod_facts(verdict), indent=2, hanging=2)
    page.paragraph(*cluster_facts(verdict, options), indent=2, hanging=2)
    if verdict.outcome != Outcome.NOT_SCHEDULED:
        add_filter_section(page, verdict, options)
        add_volumes_section(page, verdict, options)
        if verdict.devices:
            from kpreempt.report.explain.devices import add_devices_section  # noqa: PLC0415 - few pods have devices

            add_devices_section(page, verdict, options)
        add_score_section(page, verdict, options)
        add_eligibility_section(page, verdict)
        add_dry_run_section(page, verdict, options)
        add_choice_section(page, verdict, options)
        add_extenders_section(page, verdict, options)
        add_victims_section(page, verdict, options)
        add_nearest_section(page, verdict, options)
        add_changes_section(page, verdict, options)
        if verdict.node_story is not None:
            from kpreempt.report.explain.node import add_node_section  # noqa: PLC0415 - few ask about a node

            add_node_section(page, verdict, options)
    add_event_section(page, verdict)
    add_effects_section(page, verdict, options)
    add_aftermath_section(page, verdict, options)
    add_admission_section(page, verdict, options)
    add_assumptions_section(page, verdict.assumptions, options, hint="-v -v")


def add_workload(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """What is asked about more than this pod stands above its story."""
    if verdict.workload is not None:
        from kpreempt.report.explain.workload import add_workload_section, add_workload_summary  # noqa: PLC0415 - rare

        add_workload_summary(page, verdict.workload)
        add_workload_section(page, verdict.workload, options)
    if verdict.capacity is not None:
        from kpreempt.report.explain.capacity import add_capacity_section  # noqa: PLC0415 - rare

        add_capacity_section(page, verdict.capacity, options)
    if verdict.workload is not None or verdict.capacity is not None:
        page.blank()
        page.paragraph(Span("THE FIRST POD", "heading"))


def _add_separator(page: Page) -> None:
    page.blank()
    page.paragraph(Span("─" * page.width, "dim"))
    page.blank()


def _add_summary(page: Page, verdicts: Sequence[Verdict]) -> None:
    titles = ("POD", "NODE", "OUTCOME")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    rows += [((name_subject(each),), (name_destinations(each),), outcome_in_words(each)) for each in verdicts]
    page.table(rows, aligns=("left", "left", "left"))


def add_aftermath_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """The steps by the clock, who is displaced for whom, what is left waiting, and what budgets came to."""
    simulation = verdict.aftermath
    if simulation is None:
        return
    from kpreempt.report.simulation_words import (  # noqa: PLC0415 - few questions go on
        INDENT,
        add_displaced,
        budget_phrase,
        simulation_summary,
        tell_step_by_step,
    )

    page.blank()
    page.labelled(Span("AFTERMATH", "heading"), *simulation_summary(simulation), column=LABEL_COLUMN)
    lines = tell_step_by_step(simulation.steps)
    shown = lines if options.verbose else lines[:_LINES_SHOWN]
    for line in shown:
        page.labelled(Span(f"  {line.clock}", "dim"), *line.words, column=LABEL_COLUMN)
    if len(lines) > len(shown):
        rest = f"… and {count(len(lines) - len(shown), 'more step')} (-v -v)"
        page.labelled("", Span(rest, "dim"), column=LABEL_COLUMN)
    if simulation.depth > 1:
        page.paragraph("one after the other:", indent=INDENT)
        chain = simulation.displaced if options.verbose else simulation.displaced[:_LINES_SHOWN]
        add_displaced(page, chain)
        if len(simulation.displaced) > len(chain):
            rest = f"… and {len(simulation.displaced) - len(chain):,} more (-v -v)"
            page.paragraph(Span(rest, "dim"), indent=2 * INDENT)
    for budget in simulation.budgets:
        page.paragraph(*budget_phrase(budget), indent=INDENT, hanging=2)


def add_volumes_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``VOLUMES``: the claims that compete for equal volumes, and what that means for the nodes."""
    choices = verdict.volume_choices
    if choices is None:
        return
    groups = competitions(choices)
    page.blank()
    taken = "equal ones are taken in a random order, here in that of the input"
    page.labelled(Span("VOLUMES", "heading"), taken, column=LABEL_COLUMN)
    shown = list(groups.items())[: None if options.verbose else _GROUPS_SHOWN]
    for competition, nodes in shown:
        page.paragraph(strong(join_names(nodes, limit=_NAMES_SHOWN)), f"  {competition}", indent=2, hanging=2)
    if rest := len(groups) - len(shown):
        page.paragraph(Span(f"… and {rest:,} more (-v -v)", "dim"), indent=2)
