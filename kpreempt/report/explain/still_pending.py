"""Why the pod in question is still pending: a sentence for the beginning of the report, and a section with details."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kpreempt.report.amounts import ago, agree, format_duration
from kpreempt.report.blocks import Listing, Phrase, Section, Span, Words, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.pending.hints import gates_hint, scheduler_hint
from kpreempt.report.pending.on_nodes import describe, fix_in_words
from kpreempt.report.pending.summary import leaving_in_words
from kpreempt.report.preemptions import preempted, replaces
from kpreempt.verdict import Outcome, Verdict
from kpreempt.verdict.waiting import AdmissionDifference, PendingState, StillPending

# An unschedulable pod is retried after 5 minutes, checked every 30 seconds.
_RETRY = "at most 5m30s after its last attempt"
_JUST_CREATED_SECONDS = 10
_PODS_SHOWN = 3
# Outcomes of pods that the scheduler would act on if it tried them now.
_ACTS = (Outcome.LANDS, Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)


def before_outcome(verdict: Verdict, name: str) -> Phrase:
    """The sentence on a pod that is pending on its node, before the outcome of a new pod like it; or empty.

    For a new pod whose manifest names the node, this is the outcome.
    """
    item = verdict.on_node
    if item is None:
        return ()
    if not verdict.pod.current_phase:
        stays = Span(" will stay pending on its node", "bad")
        return (strong(name), stays, f" {item.node}: {describe(item, item.at)}.")
    return (strong(name), Span(" is pending on its node", "warn"), f" {item.node}: {describe(item, item.at)}. ")


def after_outcome(verdict: Verdict) -> str:
    """The sentences that say why a pod with this outcome is still pending; empty if the outcome does."""
    pending = verdict.still_pending
    if pending is None:
        return ""
    return " ".join(filter(None, (_why_still_pending(verdict, pending), *_past(pending))))


def _past(pending: StillPending) -> Iterator[str]:
    """The pod that it replaces, and evictions that were in vain."""
    if pending.replaces is not None:
        yield f"It {replaces(pending.replaces, pending.at)}."
    yield from (f"{preempted(each, pending.at)}." for each in pending.preemptions if each.inversion is not None)


def _why_still_pending(verdict: Verdict, pending: StillPending) -> str:
    if pending.state in _SENTENCES:
        return _SENTENCES[pending.state](pending)
    if pending.state is PendingState.WAITS_FOR_VICTIMS:
        return _waits_for(pending)
    return _not_retried(pending) if verdict.outcome in _ACTS else ""


def pending_section(verdict: Verdict, priority: int) -> Section:
    """The victims that the pod waits for, its condition if that is outdated, and what helps."""
    pending, on_node = verdict.still_pending, verdict.on_node
    if on_node is not None:
        return Section("FIX", fix_in_words(on_node), anchor="fix-on-node", priority=priority, is_inline=True)
    if pending is None:
        return Section("STILL PENDING")
    lines: list[list[Words]] = [[("waits for ", *leaving_in_words(each, pending.at))] for each in pending.waiting_for]
    if pending.is_outdated and verdict.outcome in _ACTS:
        lines.append([f"its condition is from an earlier attempt: {pending.condition}"])
    lines += [[_difference(each)] for each in pending.differences]
    return Section("STILL PENDING", blocks=[Listing(lines, noun="line")], priority=priority, is_inline=True)


def _difference(difference: AdmissionDifference) -> str:
    """What a new pod would have in place of a field that admission set when the pod was created."""
    path, current, today = difference.path, difference.current, difference.today
    values = f"{path} = {today} instead of {current}" if current and today else f"{path} = {today}"
    if not today:
        values = f"no {path}, which is {current}"
    return f"a pod created today would have {values} ({difference.source}): recreate the pod to change it"


def _being_deleted(pending: StillPending) -> str:
    return f"Its deletion was requested{ago(pending.since, pending.at)}, so the scheduler skips it."


def _backing_off(pending: StillPending) -> str:
    left = _left(pending)
    return (
        f"It is still pending because it is in backoff: the scheduler tried it{ago(pending.since, pending.at)}, and"
        f" tries it again within {left}."
    )


def _never_attempted(pending: StillPending) -> str:
    age = _seconds(pending.created, pending.at)
    if age is None or age < _JUST_CREATED_SECONDS:
        # A pod of the future, seen from an earlier time, has no age.
        created = f"; it was created{ago(pending.created, pending.at)}" if age is not None and age >= 0 else ""
        return f"The scheduler has not tried it yet{created}."
    return (
        f"It was created{ago(pending.created, pending.at)}, and {pending.scheduler_name} has reported no attempt to"
        " schedule it: check that this scheduler is running."
    )


def _waits_for(pending: StillPending) -> str:
    """The victims that finalizers keep; the section has all victims."""
    held = [each for each in pending.waiting_for if each.finalizers]
    if not held:
        return ""
    finalizers = list(dict.fromkeys(name for each in held for name in each.finalizers))
    named = join_names([each.pod for each in held], limit=_PODS_SHOWN)
    verb = agree(len(held), "is")
    return f"{named} {verb} held by {'finalizer' if len(finalizers) == 1 else 'finalizers'} {join_names(finalizers)}."


def _not_retried(pending: StillPending) -> str:
    """Why a pod that would be scheduled if it were tried is not tried, and when it will be."""
    if pending.state is PendingState.NOMINATED:
        return (
            f"It is still pending because no victim on its nominated node, {pending.nominated_node}, is terminating"
            " yet: the scheduler is still deleting them, or failed to."
        )
    if pending.state is PendingState.STALE_NOMINATION:
        why = f"its nomination to {pending.nominated_node} is outdated: preemption no longer helps there"
    elif pending.state is PendingState.FITS_NOW and pending.preempts_asynchronously:
        why = (
            "the scheduler can miss that the victims of an asynchronous preemption are gone; such a pod stays among the"
            " unschedulable pods until they are flushed"
        )
    else:
        # The time of an overdue attempt is in the next sentence.
        last = pending.last_attempt if pending.until is None or _left(pending) else None
        why = f"it did not fit when the scheduler last tried it{ago(last, pending.at)}"
    return f"It is still pending because {why}. {_retried(pending)}"


def _retried(pending: StillPending) -> str:
    """When the scheduler tries the pod again."""
    left = _left(pending)
    if left:
        return f"The scheduler tries it again when an event may help, or within {left} ({_RETRY})."
    if pending.until is not None:
        return (
            f"The last reported attempt was{ago(pending.last_attempt, pending.at)}, although the scheduler retries"
            " such pods within 5m30s: later attempts are not in the input, or the scheduler is not running."
        )
    return f"The scheduler tries it again when an event may help, or {_RETRY}, whose time is not in the input."


def _left(pending: StillPending) -> str:
    """The time that is left until the pod is retried, or an empty text if that is over or unknown."""
    if pending.until is None or pending.at is None or pending.until < pending.at:
        return ""
    return format_duration(int((pending.until - pending.at).total_seconds()))


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()


def _gated(pending: StillPending) -> str:
    hint = gates_hint(pending.gates)
    return f"{hint[:1].upper()}{hint[1:]}."


def _other_scheduler(pending: StillPending) -> str:
    hint = scheduler_hint(pending.scheduler_name)
    return f"{hint[:1].upper()}{hint[1:]}."


_SENTENCES = {
    PendingState.GATED: _gated,
    PendingState.NO_SCHEDULER: _other_scheduler,
    PendingState.BEING_DELETED: _being_deleted,
    PendingState.BACKING_OFF: _backing_off,
    PendingState.NEVER_ATTEMPTED: _never_attempted,
}
