"""``AFTERMATH``: what happens after the scheduler's decision, told by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from kpreempt.report.amounts import agree, count
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict
from kpreempt.verdict.play import BudgetLow, Displaced, Play, PlayEnd, PlayStep, StepKind

_LINES_SHOWN = 12
_PODS_SHOWN = 3
_INDENT = 2
# Longer chains go on below one another.
_DEEPEST_INDENT = 10


def add_aftermath_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """The steps by the clock, who is displaced for whom, what is left waiting, and what budgets came to."""
    play = verdict.aftermath
    if play is None:
        return
    page.blank()
    page.labelled(Span("AFTERMATH", "heading"), *_summary(play), column=LABEL_COLUMN)
    lines = [line for at, group in groupby(play.steps, key=lambda step: step.at) for line in _at(at, list(group))]
    shown = lines if options.verbose else lines[:_LINES_SHOWN]
    for clock, words in shown:
        page.labelled(Span(f"  {clock}", "dim"), *words, column=LABEL_COLUMN)
    if len(lines) > len(shown):
        rest = f"… and {len(lines) - len(shown):,} more steps (--verbose)"
        page.labelled("", Span(rest, "dim"), column=LABEL_COLUMN)
    if play.depth > 1:
        page.paragraph("one after the other:", indent=_INDENT)
        chain = play.displaced if options.verbose else play.displaced[:_LINES_SHOWN]
        for each in chain:
            _add_displaced(page, each)
        if len(play.displaced) > len(chain):
            rest = f"… and {len(play.displaced) - len(chain):,} more (--verbose)"
            page.paragraph(Span(rest, "dim"), indent=2 * _INDENT)
    for budget in play.budgets:
        page.paragraph(*_budget(budget), indent=_INDENT, hanging=2)


def _summary(play: Play) -> Phrase:
    ends = {
        PlayEnd.SETTLED: f"nothing more happens after {_clock(play.seconds)}" if play.seconds else "nothing follows",
        PlayEnd.LOOP: f"after {_clock(play.seconds)} it comes back to where it was, and goes round for ever",
        PlayEnd.BROKEN_OFF: f"broken off after {_clock(play.seconds)}; more would happen",
    }
    waiting = sum(pod.was_running for pod in play.waiting)
    left = f"; {count(waiting, 'pod')} that ran {agree(waiting, 'is')} left waiting" if waiting else ""
    return (Span(ends[play.end], "" if play.end is PlayEnd.SETTLED else "bad"), Span(left, "bad" if left else ""))


def _at(at: float, steps: Sequence[PlayStep]) -> list[tuple[str, Phrase]]:
    """The steps of one moment, those of a kind together where that reads better."""
    lines: list[tuple[str, Phrase]] = []
    for (kind, cause, node), group in groupby(steps, key=lambda step: (step.kind, step.cause, step.node)):
        if kind is StepKind.NOMINATED:
            continue
        lines.append((_clock(at) if not lines else "", _words(kind, cause, node, list(group))))
    return lines


def _words(kind: StepKind, cause: str, node: str, steps: Sequence[PlayStep]) -> Phrase:
    pods = join_names([step.pod for step in steps], limit=_PODS_SHOWN)
    several = len(steps) > 1
    if kind is StepKind.ARRIVES:
        owner = f"{steps[0].owner} makes " if cause and steps[0].owner else ""
        return (owner, strong(pods), f" in place of {cause}" if cause else (" come" if several else " comes"))
    if kind is StepKind.LANDS:
        drawn = f", drawn among {len(steps[0].tied):,}" if steps[0].tied else ""
        return (strong(pods), Span(f" {'land' if several else 'lands'} on {node}", "good"), Span(drawn, "dim"))
    if kind is StepKind.LEAVES:
        broken = sorted({budget for step in steps for budget in step.violated})
        violates = Span(f", which breaks budget {join_names(broken)}", "bad") if broken else ""
        return (strong(pods), Span(f" {'are' if several else 'is'} told to go", "warn"), f" for {cause}", violates)
    if kind is StepKind.GONE:
        return (strong(pods), f" {'are' if several else 'is'} gone from {node}")
    return (strong(pods), Span(f" {'wait' if several else 'waits'}", "bad"), f": {steps[0].message}")


def _add_displaced(page: Page, displaced: Displaced) -> None:
    broken = Span(f", breaks {join_names(displaced.violated)}", "bad") if displaced.violated else ""
    then: Phrase = ()
    if displaced.replacement:
        where = f"lands on {displaced.lands_on}" if displaced.lands_on else "is left waiting"
        then = (f"; {displaced.replacement} ", Span(where, "good" if displaced.lands_on else "bad"))
    indent = _INDENT * (1 + min(displaced.depth, _DEEPEST_INDENT))
    page.paragraph(strong(displaced.pod), f" leaves {displaced.node}", broken, *then, indent=indent, hanging=2)


def _budget(budget: BudgetLow) -> Phrase:
    counts = f"allows {budget.before} before, {budget.least} at least, {budget.after} in the end"
    broken = Span(f"; broken by {count(budget.violations, 'victim')}", "bad") if budget.violations else ""
    return (f"budget {budget.budget}: {counts}", broken)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
