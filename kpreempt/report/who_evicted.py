"""Why a pod was evicted: a sentence on the last eviction, then each eviction with its evidence."""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.report.amounts import count, format_duration, format_since, format_snapshot, format_time
from kpreempt.report.blocks import Phrase, Report, Rows, Section, Span, Words, joined, name, strong
from kpreempt.report.evidence import assumption_sections, describe, format_budgets, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.unread import are_budgets_unread
from kpreempt.verdict.who_evicted import (
    Evidence,
    PodLocation,
    PodPhase,
    Preemption,
    PreemptionsOfPod,
    Reconstruction,
    ReconstructionResult,
)

_NAMES = 4
_EVICTION = 60


def report(answer: PreemptionsOfPod, options: RenderOptions) -> Report:
    """A section per eviction, latest first."""
    was = " was preempted" if answer.preemptions else " has no known preemption"
    lacks_budgets = are_budgets_unread(answer.assumptions)
    # Without events, little can be concluded.
    is_known = not answer.preemptions and not answer.assumptions and answer.has_events
    return Report(
        title=(name(answer.victim.pod), Span(was, "strong")),
        tone="good" if is_known else "warn",
        lead=_headline(answer, options),
        facts=[_victim_facts(answer, options)],
        sections=[
            *(_eviction(each, number, lacks_budgets) for number, each in enumerate(answer.preemptions, 1)),
            *assumption_sections(answer.assumptions),
        ],
        command="who-evicted",
    )


def _eviction(preemption: Preemption, number: int, lacks_budgets: bool) -> Section:
    source = "CONDITION" if preemption.evidence == Evidence.CONDITION else "EVENT"
    when = format_time(preemption.at) if preemption.at else ""
    return Section(
        source,
        (f"{when}: " if when else "", preemption.message),
        [Rows(list(_facts(preemption, lacks_budgets)))],
        heading=f"Eviction at {when or 'an unknown time'}",
        anchor=f"eviction-{number}",
        is_inline=True,
        priority=_EVICTION,
    )


def _facts(preemption: Preemption, lacks_budgets: bool) -> Iterable[tuple[str, Words]]:
    """The preemptor, the node and the evidence, as terms with their values."""
    if preemption.preemptor is not None:
        # The preemptor's current location, in parentheses.
        facts = [_describe_location(preemption.preemptor)]
        if preemption.preemptor.priority is not None:
            facts.append(f"priority {preemption.preemptor.priority:,}")
        if preemption.preemptor.owner:
            facts.append(preemption.preemptor.owner)
        yield "by", (*_name_of_preemptor(preemption), f" ({'; '.join(facts)})")
    if preemption.possible_preemptors:
        yield (
            "possibly by",
            joined((strong(each.pod), f" ({_describe_location(each)})") for each in preemption.possible_preemptors),
        )
    if preemption.node:
        yield "on", name(preemption.node)
    if preemption.other_victims:
        yield (
            "also",
            f"preempted by the same pod: {join_names(preemption.other_victims, limit=len(preemption.other_victims))}",
        )
    if (found := preemption.reconstruction) is not None:
        there = " (with the preemptor added, because it did not exist yet)" if found.is_preemptor_overlaid else ""
        by = f" by {found.algorithm}" if found.algorithm else ""
        result, *details = _result_in_words(found)
        yield "before", (result, f"{by} with the {format_snapshot(found.taken_at)}{there}", *details)
        yield from _reconstruction(found, lacks_budgets)


def _reconstruction(found: Reconstruction, lacks_budgets: bool) -> Iterable[tuple[str, Words]]:
    """What the snapshot from before the eviction shows."""
    if found.rejection is not None and not found.rejection.is_success:
        evidence = describe(found.rejection.detail)
        words = f"{found.rejection.message}{f' ({evidence})' if evidence else ''}"
        yield "why", f"the preemptor did not fit on {found.node}: {words}"
    step = found.step
    if step is None:
        return
    without = "; budgets were not read" if lacks_budgets else "; no budget"
    budgets: Phrase = ("; budget ", *format_budgets(step.budgets)) if step.budgets else (without,)
    if step.is_reprieved:
        yield "reprieve", (f"reprieved on {found.node}", *budgets)
        return
    blocked = step.blocked_by
    why = (describe(blocked.detail) or blocked.message) if blocked is not None else "the preemptor would not fit"
    yield "reprieve", (f"not reprieved: {why}", *budgets)


