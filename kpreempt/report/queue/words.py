"""Where a pod waits in a scheduling queue, and what would move it, in words."""

from __future__ import annotations

from datetime import datetime

from kpreempt.report.durations import format_duration, format_since, format_time
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Phrase, Span, Style, strong
from kpreempt.verdict import Mover, MoverKind, Place, QueuedPod

PLACE_WORDS: dict[Place, tuple[str, Style, str]] = {
    Place.ACTIVE: ("ACTIVE", "good", "in the order in which they are tried"),
    Place.BACKOFF: ("BACKOFF", "warn", "tried and failed, the first to leave backoff first"),
    Place.UNSCHEDULABLE: (
        "UNSCHEDULABLE",
        "bad",
        "tried and failed, until an event that may help",
    ),
    Place.GATED: ("GATED", "warn", "held by scheduling gates"),
    Place.IN_FLIGHT: ("IN FLIGHT", "good", "being scheduled now"),
}
_MOVER_WORDS: dict[MoverKind, str] = {
    MoverKind.POP: "an idle scheduler",
    MoverKind.MATCHING_POD: "a pod on a node that its affinity matches",
    MoverKind.OWN_UPDATE: "an update of the pod",
    MoverKind.GATES_REMOVED: "the removal of its last gate",
    MoverKind.FLUSH: "the periodic flush",
    MoverKind.BACKOFF: "the end of its backoff",
}
_EVENTS_NAMED = 5
# What stands for the plugins that refused a pod which none refuses now.
_UNKNOWN = "unknown"


def pod_in_words(pod: QueuedPod, at: datetime | None) -> Phrase:
    """The pod with what orders it, and what rejected it."""
    facts = [*_facts(pod, at), rejection_in_words(pod)]
    return (strong(pod.pod), Span(f"  {', '.join(filter(None, facts))}", "dim"))


def pod_in_brief(pod: QueuedPod, at: datetime | None) -> Phrase:
    """The pod with what orders it."""
    return (strong(pod.pod), Span(f"  {', '.join(_facts(pod, at))}", "dim"))


def rejection_in_words(pod: QueuedPod) -> str:
    """Which plugins rejected the pod when it was last tried; empty where none did."""
    if pod.held_by or not pod.rejected_by or pod.place == Place.GATED:
        return ""
    is_known = pod.rejected_by != [_UNKNOWN]
    return f"rejected by {join_names(pod.rejected_by)}" if is_known else "no plugin rejects it now"


def _facts(pod: QueuedPod, at: datetime | None) -> list[str]:
    facts = [f"priority {pod.priority:,}"]
    if pod.time is not None:
        facts.append(_when(pod, pod.time, at))
    if pod.attempts:
        facts.append(f"{pod.attempts:,} {'attempt' if pod.attempts == 1 else 'attempts'}")
    if pod.backoff_until is not None and (at is None or pod.backoff_until >= at):
        facts.append(f"in backoff {_until(pod.backoff_until, at)}")
    if pod.nominated_node_name:
        facts.append(f"nominated to {pod.nominated_node_name}")
    if pod.held_by:
        facts.append(f"held by {pod.held_by}")
    return facts


def movers_in_words(pod: QueuedPod, at: datetime | None) -> str:
    """What would move the pod, without the events; empty where only its turn has to come."""
    if pod.held_by:
        return f"moved by: any event, or an update of the pod, after which {pod.held_by} lets it pass"
    movers = [each for each in pod.moved_by if each.kind != MoverKind.CLUSTER_EVENT]
    if not movers or pod.place == Place.ACTIVE:
        return ""
    return f"moved by: {', '.join(_mover(each, at) for each in movers)}"


def events_in_words(pod: QueuedPod, *, verbose: bool) -> list[str]:
    """The events that would move the pod, a line for each plugin that waits for some."""
    by_plugin: dict[str, list[str]] = {}
    for mover in pod.moved_by:
        for name, plugins in mover.events.items():
            for plugin in plugins or ("",):
                by_plugin.setdefault(plugin, []).append(name)
    lines = []
    for plugin, names in by_plugin.items():
        named = join_names(names, limit=len(names) if verbose else _EVENTS_NAMED)
        if plugin == _UNKNOWN:
            lines.append("or any event, as far as is known")
        else:
            lines.append(f"or an event for {plugin}: {named}" if plugin else f"or an event: {named}")
    return lines


def clock_time(time: datetime) -> str:
    """The time of day in UTC, with thousandths where there are any."""
    text = format_time(time)[11:19]
    return f"{text}.{time.microsecond // 1000:03}" if time.microsecond >= 1000 else text


def _mover(mover: Mover, at: datetime | None) -> str:
    words = _MOVER_WORDS[mover.kind]
    if mover.at is None:
        return words
    return f"{words} at {format_time(mover.at)}" if at is None else f"{words} in {_span(mover.at, at)}"


def _until(time: datetime, at: datetime | None) -> str:
    return f"until {format_time(time)}" if at is None else f"for {_span(time, at)}"


def _span(time: datetime, at: datetime) -> str:
    seconds = (time - at).total_seconds()
    return format_duration(int(seconds)) if seconds == int(seconds) or seconds > 60 else f"{seconds:.3g}s"


def _when(pod: QueuedPod, time: datetime, at: datetime | None) -> str:
    """How long a pod waits for its turn, or when it was tried."""
    since = format_since(time, at)
    is_span = not since.startswith("since")
    if pod.place in (Place.ACTIVE, Place.GATED):
        return f"waits for {since}" if is_span else f"waits {since}"
    return f"tried {since} ago" if is_span else f"tried at {format_time(time)}"
