"""Which running pods would be evicted, for whom and in which order, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count, format_amount
from kpreempt.report.closing_section import add_absent_kinds, add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.victims import bare_name
from kpreempt.report.layout import Align, Page, Phrase, Span, strong
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.screen import Block, fill, paragraph, table_block, titled
from kpreempt.verdict import NodeOrder, Outcome, PodAtRisk, PodsAtRisk, SizeName, Standing, Threshold
from kpreempt.verdict.unread import is_absent

_THREATS_SHOWN = 3
_ORDER_SHOWN = 4
_NODES_SHOWN = 3
# The sizes in columns; that of a typical pod is in its title.
_SIZES: dict[SizeName, str] = {
    SizeName.TYPICAL: "TYPICAL",
    SizeName.OWN: "ITS SIZE",
    SizeName.ROOM: "ITS SIZE+FREE",
}
_NOW, _LOWEST, _ORDER = (Span(label, "heading") for label in ("NOW", "LOWEST PRIORITY", "ORDER"))
_MORE = "-v (every threat, budgets, the whole order on each node)"
_ALIGNS: tuple[Align, ...] = ("left", "right", "right", "right", "right", "right")


def render_risk(answer: PodsAtRisk, options: RenderOptions) -> str:
    """A sentence, who is threatened now, from which priority on, and the order on each node; or what fits a screen."""
    page = Page(options.width)
    page.paragraph(*_headline(answer))
    add_absent_kinds(page, answer.assumptions)
    if answer.matching:
        facts = [count(answer.cluster.nodes, "node"), count(answer.cluster.pods, "pod"), answer.algorithm]
        page.paragraph(Span(" · ".join(filter(None, facts)), "dim"), indent=2)
    if options.extent is Extent.SCREEN:
        more = "  --limit N" if len(answer.items) < answer.matching else ""
        return fill(page, _blocks(answer, options), answer.assumptions, f"{_MORE}{more}", options)
    _add_threats(page, answer, options)
    _add_thresholds(page, answer)
    _add_budgets(page, answer)
    _add_orders(page, answer, options)
    add_assumptions_section(page, answer.assumptions, options)
    return finished(page, options)


def _blocks(answer: PodsAtRisk, options: RenderOptions) -> list[Block]:
    """The threatened pods, the lowest priorities, and the nodes, for a screen."""
    now = [paragraph(options, *_threats(item, options), most=2) for item in answer.items if item.threats]
    order = [paragraph(options, *_order(each, answer, options), most=1) for each in answer.nodes]
    told = [Block(titled(options, _NOW, "preempted by pending pods, each judged alone"), now, "pod")]
    if answer.items:
        head = titled(options, _LOWEST, "; ".join(_legend(answer)))
        told.append(table_block(options, head, _threshold_rows(answer), "pod", aligns=_ALIGNS))
    return [*told, Block(titled(options, _ORDER, "of preemption, the first to go first"), order, "node")]


def _headline(answer: PodsAtRisk) -> Phrase:
    if not answer.matching:
        lacking = next((kind for kind in ("Node", "Pod") if is_absent(answer.assumptions, kind)), "")
        if lacking:
            return (f"Which pods are at risk is unknown: the snapshot has no {lacking.lower()}s.",)
        return ("No running pod matches.",)
    number = answer.threatened
    who = f"{number:,} of {count(answer.matching, 'running pod')}"
    pending = count(answer.pending, "pending pod")
    if not number:
        return (
            "None of ",
            strong(count(answer.matching, "running pod")),
            Span(" would be preempted", "good"),
            f" by the {pending}." if answer.pending else ": no pod is pending.",
        )
    return (strong(who), Span(" would be preempted", "warn"), f" by the {pending}.")


def _add_threats(page: Page, answer: PodsAtRisk, options: RenderOptions) -> None:
    threatened = [item for item in answer.items if item.threats]
    if not threatened:
        return
    page.blank()
    page.paragraph(_NOW, "  preempted by pending pods, each judged alone, as if it came next")
    for item in threatened:
        page.paragraph(*_threats(item, options), indent=2, hanging=2)


def _threats(item: PodAtRisk, options: RenderOptions) -> Phrase:
    """The pod, and which pending pods would preempt it."""
    shown = item.threats if options.verbose else item.threats[:_THREATS_SHOWN]
    whom = ", ".join(
        f"{each.pod} (priority {each.priority:,}"
        f"{f', queue place {each.position}' if each.position is not None else ''})"
        f"{'' if each.is_certain else ' perhaps'}"
        for each in shown
    )
    more = f" and {len(item.threats) - len(shown):,} more" if len(item.threats) > len(shown) else ""
    return (strong(item.pod), f" on {item.node}, by {whom}{more}")


def _add_thresholds(page: Page, answer: PodsAtRisk) -> None:
    if not answer.items:
        return
    page.blank()
    page.paragraph(_LOWEST, f"  {'; '.join(_legend(answer))}", hanging=2)
    page.table(_threshold_rows(answer), aligns=_ALIGNS, indent=2)
    if len(answer.items) < answer.matching:
        words_left = f"{len(answer.items):,} of {count(answer.matching, 'pod')} shown (--limit)"
        page.paragraph(Span(words_left, "dim"), indent=2, hanging=2)


def _legend(answer: PodsAtRisk) -> list[str]:
    """What the table of lowest priorities holds."""
    cells = [cell for item in answer.items for cell in map(_cell, item.thresholds)]
    words = ["of a new pod of this size that would preempt it; (n) = only if pinned to this node"]
    words += ["fits = lands without preemption"] if "fits" in cells else []
    return words + (["none = at no priority"] if "none" in cells else [])


def _threshold_rows(answer: PodsAtRisk) -> list[tuple[Phrase, ...]]:
    """The titles, and a row for each pod."""
    titles = ("POD", "PRIO", "ORDER", *(_title(size, answer) for size in _SIZES))
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for item in answer.items:
        told = {each.size: each for each in item.thresholds}
        rows.append(
            (
                (strong(item.pod),),
                (f"{item.priority:,}",),
                (_place(item, answer.nodes),),
                *((_cell(told.get(size)),) for size in _SIZES),
            )
        )
    return rows


def _title(size: SizeName, answer: PodsAtRisk) -> str:
    """The size; that of a typical pod in amounts."""
    told = (each.requests for item in answer.items for each in item.thresholds if each.size == size)
    amounts = next(told, {}) if size == SizeName.TYPICAL else {}
    return ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in amounts.items()) or _SIZES[size]


def _cell(threshold: Threshold | None) -> str:
    """``11`` where a pod that may land anywhere preempts it, ``(11)`` where one that is pinned to its node does."""
    if threshold is None:
        return "-"
    anywhere, on_node = threshold.anywhere, threshold.on_node
    if anywhere is not None:
        return f"{anywhere:,}" if on_node in (None, anywhere) else f"{anywhere:,} ({on_node:,})"
    if on_node is not None:
        return f"({on_node:,})"
    return "fits" if threshold.outcome_on_node == Outcome.LANDS else "none"


def _place(item: PodAtRisk, orders: Sequence[NodeOrder]) -> str:
    order = next((each for each in orders if each.node == item.node), None)
    if item.standing is None or order is None:
        return "-"
    last = f"-{item.standing.last_place}" if item.standing.last_place else ""
    return f"{item.standing.place}{last} of {len(order.pods)}"


def _add_budgets(page: Page, answer: PodsAtRisk) -> None:
    """Which budgets protect the pods, and which allow nothing: such pods go last, but they go."""
    parts: list[Span | str] = []
    for item in answer.items:
        uses = item.standing.budgets if item.standing is not None else []
        if uses:
            spent = item.standing is not None and item.standing.violates_budget
            names = join_names([bare_name(use.budget) for use in uses])
            parts += [
                ", " if parts else "",
                strong(item.pod),
                f": {names}",
                Span(" (no disruption allowed)", "warn") if spent else "",
            ]
    if parts:
        page.blank()
        page.paragraph(Span("BUDGETS", "heading"), "  ", *parts, hanging=2)


def _add_orders(page: Page, answer: PodsAtRisk, options: RenderOptions) -> None:
    """In which order the pods of each node go; those that were asked about stand out."""
    if not answer.nodes:
        return
    page.blank()
    page.paragraph(
        _ORDER,
        "  of preemption on each node: lowest priority first, pods whose budget allows no disruption last; a pod that"
        " frees nothing needed is reprieved",
        hanging=2,
    )
    shown = answer.nodes if options.verbose else answer.nodes[:_NODES_SHOWN]
    for order in shown:
        page.paragraph(*_order(order, answer, options), indent=2, hanging=2)
    if rest := len(answer.nodes) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more node')} (-v)", "dim"), indent=2)


def _order(order: NodeOrder, answer: PodsAtRisk, options: RenderOptions) -> Phrase:
    """The node with its pods, the first to go first; those that were asked about stand out."""
    mine = {item.pod for item in answer.items}
    standings = order.pods if options.verbose else order.pods[:_ORDER_SHOWN]
    parts: list[Span | str] = [strong(order.node), "  "]
    for number, standing in enumerate(standings):
        name = strong(standing.pod) if standing.pod in mine else Span(standing.pod)
        parts += [", " if number else "", name, _budgets(standing)]
    if rest := len(order.pods) - len(standings):
        parts.append(Span(f", and {rest:,} more", "dim"))
    return tuple(parts)


def _budgets(standing: Standing) -> Span:
    """The budgets of a pod, where they decide about its place."""
    if not standing.violates_budget:
        return Span("")
    names = join_names([bare_name(use.budget) for use in standing.budgets])
    return Span(f" (budget {names} allows no disruption)", "warn")
