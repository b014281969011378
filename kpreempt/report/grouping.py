"""Nodes that failed alike, gathered, so that a thousand of them read as a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kpreempt.report.evidence import describe, distance
from kpreempt.verdict import Code, Status
from kpreempt.verdict.details import InsufficientResources


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
