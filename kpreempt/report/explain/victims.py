"""Who is evicted on each node that may win: owner, age, and what it takes from the budgets."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.durations import format_duration, format_since
from kpreempt.report.explain.equal_pods import add_equal_pods
from kpreempt.report.explain.failures import is_crowd
from kpreempt.report.layout import LABEL_COLUMN, Align, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions, reference_time
from kpreempt.verdict import BudgetUse, Verdict, Victim
from kpreempt.verdict.unread import are_budgets_unread

_NODES_SHOWN = 2
_VICTIMS_SHOWN = 10
_VICTIMS_SHOWN_OF_CROWD = 6
_TITLES = ("POD", "PRIORITY", "OWNER", "RUNNING", "BUDGET (allowed→left)")
# What the last column needs at least, with the gap before it.
_BUDGET_WIDTH = 26
_FIXED_COLUMNS = 4
_ALIGNS: tuple[Align, ...] = ("left", "right", "left", "left", "left")


def add_victims_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``5 VICTIMS``: a table for each nominated node, most important pod first."""
    nodes = [node for node in verdict.nominated_nodes if verdict.victims.get(node)]
    shown = nodes if options.verbose else nodes[:_NODES_SHOWN]
    for number, node in enumerate(shown):
        page.blank()
        label = Span("5 VICTIMS", "heading") if not number else ""
        page.labelled(label, *_title(node, verdict), column=LABEL_COLUMN)
        _add_table(page, verdict.victims[node], verdict, options)
    rest = len(nodes) - len(shown)
    if rest:
        page.paragraph(Span(f"… and on {count(rest, 'more node')} (-v -v lists them)", "dim"), indent=2)
    add_equal_pods(page, verdict, options)


def format_budgets(budgets: Sequence[BudgetUse]) -> Phrase:
    """``web (2→1)`` for every budget that protects the pod; those that are overdrawn are marked."""
    parts: list[Span] = []
    for use in budgets:
        if parts:
            parts.append(Span(", "))
        text = f"{bare_name(use.budget)} ({use.allowed:,}→{use.left:,})"
        parts.append(Span(f"{text} VIOLATED", "bad") if use.left < 0 else Span(text))
    return tuple(parts)


def bare_name(key: str) -> str:
    """A budget's name alone, where it stands beside a pod: it is always in the pod's namespace."""
    return key.rpartition("/")[2]


def format_running(victim: Victim, verdict: Verdict, options: RenderOptions) -> str:
    """How long the pod has been running, and whether it is on its way out already."""
    age = format_since(victim.start_time, reference_time(verdict, options))
    return f"{age}, terminating" if victim.terminating else age


def longest_grace_seconds(victims: Sequence[Victim]) -> int:
    """How long the slowest victim may take to stop."""
    return max((victim.grace_period_seconds for victim in victims if not victim.terminating), default=0)


def _title(node: str, verdict: Verdict) -> Phrase:
    victims = verdict.victims[node]
    seconds = longest_grace_seconds(victims)
    stop = f"; up to {format_duration(seconds)} to stop" if seconds else ""
    told = _have_budgets(victims) or are_budgets_unread(verdict.assumptions)
    unprotected = "" if told else f"; no budget protects {'it' if len(victims) == 1 else 'them'}"
    order = ", most important first" if len(victims) > 1 else ""
    likely = ", most likely" if verdict.alternatives else ""
    return ("on ", strong(node), likely, order, stop, unprotected)


def _have_budgets(victims: Sequence[Victim]) -> bool:
    return any(victim.budgets for victim in victims)


def _add_table(page: Page, victims: Sequence[Victim], verdict: Verdict, options: RenderOptions) -> None:
    limit = _VICTIMS_SHOWN_OF_CROWD if is_crowd(verdict, options) else _VICTIMS_SHOWN
    shown = victims if options.verbose else victims[:limit]
    titles = _TITLES if _have_budgets(victims) else _TITLES[:-1]
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    rows += [_row(victim, verdict, options)[: len(titles)] for victim in shown]
    budget_width = _BUDGET_WIDTH if len(titles) == len(_TITLES) else 0
    if page.fits([row[:_FIXED_COLUMNS] for row in rows], indent=2 + budget_width):
        page.table(rows, aligns=_ALIGNS[: len(titles)], indent=2)
    else:
        for victim in shown:
            _add_stacked(page, victim, verdict, options)
    if rest := len(victims) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more victim')} (-v -v lists them)", "dim"), indent=2)


def _row(victim: Victim, verdict: Verdict, options: RenderOptions) -> tuple[Phrase, ...]:
    return (
        (strong(victim.pod),),
        (f"{victim.priority:,}",),
        (victim.owner or "-",),
        (format_running(victim, verdict, options),),
        format_budgets(victim.budgets) or ("-",),
    )


def _add_stacked(page: Page, victim: Victim, verdict: Verdict, options: RenderOptions) -> None:
    """One victim over several lines, for names too long for columns."""
    page.paragraph(strong(victim.pod), indent=2)
    facts = [f"priority {victim.priority:,}", victim.owner or "no owner", format_running(victim, verdict, options)]
    page.paragraph(" · ".join(facts), indent=4, hanging=2)
    if victim.budgets:
        page.paragraph("budget ", *format_budgets(victim.budgets), indent=4, hanging=2)
