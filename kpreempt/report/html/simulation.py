"""What becomes of a simulation's pods, budgets and workloads, as tables and lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from kpreempt.report.amounts import count
from kpreempt.report.html.markup import (
    TABLE_LIMIT,
    Html,
    badge,
    clock,
    folded_list,
    join,
    message,
    name,
    names,
    table,
    tag,
    text,
)
from kpreempt.verdict.simulation import (
    BudgetLow,
    Displaced,
    SimulatedWorkload,
    Simulation,
    SimulationEnd,
    Stranded,
    StrandedKind,
    Waiting,
)

_NODES_SHOWN = 8
_NAMES_SHOWN = 6
_TREE_LIMIT = 400_000
_VICTIMS_SHOWN = 60
_BUDGETS_SHOWN = 6
_BARE_PODS_SHOWN = 3
# Longer chains go on below one another; how deep each is stands before it.
_DEEPEST_INDENT = 8
_STRANDED = {
    StrandedKind.AFFINITY: "has to be near a pod that is gone",
    StrandedKind.SERVICE: "has no ready pod",
    StrandedKind.DAEMON_SET: "cannot come back to its node",
}
ENDS = {
    SimulationEnd.SETTLED: "settles",
    SimulationEnd.LOOP: "never settles",
    SimulationEnd.BROKEN_OFF: "cut off; more would happen",
}


def from_to(before: int | None, after: int | None) -> str:
    """A number, or two with an arrow where it changes; nothing where there is none."""
    if before is None or before == after:
        return "" if after is None else f"{after:,}"
    return f"{before:,} → {'none' if after is None else f'{after:,}'}"


def budgets(simulation: Simulation) -> Html:
    """Each budget that the simulation touches; nothing where there is none."""
    if not simulation.budgets:
        return Html("")
    columns = ("Budget", "Before", "At worst", "In the end", "Violations")
    caption = "Allowed disruptions of each budget that is touched"
    return table(caption, columns, _budget, simulation.budgets, limit=TABLE_LIMIT, what="budgets")


def _budget(budget: BudgetLow) -> list[str]:
    broken = badge(f"✗ {budget.violations:,}", "bad") if budget.violations else Html("none")
    return [name(budget.budget), f"{budget.before:,}", f"{budget.least:,}", f"{budget.after:,}", broken]


def workloads(simulation: Simulation) -> Html:
    """Each workload that is changed or loses pods; nothing where there is none."""
    if not simulation.workloads:
        return Html("")
    columns = (
        "Workload",
        "Size",
        "Ready before",
        "Ready at least",
        "Ready in the end",
        "Evicted",
        "Waiting",
        "Nodes",
    )
    caption = "Workloads that are changed, or of which pods are evicted"
    rows = _with_bare_pods_together(simulation.workloads)
    return table(caption, columns, _workload, rows, limit=TABLE_LIMIT, what="workloads")


def _with_bare_pods_together(workloads: Sequence[SimulatedWorkload]) -> list[SimulatedWorkload]:
    """The workloads, and at the end as one row the pods that no controller owns, where these are many."""
    bare = [each for each in workloads if each.workload.startswith("Pod ") and not each.is_changed]
    if len(bare) <= _BARE_PODS_SHOWN:
        return list(workloads)
    together = SimulatedWorkload(
        workload=f"{len(bare):,} pods without a controller",
        is_done=all(each.is_done for each in bare),
        ready_before=sum(each.ready_before for each in bare),
        ready_least=sum(each.ready_least for each in bare),
        least_at=max(each.least_at for each in bare),
        ready_after=sum(each.ready_after for each in bare),
        pending_after=sum(each.pending_after for each in bare),
        victims=sum(each.victims for each in bare),
        nodes_before=_summed(each.nodes_before for each in bare),
        nodes_after=_summed(each.nodes_after for each in bare),
    )
    return [*(each for each in workloads if each not in bare), together]


def _summed(numbers: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in numbers:
        found.update(each)
    return dict(found)


def _workload(workload: SimulatedWorkload) -> list[str]:
    title = [name(workload.workload)]
    if workload.is_changed:
        title.append(badge("changed", "dim"))
    if not workload.is_done:
        title.append(badge("✗ not done", "bad"))
    waits = badge(f"✗ {workload.pending_after:,}", "bad") if workload.pending_after else Html("0")
    return [
        join(title, " "),
        from_to(workload.wanted_before, workload.wanted_after),
        f"{workload.ready_before:,}",
        f"{workload.ready_least:,} at {clock(workload.least_at)}",
        f"{workload.ready_after:,}",
        f"{workload.victims:,}",
        waits,
        _nodes(workload.nodes_before, workload.nodes_after),
    ]


def _nodes(before: Mapping[str, int], after: Mapping[str, int]) -> Html:
    """The pods of each node, those first that change."""
    every = dict.fromkeys((*before, *after))
    order = sorted(every, key=lambda node: before.get(node, 0) == after.get(node, 0))
    told = [join([name(node), " ", from_to(before.get(node, 0), after.get(node, 0))]) for node in order[:_NODES_SHOWN]]
    if len(order) > _NODES_SHOWN:
        told.append(text(f"{len(order) - _NODES_SHOWN:,} more"))
    return join(told, ", ")


def waiting(simulation: Simulation) -> Html:
    """The pods that have no node in the end, those that ran first; nothing where there is none."""
    if not simulation.waiting:
        return Html("")
    ranked = sorted(simulation.waiting, key=lambda pod: (not pod.was_running, pod.waited_before))
    columns = ("Pod", "Priority", "Before", "The scheduler says")
    caption = f"{count(len(ranked), 'pod')} without a node in the end"
    return table(caption, columns, _waits, ranked, limit=TABLE_LIMIT, what="pods")


def _waits(pod: Waiting) -> list[str]:
    of = pod.workload or pod.owner
    about = join([name(pod.pod), tag("div", name(of), class_="dim") if of else ""])
    before = "waited already" if pod.waited_before else "was not there"
    return [about, f"{pod.priority:,}", badge("ran", "bad") if pod.was_running else before, message(pod.message)]


def stranded(simulation: Simulation) -> Html:
    """What is left without something that it needs; nothing where there is none."""
    if not simulation.stranded:
        return Html("")
    columns = ("What", "Why", "Missing", "When")
    caption = "Worse off than before, without having been evicted"
    return table(caption, columns, _stranded, simulation.stranded, limit=TABLE_LIMIT, what="of these")


def _stranded(each: Stranded) -> list[str]:
    where = tag("div", "on ", name(each.node), class_="dim") if each.node else Html("")
    when = f"from {clock(each.since)} on" if each.until is None else f"{clock(each.since)} to {clock(each.until)}"
    shown = badge(when, "bad") if each.until is None else text(when)
    missing = names(each.missing, limit=_NAMES_SHOWN)
    return [join([name(each.subject), where]), _STRANDED[each.kind], missing, shown]


def displacement(simulation: Simulation) -> Html:
    """All victims, each followed by those that have to go for what takes its place."""
    if not simulation.displaced:
        return tag("p", "No pod is evicted.")
    number = count(len(simulation.displaced), "pod")
    summary = f"{number} evicted for others"
    if simulation.depth > 1:
        summary += (
            f"; up to {simulation.depth:,} evictions follow from one another. The number before a pod says which it is"
        )
    show = partial(_item, depth=simulation.depth)
    victims = folded_list(
        "ol", show, simulation.displaced, limit=_TREE_LIMIT, what="victims", shown=_VICTIMS_SHOWN, class_="tree"
    )
    return tag("p", f"{summary}.") + victims


def _item(victim: Displaced, depth: int) -> Html:
    return tag("li", _victim(victim, depth), class_=f"d{min(victim.depth, _DEEPEST_INDENT)}") + Html("\n")


def _victim(victim: Displaced, depth: int) -> Html:
    parts: list[str] = [tag("span", f"{victim.depth:,}", class_="badge dim")] if depth > 1 else []
    parts += [tag("strong", name(victim.pod)), " leaves ", name(victim.node), " for ", name(victim.cause)]
    if victim.violated:
        which = "budget " if len(victim.violated) == 1 else "budgets "
        parts += [", ", tag("span", "against ", which, names(victim.violated, limit=_BUDGETS_SHOWN), class_="bad")]
    of = victim.workload or victim.owner
    about = join([f"priority {victim.priority:,}", *([", ", name(of)] if of else [])])
    return join([*parts, tag("div", about, _aftermath(victim), class_="dim")])


def _aftermath(victim: Displaced) -> Html:
    """What is made in the victim's place, and where that ends."""
    if not victim.replacement:
        return Html("; nothing takes its place")
    ends = tag("span", "is left pending", class_="bad")
    if victim.lands_on:
        ends = join([tag("span", "lands", class_="good"), " on ", name(victim.lands_on)])
    made = join([name(victim.replacement), " "]) if victim.replacement != victim.pod else Html("its like ")
    return join(["; ", made, ends])
