"""What ended a pod: a sentence on its last end, then each end with its evidence, and each preemption explained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.model.event import PREEMPTED
from kpreempt.model.terminations import EvidenceSource, TerminationCause
from kpreempt.report.amounts import ago, count, format_duration, format_snapshot, format_time
from kpreempt.report.blocks import Phrase, Report, Rows, Section, Sentence, Span, Words, joined, name, strong
from kpreempt.report.evidence import absent_facts, assumption_sections, describe, format_budgets, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.report.terminations import preemptor_name, sentence
from kpreempt.verdict import Assumption
from kpreempt.verdict.unread import are_budgets_unread
from kpreempt.verdict.who_evicted import (
    EvictionsOfPod,
    Evidence,
    EvidenceText,
    PodLocation,
    PodPhase,
    PodTermination,
    Preemption,
    Reconstruction,
    ReconstructionResult,
    Sources,
)

_NAMES = 4
_EVICTION, _LOOKED_AT = 60, 20
_SOURCES = {
    EvidenceSource.CONDITION: "CONDITION",
    EvidenceSource.STATUS: "STATUS",
    EvidenceSource.CONTAINER: "CONTAINER",
    EvidenceSource.EVENT: "EVENT",
    EvidenceSource.AUDIT_LOG: "AUDIT LOG",
}
# Names that another pod may have had before.
_STABLE_OWNERS = ("", "StatefulSet")


def report(answer: EvictionsOfPod, options: RenderOptions) -> Report:
    """A sentence on the last end of the pod, then a section per end with its evidence, latest first."""
    latest = answer.items[0] if answer.items else None
    is_open = latest is None and answer.victim.phase is PodPhase.NOT_FOUND
    is_bad = is_open or (latest is not None and (latest.is_eviction or latest.cause is not TerminationCause.DELETED))
    lacks_budgets = are_budgets_unread(answer.assumptions)
    is_uncertain = is_open or (latest is not None and latest.cause is TerminationCause.DELETED)
    looked = looked_at(answer.sources, answer.assumptions)
    return Report(
        title=(name(answer.victim.pod), Span(f" {_title(answer)}", "strong")),
        tone="warn" if is_bad else "good",
        lead=_headline(answer, options),
        facts=[_victim_facts(answer, options), *absent_facts(answer.assumptions)],
        sections=[
            *(
                _eviction(each, number, lacks_budgets, options)
                for number, each in enumerate(answer.items, 1)
                if each.evidence or each.owner_changes
            ),
            *([looked] if is_uncertain or options.is_full else []),
            *assumption_sections(answer.assumptions),
        ],
        more=[("--audit-log FILE", "which user or program requested it")] if _lacks_client(answer) else [],
        command="who-evicted",
    )


def looked_at(sources: Sources, assumptions: Sequence[Assumption]) -> Section:
    """What an answer is based on, and what it lacks."""
    unread = unread_events(assumptions)
    if unread:
        events = f"events {unread}"
    elif not sources.has_events:
        events = "no events (a snapshot needs kubectl get events -A)"
    else:
        since, until = sources.events_since, sources.events_until
        times = f", from {format_time(since)} to {format_time(until)}" if since and until else ""
        events = f"{count(sources.events, 'event')} about terminated pods{times} (API servers keep them for an hour)"
    if sources.audit_requests is None:
        audit = "no audit log"
    else:
        since, until = sources.audit_since, sources.audit_until
        times = f" from {format_time(since)} to {format_time(until)}" if since and until else ""
        audit = f"an audit log{times}"
    words = f"conditions and statuses of pods; {events}; {audit}"
    return Section("LOOKED AT", blocks=[Sentence(words)], is_inline=True, is_reasoning=True, priority=_LOOKED_AT)


def unread_events(assumptions: Sequence[Assumption]) -> str:
    """Why events could not be read, or an empty text if they were."""
    return next((each.message for each in assumptions if each.subject == "Event"), "")


def _lacks_client(answer: EvictionsOfPod) -> bool:
    if answer.sources.audit_requests is not None or not answer.items:
        return False
    latest = answer.items[0]
    is_unknown = latest.client is None or latest.client.is_likely
    return latest.cause is TerminationCause.DELETED or (latest.cause is TerminationCause.EVICTION_API and is_unknown)


def _title(answer: EvictionsOfPod) -> str:
    if answer.items and is_only_marked(answer.victim, answer.items[0]):
        return "is not terminating"
    if answer.items:
        return "was evicted" if answer.items[0].is_eviction else "was not evicted"
    return "is gone" if answer.victim.phase is PodPhase.NOT_FOUND else "was not evicted"


def _eviction(item: PodTermination, number: int, lacks_budgets: bool, options: RenderOptions) -> Section:
    when = format_time(item.at) if item.at else ""
    first = item.evidence[0] if item.evidence else None
    rows = list(_facts(item.preemption, lacks_budgets)) if item.preemption is not None else list(_facts_of(item))
    known = {first.message if first is not None else ""}
    for each in item.evidence[1:]:
        # The same text in the condition, the status and the event is shown once.
        if options.is_full or not any(each.message.strip() in text for text in known):
            known.add(each.message)
            rows.append((_SOURCES[each.source].lower(), _quoted(each)))
    return Section(
        _SOURCES[first.source] if first is not None else "OWNER",
        _quoted(first) if first is not None else "",
        [Rows(rows)],
        heading=f"{'Eviction' if item.is_eviction else 'End'} at {when or 'an unknown time'}",
        anchor=f"eviction-{number}",
        is_inline=True,
        priority=_EVICTION - min(number, 10),
    )


def _quoted(evidence: EvidenceText) -> str:
    """The text with its time and, unless the text is the scheduler's, its reason."""
    when = f"{format_time(evidence.at)}: " if evidence.at else ""
    reporter = f" ({evidence.reporter})" if evidence.source is EvidenceSource.EVENT and evidence.reporter else ""
    texts = [evidence.message] if evidence.reason == PREEMPTED else [evidence.reason, evidence.message]
    if evidence.source is EvidenceSource.AUDIT_LOG:
        texts = [evidence.message]
    return f"{when}{': '.join(filter(None, texts))}{reporter}"


