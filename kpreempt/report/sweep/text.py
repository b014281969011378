"""A sweep for a terminal: the clusters, those that fare worst first, and what could not be answered."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.colour import finished
from kpreempt.report.layout import Align, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.sweep.words import OUTCOMES, audits_in_words, headline, outcomes_of, subject_of, tone_of
from kpreempt.verdict.status import Outcome
from kpreempt.verdict.sweep import Sweep, SweptCluster

_SHOWN = 15
_HEADS = {
    Outcome.LANDS: "LANDS",
    Outcome.PREEMPTS: "PREEMPTS",
    Outcome.PREEMPTS_VIOLATING_BUDGETS: "VIOLATES",
    Outcome.UNCERTAIN: "UNCERTAIN",
    Outcome.NEVER_LANDS: "NEVER",
    Outcome.NOT_SCHEDULED: "HELD",
}
_FAILURES_SHOWN = 5


def render(sweep: Sweep, options: RenderOptions) -> str:
    """One screen; with ``verbose`` every cluster, and all failures and assumptions that the record has."""
    page = Page(options.width)
    tone = tone_of(sweep)
    page.paragraph(Span(headline(sweep), "bad" if tone == "bad" else "strong"), ".")
    if sweep.algorithms:
        asked = f"{count(len(sweep.questions), 'question')} to {', '.join(sweep.algorithms)}"
        page.paragraph(Span(asked, "dim"), indent=2)
    if sweep.items:
        _add_clusters(page, sweep, options)
    _add_failures(page, sweep, options)
    _add_assumptions(page, sweep, options)
    return finished(page, options)


def _add_clusters(page: Page, sweep: Sweep, options: RenderOptions) -> None:
    outcomes = outcomes_of(sweep)
    has_audits = bool(sweep.audits)
    heads = ["CLUSTER", *(_HEADS[each] for each in outcomes), "EVICTED", "UNSURE", "FAILED"]
    heads += ["AUDITS"] if has_audits else []
    shown = sweep.items if options.verbose else sweep.items[:_SHOWN]
    rows: list[tuple[Phrase, ...]] = [tuple((Span(each, "dim"),) for each in heads)]
    rows += [_row(each, outcomes, has_audits) for each in shown]
    numbers: list[Align] = ["right"] * (len(outcomes) + 3)
    aligns: list[Align] = ["left", *numbers, "left"]
    page.blank()
    page.table(rows, aligns=tuple(aligns[: len(heads)]), indent=2)
    if left := len(sweep.items) - len(shown):
        page.paragraph(Span(f"and {count(left, 'more cluster')}, which fare no worse; -v lists all", "dim"), indent=2)


def _row(each: SweptCluster, outcomes: list[Outcome], has_audits: bool) -> tuple[Phrase, ...]:
    def number(value: int, style: str = "") -> Phrase:
        return (Span(f"{value:,}" if value else "-", style if value else "dim"),)  # type: ignore[arg-type]

    cells = [number(each.outcomes.get(one, 0), OUTCOMES[one][1]) for one in outcomes]
    cells += [number(each.victims), number(each.uncertain, "warn")]
    cells.append((Span(each.failed, "bad"),) if each.failed else number(each.failures, "bad"))
    audits: list[Phrase] = [(audits_in_words(each.audits) or "-",)] if has_audits else []
    return ((strong(each.cluster),), *cells, *audits)


def _add_failures(page: Page, sweep: Sweep, options: RenderOptions) -> None:
    if not sweep.failures:
        return
    shown = sweep.failures if options.verbose else sweep.failures[:_FAILURES_SHOWN]
    page.blank()
    page.paragraph(Span("FAILURES", "heading"), f"  {sweep.num_failures:,}")
    for each in shown:
        page.paragraph(strong(subject_of(each)), f": {each.reason}: {each.message}", indent=2, hanging=2)
        if each.hint:
            page.paragraph(Span("try: ", "good"), each.hint, indent=4, hanging=5)
    if left := sweep.num_failures - len(shown):
        page.paragraph(Span(f"and {count(left, 'more failure')}, in the table failures", "dim"), indent=2)


def _add_assumptions(page: Page, sweep: Sweep, options: RenderOptions) -> None:
    if not sweep.assumptions:
        return
    page.blank()
    shown = sweep.assumptions if options.verbose else sweep.assumptions[:_FAILURES_SHOWN]
    page.paragraph(Span("ASSUMPTIONS", "heading"))
    for each in shown:
        page.paragraph(f"{each.message} ", Span(f"({count(each.clusters, 'cluster')})", "dim"), indent=2, hanging=2)
    if left := len(sweep.assumptions) - len(shown):
        page.paragraph(Span(f"and {count(left, 'more')}; -v lists all".replace("mores", "more"), "dim"), indent=2)
