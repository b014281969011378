"""A simulation in sections: the timeline, the evicted pods, and the state at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import (
    Fold,
    Listing,
    Node,
    Phrase,
    Picture,
    Section,
    Sentence,
    Span,
    Table,
    Timeline,
    Tree,
    Words,
    columns,
    joined,
)
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import message, name, names
from kpreempt.report.simulation_words import clock, displaced_phrase, simulation_summary, summarize
from kpreempt.verdict.simulation import (
    COMPLETED,
    BrokenDependency,
    BrokenDependencyKind,
    Displaced,
    SimulatedWorkload,
    Simulation,
    SimulationEnd,
    StepKind,
)

_LINES_SHOWN = 12
_ROWS_SHOWN = 6
_NODES_SHOWN = 8
_NAMES_SHOWN = 6
_BARE_PODS_SHOWN = 3
_WORKLOADS_SHOWN = 20
# Longer chains continue without further indentation.
_DEEPEST = 10


def timeline(simulation: Simulation, options: RenderOptions) -> Section:
    """``TIMELINE``: the steps by time; the end of a pod's termination is only shown in full reports."""
    from kpreempt.report.html.lanes import lanes  # noqa: PLC0415 - only pages draw them

    is_at_once = simulation.end is SimulationEnd.SETTLED and not simulation.seconds and simulation.steps
    steps = [
        step
        for step in simulation.steps
        if options.is_full or step.kind is not StepKind.TERMINATED or step.reason == COMPLETED
    ]
    loop: Words = (
        ("these workloads keep displacing each other: ", *names(simulation.loop, limit=_WORKLOADS_SHOWN))
        if simulation.loop
        else ""
    )
    draws = simulation.draws
    return Section(
        "TIMELINE",
        "everything happens at once" if is_at_once else simulation_summary(simulation),
        [
            Sentence(loop if options.is_full else ""),
            Sentence(f"{count(draws, 'node choice')} {agree(draws, 'is')} random" if draws and options.is_full else ""),
            Picture(partial(lanes, simulation)),
            Timeline([(line.clock, line.words) for line in summarize(steps)], shown=_LINES_SHOWN),
        ],
        is_reasoning=True,
    )


def evicted(simulation: Simulation, options: RenderOptions, *, priority: int = 0) -> Section:
    """``EVICTED``: the victims, and below each the pods that its replacement evicts in turn."""
    victims = simulation.displaced
    deep = f", up to {simulation.depth:,} in a chain" if simulation.depth > 1 else ""
    tree = displacement_tree(victims, partial(displaced_phrase, is_full=options.is_full))
    return Section(
        "EVICTED",
        f"{len(victims):,} in total{deep}" if victims else "none" if options.is_full else "",
        [Tree(tree, noun="victim", shown=_LINES_SHOWN, is_alike=True)],
        heading="Evicted pods",
        anchor="victims",
        is_reasoning=True,
        priority=priority if victims else 0,
    )


def displacement_tree(displaced: Iterable[Displaced], words: Callable[[Displaced], Phrase]) -> list[Node]:
    """The victims as a tree: below each, the pods that its replacement evicts."""
    roots: list[Node] = []
    levels = [roots]
    for each in displaced:
        del levels[min(max(each.depth, 1), _DEEPEST) :]
        below: list[Node] = []
        levels[-1].append(Node(words(each), below))
        levels.append(below)
    return roots


def budgets(simulation: Simulation) -> Section:
    """``BUDGETS``: the budgets that are affected, violated ones first."""
    rows: list[list[Words]] = [
        [
            name(each.budget),
            f"{each.before:,}",
            f"{each.min:,}",
            f"{each.after:,}",
            Span(f"✗ {each.violations:,}", "bad") if each.violations else "0",
        ]
        for each in sorted(simulation.budgets, key=lambda each: -each.violations)
    ]
    numbers = ("BEFORE", "WORST", "AFTER", "VIOLATIONS")
    return Section(
        "BUDGETS",
        "disruptions allowed before, at worst, and at the end" if rows else "",
        [Table(columns("BUDGET", *numbers, right=numbers), rows, "budget", "Affected budgets", _ROWS_SHOWN)],
        heading="Disruption budgets",
        is_reasoning=True,
    )


def workloads(simulation: Simulation, options: RenderOptions) -> Section:
    """``WORKLOADS``: the ready pods of workloads that change or lose pods; their nodes only in full reports."""
    # Changed workloads first, then those that lose most.
    ranked = sorted(
        _with_bare_pods_together(simulation.workloads),
        key=lambda each: (not each.is_changed, each.is_done, -each.victims),
    )
    rows: list[list[Words]] = []
    for each in ranked:
        lowest = Span(f"{each.ready_min:,}", "bad" if each.ready_before and not each.ready_min else "")
        short = each.desired_after not in (None, each.ready_after)
        after = f"{each.ready_after:,} of {each.desired_after:,}" if short else f"{each.ready_after:,}"
        rows.append([name(each.workload), f"{each.ready_before:,}", lowest, after, _status(each, options)])
    titles = columns("WORKLOAD", "BEFORE", "WORST", "AFTER", "STATUS", right=("BEFORE", "WORST", "AFTER"))
    nodes = [[(name(each.workload), ": ", *_nodes(each.nodes_before, each.nodes_after))] for each in ranked]
    return Section(
        "WORKLOADS",
        "ready pods before, at worst, and at the end" if rows else "",
        [
            Table(titles, rows, "workload", "Workloads that change or lose pods", _ROWS_SHOWN),
            *([Fold("Nodes", [Listing(nodes, "workload")])] if rows and options.is_full else []),
        ],
        is_reasoning=True,
    )


