"""Nodes that were refused, those that failed alike as one group, so that a thousand of them read as a few lines.

Every node's numbers are told where they are few, the nearest where many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.evidence import describe, describe_shortage, distance, join_names
from kpreempt.report.layout import Page, Phrase, Span, plain, strong, width_of
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Code, Status, Verdict
from kpreempt.verdict.details import InsufficientResources

# More nodes than this are told in short.
_CROWD = 12
_GROUPS_SHOWN = 6
_PLUGINS_SHOWN = 4
_CAUSES_SHOWN = 3
_NAMES_SHOWN = 3
_REASONS_NAMED = 3


class Depth(Enum):
    """How much a group of nodes tells."""

    REASONS = "only how many nodes, and why"
    NEAREST = "besides, what the nearest node lacks"
    CAUSES = "what was seen on the nodes, up to three causes"


def is_crowd(verdict: Verdict, options: RenderOptions) -> bool:
    """Whether there are too many nodes to tell what was seen on each."""
    return len(verdict.filter) > _CROWD and not options.verbose


def add_failures(
    page: Page, statuses: Mapping[str, Status], options: RenderOptions, *, indent: int, depth: Depth
) -> None:
    """Refused nodes in groups, the largest first: of the same reasons, or in less depth of the same plugin."""
    groups = _groups(statuses, depth)
    shown = groups if options.verbose else groups[: _GROUPS_SHOWN if depth == Depth.CAUSES else _PLUGINS_SHOWN]
    width = max((len(f"{len(group.nodes):,}") for group in shown), default=0)
    for group in shown:
        page.labelled(f"{len(group.nodes):,}".rjust(width), *_reasons(group), indent=indent, column=width + 2)
        _add_evidence(page, group, statuses, options, indent=indent + width + 2, depth=depth)
    if rest := groups[len(shown) :]:
        page.paragraph(Span(in_reasons(rest, _REASONS_NAMED), "dim"), indent=indent, hanging=2)


def in_reasons(groups: Sequence[FailureGroup], named: int) -> str:
    """Groups of nodes that are left out: so many with their reasons, and how many nodes are in the others."""
    told = [f"{len(group.nodes):,} {_words_of(group)}" for group in groups[:named]]
    if rest := sum(len(group.nodes) for group in groups[named:]):
        told.append(count(rest, "more node"))
    return f"… and {join_names(told, limit=len(told))}"


def add_titled_failures(
    page: Page, title: Phrase, statuses: Mapping[str, Status], options: RenderOptions, *, depth: Depth
) -> None:
    """The same below a title, which takes in a group that is the only one."""
    groups = _groups(statuses, depth)
    if depth == Depth.CAUSES or len(groups) > 1:
        page.paragraph(*title, indent=2)
        add_failures(page, statuses, options, indent=4, depth=depth)
        return
    page.paragraph(*title, " ", *_reasons(groups[0]), indent=2, hanging=2)
    _add_evidence(page, groups[0], statuses, options, indent=4, depth=depth)


def name_some(nodes: Sequence[str], options: RenderOptions) -> str:
    """The first few names and how many there are besides; all of them where ``verbose``."""
    shown = nodes if options.verbose else nodes[:_NAMES_SHOWN]
    rest = len(nodes) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest else "")


def add_causes(page: Page, causes: Sequence[Cause], options: RenderOptions, *, indent: int) -> None:
    """Node names with what was seen there, in two columns where the page is wide enough."""
    rows: list[tuple[Phrase, Phrase]] = [((name_some(cause.nodes, options),), (cause.phrase,)) for cause in causes]
    longest = max((width_of(plain(names)) for names, _ in rows), default=0)
    if all(indent + longest + 2 + width_of(plain(phrase)) <= page.width for _, phrase in rows):
        page.table(rows, aligns=("left", "left"), indent=indent)
        return
    for names, phrase in rows:
        page.paragraph(*names, indent=indent, hanging=2)
        if phrase[0]:
            page.paragraph(*phrase, indent=indent + 2, hanging=2)


def _groups(statuses: Mapping[str, Status], depth: Depth) -> list[FailureGroup]:
    return group_by_reasons(statuses) if depth == Depth.CAUSES else group_by_plugin(statuses)


def _words_of(group: FailureGroup) -> str:
    return group.reasons or _status_in_words(group.code)


def _reasons(group: FailureGroup) -> Phrase:
    return (strong(_words_of(group)), Span(f"  {group.plugin}" if group.plugin else "", "dim"))


def _add_evidence(
    page: Page,
    group: FailureGroup,
    statuses: Mapping[str, Status],
    options: RenderOptions,
    *,
    indent: int,
    depth: Depth,
) -> None:
    if depth == Depth.NEAREST:
        _add_nearest(page, group, statuses, indent=indent)
    elif depth == Depth.CAUSES:
        _add_causes(page, group, options, indent=indent)


def _add_causes(page: Page, group: FailureGroup, options: RenderOptions, *, indent: int) -> None:
    shown = group.causes if options.verbose else group.causes[:_CAUSES_SHOWN]
    add_causes(page, shown, options, indent=indent)
    if rest := sum(len(cause.nodes) for cause in group.causes[len(shown) :]):
        page.paragraph(Span(f"… and {count(rest, 'more node')}", "dim"), indent=indent)


def _add_nearest(page: Page, group: FailureGroup, statuses: Mapping[str, Status], *, indent: int) -> None:
    """For resources the node that lacks least, otherwise the most frequent causes, each with its nodes."""
    cause = group.causes[0]
    if not cause.phrase:
        return
    if group.is_about_resources:
        page.paragraph(
            f"nearest {cause.nodes[0]}: ", describe_shortage(statuses[cause.nodes[0]]), indent=indent, hanging=2
        )
        return
    if len(group.causes) == 1:
        page.paragraph(f"{cause.phrase} (on all)", indent=indent, hanging=2)
        return
    shown = group.causes[:_CAUSES_SHOWN]
    told = [f"{each.phrase or 'nothing more is known'} (on {count(len(each.nodes), 'node')})" for each in shown]
    if rest := len(group.nodes) - sum(len(each.nodes) for each in shown):
        told.append(f"and {count(rest, 'more node')}")
    page.paragraph("; ".join(told), indent=indent, hanging=2)


def _status_in_words(code: Code) -> str:
    is_refusal = code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    return "refused without a reason" if is_refusal else str(code)


class Cause(NamedTuple):
    """Nodes of one group that share what the plugin saw, in words."""

    nodes: list[str]
    phrase: str


class FailureGroup(NamedTuple):
    """Nodes that were refused alike, with the nearest misses first; ``reasons`` are in the scheduler's words."""

    code: Code
    plugin: str
    reasons: str
    nodes: list[str]
    causes: list[Cause]
    is_about_resources: bool