def _facts_of(item: PodTermination) -> Iterable[tuple[str, Words]]:
    """What is known of an end that is no preemption, in addition to the sentence."""
    client, alike = item.client, item.alike
    if client is not None and client.user_agent:
        yield "client", client.user_agent
    if item.rejected_requests:
        yield "before", f"{count(item.rejected_requests, 'eviction request')} rejected, for example by a budget"
    for change in item.owner_changes[:_NAMES]:
        when = f" at {format_time(change.at)}" if change.at is not None else ""
        yield "changed", f"{change.object} ({join_names(change.fields)}) by {change.manager}{when}"
    # The sentence about a rejection counts them.
    if alike is not None and item.cause is not TerminationCause.REJECTED:
        since, until = alike.since, alike.until
        times = f", created from {format_time(since)} to {format_time(until)}" if since and until else ""
        yield "also", f"{count(alike.pods, 'more pod')} of {alike.owner}{times}"


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


def _headline(answer: EvictionsOfPod, options: RenderOptions) -> Phrase:
    """What ended the pod, when and why, in a sentence or two."""
    if not answer.items:
        return _nothing_known(answer)
    latest = answer.items[0]
    says = _preempted(answer, latest, options) if latest.preemption is not None else None
    words = says or sentence(answer.victim.pod, latest, options.now)
    if is_only_marked(answer.victim, latest):
        condition = latest.evidence[0]
        return (
            strong(answer.victim.pod),
            Span(" is not terminating", "warn"),
            f", although it has the condition DisruptionTarget ({condition.reason}: {condition.message.rstrip('.')}): "
            "it is about to be evicted, or its eviction failed.",
        )
    is_earlier = bool(answer.victim.uid) and latest.uid not in ("", answer.victim.uid)
    if is_earlier and answer.victim.phase is not PodPhase.NOT_FOUND:
        return ("An earlier pod of this name ended: ", *words)
    return words


def is_only_marked(pod: PodLocation, item: PodTermination) -> bool:
    """Whether a condition announces the end of a pod that goes on."""
    goes_on = pod.phase in (PodPhase.RUNNING, PodPhase.PENDING) and item.uid == pod.uid
    return goes_on and item.is_eviction and all(each.source is EvidenceSource.CONDITION for each in item.evidence)


def _preempted(answer: EvictionsOfPod, item: PodTermination, options: RenderOptions) -> Phrase:
    last = item.preemption
    assert last is not None
    victim = strong(answer.victim.pod)
    when = f",{ago(last.at, options.now)}" if last.at else ""
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
        unread = unread_events(answer.assumptions)
        why = (
            f"; the event would name the preemptor, but events {unread}"
            if unread
            else "; the event that names the preemptor has expired (API servers keep events for an hour)"
        )
        return (victim, Span(" was preempted", "warn"), f" by the scheduler{when}{why}.")
    return (victim, Span(" was preempted", "warn"), f"{when}; the event does not name the preemptor.")


def _nothing_known(answer: EvictionsOfPod) -> Phrase:
    """What the pod itself shows if nothing ended it: whether it goes on, and what is unknown."""
    pod = answer.victim
    subject = strong(pod.pod)
    not_evicted = Span(" was not evicted", "good")
    if pod.phase is PodPhase.NOT_FOUND:
        gone = Span(" is gone", "warn")
        return (subject, gone, ", and nothing shows what ended it: neither an eviction nor anything else is excluded.")
    if pod.phase is PodPhase.FINISHED:
        return (subject, not_evicted, ": it finished, and nothing but its containers ended it.")
    goes_on = f"it is running on {pod.node}" if pod.phase is PodPhase.RUNNING else "it is pending, and never ran"
    earlier = ""
    if pod.owner.partition(" ")[0] in _STABLE_OWNERS:
        earlier = " Whether an earlier pod of this name was evicted is unknown: events are kept for an hour."
    return (subject, not_evicted, f": {goes_on}.{earlier}")


def _name_of_preemptor(preemption: Preemption) -> Phrase:
    """The preemptor, by its UID if its name is unknown."""
    preemptor = preemption.preemptor
    assert preemptor is not None
    return preemptor_name(preemptor.pod, preemptor.uid, is_pod_group=preemption.is_pod_group)


def _victim_facts(answer: EvictionsOfPod, options: RenderOptions) -> str:
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
    return f"pod: {' · '.join(facts)}"


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
        PodPhase.NOT_READ: "not among the pods that could be read",
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
