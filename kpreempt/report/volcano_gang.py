"""What becomes of a job that is submitted to Volcano, for a terminal."""

from __future__ import annotations

from kpreempt.report.amounts import agree, count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.format_text import finished
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano_actions import add_action
from kpreempt.report.volcano_closing import add_sample_section
from kpreempt.report.volcano_text import add_no_eviction_note, add_panic, add_story, facts
from kpreempt.report.volcano_words import amounts_in_words, tasks_in_words
from kpreempt.verdict.volcano import (
    GangAnswer,
    GangOutcome,
    SessionVerdict,
)

_INDENT = 2
_BOUND = ("Binding", "Bound", "Running")


def render_gang(answer: GangAnswer, options: RenderOptions) -> str:
    """The outcome, the tasks, the victims, what is missing, and the sessions in short."""
    page = Page(options.width)
    page.paragraph(*headline_of_gang(answer))
    origin = f"from {answer.origin}" if answer.origin else ""
    needs = f"needs {count(answer.min_available, 'task')} at once"
    page.paragraph(" · ".join(part for part in (f"queue {answer.queue}", needs, origin) if part), indent=_INDENT)
    last = answer.sessions[-1] if answer.sessions else None
    if last is not None:
        page.paragraph(facts(last), indent=_INDENT, hanging=_INDENT)
        add_panic(page, last)
        if answer.outcome in (GangOutcome.NOT_PLACED, GangOutcome.NOT_ENQUEUED):
            add_no_eviction_note(page, last)
    _add_tasks(page, answer, options)
    _add_victims(page, answer, options)
    _add_missing(page, answer)
    for number, session in enumerate(answer.sessions, 1):
        _add_session(page, answer, session, number, options)
    add_sample_section(page, answer.sample, options)
    add_assumptions_section(page, answer.assumptions, options)
    return finished(page, options)


def headline_of_gang(answer: GangAnswer) -> Phrase:
    """The outcome in one sentence."""
    job = strong(answer.job)
    bound = sum(task.status in _BOUND for task in answer.tasks)
    total = len(answer.tasks)
    victims = len(answer.victims)
    why = f": {answer.reason}" if answer.reason else ""
    if answer.outcome == GangOutcome.NOT_ENQUEUED:
        return (job, " would be ", Span("kept out of its queue", "bad"), f"{why}. Its pods are not even made.")
    if answer.outcome == GangOutcome.INVALID:
        return (job, " could ", Span("never run", "bad"), f" as it is{why}.")
    if answer.outcome == GangOutcome.IGNORED:
        return (job, " would be ", Span("ignored", "bad"), f" by Volcano{why}.")
    if answer.outcome == GangOutcome.PANIC:
        return ("The scheduler would ", Span("die", "bad"), " before it placed ", job, f"{why}.")
    if answer.outcome == GangOutcome.BOUND:
        others = f"; it evicts {count(victims, 'task')} besides" if victims else ", and nobody is evicted"
        return (job, " would be ", Span("bound", "good"), f": {bound:,} of {count(total, 'task')} at once{others}.")
    if answer.outcome == GangOutcome.PIPELINED:
        whom = f" {count(victims, 'task')} {agree(victims, 'is')} evicted for it," if victims else ""
        return (
            job,
            " would be ",
            Span("promised room", "warn"),
            f":{whom} and a later session places it once the room is free."
            if whom
            else ": a later session places it once the room is free.",
        )
    whom = f", though {count(victims, 'task')} {agree(victims, 'is')} evicted for it" if victims else ""
    return (job, " would be let in, but ", Span("wait", "bad"), f": its tasks find no room{whom}{why}.")


def _add_tasks(page: Page, answer: GangAnswer, options: RenderOptions) -> None:
    if not answer.tasks:
        return
    page.blank()
    page.labelled(Span("TASKS", "heading"), f"{len(answer.tasks):,}", column=LABEL_COLUMN)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for task in answer.tasks:
        groups.setdefault((task.status, task.node, task.message.replace(task.task, "<itself>")), []).append(task.task)
    rows: list[tuple[Phrase, ...]] = []
    for (status, node, message), tasks in groups.items():
        named = tasks_in_words(tasks, home=answer.job, limit=None if options.verbose else 4)
        where = f"{status} on {node}" if node else status
        words = message.replace("<itself>", tasks[0]) if len(tasks) == 1 else message
        rows.append(((strong(named),), (where,), (words,)))
    page.table(rows, aligns=("left", "left", "left"), indent=_INDENT)


def _add_victims(page: Page, answer: GangAnswer, options: RenderOptions) -> None:
    """Who goes, by queue and job, with who takes the room."""
    if not answer.victims:
        return
    page.blank()
    page.labelled(Span("VICTIMS", "heading"), f"{len(answer.victims):,}", column=LABEL_COLUMN)
    groups: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    takers: dict[tuple[str, str, str], dict[str, None]] = {}
    for victim in answer.victims:
        key = (victim.queue, victim.job, victim.action)
        groups.setdefault(key, {}).setdefault(victim.node, []).append(victim.task)
        takers.setdefault(key, {})[victim.by] = None
    limit = None if options.verbose else 4
    for key, nodes in groups.items():
        queue, job, action = key
        page.paragraph(strong(job), Span(f"  queue {queue}", "dim"), indent=_INDENT)
        for node, tasks in nodes.items():
            page.paragraph(
                Span(tasks_in_words(tasks, home=job, limit=limit), "bad"), f" on {node}", indent=2 * _INDENT, hanging=2
            )
        by = tasks_in_words(takers[key], home=answer.job, limit=limit)
        page.paragraph(Span(f"by {action}, for {by}", "dim"), indent=2 * _INDENT, hanging=2)


def _add_missing(page: Page, answer: GangAnswer) -> None:
    """On which node the task that found none comes nearest, and what it lacks there."""
    if not answer.missing or answer.outcome in (GangOutcome.BOUND, GangOutcome.PIPELINED):
        return
    page.blank()
    where = f" on {answer.missing_on}, where {answer.missing_for} comes nearest"
    page.labelled(Span("MISSING", "heading"), f"{amounts_in_words(answer.missing)}{where}", column=LABEL_COLUMN)


def _add_session(page: Page, answer: GangAnswer, session: SessionVerdict, number: int, options: RenderOptions) -> None:
    """What concerns the job in the session; with ``verbose`` all of it."""
    if len(answer.sessions) > 1:
        page.blank()
        lets = "which lets it in" if number == 1 else "with its pods"
        page.paragraph(Span(f"SESSION {number}", "heading"), f"  {lets}")
    if options.verbose:
        add_story(page, session, options)
        return
    for action in session.actions:
        if any(attempt.job == answer.job for attempt in action.attempts):
            add_action(page, action, session, options, only=answer.job)
