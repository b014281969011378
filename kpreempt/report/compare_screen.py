"""Several algorithms side by side on one screen: on which pods they differ, and at which step."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.compare import (
    agreement,
    decision_rows,
    differing_groups,
    headline_of_pod,
    matrix,
    parting,
    sides,
)
from kpreempt.report.explain.screen_frame import clipped
from kpreempt.report.layout import Line, Page, Span
from kpreempt.report.options import RenderOptions
from kpreempt.report.screen import Block, fill, paragraph, table_block, titled
from kpreempt.verdict.compare import ComparedPod, Comparison

_LINES_OF_SENTENCE = 3
_LINES_OF_DECISION = 3
_MORE_OF_ONE = "-v (every step at which they differ)"
_MORE_OF_MANY = "-v (every pod, every step at which they differ)"


def render_screen(comparison: Comparison, options: RenderOptions) -> str:
    """At most ``options.height`` lines, with the command line and the prompt."""
    page = Page(options.width)
    if not comparison.items:
        page.paragraph("No pod matches.")
        return fill(page, [], comparison.assumptions, _MORE_OF_ONE, options)
    if len(comparison.items) == 1:
        [item] = comparison.items
        page.lines = paragraph(options, *headline_of_pod(item), indent=0, most=_LINES_OF_SENTENCE)
        return fill(page, [] if item.error else _of_pod(item, options), comparison.assumptions, _MORE_OF_ONE, options)
    page.lines = paragraph(options, *agreement(comparison), indent=0, most=_LINES_OF_SENTENCE)
    return fill(page, _of_many(comparison, options), comparison.assumptions, _MORE_OF_MANY, options)


def _of_pod(item: ComparedPod, options: RenderOptions) -> list[Block]:
    """The decisions, and where they first differ from the first one."""
    told = Page(options.width)
    decisions = told.rows(decision_rows(item), aligns=("left", "left"), indent=2)
    blocks = [Block([], [_cut(each, options) for each in decisions], "algorithm")]
    for group in differing_groups(item):
        head = paragraph(options, *parting(item, group), indent=0, most=_LINES_OF_SENTENCE)
        rows = told.rows(sides(item.decisions[0].algorithm, group, 0), aligns=("left", "left"), indent=4)
        blocks.append(Block(head, [_cut(each, options) for each in rows], "algorithm"))
    return blocks


def _cut(lines: Sequence[Line], options: RenderOptions) -> list[Line]:
    return clipped(lines, _LINES_OF_DECISION, options.width)


def _of_many(comparison: Comparison, options: RenderOptions) -> list[Block]:
    """The pods that could not be decided, those on which the algorithms differ, and the pairs."""
    blocks = []
    if failed := [item for item in comparison.items if item.error]:
        told = [paragraph(options, *headline_of_pod(item), most=2) for item in failed]
        blocks.append(Block(titled(options, Span("ERRORS", "bad")), told, "pod", is_needed=True))
    if differing := [item for item in comparison.items if not item.error and not item.is_same]:
        rows = matrix(Page(options.width), differing, comparison.algorithms)
        blocks.append(table_block(options, [], rows, "pod", aligns=["left"] * len(rows[0]), is_needed=True))
    if len(comparison.algorithms) > 2:
        pairs = [paragraph(options, f"{each.base} and {each.other}: {each.differing:,}") for each in comparison.pairs]
        blocks.append(Block(titled(options, Span("PAIRS", "heading"), "pods on which they differ"), pairs, "pair"))
    return blocks