def _headline(answer: PreemptionsOfPod, options: RenderOptions) -> Phrase:
    """Whether the pod was preempted, by which pod and when, in a sentence or two."""
    victim = strong(answer.victim.pod)
    if not answer.preemptions:
        was_not = Span(" was not preempted by a scheduler", "warn" if answer.disruption else "good")
        return (victim, was_not, ", as far as the snapshot shows: ", *_why_nothing(answer))
    last = answer.preemptions[0]
    since = format_since(last.at, options.now)
    when = f", {since}{'' if since.startswith('since') else ' ago'}" if last.at else ""
    if last.preemptor is not None:
        node = f" on {last.node}" if last.node else ""
        priority = f" (priority {last.preemptor.priority:,})" if last.preemptor.priority is not None else ""
        return (
            victim,
            Span(" was preempted", "warn"),
            " by ",
            *_name_of_preemptor(last),
            f"{priority}{node}{when}.",
        )
    if last.evidence == Evidence.CONDITION:
        unread = _unread_events(answer)
        why = (
            f"; the event would name the preemptor, but events {unread}"
            if unread
            else "; the event that names the preemptor has expired (API servers keep events for an hour)"
        )
        return (victim, Span(" was preempted", "warn"), f" by the scheduler{when}{why}.")
    return (victim, Span(" was preempted", "warn"), f"{when}; the event does not name the preemptor.")


def _why_nothing(answer: PreemptionsOfPod) -> Phrase:
    if answer.disruption:
        return ("its DisruptionTarget condition reads ", strong(answer.disruption.rstrip(".")), ".")
    if unread := _unread_events(answer):
        return (f"it has no DisruptionTarget condition, and events {unread}.",)
    event = (
        "there is no Preempted event"
        if answer.has_events
        else "no Preempted event was read (a snapshot needs kubectl get events -A)"
    )
    return (f"{event}, and the pod has no DisruptionTarget condition. API servers keep events for an hour by default.",)


def _unread_events(answer: PreemptionsOfPod) -> str:
    """Why events could not be read, or an empty text if they were."""
    return next((each.message for each in answer.assumptions if each.subject == "Event"), "")


def _name_of_preemptor(preemption: Preemption) -> Phrase:
    """The preemptor, by its UID if its name is unknown."""
    preemptor = preemption.preemptor
    assert preemptor is not None
    kind = "pod group " if preemption.is_pod_group else ""
    if preemptor.pod:
        return (kind, strong(preemptor.pod))
    return (kind or "a pod known only by UID, ", strong(preemptor.uid))


def _victim_facts(answer: PreemptionsOfPod, options: RenderOptions) -> str:
    """The victim's location, owner and priority, and when its grace period ends."""
    facts = [_describe_location(answer.victim)]
    if answer.victim.owner:
        facts.append(answer.victim.owner)
    if answer.victim.priority is not None:
        facts.append(f"priority {answer.victim.priority:,}")
    if answer.terminating_until is not None:
        facts.append(f"grace period until {format_time(answer.terminating_until)}")
        if options.now is not None and (over := int((options.now - answer.terminating_until).total_seconds())) > 0:
            facts[-1] = f"grace period ended at {format_time(answer.terminating_until)}, {format_duration(over)} ago"
    if answer.finalizers:
        facts.append(f"held by finalizer {join_names(answer.finalizers)}")
    return f"victim: {' · '.join(facts)}"


def _describe_location(pod: PodLocation) -> str:
    """The current location of a pod."""
    nominated = f", nominated to {pod.nominated_node_name}" if pod.nominated_node_name else ""
    on = f" on {pod.node}" if pod.node else ""
    return {
        PodPhase.RUNNING: f"now on {pod.node}",
        PodPhase.TERMINATING: f"terminating{on}",
        PodPhase.PENDING: f"still pending{nominated}",
        PodPhase.FINISHED: f"finished{on}",
        PodPhase.NOT_FOUND: "deleted",
        PodPhase.UNKNOWN: "no pod with that UID in the cluster",
    }[pod.phase]


def _result_in_words(found: Reconstruction) -> Phrase:
    """How far the earlier snapshot confirms the eviction."""
    nodes = join_names(found.nodes)
    victims = f"{count(len(found.victims), 'pod')} ({join_names(found.victims, limit=_NAMES)})"
    return {
        ReconstructionResult.CONFIRMED: (Span("confirmed", "good"), f": the preemptor evicts {victims} on {nodes}"),
        ReconstructionResult.OTHER_VICTIMS: (
            Span("not confirmed", "warn"),
            f": the preemptor would evict other pods on {nodes}",
        ),
        ReconstructionResult.NO_PREEMPTION: (
            Span("not confirmed", "warn"),
            f": the preemptor would land on {nodes}"
            if found.nodes
            else ": the preemptor would neither evict pods nor land",
        ),
        ReconstructionResult.NO_VICTIM: (Span("not confirmed", "warn"), ": the pod was not on a node"),
        ReconstructionResult.NO_PREEMPTOR: (
            Span("not confirmed", "warn"),
            ": the preemptor is neither in that snapshot nor in the cluster now",
        ),
    }[found.result]
