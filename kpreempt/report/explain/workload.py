"""The pods of a workload in a few lines, and how many more of a pod fit."""

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
from kpreempt.verdict.workload import Capacity, MissingReason, Pending, Replica, ReplicaScope, Totals, Workload

_NODES_SHOWN = 4
_MESSAGES_SHOWN = 2
_ROWS_SHOWN = 8
_NAMES_SHOWN = 5
_NOT_CREATED, _REPLICAS, _CAPACITY, _EXCLUDED = 100, 99, 98, 96


def replica_sections(workload: Workload) -> list[Section]:
    """``REPLICAS``: the nodes they end up on, and why some stay pending. ``ONE BY ONE``: each replica."""
    nodes = Table(
        columns("NODE", "REPLICAS", "EVICTIONS", right=["REPLICAS", "EVICTIONS"]),
        [[strong(each.node), f"{each.replicas:,}", f"{each.evictions:,}"] for each in workload.nodes],
        noun="node",
        caption="Replicas by node",
        shown=_ROWS_SHOWN,
    )
    pending: list[Sequence[Words]] = [[f"{each.replicas:,} {_state_of(each)}"] for each in workload.pending]
    waits = Listing(pending, noun="message", shown=_MESSAGES_SHOWN)
    running = (
        f"{count(workload.running, 'pod')} already {agree(workload.running, 'runs')}; " if workload.running else ""
    )
    chance = (
        f"; {workload.ties:,} of {workload.replicas:,} depend on a tie that the scheduler breaks at random"
        if workload.ties
        else ""
    )
    definition = Sentence(
        Span(
            f"{running}replicas are scheduled in sequence, assuming that each replica's victims are gone before the"
            f" next replica is tried, and that victims are not replaced; other pending pods are not tried{chance}",
            "dim",
        )
    )
    lead = f"on {count(len(workload.nodes), 'node')}" if workload.nodes else "on no node"
    each = Table(
        columns("POD", "OUTCOME", "NODE", "VICTIMS"),
        [[strong(replica.pod), Span(*OUTCOMES[replica.outcome][:2]), *_ends_of(replica)] for replica in workload.items],
        noun="replica",
        caption="Scheduled in sequence; the victims of a replica are gone before the next replica is tried",
        shown=_ROWS_SHOWN,
    )
    if not workload.replicas:
        return [_details(workload), excluded_section(workload)]
    is_placed = workload.totals.rejected < workload.replicas
    if not is_placed and any(each.failure is not None for each in workload.missing_pods):
        # The controller's message says the same.
        return [_details(workload)]
    definitions = [definition] if is_placed else []
    blocks: list[Block] = [waits, *definitions, nodes]
    short = Section("REPLICAS", _nodes(workload), [waits, *definitions])
    return [
        _details(workload),
        Section("REPLICAS", lead, blocks, priority=_REPLICAS, short=short),
        excluded_section(workload),
        Section("ONE BY ONE", blocks=[each], heading="Each replica"),
    ]


def _state_of(pending: Pending) -> str:
    """What keeps replicas from nodes."""
    if not pending.is_created:
        return pending.message
    return f"{'rejected' if pending.is_rejected else 'pending'}: {pending.message}"


def _ends_of(replica: Replica) -> tuple[Words, Words]:
    """The node, and the victims; victims whose eviction violates a budget are marked."""
    first, *others = dict.fromkeys([*([replica.node] if replica.node else []), *replica.ties]) or ["-"]
    node = f"{first}{f' or {join_names(others, limit=_NAMES_SHOWN)}' if others else ''}"
    broken = Span(" (violates a budget)", "bad")
    return node, joined((pod, broken if pod in replica.violating else "") for pod in replica.victims) or "-"


def capacity_section(capacity: Capacity) -> Section:
    """``CAPACITY``: the total, the nodes with the most new pods, and why the count ends."""
    rows = Table(
        columns("NODE", "MORE PODS", right=["MORE PODS"]),
        [[strong(each.node), f"{each.pods:,}"] for each in capacity.nodes],
        noun="node",
        caption="More pods by node",
        shown=_ROWS_SHOWN,
    )
    by_choice = "assumes that the first of tied nodes is always taken; other choices may give a different number"
    blocks: list[Block] = [
        rows,
        Sentence(f"stopped counting at {capacity.limit:,} pods; more may fit" if capacity.is_bounded else ""),
        Sentence(by_choice if capacity.is_by_choice else ""),
        Sentence(f"the next pod: {capacity.message}" if capacity.message else ""),
    ]
    return Section("CAPACITY", capacity_phrase(capacity), blocks, priority=_CAPACITY)


