"""The history of a pod, a node or a budget, step by step."""

from __future__ import annotations

import shlex

from kpreempt.report.amounts import count, format_time
from kpreempt.report.blocks import Block, Code, Phrase, Report, Section, Sentence, Span, strong
from kpreempt.report.evidence import assumption_sections, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.report.preemptions import preemptions_section
from kpreempt.report.terminations import brief
from kpreempt.verdict.history import History, HistoryEvent, HistoryEventType
from kpreempt.verdict.unread import missing_permissions


def report(answer: History, _options: RenderOptions) -> Report:
    """A sentence, then for each step its time, the event, and the command that explains it."""
    blocks: list[Block] = []
    for step in answer.items:
        time = step.at.strftime("%m-%d %H:%M:%S.%f")[:-3]
        blocks.append(Sentence((Span(time, "dim"), "  ", *_describe(step, answer))))
        if step.command:
            blocks.append(Code(f"kpreempt {shlex.join(step.command)}", is_command=True))
    number = count(len(answer.items), "step")
    lacks = missing_permissions(answer.assumptions)
    return Report(
        lead=(
            strong(answer.subject),
            f": {number if answer.items else 'nothing recorded'}.{f' {lacks}' if lacks else ''}",
        ),
        facts=[f"{format_time(answer.begins)} to {format_time(answer.ends)}"],
        sections=[
            preemptions_section(answer.preemptions, answer.ends, 2),
            Section("STEPS", blocks=blocks, priority=1),
            *assumption_sections(answer.assumptions),
        ],
        command="history",
        is_complete=True,
    )


def _describe(step: HistoryEvent, answer: History) -> Phrase:
    # A line about the requested pod does not repeat its name.
    pod = "" if not step.pod or answer.subject == f"Pod {step.pod}" else f"{step.pod} "
    on = f" on {step.node}" if step.node else ""
    if step.type is HistoryEventType.UNSCHEDULABLE:
        return (f"{pod}unschedulable: {step.message}",)
    if step.type is HistoryEventType.NOMINATED:
        evicting = f", evicting {join_names(step.victims)}" if step.victims else ""
        again = f" ({join_names(step.already_evicted)} already evicted)" if step.already_evicted else ""
        return (f"{pod}nominated to ", strong(step.node), evicting, again)
    if step.type is HistoryEventType.BOUND:
        return (f"{pod}bound to ", strong(step.node))
    if step.type is HistoryEventType.PREEMPTED:
        return (f"{pod}", Span("preempted", "warn"), f"{on} by {step.preemptor}")
    if step.type is HistoryEventType.TERMINATING:
        if step.termination is not None:
            return (f"{pod}{brief(step.termination)}{on}",)
        return (f"{pod}{f'evicted{on}: {step.message}' if step.message else f'deleted{on}, terminating'}",)
    if step.type is HistoryEventType.WATCH_GAP:
        until = f" until {format_time(step.until)}" if step.until is not None else ""
        return (Span(f"nothing was recorded{until}", "warn"),)
    if step.type is HistoryEventType.FINISHED:
        return (f"{pod}finished{on}: {step.message}",)
    origin = f" from {step.node}" if step.node else ""
    words = {
        HistoryEventType.ADDED: f"added{on}",
        HistoryEventType.CHANGED: "changed",
        HistoryEventType.DELETED: f"deleted{origin}",
    }[step.type]
    return (f"{pod}{words}{f': {step.message}' if step.message else ''}",)
