"""Why a pod is still pending, and what becomes of it, in words."""

from __future__ import annotations

from datetime import datetime

from kpreempt.report.amounts import count
from kpreempt.report.durations import format_duration, format_since, format_time
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.equal_pods import order_in_brief
from kpreempt.report.layout import Phrase, Span, strong
from kpreempt.verdict import Agreement, Leaving, Outcome, PendingPod, PendingState

_VICTIMS_NAMED = 3
_NODES_NAMED = 3
# What begins the scheduler's words on preemption. It has none where an attempt has just evicted somebody
# (``schedulingAlgorithm`` in ``schedule_one.go``, v1.36.3).
_PREEMPTION = " preemption: "
# What an attempt that evicts has behind it since 1.37.
_PLACEMENT = f"{_PREEMPTION}found a potential placement"


def state_in_words(item: PendingPod, at: datetime | None) -> Phrase:
    """Why the pod is still pending, with the times that are known."""
    state, since = item.state, _ago(item.since, at)
    if state == PendingState.WAITS_FOR_VICTIMS:
        return (f"nominated to {item.nominated_node_name}, where it waits for {count(len(item.waiting_for), 'pod')}",)
    words = {
        PendingState.BEING_DELETED: f"is being deleted{since}; the scheduler passes it over",
        PendingState.NO_SCHEDULER: f'no profile for scheduler "{item.scheduler_name}"; created{since}',
        PendingState.GATED: f"{'gate' if len(item.gates) == 1 else 'gates'} {join_names(item.gates)}; created{since}",
        PendingState.HELD: f"held back{f' by {item.held_by}' if item.held_by else ''}: {item.reason}",
        PendingState.NOMINATED: f"nominated to {item.nominated_node_name}, where no victim is terminating yet",
        PendingState.STALE_NOMINATION: f"nominated to {item.nominated_node_name}, which no longer helps",
        PendingState.NEVER_TRIED: f"no attempt yet; created{since}",
        PendingState.BACKING_OFF: f"last tried{since}; backs off{_at_most(item.until, at)}",
        PendingState.FITS_NOW: f"unschedulable{_for(item.since, at)}, but fits now{_next_try(item, at)}",
        PendingState.WAITS_FOR_CHANGE: f"unschedulable{_for(item.since, at)}{_next_try(item, at)}",
    }
    return (words[state],)


def leaving_in_words(leaving: Leaving, at: datetime | None) -> Phrase:
    """A terminating pod: since when, until when, and what holds it."""
    since = f"terminating{_for(leaving.since, at)}"
    if leaving.until is None:
        until = ""
    elif at is None:
        until = f", until {format_time(leaving.until)}"
    elif (rest := int((leaving.until - at).total_seconds())) >= 0:
        until = f", at most {format_duration(rest)} more"
    else:
        until = f", {format_duration(-rest)} beyond its grace period"
    held = f"; held by finalizer {join_names(leaving.finalizers)}" if leaving.finalizers else ""
    other = "" if leaving.is_preempted else "; not preempted, so the scheduler does not wait for it"
    return (strong(leaving.pod), f" {since}{until}", Span(held, "warn"), other)


def fate_in_words(item: PendingPod) -> Phrase:
    """What becomes of the pod: the node, and whom it evicts; empty where it stays pending."""
    nodes = join_names(item.nodes, limit=_NODES_NAMED).replace(" and ", " or ", 1)
    if item.outcome == Outcome.LANDS:
        return (Span("lands", "good"), f" on {nodes}")
    if not item.victims:
        return ()
    victims = list(dict.fromkeys(victim.pod for each in item.victims.values() for victim in each))
    sizes = sorted({len(each) for each in item.victims.values()})
    number = count(sizes[0], "pod") if len(sizes) == 1 else f"{sizes[0]:,} to {count(sizes[-1], 'pod')}"
    leaving = all(victim.terminating for each in item.victims.values() for victim in each)
    verb = "waits for" if leaving else "evicts"
    named = f": {join_names(victims, limit=_VICTIMS_NAMED)}" if len(item.victims) == 1 else ""
    order = f"; {order_in_brief(item.alternatives)}" if item.alternatives else ""
    return (Span(f"{verb} {number}", "warn"), f" on {nodes}{named}{order}", *_violations(item))


def agreement_in_words(item: PendingPod, *, verbose: bool) -> str:
    """How the scheduler's last message compares with what is expected now; empty where it says nothing."""
    if not item.scheduler_message:
        return ""
    if item.agreement == Agreement.SAME:
        return "the scheduler said the same"
    if item.agreement == Agreement.COUNTS:
        return "the scheduler gave the same reasons, for other numbers of nodes"
    has_evicted = _PLACEMENT in item.scheduler_message or _PREEMPTION not in item.scheduler_message
    if item.state == PendingState.WAITS_FOR_VICTIMS and has_evicted:
        return f"the scheduler said when it evicted: {item.scheduler_message}"
    expected = f"; now expected: {item.message}" if verbose and item.message else ""
    return f"the scheduler last said otherwise: {item.scheduler_message}{expected}"


def _violations(item: PendingPod) -> Phrase:
    overdrawn = sorted(
        {use.budget for each in item.victims.values() for victim in each for use in victim.budgets if use.left < 0}
    )
    if overdrawn:
        return ("; ", Span(f"violates {join_names(overdrawn)}", "bad"))
    if item.num_pdb_violations:
        return ("; ", Span(f"counted as {count(item.num_pdb_violations, 'budget violation')}", "warn"))
    return ()


def _ago(time: datetime | None, at: datetime | None) -> str:
    if time is None:
        return ""
    since = format_since(time, at)
    return f" {since}" if since.startswith("since") else f" {since} ago"


def _for(time: datetime | None, at: datetime | None) -> str:
    if time is None:
        return ""
    since = format_since(time, at)
    return f" {since}" if since.startswith("since") else f" for {since}"


def _at_most(until: datetime | None, at: datetime | None) -> str:
    if until is None or at is None:
        return ""
    return f" for at most {format_duration(int((until - at).total_seconds()))} more"


def _next_try(item: PendingPod, at: datetime | None) -> str:
    if item.until is None or at is None or item.until < at:
        return ""
    return f"; tried again within {format_duration(int((item.until - at).total_seconds()))}"
