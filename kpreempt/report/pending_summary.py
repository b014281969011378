"""The pending pods in a few lines that fit a chat message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kpreempt.report.amounts import agree, count
from kpreempt.report.durations import format_since, format_time
from kpreempt.report.escape import printable
from kpreempt.verdict import Outcome, PendingPod, PendingPods, PendingState

# The five lines that there can be, with their ends, so stay within 400 characters.
LONGEST_LINE = 79
_EVICTING = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)
_OUTSIDE = (PendingState.BEING_DELETED, PendingState.NO_SCHEDULER, PendingState.GATED, PendingState.HELD)
_CAUSES = 2


def summary_lines(pending: PendingPods) -> list[str]:
    """At most five lines of at most 79 characters, safe to paste."""
    items = pending.items
    lines = [_counts(pending), _evictions(pending), _waiting(items), _unschedulable(items), _next(pending)]
    return [_cut(printable(line)) for line in lines if line]


def _counts(pending: PendingPods) -> str:
    number = len(pending.items)
    at = f" at {format_time(pending.at)}" if pending.at else ""
    return f"{count(number, 'pod')} {agree(number, 'is')} pending{at} ({count(pending.cluster.nodes, 'node')})"


def _evictions(pending: PendingPods) -> str:
    evicting = [item for item in pending.items if item.outcome in _EVICTING and item.state not in _OUTSIDE]
    if not evicting:
        return ""
    victims = {
        victim.pod for item in evicting for each in item.victims.values() for victim in each if not victim.terminating
    }
    violating = sum(item.outcome == Outcome.PREEMPTS_VIOLATING_BUDGETS for item in evicting)
    budgets = f", {violating:,} against budgets" if violating else ""
    whom = f"up to {count(len(victims), 'pod')}" if victims else "only pods that are leaving"
    return f"{len(evicting):,} would evict {whom}{budgets}"


def _waiting(items: Iterable[PendingPod]) -> str:
    states = Counter(item.state for item in items)
    lands = sum(item.outcome == Outcome.LANDS and item.state not in _OUTSIDE for item in items)
    parts = [
        (states[PendingState.WAITS_FOR_VICTIMS], "waiting for victims"),
        (lands, "fit now"),
        (states[PendingState.GATED], "gated"),
        (states[PendingState.NO_SCHEDULER], "without a scheduler"),
        (states[PendingState.HELD], "held back"),
        (states[PendingState.BEING_DELETED], "being deleted"),
    ]
    return ", ".join(f"{number:,} {words}" for number, words in parts if number)


def _unschedulable(items: Iterable[PendingPod]) -> str:
    unschedulable = [
        item for item in items if item.outcome == Outcome.NEVER_LANDS and item.state != PendingState.WAITS_FOR_VICTIMS
    ]
    if not unschedulable:
        return ""
    causes = Counter(item.cause for item in unschedulable)
    never = sum(item.refused_for_good for item in unschedulable)
    named = "; ".join(f"{number:,} {cause}" for cause, number in causes.most_common(_CAUSES))
    if never == len(unschedulable):
        return f"{never:,} can never land on these nodes: {named}"
    of_these = f" ({never:,} can never land on these nodes)" if never else ""
    return f"{len(unschedulable):,} unschedulable now{of_these}: {named}"


def _next(pending: PendingPods) -> str:
    first = next((item for item in pending.items if item.position is not None), None)
    if first is None:
        return ""
    age = f", {format_since(first.created, pending.at)} old" if first.created and pending.at else ""
    return f"first: {first.pod} (priority {first.priority:,}{age})"


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
