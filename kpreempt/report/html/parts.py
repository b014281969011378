"""Maps of nodes: their resources, and what pods request before and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from kpreempt.report.amounts import format_amount
from kpreempt.report.html.markup import Html, cut_note, folded, join, name, tag, text, within
from kpreempt.verdict.check import NodeUtilization

FIRST_RESOURCES = ("cpu", "memory", "pods")
_MAPS_LIMIT = 300_000
_MAPS_SHOWN = 24
_WORKLOADS_SHOWN = 12
_RESOURCES_SHOWN = 8
# Up to this number of pods per workload and node, squares are drawn.
_SQUARES_SHOWN = 6
_COLORS = 8
_LEGEND = (
    ("before", 'y="2" width="14" height="4"', "thin: requested before"),
    ("after", 'width="14" height="8"', "thick: requested after"),
    ("track", 'width="14" height="10"', "full width: allocatable"),
)


def in_order(resources: Iterable[str]) -> list[str]:
    """Resources in display order."""
    listed = list(resources)
    first = [each for each in FIRST_RESOURCES if each in listed]
    return first + [each for each in listed if each not in FIRST_RESOURCES]


def share(amount: int, most: int) -> str:
    """A width as a percentage of ``most``."""
    return f"{max(0, min(round(1000 * amount / most), 1000)) / 10:g}%"


def node_maps(nodes: Sequence[NodeUtilization]) -> Html:
    """A card per node."""
    # A color per workload, in the order of their first appearance.
    colors: dict[str, int] = {}
    for node in nodes:
        for workload in (*node.pods_before, *node.pods_after):
            colors.setdefault(workload, len(colors) % _COLORS)
    legend = tag(
        "ul",
        *(
            tag("li", Html(f'<svg width="14" height="10" aria-hidden="true"><rect class="{kind}" {box}/></svg>'), words)
            for kind, box, words in _LEGEND
        ),
        tag("li", "■ one pod; the number follows the squares"),
        class_="legend",
    )
    cards, cut = within(partial(_card, colors=colors), nodes, _MAPS_LIMIT)
    maps = folded(cards, _MAPS_SHOWN, "nodes", lambda some: tag("div", *some, class_="maps"))
    return legend + maps + cut_note(cut, "nodes")


def _card(node: NodeUtilization, colors: Mapping[str, int]) -> Html:
    names = [
        each
        for each in in_order(node.allocatable)
        if each in FIRST_RESOURCES or node.before.get(each) or node.after.get(each)
    ]
    resources = join(_resource(each, node) for each in names[:_RESOURCES_SHOWN])
    title = tag("h3", name(node.node))
    return tag(
        "article", title, tag("dl", resources, class_="usage"), _pods_by_workload(node, colors), class_="map"
    ) + Html("\n")


def _resource(resource: str, node: NodeUtilization) -> Html:
    allocatable = node.allocatable.get(resource, 0)
    before, after = node.before.get(resource, 0), node.after.get(resource, 0)
    most = max(allocatable, before, after, 1)
    over = after > allocatable
    bars = Html(
        '<svg width="100%" height="14" aria-hidden="true">'
        f'<rect class="track" width="{share(allocatable, most)}" height="14" rx="2"/>'
        f'<rect class="before" y="2" width="{share(before, most)}" height="3"/>'
        f'<rect class="{"over" if over else "after"}" y="6" width="{share(after, most)}" height="6"/></svg>'
    )
    words = f"{format_amount(resource, after)} of {format_amount(resource, allocatable)}"
    if before != after:
        words = f"{format_amount(resource, before)} → {words}"
    percent = f" ({round(100 * after / allocatable)}%)" if allocatable else ""
    warning: list[str] = [" ", tag("span", "exceeds allocatable", class_="bad")] if over else []
    return tag("dt", resource) + tag("dd", bars, f"{words}{percent}", *warning)


def _pods_by_workload(node: NodeUtilization, colors: Mapping[str, int]) -> Html:
    workloads = list(dict.fromkeys((*node.pods_before, *node.pods_after)))
    # Workloads whose number of pods changes come first.
    workloads.sort(key=lambda each: node.pods_before.get(each, 0) == node.pods_after.get(each, 0))
    if not workloads:
        return tag("p", "No pods.", class_="dim")
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in ("Pods of", "before", "after"))))
    rows = join(_rows(node, workloads[:_WORKLOADS_SHOWN], colors))
    more = Html("")
    if rest := workloads[_WORKLOADS_SHOWN:]:
        numbers = (sum(pods.get(each, 0) for each in rest) for pods in (node.pods_before, node.pods_after))
        cells = (tag("td", f"{number:,}") for number in numbers)
        more = tag("tr", tag("th", f"{len(rest):,} more workloads", scope="row"), *cells)
    caption = tag("caption", "Pods on ", name(node.node), class_="hidden")
    return tag("table", caption, head, tag("tbody", rows, more))


def _rows(node: NodeUtilization, workloads: Iterable[str], colors: Mapping[str, int]) -> Iterator[Html]:
    for workload in workloads:
        before, after = node.pods_before.get(workload, 0), node.pods_after.get(workload, 0)
        change = f" ({after - before:+,})".replace("-", "−") if after != before else ""  # noqa: RUF001 - a minus
        yield tag(
            "tr",
            tag("th", name(workload), scope="row"),
            tag("td", _pods(before, colors[workload])),
            tag("td", _pods(after, colors[workload]), text(change)),
        )


def _pods(number: int, color: int) -> Html:
    squares = tag("span", "■" * min(number, _SQUARES_SHOWN), class_=f"pods w{color}", aria_hidden="true")
    return join([squares if number else "", f"{number:,}"])
