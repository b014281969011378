"""How many more of a pod fit, and on which nodes."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Outcome
from kpreempt.verdict.workload import Capacity

_NODES_SHOWN = 8


def capacity_phrase(capacity: Capacity) -> Phrase:
    """How many more, in a sentence."""
    if capacity.outcome is Outcome.UNCERTAIN:
        said = "how many fit beyond these is uncertain" if capacity.pods else "uncertain"
        return (Span(f"{count(capacity.pods, 'more')} fit; {said}" if capacity.pods else said, "warn"),)
    if not capacity.pods:
        return (Span("no more of this pod fits", "bad"), " without evicting anybody")
    least = "at least " if capacity.is_bounded else ""
    verb = "fits" if capacity.pods == 1 else "fit"
    return (
        strong(f"{least}{capacity.pods:,} more"),
        f" of this pod {verb} on {count(len(capacity.nodes), 'node')}, without evicting anybody",
    )


def add_capacity_section(page: Page, capacity: Capacity, options: RenderOptions, column: int = LABEL_COLUMN) -> None:
    """``CAPACITY``: the total, the nodes with most room first, and what ends the search."""
    page.blank()
    page.labelled(Span("CAPACITY", "heading"), *capacity_phrase(capacity), column=column)
    shown = capacity.nodes if options.verbose else capacity.nodes[:_NODES_SHOWN]
    rows: list[tuple[Phrase, ...]] = [((strong(each.node),), (f"{each.pods:,}",)) for each in shown]
    if rows:
        header: tuple[Phrase, ...] = ((Span("NODE", "dim"),), (Span("MORE PODS", "dim"),))
        page.table([header, *rows], aligns=("left", "right"), indent=column)
    if rest := len(capacity.nodes) - len(shown):
        pods = sum(each.pods for each in capacity.nodes[len(shown) :])
        page.labelled("", Span(f"… and {pods:,} on {count(rest, 'more node')} (-v -v)", "dim"), column=column)
    if capacity.is_bounded:
        page.labelled("", f"counted up to {capacity.limit:,} pods; there is room for more", column=column)
    if capacity.is_by_choice:
        page.labelled(
            "", "by the first of the scheduler's equal choices; others may come to another number", column=column
        )
    if capacity.message:
        page.labelled("", f"then: {capacity.message}", column=column)
