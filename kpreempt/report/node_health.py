"""Nodes that are not ready, deleted or being removed, in words."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import so_long
from kpreempt.report.blocks import Listing, Phrase, Section, joined, strong
from kpreempt.report.evidence import in_plural, join_names
from kpreempt.report.rejected_nodes import NODE_STATES
from kpreempt.verdict import ClusterSummary
from kpreempt.verdict.node_report import NodeHealth

_LONGEST = 160
_SHOWN = 3


def health_section(
    cluster: ClusterSummary, now: datetime | None, *, priority: int, node: str = "", known: Container[str] = ()
) -> Section:
    """``UNHEALTHY``: the nodes with the same state and reason, and since when, before any numbers about them.

    If a ``node`` is given, only this one. Without nodes, the section is empty. A screen omits the ``known`` nodes,
    whose taints it shows, if nothing but a taint is known about them.
    """
    nodes = [each for each in cluster.unhealthy or () if node in ("", each.node)]
    now = now or cluster.taken_at
    groups = grouped(nodes, lambda each: (tuple(each.states), each.reason, each.message))
    ranked = sorted(groups.values(), key=lambda group: -len(group))
    shown = [group for group in ranked if group[0].reason or group[0].message or group[0].node not in known]
    full, brief = ([_words(group, now) for group in each] for each in (ranked, shown))
    if not any(each.reason or each.message or each.since for each in nodes):
        # Taints alone say little, and fit on one line.
        brief = [joined(brief, "; ")] if brief else []
    short = Section("UNHEALTHY", blocks=[Listing([[words] for words in brief], noun="state")])
    listing = Listing([[words] for words in full], noun="state", shown=_SHOWN)
    heading = "Nodes that are not healthy"
    return Section(
        "UNHEALTHY",
        blocks=[listing],
        heading=heading,
        is_inline=True,
        priority=priority,
        reserved_lines=4,
        min_lines=3,
        short=short,
    )


def states_in_words(node: NodeHealth, number: int = 1) -> str:
    """``is not ready and is being deleted``."""
    clauses = [NODE_STATES[state] for state in node.states]
    return " and ".join(clauses if number == 1 else map(in_plural, clauses))


def warning_about(nodes: Sequence[NodeHealth], names: Sequence[str]) -> str:
    """A sentence that warns of the nodes among ``names``, on which a pod is expected to run; empty if all are fine."""
    found = [each for each in nodes if each.node in names]
    if not found:
        return ""
    first = found[0]
    others = f" (UNHEALTHY has {len(found) - 1:,} more of these nodes)" if found[1:] else ""
    effect = ", so pods neither start nor stop there until its kubelet responds" if first.states[0].is_down else ""
    return f"{first.node} {states_in_words(first)}{effect}{others}."


def _words(group: Sequence[NodeHealth], now: datetime | None) -> Phrase:
    """The nodes, what is wrong with them, since when, and why."""
    first = group[0]
    message = first.message
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST].rpartition(' ')[0]}…"
    why = f"{first.reason} ({message})" if first.reason and message else first.reason or message
    since = min((each.since for each in group if each.since is not None), default=None)
    state = f" {states_in_words(first, len(group))}{so_long(since, now)}{f': {why}' if why else ''}"
    return (strong(join_names([each.node for each in group])), state)
