"""All pods of a workload in a few lines, and how many more of a pod fit: what is asked about more pods than one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import (
    Block,
    Listing,
    Phrase,
    Role,
    Section,
    Sentence,
    Span,
    Table,
    Words,
    columns,
    joined,
    strong,
)
from kpreempt.report.evidence import OUTCOMES, join_names
from kpreempt.verdict import Outcome
from kpreempt.verdict.workload import Asked, Capacity, Replica, Totals, Workload

_NODES_SHOWN = 4
_MESSAGES_SHOWN = 2
_ROWS_SHOWN = 8
_NAMES_SHOWN = 5
_REPLICAS, _CAPACITY = 99, 98


def replica_sections(workload: Workload) -> list[Section]:
    """``REPLICAS``: on which nodes they end, and why those that stay pending do. ``ONE BY ONE``: each of them."""
    nodes = Table(
        columns("NODE", "REPLICAS", "EVICTIONS", right=["REPLICAS", "EVICTIONS"]),
        [[strong(each.node), f"{each.replicas:,}", f"{each.evictions:,}"] for each in workload.nodes],
        noun="node",
        caption="Where they end",
        shown=_ROWS_SHOWN,
    )
    pending: list[Sequence[Words]] = [
        [f"{each.replicas:,} without a node: {each.message}"] for each in workload.pending
    ]
    waits = Listing(pending, noun="message", shown=_MESSAGES_SHOWN)
    running = f"{count(workload.running, 'pod')} on nodes already; " if workload.running else ""
    chance = (
        f"; {workload.ties:,} of {workload.replicas:,} by one of the scheduler's equal choices" if workload.ties else ""
    )
    definition = Sentence(
        Span(
            f"{running}one after the other, victims gone before the next; other pending pods are not tried,"
            f" nothing comes in a victim's place{chance}",
            "dim",
        )
    )
    lead = f"on {count(len(workload.nodes), 'node')}" if workload.nodes else "on no node"
    each = Table(
        columns("POD", "OUTCOME", "NODE", "VICTIMS"),
        [[strong(replica.pod), Span(*OUTCOMES[replica.outcome][:2]), *_ends_of(replica)] for replica in workload.items],
        noun="replica",
        caption="One after the other, the victims of one gone before the next is tried",
        shown=_ROWS_SHOWN,
    )
    blocks: list[Block] = [waits, definition, nodes]
    short = Section("REPLICAS", _nodes(workload), [waits, definition])
    return [
        Section("REPLICAS", lead, blocks, priority=_REPLICAS, short=short),
        Section("ONE BY ONE", blocks=[each], heading="Each replica"),
    ]


def _ends_of(replica: Replica) -> tuple[Words, Words]:
    """The node, and the pods that go for it; those whose eviction violates a budget say so."""
    others = [node for node in replica.ties if node != replica.node]
    node = f"{replica.node or '-'}{f' or {join_names(others, limit=_NAMES_SHOWN)}' if others else ''}"
    broken = Span(" (violates a budget)", "bad")
    return node, joined((pod, broken if pod in replica.violating else "") for pod in replica.victims) or "-"


def capacity_section(capacity: Capacity) -> Section:
    """``CAPACITY``: the total, the nodes that hold most first, and what ends the search."""
    rows = Table(
        columns("NODE", "MORE PODS", right=["MORE PODS"]),
        [[strong(each.node), f"{each.pods:,}"] for each in capacity.nodes],
        noun="node",
        caption="Where more fit",
        shown=_ROWS_SHOWN,
    )
    by_choice = "by the first of the scheduler's equal choices; others may come to another number"
    blocks: list[Block] = [
        rows,
        Sentence(f"counted up to {capacity.limit:,} pods; there is room for more" if capacity.is_bounded else ""),
        Sentence(by_choice if capacity.is_by_choice else ""),
        Sentence(f"then: {capacity.message}" if capacity.message else ""),
    ]
    return Section("CAPACITY", capacity_phrase(capacity), blocks, priority=_CAPACITY)


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


def headline_of(workload: Workload) -> Phrase:
    """The whole answer on one line."""
    lines: list[Words] = [(strong(workload_name(workload)), ": ", *_told(workload))]
    for each in workload.budgets:
        evictions = f"{count(each.violations, 'eviction')} {agree(each.violations, 'violates')}"
        lines.append(Span(f"{evictions} budget {each.budget} (allows {each.allowed:,}).", "bad"))
    # The numbers that other choices change.
    ranges = []
    for words, number in _NUMBERS:
        numbers = [number(each) for each in (workload.totals, *workload.others)]
        if min(numbers) != max(numbers):
            ranges.append(f"{min(numbers):,} to {max(numbers):,} {words}")
    if ranges:
        lines.append(Span(f"By other choices between equals: {', '.join(ranges)}, or beyond.", "warn"))
    return joined(lines, " ")


def workload_name(workload: Workload) -> str:
    """``shop/web``, without the kind."""
    return workload.workload.rpartition(" ")[2]


def totals_in_words(workload: Workload) -> Phrase:
    """What becomes of all replicas, in the colour of the worst of it."""
    totals = workload.totals
    told: Sequence[tuple[int, str, Role]] = (
        (totals.lands, "land", "good"),
        (totals.preempts, "preempt", "bad" if totals.violations else "warn"),
        (totals.uncertain, "uncertain", "warn"),
        (totals.pending, "unschedulable", "bad"),
        (totals.refused, "refused", "bad"),
    )
    here = [(f"{number:,} {words}", style) for number, words, style in told if number]
    if not here:
        return (Span("no replica is created", "dim"),)
    worst: Role = "bad" if any(style == "bad" for _, style in here) else here[-1][1]
    return (Span(", ".join(words for words, _ in here), worst),)


def _told(workload: Workload) -> Phrase:
    totals = workload.totals
    clauses = [clause for number, clause in _clauses(totals) if number]
    first, *others = clauses or [("no replica is created",)]
    which = {Asked.NEW: "", Asked.MISSING: "missing ", Asked.MORE: "more "}[workload.asked]
    noun = f"{which}{'replica' if workload.replicas == 1 else 'replicas'}"
    if totals.lands and totals.lands < workload.replicas:
        first = (f"{totals.lands:,} of {workload.replicas:,} {noun} ", *first)
    elif totals.lands:
        number = {1: "1", 2: "both"}.get(workload.replicas, f"all {workload.replicas:,}")
        first = (f"{number} {noun} ", *first)
    elif workload.replicas:
        first = (f"none of {workload.replicas:,} {noun} lands at once, ", *first)
    return (*joined([first, *others]), ".")


def _clauses(totals: Totals) -> Sequence[tuple[int, Phrase]]:
    """Each number, and what is said of it."""
    return (
        (totals.lands, (Span(agree(totals.lands, "lands"), "good"),)),
        (
            totals.preempts,
            (
                Span(f"{totals.preempts:,} {'preempts' if totals.preempts == 1 else 'preempt'}", "warn"),
                " ",
                strong(count(totals.evictions, "pod")),
            ),
        ),
        (totals.pending, (Span(f"{totals.pending:,} {'stays' if totals.pending == 1 else 'stay'} pending", "bad"),)),
        (totals.uncertain, (Span(f"{totals.uncertain:,} {agree(totals.uncertain, 'is')} uncertain", "warn"),)),
        (
            totals.refused,
            (Span(f"{totals.refused:,} {agree(totals.refused, 'is')} refused by a quota", "bad"),),
        ),
    )


_NUMBERS: Sequence[tuple[str, Callable[[Totals], int]]] = (
    ("land", lambda totals: totals.lands),
    ("preempt", lambda totals: totals.preempts),
    ("pods evicted", lambda totals: totals.evictions),
    ("violations", lambda totals: totals.violations),
    ("pending", lambda totals: totals.pending),
)


def _nodes(workload: Workload) -> Phrase:
    if not workload.nodes:
        return ("on no node",)
    parts = joined(
        (strong(each.node), f" {each.replicas:,}{f' (evicting {each.evictions:,})' if each.evictions else ''}")
        for each in workload.nodes[:_NODES_SHOWN]
    )
    rest = len(workload.nodes) - _NODES_SHOWN
    return ("by node: ", *parts, f" and {count(rest, 'more node')}" if rest > 0 else "")
