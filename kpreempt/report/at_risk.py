"""Which running pods would be evicted, for whom and in which order, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import agree, count, format_amount
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.victims import bare_name
from kpreempt.report.layout import Align, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import NodeOrder, Outcome, PodAtRisk, PodsAtRisk, SizeName, Standing, Threshold

_THREATS_SHOWN = 3
_ORDER_SHOWN = 4
_NODES_SHOWN = 3
_SIZES: dict[SizeName, str] = {
    SizeName.TYPICAL: "TYPICAL",
    SizeName.OWN: "ITS SIZE",
    SizeName.ROOM: "ITS ROOM",
}
_ALIGNS: tuple[Align, ...] = ("left", "right", "right", "right", "right", "right")


def render_risk(answer: PodsAtRisk, options: RenderOptions) -> str:
    """A sentence, who is threatened now, from which priority on, and the order on each node."""
    page = Page(options.width)
    page.paragraph(*_headline(answer))
    if answer.matching:
        facts = [count(answer.cluster.nodes, "node"), count(answer.cluster.pods, "pod"), answer.algorithm]
        page.paragraph(Span(" · ".join(filter(None, facts)), "dim"), indent=2)
    _add_threats(page, answer, options)
    _add_thresholds(page, answer)
    _add_budgets(page, answer)
    _add_orders(page, answer, options)
    add_assumptions_section(page, answer.assumptions, options)
    return finished(page, options)


def _headline(answer: PodsAtRisk) -> Phrase:
    if not answer.matching:
        return ("No running pod is asked about: none matches.",)
    number = answer.threatened
    who = f"{number:,} of {count(answer.matching, 'running pod')}"
    pending = f"{count(answer.pending, 'pod')} that {agree(answer.pending, 'is')} pending"
    if not number:
        return (
            "None of ",
            strong(count(answer.matching, "running pod")),
            Span(" would be evicted", "good"),
            f" for the {pending}." if answer.pending else ": no pod is pending.",
        )
    return (strong(who), Span(" would be evicted", "warn"), f" for the {pending}.")


def _add_threats(page: Page, answer: PodsAtRisk, options: RenderOptions) -> None:
    threatened = [item for item in answer.items if item.threats]
    if not threatened:
        return
    page.blank()
    page.paragraph(Span("NOW", "heading"), "  for pods that are pending, each as if it came next")
    for item in threatened:
        shown = item.threats if options.verbose else item.threats[:_THREATS_SHOWN]
        whom = ", ".join(
            f"{each.pod} (priority {each.priority:,}"
            f"{f', place {each.position}' if each.position is not None else ''})"
            f"{'' if each.is_certain else ' perhaps'}"
            for each in shown
        )
        more = f" and {len(item.threats) - len(shown):,} more" if len(item.threats) > len(shown) else ""
        page.paragraph(strong(item.pod), f" on {item.node}, for {whom}{more}", indent=2, hanging=2)


def _add_thresholds(page: Page, answer: PodsAtRisk) -> None:
    if not answer.items:
        return
    page.blank()
    page.paragraph(
        Span("FROM", "heading"),
        "  which priority on a new pod would evict it, if it may go to any node; in brackets: if it has to go to this"
        " one",
        hanging=2,
    )
    titles = ("POD", "PRIORITY", "GOES", *_SIZES.values())
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for item in answer.items:
        cells = {each.size: each for each in item.thresholds}
        rows.append(
            (
                (strong(item.pod),),
                (f"{item.priority:,}",),
                (_place(item, answer.nodes),),
                *((_cell(cells.get(size)),) for size in _SIZES),
            )
        )
    if page.fits(rows, indent=2):
        page.table(rows, aligns=_ALIGNS, indent=2)
    else:
        for item in answer.items:
            _add_stacked(page, item, answer)
    _add_legend(page, answer)


def _add_stacked(page: Page, item: PodAtRisk, answer: PodsAtRisk) -> None:
    """One pod over two lines, for names too long for columns."""
    page.paragraph(strong(item.pod), f"  priority {item.priority:,} on {item.node}", indent=2, hanging=2)
    parts = [f"goes {_place(item, answer.nodes)}"]
    parts += [f"{_SIZES[each.size].lower()} {_cell(each)}" for each in item.thresholds]
    page.paragraph(" · ".join(parts), indent=4, hanging=2)


def _cell(threshold: Threshold | None) -> str:
    """``11`` where a pod that may go anywhere evicts it, ``(11)`` where one that has to go to its node does."""
    if threshold is None:
        return "-"
    anywhere, on_node = threshold.anywhere, threshold.on_node
    if anywhere is not None:
        return f"{anywhere:,}" if on_node in (None, anywhere) else f"{anywhere:,} ({on_node:,})"
    if on_node is not None:
        return f"({on_node:,})"
    return "fits" if threshold.outcome_on_node == Outcome.LANDS else "never"


def _place(item: PodAtRisk, orders: Sequence[NodeOrder]) -> str:
    order = next((each for each in orders if each.node == item.node), None)
    if item.standing is None or order is None:
        return "-"
    last = f"-{item.standing.last_place}" if item.standing.last_place else ""
    return f"{item.standing.place}{last} of {len(order.pods)}"


def _add_legend(page: Page, answer: PodsAtRisk) -> None:
    typical = next(
        (each.requests for item in answer.items for each in item.thresholds if each.size == SizeName.TYPICAL), {}
    )
    amounts = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in typical.items())
    cells = [cell for item in answer.items for cell in map(_cell, item.thresholds)]
    legend = [f"typical: {amounts}"] if amounts else []
    legend.append("its room: its size and what is free beside it")
    legend += ["fits: there is room without evictions"] if "fits" in cells else []
    legend += ["never: no priority evicts it for a pod of that size"] if "never" in cells else []
    if len(answer.items) < answer.matching:
        legend.append(f"{len(answer.items):,} of {count(answer.matching, 'pod')} shown (--limit)")
    page.paragraph(Span("; ".join(legend), "dim"), indent=2, hanging=2)


def _add_budgets(page: Page, answer: PodsAtRisk) -> None:
    """Which budgets protect the pods, and where one is spent; that puts a pod last, and does not keep it."""
    parts: list[Span | str] = []
    for item in answer.items:
        uses = item.standing.budgets if item.standing is not None else []
        if uses:
            spent = item.standing is not None and item.standing.violates_budget
            names = join_names([bare_name(use.budget) for use in uses])
            parts += [
                ", " if parts else "",
                strong(item.pod),
                f" by {names}",
                Span(" (spent)", "warn") if spent else "",
            ]
    if parts:
        page.blank()
        page.paragraph(Span("BUDGETS", "heading"), "  protect ", *parts, hanging=2)


def _add_orders(page: Page, answer: PodsAtRisk, options: RenderOptions) -> None:
    """In which order the pods of each node go; those that were asked about stand out."""
    if not answer.nodes:
        return
    page.blank()
    page.paragraph(
        Span("ORDER", "heading"),
        "  in which pods of a node go, the first first: the least important one, and last those whose budget is spent;"
        " one that frees nothing of what is needed stays",
        hanging=2,
    )
    mine = {item.pod for item in answer.items}
    shown = answer.nodes if options.verbose else answer.nodes[:_NODES_SHOWN]
    for order in shown:
        standings = order.pods if options.verbose else order.pods[:_ORDER_SHOWN]
        parts: list[Span | str] = [strong(order.node), "  "]
        for number, standing in enumerate(standings):
            name = strong(standing.pod) if standing.pod in mine else Span(standing.pod)
            parts += [", " if number else "", name, _budgets(standing)]
        if rest := len(order.pods) - len(standings):
            parts.append(Span(f", and {rest:,} more", "dim"))
        page.paragraph(*parts, indent=2, hanging=2)
    if rest := len(answer.nodes) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more node')} (--verbose lists them)", "dim"), indent=2)


def _budgets(standing: Standing) -> Span:
    """The budgets of a pod, where they decide about its place."""
    if not standing.violates_budget:
        return Span("")
    names = join_names([bare_name(use.budget) for use in standing.budgets])
    return Span(f" (budget {names} spent)", "warn")
