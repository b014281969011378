"""The parts of a check's page that are its own: changes, the nodes before and after, and outcomes of several runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from kpreempt.report.amounts import count, format_amount
from kpreempt.report.check.since import TONES, WORDS, since_phrase
from kpreempt.report.html.markup import (
    TABLE_LIMIT,
    Html,
    badge,
    cut_note,
    folded,
    join,
    message,
    name,
    names,
    place,
    table,
    tag,
    text,
    within,
)
from kpreempt.report.html.parts import FIRST_RESOURCES, in_order, share
from kpreempt.report.html.phrases import phrase
from kpreempt.report.html.simulation import ENDS, from_to
from kpreempt.verdict.check import PRUNED, Change, ChangeKind, Check, Drift, DriftKind, NodeRoom, OutcomeShare

_NAMES_SHOWN = 6
_FIELDS_SHOWN = 6
_MAPS_LIMIT = 300_000
_MAPS_SHOWN = 24
_WORKLOADS_SHOWN = 12
_RESOURCES_SHOWN = 8
# More pods of a workload on a node than this are a number only.
_SQUARES_SHOWN = 6
_COLOURS = 8
_CHANGES = {
    ChangeKind.CREATED: "created",
    ChangeKind.ROLLED: "rolled out",
    ChangeKind.SCALED: "scaled",
    ChangeKind.UPDATED: "updated",
    ChangeKind.DELETED: "deleted",
    ChangeKind.UNCHANGED: "unchanged",
    ChangeKind.DRAINED: "drained",
    ChangeKind.REJECTED: "rejected",
}


def changes(check: Check) -> Html:
    """What the change does to each object."""
    if not check.changes:
        return tag("p", "Nothing changes.")
    columns = ("Object", "Change", "Replicas", "Written in")
    return table("Objects of the change", columns, _change, check.changes, limit=TABLE_LIMIT, what="objects")


def _change(change: Change) -> list[str]:
    how = [text("pruned" if change.deleted_by == PRUNED else _CHANGES[change.kind])]
    if change.deleted_with:
        how.append(text(f" with {change.deleted_with}"))
    if change.strategy:
        how.append(text(f" by {change.strategy}"))
    if change.fields:
        how.append(tag("div", names(change.fields, limit=_FIELDS_SHOWN), class_="dim"))
    written = place(change.source, change.line, change.origin)
    sizes = from_to(change.replicas_before, change.replicas)
    return [name(change.object), join(how), sizes, name(written) if written else ""]


def drifts(check: Check) -> Html:
    """What differs from a former run; nothing where none was given."""
    if check.since is None:
        return Html("")
    told = tag("p", phrase((*since_phrase(check.since, check), ".")))
    if not check.since.drifts:
        return told
    columns = ("What", "Since then", "Before", "Now")
    caption = "What differs, what is worse first"
    return told + table(caption, columns, _drift, check.since.drifts, limit=TABLE_LIMIT, what="differences")


def _drift(drift: Drift) -> list[str]:
    what = join([drift.rule, " of ", name(drift.subject)]) if drift.rule else text(drift.what)
    before = "" if drift.kind is DriftKind.NEW else f"{drift.before:,}"
    after = "" if drift.kind is DriftKind.GONE else f"{drift.after:,}"
    return [what, badge(WORDS[drift.kind], TONES[drift.kind]), before, after]


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
    return note + table(caption, columns, row, check.outcomes, limit=TABLE_LIMIT, what="outcomes")


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


def node_maps(nodes: Sequence[NodeRoom], spare: Mapping[str, int]) -> Html:
    """A card for each node, and what all nodes have left in the end; nothing where no node changes."""
    if not nodes and not spare:
        return Html("")
    left = Html("")
    if spare:
        amounts = ", ".join(f"{each} {format_amount(each, spare[each])}" for each in in_order(spare))
        left = tag("p", f"Left on all nodes of the cluster together in the end: {amounts}.")
    if not nodes:
        return left
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
    maps = folded(cards, _MAPS_SHOWN, "nodes", lambda some: tag("div", *some, class_="maps"))
    return left + legend + maps + cut_note(cut, "nodes")


def _colours(nodes: Iterable[NodeRoom]) -> dict[str, int]:
    """A colour for each workload, in the order in which they come."""
    found: dict[str, int] = {}
    for node in nodes:
        for workload in (*node.pods_before, *node.pods_after):
            found.setdefault(workload, len(found) % _COLOURS)
    return found


def _card(node: NodeRoom, colours: Mapping[str, int]) -> Html:
    names = [each for each in in_order(node.allocatable) if _matters(each, node)]
    rooms = join(_resource(each, node) for each in names[:_RESOURCES_SHOWN])
    title = tag("h3", name(node.node))
    return tag(
        "article", title, tag("dl", rooms, class_="room"), _pods_by_workload(node, colours), class_="map"
    ) + Html("\n")


def _matters(resource: str, node: NodeRoom) -> bool:
    return resource in FIRST_RESOURCES or bool(node.before.get(resource) or node.after.get(resource))


def _resource(resource: str, node: NodeRoom) -> Html:
    whole = node.allocatable.get(resource, 0)
    before, after = node.before.get(resource, 0), node.after.get(resource, 0)
    most = max(whole, before, after, 1)
    over = after > whole
    bars = Html(
        '<svg width="100%" height="14" aria-hidden="true">'
        f'<rect class="track" width="{share(whole, most)}" height="14" rx="2"/>'
        f'<rect class="before" y="2" width="{share(before, most)}" height="3"/>'
        f'<rect class="{"over" if over else "after"}" y="6" width="{share(after, most)}" height="6"/></svg>'
    )
    words = f"{format_amount(resource, after)} of {format_amount(resource, whole)}"
    if before != after:
        words = f"{format_amount(resource, before)} → {words}"
    full = f" ({round(100 * after / whole)} %)" if whole else ""
    warning: list[str] = [" ", tag("span", "more than it has", class_="bad")] if over else []
    return tag("dt", resource) + tag("dd", bars, f"{words}{full}", *warning)


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
