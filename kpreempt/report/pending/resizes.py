"""Pending in-place resizes in words: a clause for a sentence, and a section with what each needs."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import ago, agree, count, format_amount
from kpreempt.report.blocks import Listing, Section, Words, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.quoting import message as quoted
from kpreempt.verdict.waiting import RESIZE_GATE, PendingResize, ResizeNeed, ResizePreemption, ResizeState

_SHOWN = 4
# How many lines about a pod a screen always shows.
_LINES = 8


def needs_in_words(item: PendingResize) -> str:
    """``its in-place resize was deferred 4m ago: it needs 500m more cpu than node-1 has free``."""
    state = "deferred" if item.state is ResizeState.DEFERRED else "rejected as infeasible"
    return f"its in-place resize was {state}{ago(item.since, item.at)}: {_missing(item)}"


def _missing(item: PendingResize) -> str:
    said = item.message.rstrip(".")
    for each in item.needs:
        if each.exceeds_node:
            requested, allocatable = (
                format_amount(each.resource, value) for value in (each.requested, each.allocatable)
            )
            return f"it requests {requested} {each.resource}, and {item.node} has {allocatable} in total"
    lacks = [
        f"{format_amount(each.resource, each.missing)} more {each.resource}" for each in item.needs if each.missing
    ]
    if lacks and item.state is ResizeState.DEFERRED:
        return f"it needs {join_names(lacks, limit=len(lacks))} than {item.node} has free"
    if item.needs and item.state is ResizeState.DEFERRED:
        return f"by requests, it fits on {item.node} now, and the kubelet has not tried it again"
    return said or "the input does not say why"


def resizes_section(items: Sequence[PendingResize], priority: int) -> Section:
    """``RESIZES``: each pod whose resize is pending, and what it needs, in a line."""
    lines: list[list[Words]] = [[(strong(each.pod), f" on {each.node}: {needs_in_words(each)}")] for each in items]
    number = len(items)
    lead = f"{count(number, 'running pod')} {agree(number, 'waits')} for an in-place resize" if items else ""
    return Section(
        "RESIZES",
        lead,
        [Listing(lines, noun="pod", shown=_SHOWN)],
        heading="In-place resizes",
        priority=priority,
        is_inline=True,
    )


def resize_section(item: PendingResize, priority: int) -> Section:
    """``RESIZE``: the kubelet's answer, the amounts, and whether preemption would help in this version."""
    # The kubelet's message has the same amounts, in its units.
    is_explained = any(each.missing or each.exceeds_node for each in item.needs)
    said: list[Words] = [] if is_explained or not item.message else [("the kubelet says: ", quoted(item.message))]
    lines = [*said, *map(_amounts, item.needs), _preemption(item)]
    return Section(
        "RESIZE",
        blocks=[Listing([[each] for each in lines])],
        heading="In-place resize",
        priority=priority,
        is_inline=True,
        min_lines=_LINES,
    )


def _amounts(need: ResizeNeed) -> str:
    name = need.resource

    def amount(value: int) -> str:
        return format_amount(name, value)

    instead = f" instead of {amount(need.allocated)}" if need.allocated is not None else ""
    if need.exceeds_node:
        return f"{name}: requests {amount(need.requested)}{instead}; the node has {amount(need.allocatable)} in total"
    result = f"{amount(need.missing)} too little" if need.missing else "enough"
    return (
        f"{name}: requests {amount(need.requested)}{instead}; the node has {amount(need.allocatable)}, other pods have"
        f" {amount(need.used)}: {result}"
    )


def _preemption(item: PendingResize) -> str:
    """Whether evictions would help, and whether this version makes them."""
    if item.state is ResizeState.INFEASIBLE:
        return "preemption: no version evicts pods for an infeasible resize; request less, or recreate the pod"
    lower = [each for each in item.needs if each.missing]
    amounts = [f"{format_amount(each.resource, each.used_by_lower)} {each.resource}" for each in lower]
    result = "enough" if item.fits_without_lower else "too little"
    enough = f"; pods of lower priority there have {join_names(amounts, limit=len(amounts))}: {result}" if lower else ""
    gate = f"gate {RESIZE_GATE}"
    why = {
        ResizePreemption.NOT_IN_VERSION: f"this scheduler evicts no pods for a resize (1.37: {gate}, alpha)",
        ResizePreemption.GATE_OFF: f"only with {gate} (alpha, off by default)",
        ResizePreemption.GATE_ON: f"{gate} is on, so the scheduler evicts if it then fits",
    }[item.preemption]
    return f"preemption: {why}{enough}"
