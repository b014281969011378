"""What a rollout would do, section by section: the story, the victims, budgets, workloads, what is stranded, nodes."""

from __future__ import annotations

from kpreempt.report.amounts import format_amount
from kpreempt.report.check_facts import stranded_phrase
from kpreempt.report.layout import LABEL_COLUMN, Align, Page, Phrase, Span, columns_of_numbers, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.play_words import INDENT, Told, add_displaced, budget_phrase, clock, play_summary, tell_in_short
from kpreempt.report.quoting import name
from kpreempt.verdict.check import Check, NodeRoom
from kpreempt.verdict.play import Play, PlayEnd, StepKind, WorkloadPlay

_LINES_SHOWN = 12
_ROWS_SHOWN = 6
_RESOURCES = ("cpu", "memory")
_READY_COLUMNS: tuple[Align, ...] = ("left", "right", "right", "right", "left")


def add_timeline(page: Page, play: Play, options: RenderOptions) -> None:
    """``TIMELINE``: the steps by the clock; when a pod has stopped is only told with ``verbose``."""
    page.blank()
    is_at_once = play.end is PlayEnd.SETTLED and not play.seconds and play.steps
    summary: Phrase = ("all of it at once",) if is_at_once else play_summary(play)
    page.labelled(Span("TIMELINE", "heading"), *summary, column=LABEL_COLUMN)
    steps = play.steps if options.verbose else [step for step in play.steps if step.kind is not StepKind.GONE]
    lines = tell_in_short(steps)
    shown = lines if options.verbose else lines[:_LINES_SHOWN]
    for line in shown:
        _add_line(page, line)
    _add_rest(page, len(lines) - len(shown), "more steps")


def _add_line(page: Page, line: Told) -> None:
    page.labelled(Span(f"  {line.clock}", "dim"), *line.words, column=LABEL_COLUMN, hanging=INDENT)


def add_displaced_section(page: Page, play: Play, options: RenderOptions) -> None:
    """``EVICTED``: the victims, and below each those that have to go for what takes its place."""
    if not play.displaced:
        return
    page.blank()
    deep = f", up to {play.depth:,} after one another" if play.depth > 1 else ""
    page.labelled(Span("EVICTED", "heading"), f"{len(play.displaced):,} in all{deep}", column=LABEL_COLUMN)
    shown = play.displaced if options.verbose else play.displaced[:_LINES_SHOWN]
    add_displaced(page, shown, indent=0)
    _add_rest(page, len(play.displaced) - len(shown), "more")


def add_budgets(page: Page, play: Play, options: RenderOptions) -> None:
    """``BUDGETS``: those that are touched, the broken ones first."""
    if not play.budgets:
        return
    page.blank()
    page.paragraph(Span("BUDGETS", "heading"))
    budgets = sorted(play.budgets, key=lambda each: -each.violations)
    shown = budgets if options.verbose else budgets[:_ROWS_SHOWN]
    for budget in shown:
        page.paragraph(*budget_phrase(budget), indent=INDENT, hanging=INDENT)
    _add_rest(page, len(budgets) - len(shown), "more")


def add_workloads(page: Page, play: Play, options: RenderOptions) -> None:
    """``WORKLOADS``: how many pods are ready before, at the worst moment, and in the end."""
    if not play.workloads:
        return
    page.blank()
    page.paragraph(Span("WORKLOADS", "heading"), "  how many pods are ready before, at least, and in the end")
    # Those that the change is about, and then those that suffer most.
    workloads = sorted(play.workloads, key=lambda each: (not each.is_changed, each.is_done, -each.victims))
    shown = workloads if options.verbose else workloads[:_ROWS_SHOWN]
    titles = ("WORKLOAD", "BEFORE", "LEAST", "AFTER", "")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for each in shown:
        least = Span(f"{each.ready_least:,}", "bad" if each.ready_before and not each.ready_least else "")
        rows.append(((name(each.workload),), (f"{each.ready_before:,}",), (least,), (_after(each),), _standing(each)))
    page.table(rows, aligns=_READY_COLUMNS, indent=INDENT)
    _add_rest(page, len(workloads) - len(shown), "more")


def _after(workload: WorkloadPlay) -> str:
    if workload.wanted_after is None or workload.wanted_after == workload.ready_after:
        return f"{workload.ready_after:,}"
    return f"{workload.ready_after:,} of {workload.wanted_after:,}"


def _standing(workload: WorkloadPlay) -> Phrase:
    parts: list[Span] = []
    if workload.is_changed:
        parts.append(Span("changed") if workload.is_done else Span("changed, not done", "bad"))
    if workload.victims:
        parts.append(Span(f"{workload.victims:,} evicted", "warn"))
    if workload.pending_after:
        parts.append(Span(f"{workload.pending_after:,} waiting", "bad"))
    if workload.ready_least < workload.ready_before and workload.least_at:
        parts.append(Span(f"least at {clock(workload.least_at)}", "dim"))
    return tuple(part for number, each in enumerate(parts) for part in ((", ", each) if number else (each,)))


def add_stranded(page: Page, play: Play, options: RenderOptions) -> None:
    """``STRANDED``: what is left without something that it needs."""
    if not play.stranded:
        return
    page.blank()
    page.paragraph(Span("STRANDED", "heading"))
    shown = play.stranded if options.verbose else play.stranded[:_ROWS_SHOWN]
    for each in shown:
        page.paragraph(*stranded_phrase(each), indent=INDENT, hanging=INDENT)
    _add_rest(page, len(play.stranded) - len(shown), "more")


def add_nodes(page: Page, check: Check, options: RenderOptions) -> None:
    """``ROOM``: what all nodes have left in the end; with ``verbose`` each node on which something changes."""
    if not check.spare and not (options.verbose and check.nodes):
        return
    page.blank()
    left = ", ".join(f"{key} {format_amount(key, amount)}" for key, amount in check.spare.items())
    page.labelled(Span("ROOM", "heading"), f"left on all nodes: {left}" if left else "", column=LABEL_COLUMN)
    if not options.verbose or not check.nodes:
        return
    titles = ("NODE", "CPU ASKED", "OF", "MEMORY ASKED", "OF", "PODS", "OF")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    rows += [((strong(each.node),), *((cell,) for cell in _room(each))) for each in check.nodes]
    page.table(rows, aligns=columns_of_numbers(len(titles) - 1), indent=INDENT)


def _room(node: NodeRoom) -> list[str]:
    cells: list[str] = []
    for key in (*_RESOURCES, "pods"):
        before, after = (format_amount(key, each.get(key, 0)) for each in (node.before, node.after))
        cells.append(after if before == after else f"{before} → {after}")
        cells.append(format_amount(key, node.allocatable.get(key, 0)))
    return cells


def _add_rest(page: Page, rest: int, what: str) -> None:
    if rest > 0:
        page.paragraph(Span(f"… and {rest:,} {what} (--verbose)", "dim"), indent=INDENT)
