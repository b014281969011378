"""The Workloads that wait for Kueue, for a terminal: who is next, and what becomes of each."""

from __future__ import annotations

from collections import Counter

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.kueue.words import fate_in_words, outcome_span
from kpreempt.report.layout import Page, Part, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.kueue import PendingWorkload, PendingWorkloads, WorkloadOutcome

_SHOWN = 20


def render_pending_workloads(pending: PendingWorkloads, options: RenderOptions) -> str:
    """How many there are of each outcome, and each with why; as many as a screen is for, or all."""
    page = Page(options.width)
    items = pending.items
    if not items:
        page.paragraph("No Workload waits for quota.")
    else:
        page.paragraph(*_headline(pending))
        shown = items if options.verbose else items[:_SHOWN]
        for number, each in enumerate(shown, 1):
            page.blank()
            _add(page, number, each)
        if len(items) > len(shown):
            page.blank()
            page.paragraph(f"... and {len(items) - len(shown):,} more (-v lists them)", indent=2)
    add_assumptions_section(page, pending.assumptions, options)
    return finished(page, options)


def _headline(pending: PendingWorkloads) -> list[Part]:
    by_outcome = Counter(each.fate.outcome for each in pending.items)
    told: list[Part] = [strong(count(len(pending.items), "Workload")), " without quota"]
    for number, outcome in enumerate(each for each in WorkloadOutcome if by_outcome[each]):
        told += [", " if number else ": ", f"{by_outcome[outcome]} ", outcome_span(outcome)]
    return [*told, f", in {count(pending.cycles, 'cycle')}."]


def _add(page: Page, number: int, item: PendingWorkload) -> None:
    page.paragraph(f"{number}. ", strong(item.workload), ": ", *fate_in_words(item.fate), indent=2, hanging=2)
    where = f"ClusterQueue {item.cluster_queue}" if item.cluster_queue else f"LocalQueue {item.queue}"
    place = f", place {item.position}" if item.position else ""
    page.paragraph(f"{where}{place}, priority {item.priority:,}", indent=4, hanging=2)
    if item.fate.message:
        page.paragraph(item.fate.message, indent=4, hanging=2)
    if item.others:
        page.paragraph("or, by chance: ", *_joined(item), indent=4, hanging=2)


def _joined(item: PendingWorkload) -> list[Part]:
    told: list[Part] = []
    for each in item.others:
        told += [*([", or "] if told else []), *fate_in_words(each)]
    return told
