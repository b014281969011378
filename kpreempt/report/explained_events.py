"""Pasted events in words: the object with the latest event in full, and a line for each of the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from kpreempt.model.meta import grouped
from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME
from kpreempt.report.amounts import ago, agree, count
from kpreempt.report.autoscaling import autoscaling_section
from kpreempt.report.blocks import Listing, Phrase, Report, Section, Span, Words, strong
from kpreempt.report.evidence import assumption_sections
from kpreempt.report.messages import PodInMessage, complete_command, lead_of_message, message_sections, versions_of
from kpreempt.report.missing_pods import in_a_line
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import message as quoted
from kpreempt.report.quoting import name
from kpreempt.report.terminations import preemptor_name, sentence
from kpreempt.verdict.autoscaling import Autoscaling, PodAutoscaling
from kpreempt.verdict.messages import EventTopic, ExplainedEvent, ExplainedEvents, ExplainedObject
from kpreempt.verdict.workload import MissingPods, MissingReason

# Ages of pasted events count from when they were printed; only the difference of the two times is shown.
_PRINTED = datetime(2000, 1, 1, tzinfo=UTC)
_OTHERS, _PARTS, _MORE = 90, 80, 60
_OTHERS_SHOWN = 8
# The kubelet's reasons (``pkg/kubelet/events`` of v1.36.3); the message is JSON, with the cause as its error.
_RESIZES = {
    "ResizeDeferred": "was deferred by the kubelet",
    "ResizeInfeasible": "was rejected as infeasible by the kubelet",
    "ResizeStarted": "has started",
    "ResizeCompleted": "is complete",
    "ResizeError": "failed",
}
_RESIZE_ERROR = re.compile(r"(?:\"error\":\"|^(?!Pod resize))([^\"{]{1,500})")
_EARLIER_SHOWN = 4
_FACTS_SHOWN = 2


class _Times(NamedTuple):
    """When an event was, and the time to which its age counts."""

    at: datetime | None
    now: datetime | None


def report(answer: ExplainedEvents, options: RenderOptions) -> Report:
    """What the latest event says, part by part, and the other objects in a line each."""
    if not answer.items:
        events = "The input has events, but none is" if answer.other_objects else "No event of the input is"
        return Report(
            lead=f"{events} about scheduling, or about the end or the creation of pods.",
            sections=assumption_sections(answer.assumptions),
            command="explain",
        )
    first, *others = answer.items
    alike = grouped(answer.items, _message)
    leads = [(*lead_of_object(same[0], options), *_and_more(len(same) - 1)) for same in alike.values()]
    listed: list[list[Words]] = [[each] for each in leads[1:]]
    return Report(
        title=name(" ".join(filter(None, (first.kind, first.key))) or "Message", "strong"),
        tone="warn",
        lead=(*_reported(first, options), *leads[0]),
        facts=[" · ".join(_facts(first, options))],
        short_facts=" · ".join(_facts(first, options)[:_FACTS_SHOWN]),
        sections=[
            *object_sections(first, options, priority=_PARTS),
            Section(
                "OTHERS",
                blocks=[Listing(listed, noun="object", shown=_OTHERS_SHOWN)],
                heading="The other objects",
                is_inline=True,
                priority=_OTHERS,
                only="screen",
            ),
            *(
                Section("", lead_of_object(each, options), object_sections(each, options), noun="object")
                for each in others
            ),
            *assumption_sections(answer.assumptions),
        ],
        command="explain",
        is_compact=True,
    )


def _reported(item: ExplainedObject, options: RenderOptions) -> Phrase:
    """That the scheduler's message is no verdict, and how old it is."""
    event = _main(item)
    times = _times(event, options)
    return (f"Reported{ago(times.at, times.now)}, not verified: ",) if event.scheduling is not None else ()


def _message(item: ExplainedObject) -> str:
    """What the latest event says if it may be the same for several pods, else what identifies the object."""
    event = _main(item)
    return event.message if event.scheduling is not None else f"{item.kind} {item.key}"


def _and_more(number: int) -> Phrase:
    return (f" {count(number, 'more pod')} {agree(number, 'has')} the same message.",) if number else ()


