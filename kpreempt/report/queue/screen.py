"""A scheduling queue on one screen: who is where and what would move it, then the last events."""

from __future__ import annotations

from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Line, Page, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.queue.text import event_in_words, headline, move_in_words, title_of
from kpreempt.report.queue.words import PLACE_WORDS, clock_time, movers_in_words, pod_in_brief, rejection_in_words
from kpreempt.report.screen import Block, fill, paragraph, titled
from kpreempt.verdict import QueuedPod, QueueStep, SchedulingQueueState

_LINES_OF_SENTENCE = 3
_MORE = "-v (every pod, with the events that would move it)"
_MORE_OF_EVENTS = "-v (every event with the queue after it, every pod)"


def render_screen(queue: SchedulingQueueState, options: RenderOptions) -> str:
    """At most ``options.height`` lines, with the command line and the prompt."""
    page = Page(options.width)
    page.lines = paragraph(options, *headline(queue), indent=0, hanging=0, most=_LINES_OF_SENTENCE)
    blocks = []
    for place in PLACE_WORDS:
        if pods := [each for each in queue.items if each.place == place]:
            head = paragraph(options, *title_of(place, pods), indent=0, most=2)
            blocks.append(Block(head, [_pod(pod, queue, options) for pod in pods], "pod"))
    # Of pods that wait, each says where it is nominated.
    waiting = {each.pod for each in queue.items if each.nominated_node_name}
    nominated = [
        paragraph(options, strong(node), f"  {join_names(pods)}", most=1)
        for node, pods in queue.nominated.items()
        if not waiting.issuperset(pods)
    ]
    blocks.append(Block(titled(options, Span("NOMINATED", "heading"), "pods by node"), nominated, "nomination"))
    events = [_event(step, options) for step in reversed(queue.steps)]
    blocks.append(Block(titled(options, Span("EVENTS", "heading"), "the latest first"), events, "event"))
    return fill(page, blocks, queue.assumptions, _MORE_OF_EVENTS if queue.steps else _MORE, options)


def _pod(pod: QueuedPod, queue: SchedulingQueueState, options: RenderOptions) -> list[Line]:
    """The pod with what orders it, and on a second line what rejected it and would move it."""
    number = f"{pod.position}. " if pod.position is not None else "- "
    why = "; ".join(filter(None, (rejection_in_words(pod), movers_in_words(pod, queue.at))))
    below = paragraph(options, why, indent=2 + len(number), most=1) if why else []
    return [*paragraph(options, number, *pod_in_brief(pod, queue.at), most=1), *below]


def _event(step: QueueStep, options: RenderOptions) -> list[Line]:
    """The event and the pods that it moved, on one line."""
    moves = [part for move in step.moves for part in ("; ", *move_in_words(move))]
    return paragraph(options, Span(clock_time(step.time), "dim"), "  ", *event_in_words(step), *moves, most=1)
