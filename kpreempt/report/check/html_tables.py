"""The parts of a check's page that are tables, lists and maps: changes, victims, nodes, budgets and others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from kpreempt.report.amounts import count, format_amount
from kpreempt.report.check.html_markup import (
    CHANGES,
    ENDS,
    STRANDED,
    Html,
    badge,
    clock,
    cut_note,
    fold,
    folded_list,
    join,
    message,
    name,
    names,
    place,
    section,
    table,
    tag,
    text,
    within,
)
from kpreempt.verdict.check import Change, Check, NodeRoom, OutcomeShare
from kpreempt.verdict.records import Assumption
from kpreempt.verdict.simulation import BudgetLow, Displaced, SimulatedWorkload, Simulation, Stranded, Waiting

_TABLE_LIMIT = 75_000
_NODES_SHOWN = 8
_NAMES_SHOWN = 6
_FIELDS_SHOWN = 6
_TREE_LIMIT = 400_000
_VICTIMS_SHOWN = 60
_BUDGETS_SHOWN = 6
# Longer chains go on below one another; how deep each is stands before it.
_DEEPEST_INDENT = 8
_MAPS_LIMIT = 300_000
_MAPS_SHOWN = 24
_WORKLOADS_SHOWN = 12
_RESOURCES_SHOWN = 8
# More pods of a workload on a node than this are a number only.
_SQUARES_SHOWN = 6
_COLOURS = 8
_FIRST_RESOURCES = ("cpu", "memory", "pods")


def changes(check: Check) -> Html:
    """What the change does to each object."""
    if not check.changes:
        return section("changes", "What changes", tag("p", "Nothing changes."))
    columns = ("Object", "Change", "Replicas", "Written in")
    return section(
        "changes",
        "What changes",
        table("Objects of the change", columns, _change, check.changes, limit=_TABLE_LIMIT, what="objects"),
    )


def _change(change: Change) -> list[str]:
    how = [text(CHANGES[change.kind])]
    if change.strategy:
        how.append(text(f" by {change.strategy}"))
    if change.fields:
        how.append(tag("div", names(change.fields, limit=_FIELDS_SHOWN), class_="dim"))
    written = place(change.source, change.line, change.origin)
    sizes = _from_to(change.replicas_before, change.replicas)
    return [name(change.object), join(how), sizes, name(written) if written else ""]


def _from_to(before: int | None, after: int | None) -> str:
    if before is None or before == after:
        return "" if after is None else f"{after:,}"
    return f"{before:,} → {'none' if after is None else f'{after:,}'}"


def budgets(simulation: Simulation) -> Html:
    """Each budget that the simulation touches; nothing where there is none."""
    if not simulation.budgets:
        return Html("")
    columns = ("Budget", "Before", "At least", "In the end", "Victims against it")
    caption = "Disruptions that each budget allows, those that are touched"
    found = table(caption, columns, _budget, simulation.budgets, limit=_TABLE_LIMIT, what="budgets")
    return section("budgets", "Disruption budgets", found)


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
        "Had to go",
        "Waiting",
        "Nodes",
    )
    caption = "Workloads that are changed, or of which pods have to go"
    found = table(caption, columns, _workload, simulation.workloads, limit=_TABLE_LIMIT, what="workloads")
    return section("workloads", "Workloads", found)


def _workload(workload: SimulatedWorkload) -> list[str]:
    title = [name(workload.workload)]
    if workload.is_changed:
        title.append(badge("changed", "dim"))
    if not workload.is_done:
        title.append(badge("✗ not done", "bad"))
    waits = badge(f"✗ {workload.pending_after:,}", "bad") if workload.pending_after else Html("0")
    return [
        join(title, " "),
        _from_to(workload.wanted_before, workload.wanted_after),
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
    told = [join([name(node), " ", _from_to(before.get(node, 0), after.get(node, 0))]) for node in order[:_NODES_SHOWN]]
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
    found = table(caption, columns, _waits, ranked, limit=_TABLE_LIMIT, what="pods")
    return section("waiting", "What waits in the end", found)


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
    found = table(caption, columns, _stranded, simulation.stranded, limit=_TABLE_LIMIT, what="of these")
    return section("stranded", "What is stranded", found)


def _stranded(each: Stranded) -> list[str]:
    where = tag("div", "on ", name(each.node), class_="dim") if each.node else Html("")
    when = f"from {clock(each.since)} on" if each.until is None else f"{clock(each.since)} to {clock(each.until)}"
    shown = badge(when, "bad") if each.until is None else text(when)
    missing = names(each.missing, limit=_NAMES_SHOWN)
    return [join([name(each.subject), where]), STRANDED[each.kind], missing, shown]


def outcomes(check: Check) -> Html:
    """What came up in several runs; nothing where there was one."""
    if not check.outcomes:
        return Html("")
    columns = ("Runs", "Gate", "How it ends", "Victims", "Against budgets", "Waiting", "Longest chain", "First seed")
    told = "These are all that can come up." if check.explored_all else "Others may come up, too."
    runs = f"{count(check.runs, 'run')}, each with other choices where the scheduler draws a node."
    note = tag("p", f"{runs} {told} The rest of this page is about the run with seed {check.seed:,}.")
    caption = "Outcomes, by how often they come up"
    row = partial(_outcome, runs=check.runs)
    found = table(caption, columns, row, check.outcomes, limit=_TABLE_LIMIT, what="outcomes")
    return section("outcomes", "What may come up", note, found)


def _outcome(outcome: OutcomeShare, runs: int) -> list[str]:
    share = f"{round(1000 * outcome.count / max(runs, 1)) / 10:g}%"
    bar = Html(
        '<svg class="share" width="100%" height="6" aria-hidden="true"><rect class="track" width="100%" height="6"/>'
        f'<rect class="after" width="{share}" height="6"/></svg>'
    )
    return [
        join([f"{outcome.count:,} of {runs:,}", bar]),
        badge("✗ fails", "bad") if outcome.fails else badge("✓ passes", "good"),
        _end(outcome.end),
        _by_subject(outcome.victims),
        _by_subject(outcome.violations),
        _by_subject(outcome.pending),
        f"{outcome.depth:,}",
        f"{outcome.seed:,}",
    ]


def _end(end: str) -> str:
    return next((words for known, words in ENDS.items() if known.value == end), message(end))


def _by_subject(numbers: Mapping[str, int]) -> Html:
    if not numbers:
        return Html("none")
    listed: Sequence[str] = list(numbers)
    told = [join([f"{numbers[each]:,} of ", name(each)]) for each in listed[:_NAMES_SHOWN]]
    if len(listed) > _NAMES_SHOWN:
        rest = sum(numbers[each] for each in listed[_NAMES_SHOWN:])
        told.append(text(f"{rest:,} of {count(len(listed) - _NAMES_SHOWN, 'other')}"))
    return join(told, ", ")


def assumptions(listed: Sequence[Assumption]) -> Html:
    """What this answer does not evaluate; nothing where there is nothing."""
    if not listed:
        return Html("")
    columns = ("Object", "Field", "What this means")
    caption = "In the input, and not evaluated here"
    found = table(caption, columns, _assumption, listed, limit=_TABLE_LIMIT, what="assumptions")
    return section("assumptions", "Assumptions", found)


def _assumption(each: Assumption) -> list[str]:
    return [name(each.subject), name(each.field), message(each.message)]


def displacement(simulation: Simulation) -> Html:
    """All victims, each followed by those that have to go for what takes its place."""
    if not simulation.displaced:
        return section("victims", "Who has to go", tag("p", "Nobody has to go."))
    number = count(len(simulation.displaced), "pod")
    summary = f"{number} {'has' if len(simulation.displaced) == 1 else 'have'} to go for others"
    if simulation.depth > 1:
        summary += (
            f"; up to {simulation.depth:,} evictions follow from one another. The number before a pod says which it is"
        )
    show = partial(_item, depth=simulation.depth)
    victims = folded_list(
        "ol", show, simulation.displaced, limit=_TREE_LIMIT, what="victims", shown=_VICTIMS_SHOWN, class_="tree"
    )
    return section("victims", "Who has to go", tag("p", f"{summary}."), victims)


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
    ends = tag("span", "is left waiting", class_="bad")
    if victim.lands_on:
        ends = join([tag("span", "lands", class_="good"), " on ", name(victim.lands_on)])
    made = join([name(victim.replacement), " "]) if victim.replacement != victim.pod else Html("its like ")
    return join(["; ", made, ends])


def node_maps(nodes: Sequence[NodeRoom], spare: Mapping[str, int]) -> Html:
    """A card for each node, and what all nodes have left in the end; nothing where no node changes."""
    if not nodes and not spare:
        return Html("")
    left = Html("")
    if spare:
        amounts = ", ".join(f"{each} {format_amount(each, spare[each])}" for each in _in_order(spare))
        left = tag("p", f"Left on all nodes of the cluster together in the end: {amounts}.")
    if not nodes:
        return section("nodes", "Nodes", left)
    colours = _colours(nodes)
    legend = tag(
        "ul",
        *(
            tag("li", Html(f'<svg width="14" height="10" aria-hidden="true"><rect class="{kind}" {box}/></svg>'), words)
            for kind, box, words in (
                ("before", 'y="2" width="14" height="4"', "thin: asked for before"),
                ("after", 'width="14" height="8"', "thick: asked for after"),
                ("track", 'width="14" height="10"', "the whole: what pods can have"),
            )
        ),
        tag("li", "■ a pod; beside the squares stands how many there are"),
        class_="legend",
    )
    cards, cut = within(partial(_card, colours=colours), nodes, _MAPS_LIMIT)
    maps = tag("div", *cards[:_MAPS_SHOWN], class_="maps")
    if cards[_MAPS_SHOWN:]:
        folded = tag("div", *cards[_MAPS_SHOWN:], class_="maps")
        maps += fold(f"{len(cards) - _MAPS_SHOWN:,} more nodes", folded)
    return section("nodes", "Nodes that change", left, legend, maps, cut_note(cut, "nodes"))


def _colours(nodes: Iterable[NodeRoom]) -> dict[str, int]:
    """A colour for each workload, in the order in which they come."""
    found: dict[str, int] = {}
    for node in nodes:
        for workload in (*node.pods_before, *node.pods_after):
            found.setdefault(workload, len(found) % _COLOURS)
    return found


def _card(node: NodeRoom, colours: Mapping[str, int]) -> Html:
    names = [each for each in _in_order(node.allocatable) if _matters(each, node)]
    rooms = join(_resource(each, node) for each in names[:_RESOURCES_SHOWN])
    title = tag("h3", name(node.node))
    return tag(
        "article", title, tag("dl", rooms, class_="room"), _pods_by_workload(node, colours), class_="map"
    ) + Html("\n")


def _matters(resource: str, node: NodeRoom) -> bool:
    return resource in _FIRST_RESOURCES or bool(node.before.get(resource) or node.after.get(resource))


def _in_order(resources: Iterable[str]) -> list[str]:
    listed = list(resources)
    first = [each for each in _FIRST_RESOURCES if each in listed]
    return first + [each for each in listed if each not in _FIRST_RESOURCES]


def _resource(resource: str, node: NodeRoom) -> Html:
    whole = node.allocatable.get(resource, 0)
    before, after = node.before.get(resource, 0), node.after.get(resource, 0)
    most = max(whole, before, after, 1)
    over = after > whole
    bars = Html(
        '<svg width="100%" height="14" aria-hidden="true">'
        f'<rect class="track" width="{_share(whole, most)}" height="14" rx="2"/>'
        f'<rect class="before" y="2" width="{_share(before, most)}" height="3"/>'
        f'<rect class="{"over" if over else "after"}" y="6" width="{_share(after, most)}" height="6"/></svg>'
    )
    words = f"{format_amount(resource, after)} of {format_amount(resource, whole)}"
    if before != after:
        words = f"{format_amount(resource, before)} → {words}"
    full = f" ({round(100 * after / whole)} %)" if whole else ""
    warning: list[str] = [" ", tag("span", "more than it has", class_="bad")] if over else []
    return tag("dt", resource) + tag("dd", bars, f"{words}{full}", *warning)


def _share(amount: int, most: int) -> str:
    return f"{max(0, min(round(1000 * amount / most), 1000)) / 10:g}%"


def _pods_by_workload(node: NodeRoom, colours: Mapping[str, int]) -> Html:
    workloads = list(dict.fromkeys((*node.pods_before, *node.pods_after)))
    # Those of which the number changes are what the map is about.
    workloads.sort(key=lambda each: node.pods_before.get(each, 0) == node.pods_after.get(each, 0))
    if not workloads:
        return tag("p", "No pods.", class_="dim")
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in ("Pods of", "before", "after"))))
    rows = join(_rows(node, workloads[:_WORKLOADS_SHOWN], colours))
    more = Html("")
    if rest := workloads[_WORKLOADS_SHOWN:]:
        numbers = (sum(pods.get(each, 0) for each in rest) for pods in (node.pods_before, node.pods_after))
        cells = (tag("td", f"{number:,}") for number in numbers)
        more = tag("tr", tag("th", f"{len(rest):,} more workloads", scope="row"), *cells)
    caption = tag("caption", "Pods on ", name(node.node), class_="hidden")
    return tag("table", caption, head, tag("tbody", rows, more))


def _rows(node: NodeRoom, workloads: Iterable[str], colours: Mapping[str, int]) -> Iterator[Html]:
    for workload in workloads:
        before, after = node.pods_before.get(workload, 0), node.pods_after.get(workload, 0)
        change = f" ({after - before:+,})".replace("-", "−") if after != before else ""  # noqa: RUF001 - a minus
        yield tag(
            "tr",
            tag("th", name(workload), scope="row"),
            tag("td", _pods(before, colours[workload])),
            tag("td", _pods(after, colours[workload]), text(change)),
        )


def _pods(number: int, colour: int) -> Html:
    squares = tag("span", "■" * min(number, _SQUARES_SHOWN), class_=f"pods w{colour}", aria_hidden="true")
    return join([squares if number else "", f"{number:,}"])