def _with_bare_pods_together(listed: Sequence[SimulatedWorkload]) -> list[SimulatedWorkload]:
    """The workloads; if many pods have no controller, these are merged into one row at the end."""
    bare = [each for each in listed if each.workload.startswith("Pod ") and not each.is_changed]
    if len(bare) <= _BARE_PODS_SHOWN:
        return list(listed)
    nodes_before, nodes_after = Counter[str](), Counter[str]()
    for each in bare:
        nodes_before.update(each.nodes_before)
        nodes_after.update(each.nodes_after)
    bare_pods = SimulatedWorkload(
        workload=f"{len(bare):,} pods without a controller",
        is_done=all(each.is_done for each in bare),
        ready_before=sum(each.ready_before for each in bare),
        ready_min=sum(each.ready_min for each in bare),
        ready_min_at=max(each.ready_min_at for each in bare),
        ready_after=sum(each.ready_after for each in bare),
        pending_after=sum(each.pending_after for each in bare),
        victims=sum(each.victims for each in bare),
        nodes_before=dict(nodes_before),
        nodes_after=dict(nodes_after),
    )
    return [*(each for each in listed if each not in bare), bare_pods]


def _status(workload: SimulatedWorkload, options: RenderOptions) -> Phrase:
    parts: list[Words] = []
    if workload.is_changed:
        parts.append("changed" if workload.is_done else Span("changed, not completed", "bad"))
    elif not workload.is_done and options.is_full:
        parts.append(Span("not completed", "bad"))
    if options.is_full and workload.desired_before != workload.desired_after:
        before = "" if workload.desired_before is None else f"{workload.desired_before:,} → "
        parts.append(f"size {before}{'none' if workload.desired_after is None else f'{workload.desired_after:,}'}")
    if workload.victims:
        parts.append(Span(f"{workload.victims:,} evicted", "warn"))
    if workload.pending_after:
        parts.append(Span(f"{workload.pending_after:,} pending", "bad"))
    if workload.ready_min < workload.ready_before and (workload.ready_min_at or options.is_full):
        parts.append(Span(f"worst at {clock(workload.ready_min_at)}", "dim"))
    return joined(parts)


def _nodes(before: Mapping[str, int], after: Mapping[str, int]) -> Phrase:
    """The pods per node, changed numbers first."""
    numbers = {node: (before.get(node, 0), after.get(node, 0)) for node in (*before, *after)}
    order = sorted(numbers, key=lambda node: numbers[node][0] == numbers[node][1])
    numbers_by_node: list[Words] = []
    for node in order[:_NODES_SHOWN]:
        old, new = numbers[node]
        numbers_by_node.append((name(node), f" {old:,}" if old == new else f" {old:,} → {new:,}"))
    rest = len(order) - _NODES_SHOWN
    return joined([*numbers_by_node, *([f"{rest:,} more"] if rest > 0 else [])])


def pending(simulation: Simulation, options: RenderOptions) -> Section:
    """``PENDING``: the pods without a node at the end, evicted ones first; only in full reports."""
    ranked = sorted(simulation.pending, key=lambda pod: (not pod.was_running, pod.pending_before))
    rows: list[list[Words]] = [
        [
            name(each.pod),
            name(each.workload or each.owner),
            f"{each.priority:,}",
            Span("running", "bad") if each.was_running else "pending" if each.pending_before else "did not exist",
            message(each.message),
        ]
        for each in (ranked if options.is_full else [])
    ]
    titles = columns("POD", "OWNER", "PRIORITY", "BEFORE", "SCHEDULER MESSAGE", right=["PRIORITY"])
    return Section(
        "PENDING",
        f"{count(len(rows), 'pod')} without a node at the end" if rows else "",
        [Table(titles, rows, "pod", "Pods that were running come first")],
        heading="Pending at the end",
        anchor="waiting",
        is_reasoning=True,
    )


def broken_dependencies(simulation: Simulation) -> Section:
    """``BROKEN DEPENDENCIES``: objects left without something they need."""
    items = [[broken_dependencies_phrase(each)] for each in simulation.broken_dependencies]
    return Section(
        "BROKEN DEPENDENCIES",
        blocks=[Listing(items, noun="object", shown=_ROWS_SHOWN)],
        heading="Broken dependencies",
        is_reasoning=True,
    )


def broken_dependencies_phrase(dependency: BrokenDependency) -> Phrase:
    """The object, what it is missing, and from when to when."""
    start = clock(dependency.since)
    span = f"since {start}" if dependency.until is None else f"from {start} until {clock(dependency.until)}"
    if dependency.until == dependency.since:
        span = f"from {start} until its new pod is ready"
    node: Phrase = (" on ", name(dependency.node)) if dependency.node else ()
    missing: Phrase = ("; missing: ", *names(dependency.missing, limit=_NAMES_SHOWN)) if dependency.missing else ()
    problem = {
        BrokenDependencyKind.AFFINITY: "no longer runs with the pods that its affinity requires",
        BrokenDependencyKind.SERVICE: "has no ready pod",
        BrokenDependencyKind.DAEMON_SET: "is not recreated",
    }[dependency.kind]
    subject = f"Service {dependency.subject}" if dependency.kind is BrokenDependencyKind.SERVICE else dependency.subject
    return (name(subject), *node, f" {problem} {span}", *missing)
