"""Why a pod is still pending, and what becomes of it, in words."""

from __future__ import annotations

from datetime import datetime

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Phrase, Role, Span, strong
from kpreempt.report.durations import format_duration, format_since, format_time
from kpreempt.report.evidence import OUTCOMES, join_names
from kpreempt.report.explain.chance import order_in_brief
from kpreempt.verdict import Outcome
from kpreempt.verdict.pending import TELLING_STATES, Agreement, Leaving, PendingPod, PendingPods, PendingState
from kpreempt.verdict.status import FOUND_PLACEMENT
from kpreempt.verdict.unread import is_absent

_VICTIMS_NAMED = 3
_NODES_NAMED = 3
# What begins the scheduler's words on preemption. It has none where an attempt has just evicted somebody
# (``schedulingAlgorithm`` in ``schedule_one.go``, v1.36.3).
_PREEMPTION = " preemption: "
NO_NODE_FITS = "no node fits, even empty"
_STATES: dict[PendingState, tuple[str, Role]] = {
    PendingState.BEING_DELETED: ("terminating", "dim"),
    PendingState.NO_SCHEDULER: ("other scheduler", "dim"),
    PendingState.GATED: ("gated", "warn"),
    PendingState.HELD: ("held", "warn"),
    PendingState.WAITS_FOR_VICTIMS: ("waits", "warn"),
}


def state_in_words(item: PendingPod, at: datetime | None) -> Phrase:
    """Why the pod is still pending, with the times that are known."""
    state, since = item.state, _ago(item.since, at)
    if state == PendingState.WAITS_FOR_VICTIMS:
        return (f"nominated to {item.nominated_node_name}, where it waits for {count(len(item.waiting_for), 'pod')}",)
    words = {
        PendingState.BEING_DELETED: f"being deleted{since}; the scheduler skips it",
        PendingState.NO_SCHEDULER: f'no profile for scheduler "{item.scheduler_name}"; created{since}',
        PendingState.GATED: f"{'gate' if len(item.gates) == 1 else 'gates'} {join_names(item.gates)}; created{since}",
        PendingState.HELD: f"held{f' by {item.held_by}' if item.held_by else ''}: {item.reason}",
        PendingState.NOMINATED: f"nominated to {item.nominated_node_name}, where no victim is terminating yet",
        PendingState.STALE_NOMINATION: f"nominated to {item.nominated_node_name}, where preemption no longer helps",
        PendingState.NEVER_TRIED: f"not tried yet; created{since}",
        PendingState.BACKING_OFF: f"last tried{since}; in backoff{_at_most(item.until, at)}",
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
    held = f"; finalizer {join_names(leaving.finalizers)}" if leaving.finalizers else ""
    other = "" if leaving.is_preempted else "; not preempted: the scheduler does not wait for it"
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
    verb = "waits for" if _are_leaving(item) else "preempts"
    named = f": {join_names(victims, limit=_VICTIMS_NAMED)}" if len(item.victims) == 1 else ""
    order = f"; {order_in_brief(item.alternatives)}" if item.alternatives else ""
    return (Span(f"{verb} {number}", "warn"), f" on {nodes}{named}{order}", *_violations(item))


def agreement_in_words(item: PendingPod) -> str:
    """How the scheduler's last message compares with what is expected now; empty where it says nothing."""
    if not item.scheduler_message:
        return ""
    if item.agreement == Agreement.SAME:
        return "last message of the scheduler: the same"
    if item.agreement == Agreement.COUNTS:
        return "last message of the scheduler: the same reasons, other numbers of nodes"
    has_evicted = (
        f"{_PREEMPTION}{FOUND_PLACEMENT}" in item.scheduler_message or _PREEMPTION not in item.scheduler_message
    )
    if item.state == PendingState.WAITS_FOR_VICTIMS and has_evicted:
        return f"message of the scheduler when it preempted: {item.scheduler_message}"
    expected = f"; expected now: {item.message}" if item.message else ""
    return f"last message of the scheduler: {item.scheduler_message}{expected}"


def _violations(item: PendingPod) -> Phrase:
    overdrawn = sorted(
        {use.budget for each in item.victims.values() for victim in each for use in victim.budgets if use.left < 0}
    )
    if overdrawn:
        return ("; ", Span(f"violates {join_names(overdrawn)}", "bad"))
    if item.num_pdb_violations:
        return ("; ", Span(f"{count(item.num_pdb_violations, 'budget violation')} counted", "warn"))
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


def nothing_pending(pending: PendingPods) -> str:
    """That no pod is pending of those asked about, and where others are."""
    namespace, others = pending.namespace, dict(pending.not_asked)
    where = f" in namespace {namespace}" if namespace else ""
    unmatched = others.pop(namespace, 0) if namespace else sum(others.values())
    said = f"No pod is pending{where}."
    if is_absent(pending.assumptions, "Pod"):
        said = "No pending pod in the snapshot, which has no pods at all."
    elif pending.has_namespace is False:
        said = f'There is no namespace "{namespace}".'
    elif unmatched:
        there = f"{count(unmatched, 'other pod')} {agree(unmatched, 'is')} pending"
        said = f"No pending pod{where} matches the selector; {there}."
    elif namespace and pending.has_namespace is None:
        said = f"No pod is pending{where}, and nothing that was read is in it: there may be no such namespace."
    if not namespace or not others:
        return said
    number = sum(others.values())
    named = join_names([f"{name} ({each:,})" for name, each in others.items()])
    elsewhere = "another" if len(others) == 1 else "others"
    return f"{said} {count(number, 'pod')} {agree(number, 'is')} pending in {elsewhere}: {named}."


def outcome_in_brief(outcome: Outcome, state: PendingState | None) -> tuple[str, Role]:
    """A word or two on what becomes of a pod."""
    return _STATES[state] if state is not None and state in TELLING_STATES else OUTCOMES[outcome][:2]


def brief_fate(item: PendingPod) -> tuple[Span, str]:
    """``preempts 2``, and the node; of several nodes the first."""
    words, style = outcome_in_brief(item.outcome, item.state)
    if item.state in TELLING_STATES:
        return Span(words, style), item.nominated_node_name
    if item.victims:
        victims = list(item.victims.values())
        sizes = sorted({len(each) for each in victims})
        number = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,}-{sizes[-1]:,}"
        words = f"{'waits for' if _are_leaving(item) else words} {number}"
    others = f" or {len(item.nodes) - 1:,} more" if len(item.nodes) > 1 else ""
    return Span(words, style), "".join(item.nodes[:1]) + others


