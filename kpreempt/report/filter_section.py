"""What the filters made of the nodes: those that fit, and the others in groups with the numbers to check them."""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.report.amounts import agree, count
from kpreempt.report.evidence import describe
from kpreempt.report.failures import add_failures, is_crowd
from kpreempt.report.grouping import may_be_mended
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Status, Verdict


def add_filter_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``1 FILTER``: how many nodes fit, and why the others do not."""
    page.blank()
    page.labelled(Span("1 FILTER", "heading"), *_summary(verdict), column=LABEL_COLUMN)
    if verdict.pre_filter is not None:
        _add_pre_filter(page, verdict.pre_filter)
        return
    failures = {node: status for node, status in verdict.filter.items() if not status.is_success}
    if len(failures) == len(verdict.filter):
        _add_by_hope(page, failures, options)
    else:
        add_failures(page, failures, options, indent=2, is_terse=is_crowd(failures, options))


def _summary(verdict: Verdict) -> Phrase:
    total = len(verdict.filter)
    fitting = sum(status.is_success for status in verdict.filter.values())
    if not total:
        return (Span("the cluster has no nodes", "bad"),)
    if verdict.pre_filter is not None:
        return (Span("the pod is refused before any node is looked at", "bad"),)
    if not fitting:
        return (Span(f"none of {total:,} nodes fits" if total > 1 else "the only node does not fit", "bad"),)
    if fitting == total:
        return (Span(f"all {total:,} nodes fit" if total > 1 else "the only node fits", "good"),)
    return (Span(f"{fitting:,} of {total:,} nodes {agree(fitting, 'fits')}", "good"),)


def _add_pre_filter(page: Page, status: Status) -> None:
    page.paragraph(strong(status.message), Span(f"  {status.plugin}", "dim"), indent=2, hanging=2)
    if evidence := describe(status.detail):
        page.paragraph(evidence, indent=4, hanging=2)
    may = "may" if may_be_mended(status.code) else "cannot"
    page.paragraph(f"evicting pods {may} change that", indent=2)


def _add_by_hope(page: Page, failures: Mapping[str, Status], options: RenderOptions) -> None:
    """Where no node fits: first the nodes on which evictions may help."""
    is_terse = is_crowd(failures, options)
    for hopeful, where in ((True, "where evicting pods may help"), (False, "where it cannot help")):
        part = {node: status for node, status in failures.items() if may_be_mended(status.code) is hopeful}
        if part:
            subject = where if len(part) < len(failures) or hopeful else "where evicting pods cannot help"
            page.paragraph(strong(count(len(part), "node")), f" {subject}:", indent=2)
            add_failures(page, part, options, indent=4, is_terse=is_terse)
