"""All pods of a workload in a few lines: how many land, how many preempt how many pods, how many stay pending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, Style, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.workload import Asked, BudgetViolations, Totals, Workload

_NODES_SHOWN = 4
_MESSAGES_SHOWN = 2
_ITEMS_SHOWN = 12
_COLUMNS = ("POD", "OUTCOME", "NODE", "VICTIMS")


def add_workload_summary(page: Page, workload: Workload) -> None:
    """The sentence, and below it what budgets it violates and what other choices come to: the top of a report."""
    name = workload_name(workload)
    indent = min(len(name) + 2, page.width // 2)
    page.paragraph(strong(name), ": ", *_told(workload), hanging=indent)
    for line in summary_lines(workload):
        page.paragraph(*line, indent=indent)


def summary_lines(workload: Workload) -> list[Phrase]:
    """What follows the sentence, a phrase for each line."""
    lines: list[Phrase] = [_violations(each) for each in workload.budgets]
    if workload.others:
        lines.append((Span(_range(workload), "warn"),))
    return lines


def add_workload_section(page: Page, workload: Workload, options: RenderOptions, column: int = LABEL_COLUMN) -> None:
    """``REPLICAS``: on which nodes they end, and why those that stay pending do; each of them where it is wanted."""
    page.blank()
    page.labelled(Span("REPLICAS", "heading"), *_nodes(workload), column=column)
    shown = workload.pending if options.verbose else workload.pending[:_MESSAGES_SHOWN]
    for each in shown:
        page.labelled("", f"{each.replicas:,} without a node: {each.message}", column=column)
    if rest := len(workload.pending) - len(shown):
        page.labelled("", Span(f"… and {count(rest, 'more message')} (-v -v)", "dim"), column=column)
    page.labelled("", Span(_definition(workload), "dim"), column=column)
    if not options.verbose:
        return
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in _COLUMNS)]
    rows += [
        ((each.pod,), (str(each.outcome),), (each.node or "-",), (join_names(each.victims) or "-",))
        for each in workload.items
    ]
    page.table(rows, aligns=("left", "left", "left", "left"), indent=2)


def headline_of(workload: Workload) -> Phrase:
    """The whole answer on one line."""
    parts: list[Phrase] = [(strong(workload_name(workload)), ": ", *_told(workload)), *summary_lines(workload)]
    return tuple(part for number, phrase in enumerate(parts) for part in ((" ", *phrase) if number else phrase))


def workload_name(workload: Workload) -> str:
    """``shop/web``, without the kind."""
    return workload.workload.rpartition(" ")[2]


def totals_in_words(workload: Workload) -> Phrase:
    """What becomes of all replicas, in the colour of the worst of it."""
    totals = workload.totals
    told: Sequence[tuple[int, str, Style]] = (
        (totals.lands, "land", "good"),
        (totals.preempts, "preempt", "bad" if totals.violations else "warn"),
        (totals.uncertain, "uncertain", "warn"),
        (totals.pending, "unschedulable", "bad"),
        (totals.refused, "refused", "bad"),
    )
    here = [(f"{number:,} {words}", style) for number, words, style in told if number]
    if not here:
        return (Span("no replica is created", "dim"),)
    worst: Style = "bad" if any(style == "bad" for _, style in here) else here[-1][1]
    return (Span(", ".join(words for words, _ in here), worst),)


def _told(workload: Workload) -> Phrase:
    totals = workload.totals
    clauses = [clause for number, clause in _clauses(totals) if number]
    first, *others = clauses or [("no replica is created",)]
    whole = ""
    if totals.lands < workload.replicas:
        whole = f" of {_replicas(workload)}"
    lead = _lead(workload, totals, whole)
    if totals.lands:
        first = (lead, *first)
    elif whole:
        first = ("none of ", _replicas(workload), " lands at once", ", ", *first)
    rest = tuple(part for clause in others for part in (", ", *clause))
    return (*first, *rest, ".")


def _lead(workload: Workload, totals: Totals, whole: str) -> str:
    if whole:
        return f"{totals.lands:,}{whole} "
    which = {Asked.NEW: "", Asked.MISSING: "missing ", Asked.MORE: "more "}[workload.asked]
    if workload.replicas == 1:
        return f"1 {which}replica "
    return f"{'both' if workload.replicas == 2 else f'all {workload.replicas:,}'} {which}replicas "


def _replicas(workload: Workload) -> str:
    which = {Asked.NEW: "", Asked.MISSING: "missing ", Asked.MORE: "more "}[workload.asked]
    return f"{workload.replicas:,} {which}{'replica' if workload.replicas == 1 else 'replicas'}"


def _clauses(totals: Totals) -> Sequence[tuple[int, Phrase]]:
    """Each number, and what is said of it."""
    return (
        (totals.lands, (Span(agree_land(totals.lands), "good"),)),
        (
            totals.preempts,
            (
                Span(f"{totals.preempts:,} {'preempts' if totals.preempts == 1 else 'preempt'}", "warn"),
                " ",
                strong(count(totals.evictions, "pod")),
            ),
        ),
        (totals.pending, (Span(f"{totals.pending:,} {'stays' if totals.pending == 1 else 'stay'} pending", "bad"),)),
        (totals.uncertain, (Span(f"{totals.uncertain:,} {agree(totals.uncertain, 'is')} uncertain", "warn"),)),
        (
            totals.refused,
            (Span(f"{totals.refused:,} {agree(totals.refused, 'is')} refused by a quota", "bad"),),
        ),
    )


def agree_land(number: int) -> str:
    """``lands`` or ``land``."""
    return "lands" if number == 1 else "land"


def _violations(each: BudgetViolations) -> Phrase:
    verb = "violates" if each.violations == 1 else "violate"
    said = f"{count(each.violations, 'eviction')} {verb} budget {each.budget} (allows {each.allowed:,})."
    return (Span(said, "bad"),)


_NUMBERS: Sequence[tuple[str, Callable[[Totals], int]]] = (
    ("land", lambda totals: totals.lands),
    ("preempt", lambda totals: totals.preempts),
    ("pods evicted", lambda totals: totals.evictions),
    ("violations", lambda totals: totals.violations),
    ("pending", lambda totals: totals.pending),
)


def _range(workload: Workload) -> str:
    """The numbers that other choices change."""
    every = [workload.totals, *workload.others]
    ranges = []
    for words, number in _NUMBERS:
        least, most = min(map(number, every)), max(map(number, every))
        if least != most:
            ranges.append(f"{least:,} to {most:,} {words}")
    return f"By other choices between equals: {', '.join(ranges)}, or beyond." if ranges else ""


def _nodes(workload: Workload) -> Phrase:
    if not workload.nodes:
        return ("on no node",)
    shown = workload.nodes[:_NODES_SHOWN]
    parts: list[str | Span] = []
    for number, each in enumerate(shown):
        evictions = f" (evicting {each.evictions:,})" if each.evictions else ""
        parts += [", " if number else "", strong(each.node), f" {each.replicas:,}{evictions}"]
    rest = len(workload.nodes) - len(shown)
    return ("by node: ", *parts, f" and {count(rest, 'more node')}" if rest else "")


def _definition(workload: Workload) -> str:
    running = f"{count(workload.running, 'pod')} on nodes already; " if workload.running else ""
    chance = (
        f"; {workload.ties:,} of {workload.replicas:,} by one of the scheduler's equal choices" if workload.ties else ""
    )
    return (
        f"{running}one after the other, victims gone before the next; other pending pods are not tried,"
        f" nothing comes in a victim's place{chance}"
    )
