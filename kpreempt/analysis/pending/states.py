"""Why a pod is still pending, as far as the cluster shows, and what the scheduler's message about it says.

Follows ``pkg/scheduler/backend/queue`` and ``framework/preemption/preemption.go`` of v1.36.3. The number of attempts is
only in the scheduler's memory; of the backoff (1 s, doubled with each attempt, up to a maximum) the maximum is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from kpreempt.analysis.naming import some_of
from kpreempt.analysis.queue.order import FailedAttempts, rejection_of
from kpreempt.model.cluster import ClusterSnapshot, is_partial
from kpreempt.model.durations import go_seconds
from kpreempt.model.event import counted_nodes
from kpreempt.model.meta import later
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.verdict import Assumption, AssumptionKind, Outcome, Verdict
from kpreempt.verdict.pending import Agreement
from kpreempt.verdict.status import FOUND_PLACEMENT
from kpreempt.verdict.waiting import PendingState, TerminatingPod

DEFAULT_MAX_BACKOFF = timedelta(seconds=10)
# A pod that waits for a change is retried after 5 minutes, checked every 30 seconds.
LONGEST_WAIT = timedelta(minutes=5, seconds=30)

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
DISRUPTION = "DisruptionTarget"
_PLACEMENT = re.compile(rf"^({FOUND_PLACEMENT})\S+, preempting \d+ victims$")
_NODES = re.compile(r"^\d{1,9}/\d{1,9} nodes are available: ")
_COUNTED = re.compile(r"(?:^|, )\d{1,9} ")
_NUMBER = re.compile(r"(?:^|, )(\d{1,9}) ")
# The format of 1.8, with the number after the reason.
_PREDICATES = "No nodes are available that match all of the predicates: "
_COUNTED_BEHIND = re.compile(r" \(\d{1,9}\)(?:, |\.$|$)")
_NUMBER_BEHIND = re.compile(r" \((\d{1,9})\)(?:, |\.$|$)")
_PREEMPTION = " preemption: "
# What plugin DynamicResources says between the reasons and the preemption message.
_DEALLOCATION = re.compile(
    r" (?:no new claims to deallocate|plugin disabled|still not schedulable|(?:deallocation|deletion) of ResourceClaim"
    r" completed),$"
)


class WaitingState(NamedTuple):
    """A pod's state, when it began, and when it ends at the latest; ``None`` if unknown."""

    state: PendingState
    since: datetime | None = None
    until: datetime | None = None
    waiting_for: Sequence[TerminatingPod] = ()


class PendingContext(NamedTuple):
    """What determines the state, in addition to the pod and its verdict. ``at`` is the time of the snapshot."""

    pods_on: Mapping[str, Sequence[Pod]]
    attempts: FailedAttempts
    scheduler_names: frozenset[str]
    at: datetime
    max_backoff: timedelta = DEFAULT_MAX_BACKOFF


def max_backoff_of(configuration: Mapping[str, Any] | None) -> timedelta:
    """The maximum backoff of a valid scheduler configuration."""
    seconds = (configuration or {}).get("podMaxBackoffSeconds")
    return go_seconds(seconds) if isinstance(seconds, int) and seconds > 0 else DEFAULT_MAX_BACKOFF


def situation_of(pod: Pod, verdict: Verdict, context: PendingContext) -> WaitingState:
    """The reason why the pod is still pending."""
    metadata = pod.metadata
    created = metadata.creation_timestamp
    if metadata.deletion_timestamp is not None:
        return WaitingState(PendingState.BEING_DELETED, deletion_began(pod), metadata.deletion_timestamp)
    if pod.spec.scheduler_name not in context.scheduler_names:
        return WaitingState(PendingState.NO_SCHEDULER, created)
    if pod.spec.scheduling_gates:
        return WaitingState(PendingState.GATED, created)
    if verdict.outcome == Outcome.NOT_SCHEDULED:
        return WaitingState(PendingState.HELD, created)
    nominated = _nominated(pod, verdict, context)
    return nominated or _attempted(pod, verdict, context)


def is_in_queue(state: PendingState) -> bool:
    """Whether the scheduler would try the pod at all."""
    return state not in (PendingState.BEING_DELETED, PendingState.NO_SCHEDULER, PendingState.GATED, PendingState.HELD)


def deletion_began(pod: Pod) -> datetime | None:
    """When the pod's deletion was requested; its deletion timestamp is the end of its grace period."""
    until = pod.metadata.deletion_timestamp
    return None if until is None else later(until, -(pod.metadata.deletion_grace_period_seconds or 0))


def leaving(pod: Pod) -> TerminatingPod:
    """A terminating pod."""
    return TerminatingPod(
        pod=pod.key,
        priority=pod.priority,
        since=deletion_began(pod),
        until=pod.metadata.deletion_timestamp,
        finalizers=pod.metadata.finalizers,
        is_preempted=was_preempted(pod),
    )


def was_preempted(pod: Pod) -> bool:
    """Whether the pod's first disruption condition says that a scheduler preempted it."""
    condition = next((each for each in pod.status.conditions if each.type == DISRUPTION), None)
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"