def capacity_phrase(capacity: Capacity) -> Phrase:
    """How many more pods fit, in a sentence."""
    if capacity.outcome is Outcome.UNCERTAIN:
        words = "how many fit beyond these is uncertain" if capacity.pods else "uncertain"
        return (Span(f"{count(capacity.pods, 'more')} fit; {words}" if capacity.pods else words, "warn"),)
    if not capacity.pods:
        return (Span("no more pods like this fit", "bad"), " without evictions")
    least = "at least " if capacity.is_bounded else ""
    verb = "fits" if capacity.pods == 1 else "fit"
    return (
        strong(f"{least}{count(capacity.pods, 'more pod')}"),
        f" like this {verb} on {count(len(capacity.nodes), 'node')} without evictions",
    )


def headline_of(workload: Workload) -> Phrase:
    """The answer for the whole workload on one line; if pods were not created, first why."""
    lines = _not_created(workload)
    if not workload.replicas:
        lines += [] if lines else [_complete(workload)]
    elif lines and creates_none(workload):
        lines.append(_if_created(workload))
    else:
        lines.insert(0, (strong(workload_name(workload)), ": ", *_outcomes(workload)))
    for each in workload.budgets:
        evictions = f"{count(each.violations, 'eviction')} {agree(each.violations, 'violates')}"
        lines.append(Span(f"{evictions} budget {each.budget} (allows {each.allowed:,}).", "bad"))
    # The numbers that depend on how ties are broken.
    ranges = []
    for words, number in _NUMBERS:
        numbers = [number(each) for each in (workload.totals, *workload.others)]
        if min(numbers) != max(numbers):
            ranges.append(f"{min(numbers):,} to {max(numbers):,} {words}")
    if ranges:
        lines.append(Span(f"If ties are broken differently: {', '.join(ranges)}, possibly more or fewer.", "warn"))
    return joined(lines, " ")


def creates_none(workload: Workload) -> bool:
    """Whether the answer is about pods that are not created as things are; a paused rollout only changes none."""
    return any(each.missing or each.reason is not MissingReason.PAUSED for each in workload.missing_pods)


def _not_created(workload: Workload) -> list[Words]:
    """Why pods were not created, unless it is only that an earlier one of these pods is pending."""
    if not workload.missing_pods:
        return []
    from kpreempt.report.missing_pods import lead_of  # noqa: PLC0415 - rarely needed

    own = {each.pod for each in workload.items}
    return [
        lead_of(each, workload.at)
        for each in workload.missing_pods
        if each.waits_for is None or each.waits_for.pod not in own
    ]


def _details(workload: Workload) -> Section:
    """``NOT CREATED``: why pods were not created, and what helps."""
    if not workload.missing_pods:
        return Section("NOT CREATED")
    from kpreempt.report.missing_pods import details_section  # noqa: PLC0415 - rarely needed

    return details_section(workload.missing_pods, _NOT_CREATED)


def _if_created(workload: Workload) -> Phrase:
    """What would happen to the pods if they were created."""
    if workload.totals.rejected == workload.replicas:
        number = {1: "it", 2: "both"}.get(workload.replicas, f"all {workload.replicas:,}")
        rejecter = _rejecter(workload)
        return (Span(f"{rejecter[0].upper()}{rejecter[1:]} would reject {number} now, too.", "bad"),)
    subject = "they" if workload.replicas > 1 else "it"
    if not any(each.missing for each in workload.missing_pods):
        subject = "more pods" if workload.replicas > 1 else "another pod"
    return (f"If {subject} were created: ", *_outcomes(workload))


def _rejecter(workload: Workload) -> str:
    """What rejects pods: a quota, or another step of the API server."""
    messages = [each.message for each in workload.pending if each.is_rejected]
    is_quota = all(each.startswith(("exceeded quota", "failed quota")) for each in messages)
    return "a quota" if is_quota else "the API server"