def group_by_reasons(statuses: Mapping[str, Status]) -> list[FailureGroup]:
    """The refused nodes by code, plugin and reasons, the largest group first.

    Within a group, nodes that lack resources come by how much they lack, others in order of the snapshot.
    """
    members: dict[tuple[Code, str, str], list[str]] = {}
    for node, status in statuses.items():
        if not status.is_success:
            members.setdefault((status.code, status.plugin, status.message), []).append(node)
    return _largest_first(
        _group(code, plugin, reasons, nodes, statuses) for (code, plugin, reasons), nodes in members.items()
    )


def group_by_plugin(statuses: Mapping[str, Status]) -> list[FailureGroup]:
    """The refused nodes by plugin alone, the largest group first; ``reasons`` counts each reason where they differ."""
    members: dict[tuple[Code, str], list[str]] = {}
    for node, status in statuses.items():
        if not status.is_success:
            members.setdefault((status.code, status.plugin), []).append(node)
    return _largest_first(
        _group(code, plugin, _count_reasons(nodes, statuses), nodes, statuses)
        for (code, plugin), nodes in members.items()
    )


def _group(code: Code, plugin: str, reasons: str, nodes: list[str], statuses: Mapping[str, Status]) -> FailureGroup:
    causes = _group_causes(nodes, statuses)
    return FailureGroup(code, plugin, reasons, nodes, causes, _lacks_resources(nodes, statuses))


def _largest_first(groups: Iterable[FailureGroup]) -> list[FailureGroup]:
    return sorted(groups, key=lambda group: -len(group.nodes))


def _count_reasons(nodes: list[str], statuses: Mapping[str, Status]) -> str:
    numbers = Counter(reason for node in nodes for reason in statuses[node].reasons)
    if all(number == len(nodes) for number in numbers.values()):
        return ", ".join(numbers)
    return ", ".join(f"{number:,} {reason}" for reason, number in numbers.most_common())


def may_be_mended(code: Code) -> bool:
    """Whether evictions may make a node of this status fit; where there are no codes, they may for all that it says."""
    return code in (Code.UNSCHEDULABLE, Code.NONE)


def split_by_hope(verdict: Verdict) -> tuple[dict[str, Status], dict[str, Status]]:
    """The refused nodes on which evictions may help, and the others."""
    tried = set(verdict.potential_nodes)
    hopeful = {
        node: status
        for node, status in verdict.filter.items()
        if (node in tried if status.code == Code.NONE else may_be_mended(status.code))
    }
    return hopeful, {node: status for node, status in verdict.filter.items() if node not in hopeful}


def find_nearest(statuses: Mapping[str, Status]) -> list[Cause]:
    """The nodes that lack resources, those that lack the smallest share of a request first."""
    short = [node for node, status in statuses.items() if isinstance(status.detail, InsufficientResources)]
    return _group_causes(short, statuses)


def _group_causes(nodes: list[str], statuses: Mapping[str, Status]) -> list[Cause]:
    causes: dict[str, Cause] = {}
    for node in sorted(nodes, key=lambda name: distance(statuses[name].detail)):
        phrase = describe(statuses[node].detail)
        causes.setdefault(phrase, Cause([], phrase)).nodes.append(node)
    if _lacks_resources(nodes, statuses):
        return list(causes.values())
    return sorted(causes.values(), key=lambda cause: -len(cause.nodes))


def _lacks_resources(nodes: list[str], statuses: Mapping[str, Status]) -> bool:
    return any(isinstance(statuses[node].detail, InsufficientResources) for node in nodes)