def _nominated(pod: Pod, verdict: Verdict, context: PendingContext) -> WaitingState | None:
    """The state of a pod with a nominated node, unless it fits there now."""
    node = pod.status.nominated_node_name
    # Without a verdict, it is unknown whether preemption still helps there.
    if not node or node in verdict.lands_on or verdict.outcome is Outcome.UNCERTAIN:
        return None
    rejection = rejection_of(pod)
    since = rejection.last_transition_time if rejection else None
    eligibility = verdict.eligibility
    terminating = [
        leaving(each)
        for each in context.pods_on.get(node, ())
        if each.priority < pod.priority and each.metadata.deletion_timestamp is not None
    ]
    is_waiting = eligibility is not None and not eligibility.eligible and any(each.is_preempted for each in terminating)
    if is_waiting or (terminating and node in verdict.nominated_nodes):
        starts = [each.since for each in terminating if each.since is not None]
        ends = [each.until for each in terminating if each.until is not None]
        return WaitingState(
            PendingState.WAITS_FOR_VICTIMS, min(starts, default=None), max(ends, default=None), terminating
        )
    if node in verdict.nominated_nodes:
        return WaitingState(PendingState.NOMINATED, since)
    return WaitingState(PendingState.STALE_NOMINATION, since)


def _attempted(pod: Pod, verdict: Verdict, context: PendingContext) -> WaitingState:
    """The state of a pod that depends on the scheduler's last attempt."""
    rejection = rejection_of(pod)
    last = context.attempts.last_of(pod)
    if rejection is None and last is None:
        return WaitingState(PendingState.NEVER_ATTEMPTED, pod.metadata.creation_timestamp)
    began = rejection.last_transition_time if rejection else None
    known = last or began
    if known is not None and timedelta(0) <= context.at - known < context.max_backoff:
        return WaitingState(PendingState.BACKING_OFF, known, known + context.max_backoff)
    state = PendingState.FITS_NOW if verdict.outcome == Outcome.LANDS else PendingState.WAITS_FOR_CHANGE
    is_known = last is not None and not context.attempts.may_be_later(pod)
    return WaitingState(state, began or last, last + LONGEST_WAIT if last is not None and is_known else None)


def causes_in(message: str) -> tuple[list[str], list[str]]:
    """The reasons of nodes and the preemption message, each without counts and in a fixed order."""
    head, preemption = split_preemption(message)
    return _reasons(head), _reasons(preemption)


def split_preemption(message: str) -> tuple[str, str]:
    """Split the scheduler's message into the reasons of nodes, and what it says about preemption, if anything."""
    head, _, preemption = message.partition(_PREEMPTION)
    return _DEALLOCATION.sub("", head), preemption


def counts_in(message: str) -> dict[str, int]:
    """The number of nodes per reason, the most frequent first; empty if the message has another format."""
    head, _ = split_preemption(message)
    if head.startswith(_PREDICATES):
        head = head.removeprefix(_PREDICATES)
        reasons, numbers = _COUNTED_BEHIND.split(head), _NUMBER_BEHIND.findall(head)
    elif counted := _NODES.match(head):
        head = head[counted.end() :].strip().rstrip(".")
        reasons, numbers = _COUNTED.split(head)[1:], _NUMBER.findall(head)
    else:
        return {}
    counts = {reason: int(number) for reason, number in zip(reasons, numbers, strict=False)}
    return dict(sorted(counts.items(), key=lambda each: -each[1]))


def cause_of(message: str) -> str:
    """The reasons of nodes in one line; a message in another format is returned as is."""
    return ", ".join(causes_in(message)[0])


def other_node_counts(pods: Iterable[Pod], cluster: ClusterSnapshot, at: datetime) -> list[Assumption]:
    """Report pods whose condition counts other nodes than the input has, with the age of the condition at ``at``.

    Nodes were added or removed since. It is informational only. If the input lacks nodes, that is reported elsewhere.
    """
    num_nodes = len(cluster.nodes)
    if is_partial(cluster):
        return []
    found: dict[int, list[tuple[Pod, PodCondition]]] = {}
    for pod in pods:
        rejection = rejection_of(pod)
        if rejection is not None and (number := counted_nodes(rejection.message)) not in (0, num_nodes):
            found.setdefault(number, []).append((pod, rejection))
    assumptions = []
    for number, own in found.items():
        conditions = "the condition" if len(own) == 1 else f"the conditions of {len(own):,} pods"
        times = [each.last_transition_time for _, each in own if each.last_transition_time is not None]
        if times:
            seconds = int((at - min(times)).total_seconds())
            # In the largest unit with a value of at least two.
            size, unit = next((each for each in _UNITS if seconds >= 2 * each[0]), (1, "s"))
            conditions += f" from {seconds // size}{unit} ago"
        nodes = "1 node" if number == 1 else f"{number:,} nodes"
        pod_names = some_of([pod.key for pod, _ in own])
        message = f"{conditions} ({pod_names}) counts {nodes}, but the input has {num_nodes:,}"
        assumptions.append(Assumption("Pod", "status.conditions", message, AssumptionKind.NOTE))
    return assumptions


def compare_messages(actual: str, expected: str) -> Agreement:
    """Compare the scheduler's message with the expected one."""
    if not actual or not expected:
        return Agreement.NONE
    if actual == expected:
        return Agreement.SAME
    return Agreement.SAME_REASONS_DIFFERENT_COUNTS if causes_in(actual) == causes_in(expected) else Agreement.DIFFERENT


def _reasons(text: str) -> list[str]:
    if text.startswith(_PREDICATES):
        return sorted(reason for reason in _COUNTED_BEHIND.split(text.removeprefix(_PREDICATES)) if reason)
    counted = _NODES.match(text)
    if counted is None:
        # If nodes tie, the scheduler names the one that it picks.
        text = _PLACEMENT.sub(r"\1", text.strip())
        return [text] if text else []
    rest = text[counted.end() :].strip().rstrip(".")
    # A reason may contain commas; the next one starts with its number.
    return sorted(reason for reason in _COUNTED.split(rest) if reason)
