"""What events say, for text that was pasted and for pods of a cluster; equal events are merged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from kpreempt.analysis.autoscaling.events import report_of
from kpreempt.analysis.messages.pasted import PastedEvent, PastedObject
from kpreempt.analysis.messages.scheduling import explain_message
from kpreempt.model.creation_failures import parse_failure
from kpreempt.model.event import (
    FAILED_CREATION,
    FAILED_SCHEDULING,
    KUBELET_REASONS,
    PREEMPTED,
    PREEMPTED_TEXT,
    Event,
    EventSource,
    ObjectReference,
    autoscaler_of,
)
from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME, RESIZE_PENDING, Pod
from kpreempt.model.terminations import termination_in, terminations_of
from kpreempt.verdict.messages import EventTopic, ExplainedEvent, ExplainedEvents, ExplainedObject
from kpreempt.verdict.waiting import MessageForm, SchedulerMessage
from kpreempt.verdict.who_evicted import PodTermination
from kpreempt.verdict.workload import FailedCreation

_SCHEDULED = "Scheduled"
_ASSIGNED = re.compile(r"Successfully assigned \S{1,510} to (?P<node>[\w.-]{1,253})")
# The condition that says why a pod is not scheduled, and the reasons that events and that condition use.
_CONDITION = "PodScheduled"
_SCHEDULING_REASONS = frozenset((FAILED_SCHEDULING, "Unschedulable", "SchedulingGated", "SchedulerError"))
_RESIZE = "Resize"
# Part of the names under which other schedulers report events.
_OTHER_SCHEDULERS = {"volcano": "Volcano", "vc-": "Volcano", "yunikorn": "YuniKorn", "kueue": "Kueue"}


def explain_events(objects: Iterable[PastedObject]) -> ExplainedEvents:
    """Return what the events of each object say; the object with the latest event comes first."""
    merged: dict[tuple[str, str, str], PastedObject] = {}
    for each in objects:
        key = (each.kind, each.namespace, each.name)
        if key in merged and each.name:
            merged[key].events += each.events
        else:
            merged[key if each.name else (each.kind, "", f"/{len(merged)}")] = each
    explained = [explain_object(each) for each in merged.values()]
    items = [each for each in explained if each.events]
    return ExplainedEvents(
        items=sorted(items, key=lambda each: min(map(_recency, each.events))), other_objects=len(explained) - len(items)
    )


def explain_object(pasted: PastedObject) -> ExplainedObject:
    """Return what the events of one object say, the latest first; equal ones are merged."""
    found: dict[tuple[str, str], tuple[bool, ExplainedEvent]] = {}
    others = 0
    # Of events of the same age, the last one in the text is the latest.
    for each in reversed(pasted.events):
        explained, is_current = explain_event(each.event, each.age), each.is_current
        if explained.topic is EventTopic.OTHER:
            others += explained.times
            continue
        # A condition has its own reason for the same message.
        key = ("" if explained.scheduling is not None else explained.reason, explained.message)
        if key in found:
            was_current, same = found[key]
            latest = min(same, explained, key=_recency)
            explained = msgspec.structs.replace(latest, times=same.times + explained.times)
            is_current = is_current or was_current
        found[key] = (is_current, explained)
    ordered = sorted(found.values(), key=lambda each: (not each[0], _recency(each[1])))
    return ExplainedObject(
        kind=pasted.kind,
        namespace=pasted.namespace,
        name=pasted.name,
        node=pasted.node,
        nominated_node=pasted.nominated_node,
        priority=pasted.priority,
        events=[each for _, each in ordered],
        other_events=others,
    )


def pasted_pod(pod: Pod, events: Sequence[Event] = ()) -> PastedObject:
    """Return a pod of the API with its conditions, its status, and ``events`` about it."""
    reference = ObjectReference("Pod", pod.metadata.namespace, pod.metadata.name)

    def state(reason: str, message: str, at: datetime | None, source: EventSource) -> Event:
        """A condition or status of the pod, as an event about it."""
        return Event(reason=reason, involved_object=reference, message=message, event_time=at, source=source)

    kubelet = EventSource("kubelet", pod.spec.node_name)
    states = [
        state(each.reason, each.message, each.last_transition_time, EventSource())
        for each in pod.status.conditions
        if each.type == _CONDITION and each.status == "False" and each.message
    ]
    states += [
        state(f"{_RESIZE}{each.reason}", each.message, each.last_transition_time, EventSource())
        for each in pod.status.conditions
        if each.type == RESIZE_PENDING and each.status == "True"
    ]
    states += [state(each.reason, each.message, each.at, kubelet) for each in terminations_of(pod) if each.reason]
    return PastedObject(
        "Pod",
        pod.metadata.namespace,
        pod.metadata.name,
        pod.spec.node_name,
        pod.status.nominated_node_name,
        pod.spec.priority,
        [*(PastedEvent(each, is_current=True) for each in states), *map(PastedEvent, events)],
    )


def explain_event(event: Event, age: int | None = None) -> ExplainedEvent:
    """Return what one event says; ``age`` is in seconds, for an event without a time."""
    text = " ".join(event.text.split())
    found = ExplainedEvent(
        topic=EventTopic.OTHER,
        reason=event.reason,
        message=text,
        reporter=event.reporter,
        at=event.last_time,
        age_seconds=age,
        times=event.times_seen,
    )
    return msgspec.structs.replace(found, **_details(event, text))


def _details(event: Event, text: str) -> dict[str, object]:
    """The fields that depend on what the event is about."""
    reason, reporter = event.reason, event.reporter
    if (autoscaler := autoscaler_of(event)) is not None:
        return {"topic": EventTopic.AUTOSCALER, "autoscaler": report_of(autoscaler, event, "")}
    if reason in _SCHEDULING_REASONS:
        scheduler = _scheduler(reporter)
        message = None if scheduler else explain_message(text)
        # A kube-scheduler reports under the name of a profile, so another name shows nothing.
        message = message or SchedulerMessage(
            message=text, form=MessageForm.OTHER_SCHEDULER, scheduler=scheduler or _unless_default(reporter)
        )
        is_other = message.form is MessageForm.OTHER_SCHEDULER
        return {"topic": EventTopic.OTHER_SCHEDULER if is_other else EventTopic.SCHEDULING, "scheduling": message}
    if reason == _SCHEDULED and (match := _ASSIGNED.match(text)):
        return {"topic": EventTopic.SCHEDULED, "node": match["node"]}
    if reason == PREEMPTED and (match := PREEMPTED_TEXT.fullmatch(text)):
        related = event.related.key if event.related is not None and event.related.name else ""
        return {
            "topic": EventTopic.PREEMPTED,
            "preemptor": related or (f"{match['namespace']}/{match['name']}" if match["name"] else ""),
            "preemptor_uid": match["uid"] or match["bare_uid"] or "",
            "node": match["node"],
        }
    if reason in FAILED_CREATION:
        failure = parse_failure(text)
        return {
            "topic": EventTopic.CREATION,
            "creation": FailedCreation(
                step=failure.step,
                message=failure.message,
                object=failure.name,
                attempts=event.times_seen,
                last_attempt=event.last_time,
                pod=failure.pod,
                claim=failure.claim,
            ),
        }
    if (end := termination_in(event)) is not None:
        return {"topic": EventTopic.TERMINATION, "termination": PodTermination.of_texts([end], node=event.host)}
    if reason.startswith(_RESIZE):
        return {"topic": EventTopic.RESIZE}
    return {"topic": EventTopic.KUBELET} if reason in KUBELET_REASONS else {}


def _scheduler(reporter: str) -> str:
    """The program that reports under this name; empty for a kube-scheduler, or an unknown one."""
    name = reporter.lower()
    return next((scheduler for part, scheduler in _OTHER_SCHEDULERS.items() if part in name), "")


def _unless_default(reporter: str) -> str:
    return "" if reporter == DEFAULT_SCHEDULER_NAME else reporter


def _recency(event: ExplainedEvent) -> float:
    """A number that is smaller the later the event is; those without a time come last."""
    if event.age_seconds is not None:
        return event.age_seconds
    return -event.at.timestamp() if event.at is not None else float("inf")