def lead_of_object(item: ExplainedObject, options: RenderOptions) -> Phrase:
    """What the latest event about an object says, in a sentence."""
    event = _main(item)
    pod = _pod(item)
    times = _times(event, options)
    match event.topic:
        case EventTopic.SCHEDULING | EventTopic.OTHER_SCHEDULER if event.scheduling is not None:
            return lead_of_message(event.scheduling, pod)
        case EventTopic.TERMINATION if event.termination is not None:
            return sentence(pod.words.text, event.termination, times.now)
        case EventTopic.CREATION if event.creation is not None:
            controller = f"{item.kind or 'Controller'} {pod.key or 'unnamed'}"
            missing = MissingPods(
                workload=controller,
                controller=controller,
                reason=MissingReason.FAILED_CREATE,
                failure=event.creation,
            )
            return ("The API server rejects new pods: ", *in_a_line(missing, times.now), ".")
        case EventTopic.PREEMPTED:
            by: Phrase = ("a pod that the event does not name",)
            if event.preemptor or event.preemptor_uid:
                by = preemptor_name(event.preemptor, event.preemptor_uid, is_pod_group="podgroup" in event.message)
            preempted = Span(" was preempted", "warn")
            return (pod.words, preempted, " by ", *by, f", on {event.node}{ago(times.at, times.now)}.")
        case EventTopic.SCHEDULED:
            node = Span(f" was assigned to {event.node}", "good")
            return (pod.words, node, f"{ago(times.at, times.now)}; the scheduler is done with it.")
        case EventTopic.RESIZE:
            error = _RESIZE_ERROR.search(event.message)
            why: Phrase = (": ", quoted(error[1])) if error else ()
            state = _RESIZES.get(event.reason, "was reported")
            return (pod.words, ": its in-place resize ", Span(state, "warn"), ago(times.at, times.now), *why, ".")
        case EventTopic.KUBELET:
            start = Span(" has a node, but does not start there", "warn")
            return (pod.words, start, f": {event.reason}: ", quoted(event.message), ".")
    return (pod.words, ": ", quoted(event.message or event.reason), ".")


def object_sections(item: ExplainedObject, options: RenderOptions, *, priority: int = 0) -> list[Section]:
    """The parts of the latest message about an object, what autoscalers report, and its earlier events."""
    event = _main(item)
    pod = _pod(item)
    parts = message_sections(event.scheduling, pod, priority=priority) if event.scheduling is not None else []
    if not parts and (command := _command(item, event)):
        parts = [Section("LOOK AT", blocks=[Listing([[command]])], is_inline=True, priority=priority)]
    timed = [(each.autoscaler, _times(each, options)) for each in item.events if each.autoscaler is not None]
    reports = [msgspec.structs.replace(each, at=times.at) for each, times in timed]
    autoscalers = []
    if reports:
        found = Autoscaling(
            autoscalers=list(dict.fromkeys(each.autoscaler for each in reports)),
            pods=[PodAutoscaling(pods=[pod.key], reports=reports)],
        )
        autoscalers = [autoscaling_section(found, timed[0][1].now, priority=priority and _MORE)]
    earlier: list[list[Words]] = [
        [_line(each, options)] for each in item.events if each is not event and each.autoscaler is None
    ]
    return [
        *parts,
        *autoscalers,
        Section(
            "EARLIER",
            blocks=[Listing(earlier, noun="event", shown=_EARLIER_SHOWN)],
            heading="Earlier events",
            is_inline=True,
            priority=priority and _MORE,
        ),
    ]


def _pod(item: ExplainedObject) -> PodInMessage:
    return PodInMessage(item.namespace, item.name, has_priority=item.priority is not None)


def _main(item: ExplainedObject) -> ExplainedEvent:
    """The latest event that is not an autoscaler's, which only comments on the scheduler's."""
    return next((each for each in item.events if each.topic is not EventTopic.AUTOSCALER), item.events[0])


def _times(event: ExplainedEvent, options: RenderOptions) -> _Times:
    if event.age_seconds is not None:
        return _Times(_PRINTED - timedelta(seconds=event.age_seconds), _PRINTED)
    return _Times(event.at, options.now)


def _when(event: ExplainedEvent, options: RenderOptions) -> str:
    """``4m ago, 12 times``."""
    times = _times(event, options)
    when = ago(times.at, times.now).removeprefix(" at").strip()
    return ", ".join(filter(None, (when, f"{event.times:,} times" if event.times > 1 else "")))


def _line(event: ExplainedEvent, options: RenderOptions) -> Phrase:
    when = _when(event, options)
    return (strong(event.reason or "message"), f" {when}: " if when else ": ", quoted(event.message))


def _facts(item: ExplainedObject, options: RenderOptions) -> list[str]:
    """The event that is explained, the versions that write it so, and what a description says about the pod."""
    event = _main(item)
    reporter = f"from {event.reporter}" if event.reporter not in ("", DEFAULT_SCHEDULER_NAME) else ""
    facts = [" ".join(filter(None, (event.reason, reporter, _when(event, options))))] if event.reason else []
    if event.scheduling is not None and (versions := versions_of(event.scheduling)):
        facts.append(f"wording of {versions}")
    if item.priority is not None:
        facts.append(f"priority {item.priority:,}")
    if item.node:
        facts.append(f"on {item.node}")
    if item.nominated_node:
        facts.append(f"nominated to {item.nominated_node}: pods are evicted there for it")
    if item.other_events:
        facts.append(f"{count(item.other_events, 'other event')}")
    return facts


def _command(item: ExplainedObject, event: ExplainedEvent) -> Words:
    """The command that answers completely."""
    names: Sequence[str] = (item.name or "NAME", "-n", item.namespace or "NAMESPACE")
    match event.topic:
        case EventTopic.TERMINATION | EventTopic.PREEMPTED:
            return Span(" ".join(("kpreempt who-evicted", *names)), "code")
        case EventTopic.CREATION if item.kind:
            return Span(" ".join(("kpreempt explain", item.kind.lower(), *names)), "code")
        case EventTopic.KUBELET:
            return complete_command(_pod(item))
    return ""
