"""A scheduling queue: its pods by subqueue with what would move them, and the events that led there."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from kpreempt.report.amounts import ago, agree, count, format_duration, format_time, so_long
from kpreempt.report.blocks import Listing, Part, Phrase, Report, Role, Section, Span, Words, joined, strong
from kpreempt.report.evidence import absent_facts, assumption_sections, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.queue import MoverKind, PodMove, QueuedPod, QueueName, QueueStep, SchedulingQueueState

PLACE_WORDS: dict[QueueName, tuple[str, Role, str]] = {
    QueueName.ACTIVE: ("ACTIVE", "good", "in scheduling order"),
    QueueName.BACKOFF: ("BACKOFF", "warn", "ordered by the end of their backoff"),
    QueueName.UNSCHEDULABLE: (
        "UNSCHEDULABLE",
        "bad",
        "waiting for an event that may help",
    ),
    QueueName.GATED: ("GATED", "warn", "held by scheduling gates"),
    QueueName.IN_FLIGHT: ("IN FLIGHT", "good", "being scheduled now"),
}
_MOVER_WORDS: dict[MoverKind, str] = {
    MoverKind.POP: "an idle scheduler",
    MoverKind.MATCHING_POD: "an assigned pod that its affinity matches",
    MoverKind.OWN_UPDATE: "an update to the pod",
    MoverKind.GATES_REMOVED: "the removal of its last gate",
    MoverKind.FLUSH: "the periodic flush",
    MoverKind.BACKOFF: "the end of its backoff",
}
_EVENTS_LISTED = 5
# The plugin name for pods that plugins rejected before, but none rejects now.
_UNKNOWN = "unknown"
_PODS_SHOWN = 10
_LISTED_PER_STEP = 6
# Priorities on a screen.
_PLACE, _NOMINATED, _EVENTS = 60, 50, 40


def report(queue: SchedulingQueueState, options: RenderOptions) -> Report:
    """Every subqueue with its pods, nominations and cycles, then each event with what it moved."""
    at = f" at {format_time(queue.at)}" if queue.at else ""
    numbers = Counter(each.queue for each in queue.items)
    parts = [f"{numbers[place]:,} {words[0].lower()}" for place, words in PLACE_WORDS.items() if numbers[place]]
    # Pending pods show their nominated node themselves.
    waiting = {each.pod for each in queue.items if each.nominated_node_name}
    named = [[(strong(node), f"  {join_names(pods, limit=_PODS_SHOWN)}")] for node, pods in queue.nominated.items()]
    elsewhere = [
        [(strong(node), f"  {join_names(pods)}")]
        for node, pods in queue.nominated.items()
        if not waiting.issuperset(pods)
    ]
    facts = absent_facts(queue.assumptions)
    if queue.scheduling_cycle is not None and queue.steps:
        moved = queue.move_request_cycle
        has_moved = moved is not None and moved >= 0
        last = f"last move request in cycle {moved}" if has_moved else "no move request yet"
        facts.append(f"Scheduling cycle {queue.scheduling_cycle}; {last}.")
    if queue.others:
        belongs, is_deleted = agree(queue.others, "belongs"), agree(queue.others, "is")
        others = count(queue.others, "more pending pod")
        facts.append(f"{others} {belongs} to another scheduler or {is_deleted} being deleted.")
    # Each event with the pods it moved, on one line.
    brief = [[joined([_event(step), *map(_move, step.moves)], "; ")] for step in reversed(queue.steps)]
    events = Section(
        "EVENTS",
        "latest first" if queue.steps else "",
        [Listing(brief, "event")],
    )
    steps = [_step(step, options) for step in queue.steps]
    details = (
        "every event with the queue after it, every pod"
        if queue.steps
        else "every pod, with the events that would move it"
    )
    return Report(
        lead=("The queue of ", strong(queue.algorithm), f"{at}: {', '.join(parts)}." if parts else f"{at} is empty."),
        facts=facts,
        sections=[
            *(_place(place, queue, options) for place in PLACE_WORDS),
            Section(
                "NOMINATED",
                "pods with a nominated node" if named else "",
                [Listing(named, "nomination")],
                priority=_NOMINATED if elsewhere else 0,
                short=Section("NOMINATED", "pods by node", [Listing(elsewhere, "nomination")]),
            ),
            Section("EVENTS", blocks=[Listing(steps, "event")], priority=_EVENTS, short=events),
            *assumption_sections(queue.assumptions),
        ],
        more=[("-v", details)],
        command="queue",
    )


def _place(place: QueueName, queue: SchedulingQueueState, options: RenderOptions) -> Section:
    """The pods of a subqueue, with their order, the plugins that rejected them, and what would move them."""
    label, style, words = PLACE_WORDS[place]
    pods = [each for each in queue.items if each.queue == place]
    if held_by := dict.fromkeys(each.held_by for each in pods if each.held_by):
        holding = join_names(list(held_by))
        words = f"held by {holding}" if all(each.held_by for each in pods) else f"{words} or {holding}"
    lead = f"{count(len(pods), 'pod')}, {words}" if pods else ""
    items: list[list[Words]] = []
    brief: list[list[Words]] = []
    shown: list[str] = []
    for pod in pods:
        number = f"{pod.position}. " if pod.position is not None else "- "
        facts, movers = _facts(pod, queue.at), _movers(pod, queue.at)
        # The plugins that rejected the pod in its last attempt.
        rejection = ""
        if not pod.held_by and pod.rejected_by and pod.queue != QueueName.GATED:
            is_known = pod.rejected_by != [_UNKNOWN]
            rejection = f"rejected by {join_names(pod.rejected_by)}" if is_known else "no plugin rejects it now"
        events = _events(pod, verbose=options.verbose)
        lines: list[Words] = [
            (number, strong(pod.pod), Span(f"  {', '.join(filter(None, [*facts, rejection]))}", "dim")),
            *([movers] if movers else []),
            *(events if events != shown else ["or the same events"] if events else []),
        ]
        items.append(lines)
        below = "; ".join(filter(None, (rejection, movers)))
        brief.append([(number, strong(pod.pod), Span(f"  {', '.join(facts)}", "dim")), *([below] if below else [])])
        shown = events
    return Section(
        label,
        lead,
        [Listing(items, "pod", shown=_PODS_SHOWN)],
        style=style,
        priority=_PLACE,
        short=Section(label, lead, [Listing(brief, "pod")], style=style),
    )


def _step(step: QueueStep, options: RenderOptions) -> list[Words]:
    """The event, its moves, and the state of the queue after it."""
    parts = []
    for place in PLACE_WORDS:
        names = [each.pod for each in step.pods if each.queue == place]
        if names:
            shown = len(names) if options.verbose else _LISTED_PER_STEP
            parts.append(f"{_shown(place)} {join_names(names, limit=shown)}")
    nominated = [f"{pod} to {node}" for node, pods in step.nominated.items() for pod in pods]
    if nominated:
        parts.append(f"nominated {join_names(nominated)}")
    state = f"queue: {' · '.join(parts)}" if parts else "queue: empty"
    return [_event(step), *map(_move, step.moves), Span(state, "dim")]


def _event(step: QueueStep) -> Phrase:
    """The time, the event, its subject, and the pod that a pop returned."""
    popped = f" → {step.popped}" if step.popped else " → nothing" if step.event == "pop" else ""
    subject = f" {step.subject}" if step.subject else ""
    # The time of day in UTC, with milliseconds unless they are 0.
    thousandths = f".{step.time.microsecond // 1000:03}" if step.time.microsecond >= 1000 else ""
    clock = f"{format_time(step.time)[11:19]}{thousandths}"
    return (Span(clock, "dim"), "  ", strong(step.event), subject, popped)


def _move(move: PodMove) -> tuple[Part, ...]:
    """The pod, and the subqueues it moved between."""
    style = "" if move.after == QueueName.NOT_QUEUED else PLACE_WORDS[move.after][1]
    return (f"{move.pod}: {_shown(move.before)} → ", Span(_shown(move.after), style))


def _shown(place: QueueName) -> str:
    return "not queued" if place == QueueName.NOT_QUEUED else PLACE_WORDS[place][0].lower()


def _facts(pod: QueuedPod, at: datetime | None) -> list[str]:
    facts = [f"priority {pod.priority:,}"]
    if pod.time is not None:
        # How long the pod has been waiting, or when it was tried.
        is_waiting = pod.queue in (QueueName.ACTIVE, QueueName.GATED)
        facts.append(f"waiting{so_long(pod.time, at)}" if is_waiting else f"tried{ago(pod.time, at)}")
    if pod.attempts:
        facts.append(f"{pod.attempts:,} {'attempt' if pod.attempts == 1 else 'attempts'}")
    if pod.backoff_until is not None and (at is None or pod.backoff_until >= at):
        until = pod.backoff_until
        facts.append(f"in backoff {f'until {format_time(until)}' if at is None else f'for {_span(until, at)} more'}")
    if pod.nominated_node_name:
        facts.append(f"nominated to {pod.nominated_node_name}")
    if pod.held_by:
        facts.append(f"held by {pod.held_by}")
    return facts


def _movers(pod: QueuedPod, at: datetime | None) -> str:
    """What would move the pod, without the cluster events; empty if it is only waiting for its turn."""
    if pod.held_by:
        return f"moved by: any event or pod update, if {pod.held_by} then admits it"
    movers = [each for each in pod.moved_by if each.kind != MoverKind.CLUSTER_EVENT]
    if not movers or pod.queue == QueueName.ACTIVE:
        return ""
    triggers = []
    for mover in movers:
        when = ""
        if mover.at is not None:
            when = f" at {format_time(mover.at)}" if at is None else f" in {_span(mover.at, at)}"
        triggers.append(f"{_MOVER_WORDS[mover.kind]}{when}")
    return f"moved by: {', '.join(triggers)}"


def _events(pod: QueuedPod, *, verbose: bool) -> list[str]:
    """The events that would move the pod, with a line per plugin that waits for some."""
    by_plugin: dict[str, list[str]] = {}
    for mover in pod.moved_by:
        for name, plugins in mover.events.items():
            for plugin in plugins or ("",):
                by_plugin.setdefault(plugin, []).append(name)
    lines = []
    for plugin, names in by_plugin.items():
        named = join_names(names, limit=len(names) if verbose else _EVENTS_LISTED)
        if plugin == _UNKNOWN:
            lines.append("or possibly any event")
        else:
            lines.append(f"or an event for {plugin}: {named}" if plugin else f"or an event: {named}")
    return lines


def _span(time: datetime, at: datetime) -> str:
    seconds = (time - at).total_seconds()
    return format_duration(int(seconds)) if seconds == int(seconds) or seconds > 60 else f"{seconds:.3g}s"
