"""What a session of Volcano leaves users with, and what is up to chance in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.words import masked, tasks_in_words
from kpreempt.verdict.volcano import Placement, Sample, SampledOutcome, SessionVerdict

_INDENT = 2
# Where tasks wait for several nodes, which one matters less than how many tasks do.
_ASSIGNED = re.compile(r"(can possibly be assigned to )[^\s,]+")
_GROUPS_SHOWN = 4
_MESSAGES_SHOWN = 4
_OUTCOMES_SHOWN = 5


def add_shown_section(page: Page, session: SessionVerdict, options: RenderOptions) -> None:
    """``CONDITIONS``: of pod groups that are not ready, and of pods; events if verbose."""
    if session.final is None:
        return
    groups = _group_lines(session, options)
    pods = _pod_lines(session, options)
    events = _event_lines(session, options)
    if not (groups or pods or events):
        return
    page.blank()
    page.labelled(Span("CONDITIONS", "heading"), "of pod groups and pods", column=LABEL_COLUMN)
    _add_lines(page, groups, _GROUPS_SHOWN, "pod group", options)
    _add_lines(page, pods, _MESSAGES_SHOWN, "message", options)
    _add_lines(page, events, _MESSAGES_SHOWN, "event", options)


def _add_lines(page: Page, lines: Sequence[Phrase], limit: int, noun: str, options: RenderOptions) -> None:
    shown = lines if options.verbose else lines[:limit]
    for line in shown:
        page.paragraph(*line, indent=_INDENT, hanging=2)
    if rest := len(lines) - len(shown):
        page.paragraph(Span(f"… and {count(rest, f'more {noun}')} (-v)", "dim"), indent=_INDENT)


def _group_lines(session: SessionVerdict, options: RenderOptions) -> list[Phrase]:
    """Pod groups with their conditions; those that are ready only where verbose."""
    assert session.final is not None
    lines: dict[tuple[str, ...], list[str]] = {}
    for name, group in session.final.pod_groups.items():
        for condition in group.conditions:
            if condition.status == "True" and (options.verbose or condition.type != "Scheduled"):
                key = (group.phase, condition.type, condition.reason, condition.message)
                lines.setdefault(key, []).append(name)
    return [
        (
            "pod group " if len(names) == 1 else "pod groups ",
            strong(tasks_in_words(names)),
            f": {phase}, {kind}",
            f" {reason}" if reason else "",
            f": {message}" if message else "",
        )
        for (phase, kind, reason, message), names in lines.items()
    ]


def _pod_lines(session: SessionVerdict, options: RenderOptions) -> list[Phrase]:
    """The conditions of pods, equal messages together; not again what stands on their pod groups."""
    assert session.final is not None
    groups: dict[tuple[str, str], list[str]] = {}
    for task, said in session.final.pods.items():
        message = masked(said.message, task)
        if not options.verbose:
            message = _ASSIGNED.sub(r"\1…", message)
        groups.setdefault((said.reason, message), []).append(task)
    known = {condition.message for group in session.final.pod_groups.values() for condition in group.conditions}
    lines: list[Phrase] = []
    for (reason, message), tasks in groups.items():
        exact = dict.fromkeys(masked(session.final.pods[task].message, task) for task in tasks)
        words = next(iter(exact)) if len(exact) == 1 else message
        words = session.final.pods[tasks[0]].message if len(tasks) == 1 else words
        words = "the same as its pod group" if words in known else words
        named = tasks_in_words(tasks, limit=None if options.verbose else 4)
        noun = "pod " if len(tasks) == 1 else "pods "
        lines.append((noun, strong(named), f": {reason}: " if reason else ": ", words))
    return lines


def _event_lines(session: SessionVerdict, options: RenderOptions) -> list[Phrase]:
    """Events with the same words together; where not verbose, none, as conditions and messages say the same."""
    if session.final is None or not options.verbose:
        return []
    groups: dict[tuple[str, ...], list[str]] = {}
    for event in session.final.events:
        key = (event.kind, event.type, event.reason, masked(event.message, event.subject))
        groups.setdefault(key, []).append(event.subject)
    return [
        (f"event on {kind} ", strong(tasks_in_words(subjects, limit=None)), f": {type_} {reason}: {message}")
        for (kind, type_, reason, message), subjects in groups.items()
    ]


def add_sample_section(page: Page, sample: Sample | None, options: RenderOptions) -> None:
    """``CHANCE``: the ends of the sampled runs, and the victims that only some of them have."""
    if sample is None:
        return
    page.blank()
    number = len(sample.outcomes)
    ends = "all with the same outcome" if number == 1 else f"with {number:,} outcomes"
    page.labelled(
        Span("CHANCE", "heading"),
        f"{count(sample.runs, 'session')} with every random choice drawn anew (seed {sample.seed}), {ends}",
        column=LABEL_COLUMN,
    )
    shown = sample.outcomes if options.verbose else sample.outcomes[:_OUTCOMES_SHOWN]
    if number > 1:
        rows: list[tuple[Phrase, ...]] = [
            ((strong(f"{outcome.times:,} of {sample.runs:,}"),), _outcome(outcome, options)) for outcome in shown
        ]
        page.table(rows, aligns=("right", "left"), indent=_INDENT)
        if rest := number - len(shown):
            times = sum(outcome.times for outcome in sample.outcomes[len(shown) :])
            page.paragraph(
                Span(f"… and {count(rest, 'more outcome')} in {count(times, 'session')} (-v)", "dim"), indent=_INDENT
            )
    always = [task for task, times in sample.evicted.items() if times == sample.runs]
    up_to_chance = {task: times for task, times in sample.evicted.items() if 0 < times < sample.runs}
    if up_to_chance:
        named = [f"{task} ({times:,})" for task, times in sorted(up_to_chance.items(), key=lambda item: -item[1])]
        kept = named if options.verbose else named[:_MESSAGES_SHOWN]
        rest_words = f" and {len(named) - len(kept):,} more" if len(kept) < len(named) else ""
        page.paragraph(
            Span("by chance", "warn"),
            f": {', '.join(kept)}{rest_words} of {sample.runs:,}",
            indent=_INDENT,
            hanging=2,
        )
    if always:
        page.paragraph(Span("always evicted", "bad"), f": {tasks_in_words(always)}", indent=_INDENT, hanging=2)
    elif not sample.evicted:
        page.paragraph("none of them evicts a task", indent=_INDENT)


def _outcome(outcome: SampledOutcome, options: RenderOptions) -> Phrase:
    limit = None if options.verbose else 4
    parts: list[Phrase] = []
    if outcome.panics:
        parts.append((Span("the scheduler panics", "bad"),))
    if outcome.evicted:
        parts.append((Span("evicts ", "bad"), tasks_in_words(outcome.evicted, limit=limit)))
    for verb, placements in (("pipelines ", outcome.pipelined), ("binds ", outcome.binds)):
        if placements:
            parts.append((verb, _placed(placements, limit)))
    if outcome.enqueued:
        parts.append(("enqueues ", tasks_in_words(outcome.enqueued, limit=limit)))
    phrase: list[str | Span] = []
    for number, part in enumerate(parts or [("nothing happens",)]):
        phrase += ["; " if number else "", *part]
    return tuple(phrase)


def _placed(placements: Sequence[Placement], limit: int | None) -> str:
    nodes: dict[str, list[str]] = {}
    for placement in placements:
        nodes.setdefault(placement.node, []).append(placement.task)
    return ", ".join(f"{tasks_in_words(tasks, limit=limit)} on {node}" for node, tasks in nodes.items())