def _complete(workload: Workload) -> Phrase:
    """A DaemonSet that lacks no pod, and the nodes that get none."""
    number = workload.running if isinstance(workload.running, int) else 0
    if not number:
        number = len(workload.excluded_nodes)
        nodes = {1: "the only node is", 2: "both nodes are"}.get(number, f"all {number:,} nodes are")
        return (strong(workload_name(workload)), Span(" creates no pods", "warn"), f": {nodes} excluded.")
    on_all = "its only node" if number == 1 else f"each of its {count(number, 'node')}"
    excluded = len(workload.excluded_nodes)
    more = f"; it creates none for {count(excluded, 'other node')}" if excluded else ""
    return (strong(workload_name(workload)), Span(" has a pod", "good"), f" on {on_all}{more}.")


def excluded_section(workload: Workload) -> Section:
    """``EXCLUDED``: the nodes for which a DaemonSet creates no pod, by reason."""
    by_reason: dict[str, list[str]] = {}
    for each in workload.excluded_nodes:
        reason = f"taint {each.taint} is not tolerated" if each.taint else "not selected by the pod's node affinity"
        by_reason.setdefault(f"{reason}{'; a pod that is there already stays' if each.stays else ''}", []).append(
            each.node
        )
    lines: list[list[Words]] = [
        [(strong(join_names(nodes, limit=_NODES_SHOWN)), f": {reason}")] for reason, nodes in by_reason.items()
    ]
    heading = "Nodes that get no pod of the DaemonSet"
    return Section(
        "EXCLUDED", blocks=[Listing(lines, noun="reason")], heading=heading, is_inline=True, priority=_EXCLUDED
    )


def workload_name(workload: Workload) -> str:
    """``shop/web``, without the kind."""
    return workload.workload.rpartition(" ")[2]


def totals_in_words(workload: Workload) -> Phrase:
    """The outcomes of all replicas in numbers, in the color of the worst one."""
    totals = workload.totals
    outcomes: Sequence[tuple[int, str, Role]] = (
        (totals.lands, "land", "good"),
        (totals.preempts, "preempt", "bad" if totals.violations else "warn"),
        (totals.uncertain, "uncertain", "warn"),
        (totals.pending, "unschedulable", "bad"),
        (totals.rejected, "rejected", "bad"),
        (totals.not_created, "not created", "bad"),
    )
    shown = [(f"{number:,} {words}", style) for number, words, style in outcomes if number]
    if not shown:
        return (Span("no replica is created", "dim"),)
    worst: Role = "bad" if any(style == "bad" for _, style in shown) else shown[-1][1]
    return (Span(", ".join(words for words, _ in shown), worst),)


def _outcomes(workload: Workload) -> Phrase:
    totals = workload.totals
    clauses = [clause for number, clause in _clauses(totals, _rejecter(workload)) if number]
    first, *others = clauses or [("no replica is created",)]
    which = {ReplicaScope.NEW: "", ReplicaScope.UNSCHEDULED: "missing ", ReplicaScope.ADDITIONAL: "more "}[
        workload.scope
    ]
    noun = f"{which}{'replica' if workload.replicas == 1 else 'replicas'}"
    if totals.lands and totals.lands < workload.replicas:
        first = (f"{totals.lands:,} of {workload.replicas:,} {noun} ", *first)
    elif totals.lands:
        number = {1: "1", 2: "both"}.get(workload.replicas, f"all {workload.replicas:,}")
        first = (f"{number} {noun} ", *first)
    elif workload.replicas:
        none = {
            1: f"1 {noun} does not land",
            2: f"neither {'additional ' if which == 'more ' else which}replica lands",
        }
        start = none.get(workload.replicas, f"none of the {workload.replicas:,} {noun} lands")
        first = (f"{start} immediately: ", *first)
    return (*_listed([first, *others]), ".")


def _listed(clauses: Sequence[Phrase]) -> Phrase:
    """``a``, ``a and b`` or ``a, b, and c``."""
    if len(clauses) < 2:
        return tuple(clauses[0])
    *most, last = clauses
    return (*joined(most), ", and ", *last)


def _clauses(totals: Totals, rejecter: str) -> Sequence[tuple[int, Phrase]]:
    """Each number with its clause."""
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
            totals.rejected,
            (Span(f"{totals.rejected:,} {agree(totals.rejected, 'is')} rejected by {rejecter}", "bad"),),
        ),
        (
            totals.not_created,
            (Span(f"{totals.not_created:,} {agree(totals.not_created, 'is')} not created before that", "bad"),),
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
