"""A scheduling queue for a terminal: its pods by where they wait, after each event where events happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.durations import format_time
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, Style, strong
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.queue.words import PLACE_WORDS, clock_time, events_in_words, movers_in_words, pod_in_words
from kpreempt.verdict import Place, PodMove, QueuedPod, QueueStep, SchedulingQueueState

_PODS_SHOWN = 10
_NAMED_IN_A_STEP = 6
_INDENT = 2


def render_queue(queue: SchedulingQueueState, options: RenderOptions) -> str:
    """Each event with what it moved, then the queue: every place with its pods, nominations and cycles.

    On a screen the queue comes first, and then the last events.
    """
    if options.extent is Extent.SCREEN:
        from kpreempt.report.queue.screen import render_screen  # noqa: PLC0415 - the report needs none of it

        return render_screen(queue, options)
    page = Page(options.width)
    for step in queue.steps:
        _add_step(page, step, options)
    if queue.steps:
        page.blank()
    page.paragraph(*headline(queue))
    for place in PLACE_WORDS:
        _add_place(page, place, [each for each in queue.items if each.place == place], queue, options)
    if queue.nominated:
        page.blank()
        page.paragraph(Span("NOMINATED", "heading"), "  pods with a nominated node")
        for node, pods in queue.nominated.items():
            page.paragraph(strong(node), f"  {join_names(pods, limit=_PODS_SHOWN)}", indent=_INDENT, hanging=_INDENT)
    if queue.scheduling_cycle is not None and queue.steps:
        page.blank()
        page.paragraph(Span(_cycles(queue.scheduling_cycle, queue.move_request_cycle), "dim"))
    if queue.others:
        page.blank()
        verb = agree(queue.others, "is")
        words = f"{count(queue.others, 'more pending pod')} {verb} of another scheduler, or being deleted."
        page.paragraph(Span(words, "dim"))
    add_assumptions_section(page, queue.assumptions, options)
    return finished(page, options)


def headline(queue: SchedulingQueueState) -> Phrase:
    """How many pods are where."""
    at = f" at {format_time(queue.at)}" if queue.at else ""
    numbers = Counter(each.place for each in queue.items)
    parts = [f"{numbers[place]:,} {words[0].lower()}" for place, words in PLACE_WORDS.items() if numbers[place]]
    return ("The queue of ", strong(queue.algorithm), f"{at}: {', '.join(parts)}." if parts else f"{at} is empty.")


def _add_place(
    page: Page, place: Place, pods: Sequence[QueuedPod], queue: SchedulingQueueState, options: RenderOptions
) -> None:
    if not pods:
        return
    page.blank()
    page.paragraph(*title_of(place, pods), hanging=_INDENT)
    shown = pods if options.verbose else pods[:_PODS_SHOWN]
    said: list[str] = []
    for pod in shown:
        number = f"{pod.position}. " if pod.position is not None else "- "
        page.paragraph(number, *pod_in_words(pod, queue.at), indent=_INDENT, hanging=len(number))
        indent = _INDENT + len(number)
        if movers := movers_in_words(pod, queue.at):
            page.paragraph(movers, indent=indent, hanging=_INDENT)
        events = events_in_words(pod, verbose=options.verbose)
        for line in events if events != said else ["or the same events"] if events else []:
            page.paragraph(line, indent=indent, hanging=_INDENT)
        said = events
    if rest := len(pods) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more pod')} (-v)", "dim"), indent=_INDENT)


def title_of(place: Place, pods: Sequence[QueuedPod]) -> Phrase:
    """The place, with how many pods wait there, and for what."""
    label, style, words = PLACE_WORDS[place]
    if held_by := dict.fromkeys(each.held_by for each in pods if each.held_by):
        holding = join_names(list(held_by))
        words = f"held by {holding}" if all(each.held_by for each in pods) else f"{words} or {holding}"
    return (Span(label, style), f"  {count(len(pods), 'pod')}, {words}")


def _add_step(page: Page, step: QueueStep, options: RenderOptions) -> None:
    """The event, the moves, and in short where everything is then."""
    page.labelled(
        Span(clock_time(step.time), "dim"),
        *event_in_words(step),
        column=LABEL_COLUMN + 1,
        hanging=_INDENT,
    )
    for move in step.moves:
        page.paragraph(*move_in_words(move), indent=LABEL_COLUMN + 3, hanging=_INDENT)
    page.paragraph(Span(_state(step, options), "dim"), indent=LABEL_COLUMN + 3, hanging=_INDENT)


def event_in_words(step: QueueStep) -> Phrase:
    """The event, what it is about, and what a pop gave."""
    popped = f" → {step.popped}" if step.popped else " → nothing" if step.event == "pop" else ""
    return (strong(step.event), f" {step.subject}" if step.subject else "", popped)


def move_in_words(move: PodMove) -> Phrase:
    """The pod, and from where to where it went."""
    return (f"{move.pod}: {_shown(move.before)} → ", Span(_shown(move.after), _style(move.after)))


def _state(step: QueueStep, options: RenderOptions) -> str:
    parts = []
    for place in PLACE_WORDS:
        names = [each.pod for each in step.pods if each.place == place]
        if names:
            parts.append(
                f"{_shown(place)} {join_names(names, limit=len(names) if options.verbose else _NAMED_IN_A_STEP)}"
            )
    nominated = [f"{pod} to {node}" for node, pods in step.nominated.items() for pod in pods]
    if nominated:
        parts.append(f"nominated {join_names(nominated)}")
    return f"queue: {' · '.join(parts)}" if parts else "queue: empty"


def _cycles(cycle: int, move_request: int | None) -> str:
    if move_request is None or move_request < 0:
        return f"Scheduling cycle {cycle}; no move request yet."
    return f"Scheduling cycle {cycle}; last move request in cycle {move_request}."


def _shown(place: Place) -> str:
    return "outside" if place == Place.GONE else PLACE_WORDS[place][0].lower()


def _style(place: Place) -> Style:
    return "" if place == Place.GONE else PLACE_WORDS[place][1]