def details_in_words(item: PendingPod, at: datetime | None) -> Phrase:
    """What somebody would look up next: who has to go, what is missing, which gate or claim."""
    if item.state == PendingState.WAITS_FOR_VICTIMS:
        first, *others = item.waiting_for
        more = f" and {count(len(others), 'more pod')}" if others else ""
        return (*leaving_in_words(first, at), more)
    if item.state in TELLING_STATES:
        return {
            PendingState.BEING_DELETED: ("the scheduler skips it",),
            PendingState.NO_SCHEDULER: (f"schedulerName {item.scheduler_name}",),
            PendingState.GATED: (join_names(item.gates),),
            PendingState.HELD: (f"{f'by {item.held_by}: ' if item.held_by else ''}{item.reason}",),
        }[item.state]
    if item.outcome == Outcome.LANDS:
        return state_in_words(item, at)
    if item.victims:
        return _victims(item)
    # The reasons with their numbers of nodes, the claims, and what else keeps preemption from helping.
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in item.reasons.items()) or item.cause or item.reason
    own = [part for part in item.cause.split(", ") if part.startswith("not eligible") and part not in reasons]
    told = [f"{join_names(item.claims)}: {reasons}" if item.claims else reasons, *own]
    if item.state == PendingState.STALE_NOMINATION:
        told.append(f"nominated to {item.nominated_node_name}, where preemption no longer helps")
    if item.refused_for_good:
        told.append(NO_NODE_FITS)
    return ("; ".join(filter(None, told)),)


def _victims(item: PendingPod) -> Phrase:
    """Who is evicted, where that is known, after the budgets that breaks."""
    order = f"; {order_in_brief(item.alternatives)}" if item.alternatives else ""
    violations = _violations(item)
    if len(item.victims) > 1:
        named = f"on one of {count(len(item.victims), 'node')} that tie"
    else:
        named = join_names([victim.pod for each in item.victims.values() for victim in each], limit=_VICTIMS_NAMED)
    return (named, *violations, order)


def _are_leaving(item: PendingPod) -> bool:
    return all(victim.terminating for each in item.victims.values() for victim in each)
