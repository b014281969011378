"""What happened to a pod, a node or a budget, step by step."""

from __future__ import annotations

import shlex

from kpreempt.report.amounts import count, format_time
from kpreempt.report.blocks import Block, Code, Phrase, Report, Section, Sentence, Span, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.history import Happening, History, HistoryStep


def report(answer: History, _options: RenderOptions) -> Report:
    """A sentence, then for each step when, what, and the command that explains it."""
    blocks: list[Block] = []
    for step in answer.items:
        blocks.append(Sentence((Span(step.at.strftime("%m-%d %H:%M:%S.%f")[:-3], "dim"), "  ", *_told(step, answer))))
        if step.command:
            blocks.append(Code(f"kpreempt {shlex.join(step.command)}", is_command=True))
    number = count(len(answer.items), "step")
    return Report(
        lead=(strong(answer.subject), f": {number if answer.items else 'nothing happened'}."),
        facts=[f"{format_time(answer.begins)} to {format_time(answer.ends)}"],
        sections=[Section("STEPS", blocks=blocks, priority=1)],
        command="history",
        is_whole=True,
    )


def _told(step: HistoryStep, answer: History) -> Phrase:
    # A line about the pod that was asked for need not name it.
    who = "" if not step.pod or answer.subject == f"Pod {step.pod}" else f"{step.pod} "
    on = f" on {step.node}" if step.node else ""
    if step.what is Happening.REFUSED:
        return (f"{who}refused: {step.message}",)
    if step.what is Happening.NOMINATED:
        for_it = f", and {join_names(step.victims)} evicted for it" if step.victims else ""
        return (f"{who}nominated to ", strong(step.node), for_it)
    if step.what is Happening.BOUND:
        return (f"{who}bound to ", strong(step.node))
    if step.what is Happening.PREEMPTED:
        return (f"{who}", Span("preempted", "warn"), f"{on} by {step.preemptor}")
    if step.what is Happening.LEAVING:
        return (f"{who}{f'evicted{on}: {step.message}' if step.message else f'deleted{on}, on its way out'}",)
    if step.what is Happening.UNWATCHED:
        until = f" up to {format_time(step.until)}" if step.until is not None else ""
        return (Span(f"nothing was recorded{until}", "warn"),)
    if step.what is Happening.FINISHED:
        return (f"{who}finished{on}: {step.message}",)
    where = f" from {step.node}" if step.node else ""
    words = {Happening.CAME: f"came{on}", Happening.CHANGED: "changed", Happening.GONE: f"gone{where}"}[step.what]
    return (f"{who}{words}{f': {step.message}' if step.message else ''}",)
