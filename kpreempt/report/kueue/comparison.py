"""Configurations of Kueue side by side, for a terminal: which Workloads fare otherwise, and how."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.kueue.words import RULES, fate_in_words
from kpreempt.report.layout import Page, Part, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.kueue import ComparedWorkload, KueueComparison, WorkloadFate

_SHOWN = 10


def render_kueue_comparison(comparison: KueueComparison, options: RenderOptions) -> str:
    """The Workloads that fare otherwise; with ``-v`` the others, too."""
    page = Page(options.width)
    page.paragraph(*_headline(comparison))
    # One that was asked about is told even where all decide alike.
    has_all = options.verbose or len(comparison.items) == 1
    items = [each for each in comparison.items if has_all or not each.is_same]
    shown = items if options.verbose else items[:_SHOWN]
    for each in shown:
        _add(page, each, comparison.names)
    if len(items) > len(shown):
        page.blank()
        page.paragraph(f"... and {len(items) - len(shown):,} more that differ (-v lists them)", indent=2)
    add_assumptions_section(page, comparison.assumptions, options)
    return finished(page, options)


def _headline(comparison: KueueComparison) -> list[Part]:
    if not comparison.items:
        return ["No Workload waits for quota."]
    total = count(len(comparison.items), "Workload")
    if not comparison.differing:
        return [strong(total), ": ", Span("all configurations decide alike", "good"), "."]
    fare = "fares otherwise, or may" if comparison.differing == 1 else "fare otherwise, or may"
    return [strong(f"{comparison.differing} of {total}"), " ", Span(fare, "warn"), "."]


def _add(page: Page, item: ComparedWorkload, names: list[str]) -> None:
    page.blank()
    page.paragraph(strong(item.workload), f" (ClusterQueue {item.cluster_queue}, priority {item.priority:,})", indent=2)
    rows: list[list[Phrase]] = [
        [(name,), (*fate_in_words(fate), _why(fate))] for name, fate in zip(names, item.fates, strict=True)
    ]
    page.table(rows, aligns=("left", "left"), indent=4)


def _why(fate: WorkloadFate) -> str:
    rules = dict.fromkeys(RULES.get(each.reason, each.reason) for each in fate.targets)
    if rules:
        return f" (by {', '.join(rules)})"
    return f": {fate.message}" if fate.message else ""
