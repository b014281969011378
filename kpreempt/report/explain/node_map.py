"""The map of the nodes: allocatable resources, requests of running pods, what victims free, and the pod itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kpreempt.report.amounts import agree, count, format_amount
from kpreempt.report.evidence import rejection_of
from kpreempt.report.explain.choice import order_by_survival
from kpreempt.report.explain.headline import destinations
from kpreempt.report.html.markup import Html, badge, folded, join, name, names, tag, within
from kpreempt.report.html.parts import FIRST_RESOURCES, in_order, share
from kpreempt.verdict import Verdict
from kpreempt.verdict.details import missing_share
from kpreempt.verdict.node_report import NodeUse, Occupancy

_LIMIT = 150_000
_SHOWN = 12
_PODS_LISTED = 4
_RESOURCES_SHOWN = 8
_LEGEND = (
    ("track", "allocatable"),
    ("before", "requested by remaining pods"),
    ("freed", "freed by victims"),
    ("after", "requested by the pod"),
    ("over", "more than is free"),
)


class _Drawn(NamedTuple):
    """A node of the map. ``victims`` free ``freed``; ``is_sure`` unless they assume an order of tied pods."""

    node: str
    use: NodeUse
    freed: Mapping[str, int]
    victims: Sequence[str]
    is_sure: bool
    status: Html


def node_map(verdict: Verdict, occupancy: Occupancy, level: int) -> Html:
    """A card per node, most relevant first."""
    order = [node for node in _order(verdict) if node in occupancy.nodes]
    requests = {**verdict.pod.requests, "pods": 1}
    show = partial(_card, verdict=verdict, occupancy=occupancy, requests=requests, level=level)
    cards, cut = within(show, order, _LIMIT)
    maps = folded(cards, _SHOWN, "nodes", lambda some: tag("div", *some, class_="maps"))
    left = f"{count(cut, 'more node')} {agree(cut, 'is')} not drawn, to keep the page small."
    swatch = '<svg width="14" height="10" aria-hidden="true"><rect class="{}" width="14" height="10"/></svg>'
    return (
        tag("ul", *(tag("li", Html(swatch.format(kind)), words) for kind, words in _LEGEND), class_="legend")
        + maps
        + (tag("p", left, class_="note") if cut else "")
    )


def _order(verdict: Verdict) -> list[str]:
    """The pod's destinations, then candidates, nodes that fit, and the other nodes by how little they lack."""
    scored = sorted(verdict.feasible_nodes, key=lambda node: -verdict.scores.get(node, 0))
    rejected = {**verdict.filter, **verdict.dry_run}
    lacking = sorted(rejected, key=lambda node: missing_share(rejected[node].detail))
    requested = [verdict.node_report.node] if verdict.node_report else []
    candidates = [candidate.node for candidate in order_by_survival(verdict)]
    return list(dict.fromkeys([*destinations(verdict), *requested, *candidates, *scored, *lacking]))


def _card(node: str, verdict: Verdict, occupancy: Occupancy, requests: Mapping[str, int], level: int) -> Html:
    candidate = next((each for each in verdict.candidates if each.node == node), None)
    victims = candidate.victims if candidate else []
    freed: dict[str, int] = {}
    for pod in victims:
        for resource, amount in occupancy.requests.get(pod, {}).items():
            freed[resource] = freed.get(resource, 0) + amount
    is_sure = candidate is None or not candidate.outcomes
    drawn = _Drawn(node, occupancy.nodes[node], freed, victims, is_sure, _status(node, verdict))
    resources = [
        each
        for each in in_order(dict.fromkeys((*drawn.use.allocatable, *requests)))
        if each in FIRST_RESOURCES or requests.get(each) or drawn.use.used.get(each)
    ]
    rows = join(_resource(each, drawn, requests.get(each, 0)) for each in resources[:_RESOURCES_SHOWN])
    notes = Html("")
    if drawn.victims:
        notes += tag(
            "p",
            "victims: " if drawn.is_sure else "likely victims: ",
            names(drawn.victims, limit=_PODS_LISTED),
            class_="dim",
        )
    if drawn.use.nominated:
        notes += tag("p", "nominated here: ", names(drawn.use.nominated, limit=_PODS_LISTED), class_="dim")
    title = tag(f"h{level}", name(node), " ", drawn.status)
    return tag("article", title, tag("dl", rows, class_="usage"), notes, class_="map") + Html("\n")


def _status(node: str, verdict: Verdict) -> Html:
    ends = destinations(verdict)
    if node in ends:
        tie = " (tied)" if len(ends) > 1 else ""
        return badge(("nominated" if verdict.nominated_nodes else "lands here") + tie, "good")
    if any(candidate.node == node for candidate in verdict.candidates):
        return badge("candidate", "warn")
    if node in verdict.feasible_nodes:
        return badge("fits", "dim")
    status = verdict.filter.get(node)
    if status is None or status.is_success:
        return Html("")
    return tag("span", rejection_of(status), class_="bad")


def _resource(resource: str, drawn: _Drawn, requested: int) -> Html:
    allocatable, used = drawn.use.allocatable.get(resource, 0), drawn.use.used.get(resource, 0)
    freed = min(drawn.freed.get(resource, 0), used)
    remaining = used - freed
    most = max(allocatable, used, remaining + requested, 1)
    fits = min(requested, max(allocatable - remaining, 0))
    bars = [("track", 0, 0, allocatable, 14), ("before", 2, 0, remaining, 4), ("freed", 2, remaining, used, 4)]
    bars += [("after", 8, remaining, remaining + fits, 4), ("over", 8, remaining + fits, remaining + requested, 4)]
    drawing = join(
        Html(
            f'<rect class="{kind}" x="{share(start, most)}" y="{y}" width="{share(end - start, most)}" '
            f'height="{height}"/>'
        )
        for kind, y, start, end, height in bars
        if end > start
    )
    picture = Html(f'<svg width="100%" height="14" aria-hidden="true">{drawing}</svg>')

    over = format_amount(resource, requested - fits)
    short: list[str] = [", ", tag("span", f"{over} over capacity", class_="bad")] if requested > fits else []
    if resource == "pods":
        leaving = [f"{freed:,} evicted"] if freed else []
        in_words = ", ".join([f"{used:,} of {allocatable:,} running", *leaving, "1 added"])
    else:
        words = [f"{format_amount(resource, used)} of {format_amount(resource, allocatable)} requested"]
        if freed:
            words.append(f"{format_amount(resource, freed)} freed")
        if requested:
            words.append(f"the pod requests {format_amount(resource, requested)}")
        in_words = ", ".join(words)
    return tag("dt", resource) + tag("dd", picture, in_words, *short)
