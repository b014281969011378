"""What the filters made of the nodes: those that fit, and the others in groups with the numbers to check them."""

from __future__ import annotations

from kpreempt.report.amounts import agree, count, name_all
from kpreempt.report.evidence import describe
from kpreempt.report.explain.failures import (
    Depth,
    add_failures,
    add_titled_failures,
    is_crowd,
    may_be_mended,
    split_by_hope,
)
from kpreempt.report.explain.headline import no_nodes
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Code, Status, Verdict


def add_filter_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``1 FILTER``: how many nodes fit, and why the others do not."""
    page.blank()
    page.labelled(Span("1 FILTER", "heading"), *describe_fitting(verdict), column=LABEL_COLUMN)
    if verdict.pre_filter is not None:
        _add_pre_filter(page, verdict.pre_filter)
        return
    failures = {node: status for node, status in verdict.filter.items() if not status.is_success}
    if len(failures) == len(verdict.filter):
        _add_by_hope(page, verdict, options)
    else:
        add_failures(page, failures, options, indent=2, depth=_depth(verdict, options))


def describe_fitting(verdict: Verdict) -> Phrase:
    """How many nodes fit, or why none was looked at."""
    total = len(verdict.filter)
    fitting = sum(status.is_success for status in verdict.filter.values())
    if not total:
        ended = "the scheduler ends in an error before it has looked at all nodes"
        return (Span(ended if verdict.cluster.nodes else no_nodes(verdict), "bad"),)
    if verdict.pre_filter is not None:
        return (Span("the pod is refused before any node is looked at", "bad"),)
    if not fitting:
        nobody = {1: "the only node does not fit", 2: "neither of 2 nodes fits"}
        return (Span(nobody.get(total, f"none of {total:,} nodes fits"), "bad"),)
    if fitting == total:
        return (Span("the only node fits" if total == 1 else f"{name_all(total)} fit", "good"),)
    return (Span(f"{fitting:,} of {total:,} nodes {agree(fitting, 'fits')}", "good"),)


def _add_pre_filter(page: Page, status: Status) -> None:
    page.paragraph(strong(status.message), Span(f"  {status.plugin}", "dim"), indent=2, hanging=2)
    if evidence := describe(status.detail):
        page.paragraph(evidence, indent=4, hanging=2)
    helps = "may help" if may_be_mended(status.code) else "doesn't help"
    page.paragraph(f"preemption {helps}", indent=2)


def is_hope_unknown(verdict: Verdict) -> bool:
    """Without codes only the nodes that are tried tell where there is hope, and a pod that may not evict tries none."""
    is_tried = verdict.eligibility is not None and verdict.eligibility.eligible
    return not is_tried and any(status.code == Code.NONE for status in verdict.filter.values())


def _depth(verdict: Verdict, options: RenderOptions) -> Depth:
    return Depth.NEAREST if is_crowd(verdict, options) else Depth.CAUSES


def _add_by_hope(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """Where no node fits: first the nodes on which evictions may help, then the others."""
    depth = _depth(verdict, options)
    if is_hope_unknown(verdict):
        add_failures(page, verdict.filter, options, indent=2, depth=depth)
        return
    hopeful, hopeless = split_by_hope(verdict)
    if hopeful:
        title: Phrase = (strong(count(len(hopeful), "node")), " where preemption may help:")
        add_titled_failures(page, title, hopeful, options, depth=depth)
    if hopeless:
        title = (strong(count(len(hopeless), "node")), f" where {'it' if hopeful else 'preemption'} doesn't help:")
        # What the hopeless nodes lack matters only where there is nothing better.
        is_aside = depth == Depth.NEAREST and verdict.candidates
        add_titled_failures(page, title, hopeless, options, depth=Depth.REASONS if is_aside else depth)
