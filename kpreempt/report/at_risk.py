"""Running pods that would be evicted, by which pods, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count, format_amount, format_lowest_priority
from kpreempt.report.blocks import (
    Column,
    Hint,
    Listing,
    Part,
    Phrase,
    Report,
    Section,
    Span,
    Table,
    Words,
    joined,
    strong,
)
from kpreempt.report.evidence import absent_facts, assumption_sections, bare_name, join_names, size_facts
from kpreempt.report.node_health import health_section
from kpreempt.report.options import RenderOptions
from kpreempt.report.preemptions import preemptions_section
from kpreempt.verdict import Outcome
from kpreempt.verdict.at_risk import NodeOrder, PodAtRisk, PodsAtRisk, SizeName, Threat, Threshold
from kpreempt.verdict.unread import is_absent, lacks_nodes, lacks_pods, why_no_nodes

_THREATS_SHOWN = 3
_ORDER_SHOWN = 4
_NODES_SHOWN = 3
# The titles of the size columns; that of a typical pod shows its amounts.
_SIZES: dict[SizeName, str] = {
    SizeName.TYPICAL: "TYPICAL",
    SizeName.OWN: "ITS SIZE",
    SizeName.OWN_PLUS_FREE: "ITS SIZE+FREE",
}
# Priorities on a screen.
_NODE_HEALTH, _THREATS, _THRESHOLDS, _ORDERS = 65, 60, 50, 40
# The lines that a screen keeps of each section: the labels, titles, and some pods.
_LINES = 5
# The label, and the number of omitted pods.
_AROUND_TABLE = 2
_THREATENED_SHOWN = 50


def report(answer: PodsAtRisk, options: RenderOptions) -> Report:
    """The pods at risk now, the lowest priority that would preempt each, and the order on each node."""
    facts = absent_facts(answer.assumptions)
    if answer.matching:
        cluster = [*size_facts(answer.cluster, answer.assumptions), answer.algorithm]
        facts.append(" · ".join(filter(None, cluster)))
    threatened = [item for item in answer.items if item.evicted_runs]
    threatened += answer.more_threatened
    if_next = [item for item in answer.items if item.threats and not item.evicted_runs]
    more = [("-v", "every threat, budgets, the full order on each node")]
    if len(answer.items) < answer.matching:
        more.append(("--limit N", ""))
    matching, pending = count(answer.matching, "running pod"), count(answer.pending, "pending pod")
    lead: Phrase = ("No running pod matches.",)
    if not answer.matching:
        lacking = next((kind for kind in ("Node", "Pod") if is_absent(answer.assumptions, kind)), "")
        if not lacking and (lacks_nodes(answer.assumptions) or lacks_pods(answer.assumptions)):
            missing = "nodes" if lacks_nodes(answer.assumptions) else "pods"
            why = why_no_nodes(answer.assumptions) or f"not all {missing} are in the input"
            lead = (f"Which pods are at risk is unknown: {why}.",)
        elif lacking:
            lead = (f"Which pods are at risk is unknown: the snapshot has no {lacking.lower()}s.",)
    elif answer.threatened:
        at_risk = strong(f"{answer.threatened:,} of {matching}")
        are_certain = all(item.evicted_runs in (0, answer.runs) for item in answer.items)
        words = " will be preempted" if are_certain else " may be preempted"
        lead = (at_risk, Span(words, "warn"), f" by the {pending}, served in queue order.")
    else:
        by = f" by the {pending}, served in queue order." if answer.pending else ": no pod is pending."
        lead = ("None of the ", strong(matching), Span(" is preempted", "good"), by)
    return Report(
        lead=lead,
        facts=facts,
        sections=[
            health_section(answer.cluster, options.now, priority=_NODE_HEALTH),
            Section(
                "NOW",
                "preempted when the queue is served in its order (# = position)" if answer.threatened else "",
                [
                    Listing(
                        [[_threats(item, answer.runs, options)] for item in [*threatened, *if_next]],
                        noun="pod",
                        shown=_THREATENED_SHOWN,
                    )
                ],
                priority=_THREATS,
                reserved_lines=len(threatened) + _AROUND_TABLE,
                min_lines=_LINES,
                short=_named([*threatened, *if_next], answer),
            ),
            preemptions_section(answer.preemptions, answer.at, _THREATS),
            _lowest_priorities(answer, aside=int(len(threatened) >= _LINES)),
            _budgets_of_pods(answer),
            Section(
                "ORDER",
                "of preemption on each node: lowest priority first, pods whose budget allows no disruptions last; pods"
                " that don't need to be evicted are reprieved"
                if answer.nodes
                else "",
                [Listing([[_order(each, answer, options)] for each in answer.nodes], noun="node", shown=_NODES_SHOWN)],
                priority=_ORDERS,
                aside=2,
                short=Section(
                    "ORDER",
                    "of preemption, first victim first",
                    [Listing([[_order(each, answer, options)] for each in answer.nodes], noun="node")],
                ),
            ),
            *assumption_sections(answer.assumptions),
        ],
        more=more,
        command="at-risk",
    )


def _threats(item: PodAtRisk, runs: int, options: RenderOptions) -> Phrase:
    """The pod, and the pending pods that preempt it in their turn, or would if they were next."""
    in_turn = _preemptors([each for each in item.threats if each.in_turn], options).replace(" and ", " or ", 1)
    if_next = _preemptors([each for each in item.threats if not each.in_turn], options)
    parts = []
    if item.evicted_runs:
        how = "" if item.evicted_runs == runs else f" in {item.evicted_runs:,} of {count(runs, 'run')}"
        parts.append(f"by {in_turn or 'the replacement of an evicted pod'}{how}")
    if if_next:
        parts.append(f"{'' if item.evicted_runs else 'only '}if it were next, by {if_next}")
    return (strong(item.pod), f" on {item.node}, {'; '.join(parts)}")


def _named(items: Sequence[PodAtRisk], answer: PodsAtRisk) -> Section:
    """One line for each pod: its name, its node, and the first pod that preempts it, with the number of others."""
    rows: list[list[Words]] = []
    for item in items:
        threats = [each for each in item.threats if each.in_turn or not item.evicted_runs]
        by = f"by {threats[0].pod}" if threats else "by the replacement of an evicted pod"
        by += f" +{len(threats) - 1:,}" if threats[1:] else ""
        position = f"#{threats[0].position}" if threats and threats[0].position is not None else ""
        when = f"{item.evicted_runs:,} of {count(answer.runs, 'run')}" if item.evicted_runs else "only if next"
        rows.append([strong(item.pod), item.node, by, position, when])
    if all(0 < item.evicted_runs == answer.runs for item in items):
        rows = [row[:-1] for row in rows]
    titles = [Column(""), Column(""), Column(""), Column("", "right"), Column("")][: len(rows[0]) if rows else 0]
    lead = "preempted when the queue is served in its order (# = position)" if answer.threatened else ""
    return Section("NOW", lead, [Table(titles, rows, noun="pod", is_dense=True, is_untitled=True)])


def _preemptors(threats: Sequence[Threat], options: RenderOptions) -> str:
    shown = threats if options.verbose else threats[:_THREATS_SHOWN]
    names = [
        f"{each.pod} (priority {each.priority:,}{f', #{each.position}' if each.position is not None else ''})"
        for each in shown
    ]
    if len(threats) > len(shown):
        names.append(f"{len(threats) - len(shown):,} more")
    return join_names(names, limit=len(names)) if names else ""


def _lowest_priorities(answer: PodsAtRisk, aside: int) -> Section:
    """For each pod, the lowest priority at which a new pod of each size would preempt it."""
    cells = [cell for item in answer.items for cell in map(_cell, item.thresholds)]
    legend = ["at which a new pod of this size preempts the pod; (n) = only if pinned to its node"]
    legend += ["fits = lands without preemption"] if "fits" in cells else []
    legend += ["none = at no priority"] if "none" in cells else []
    titles = [Column("POD"), *(Column(title, "right") for title in ("PRIO", "ORDER"))]
    rows: list[list[Words]] = []
    for item in answer.items:
        by_size = {each.size: each for each in item.thresholds}
        sizes = [_cell(by_size.get(size)) for size in _SIZES]
        order = next((each for each in answer.nodes if each.node == item.node), None)
        place = "-"
        if item.eviction_order is not None and order is not None:
            last = f"-{item.eviction_order.last_rank}" if item.eviction_order.last_rank else ""
            place = f"{item.eviction_order.rank}{last} of {len(order.pods)}"
        rows.append([strong(item.pod), f"{item.priority:,}", place, *sizes])
    rest = f"{len(answer.items):,} of {count(answer.matching, 'pod')} shown (--limit)"
    return Section(
        "LOWEST PRIORITY",
        "; ".join(legend) if rows else "",
        [
            Table([*titles, *(Column(_title(size, answer), "right") for size in _SIZES)], rows, noun="lowest priority"),
            *([Hint(rest)] if len(answer.items) < answer.matching else []),
        ],
        priority=_THRESHOLDS,
        reserved_lines=_LINES,
        min_lines=_LINES,
        aside=aside,
    )


def _title(size: SizeName, answer: PodsAtRisk) -> str:
    """The size; for a typical pod, its amounts."""
    requests = (each.requests for item in answer.items for each in item.thresholds if each.size == size)
    amounts = next(requests, {}) if size == SizeName.TYPICAL else {}
    return ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in amounts.items()) or _SIZES[size]


def _cell(threshold: Threshold | None) -> str:
    """The lowest priority, or the outcome at any priority."""
    if threshold is None:
        return "-"
    lowest = format_lowest_priority(threshold.anywhere, threshold.on_node)
    return lowest or ("fits" if threshold.outcome_on_node == Outcome.LANDS else "none")


def _budgets_of_pods(answer: PodsAtRisk) -> Section:
    """The budgets of the pods, and those that allow no disruptions: these pods are preempted last."""
    parts: list[Words] = []
    for item in answer.items:
        uses = item.eviction_order.budgets if item.eviction_order is not None else []
        if uses:
            spent = item.eviction_order is not None and item.eviction_order.violates_budget
            names = join_names([bare_name(use.budget) for use in uses])
            parts.append((strong(item.pod), f": {names}", Span(" (no disruption allowed)", "warn") if spent else ""))
    return Section("BUDGETS", joined(parts))


def _order(order: NodeOrder, answer: PodsAtRisk, options: RenderOptions) -> Phrase:
    """The node with its pods, first victim first; the requested pods are highlighted."""
    requested = {item.pod for item in answer.items}
    victims = order.pods if options.verbose else order.pods[:_ORDER_SHOWN]
    parts: list[Part] = [strong(order.node), "  "]
    for number, victim in enumerate(victims):
        name = strong(victim.pod) if victim.pod in requested else Span(victim.pod)
        parts += [", " if number else "", name]
        # Budgets affect its rank.
        if victim.violates_budget:
            names = join_names([bare_name(use.budget) for use in victim.budgets])
            parts.append(Span(f" (budget {names} allows no disruptions)", "warn"))
    if rest := len(order.pods) - len(victims):
        parts.append(Span(f", and {rest:,} more", "dim"))
    return tuple(parts)
