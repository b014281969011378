"""What becomes of jobs that are submitted to Volcano, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, Style, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.actions import add_action
from kpreempt.report.volcano.closing import add_sample_section
from kpreempt.report.volcano.text import add_no_eviction_note, add_panic, add_story, facts
from kpreempt.report.volcano.votes import queue_room_in_words, veto_in_words
from kpreempt.report.volcano.words import amounts_in_words, masked, tasks_in_words
from kpreempt.verdict.volcano import GangAnswer, GangOutcome, SessionVerdict

_INDENT = 2
_WAITING = (GangOutcome.NOT_ENQUEUED, GangOutcome.NOT_PLACED)
_PLACED = ("Bound", "Running")
_WORDS: dict[GangOutcome, tuple[str, Style]] = {
    GangOutcome.REFUSED: ("refused", "bad"),
    GangOutcome.NOT_ENQUEUED: ("not enqueued", "bad"),
    GangOutcome.INVALID: ("not valid", "bad"),
    GangOutcome.IGNORED: ("ignored", "bad"),
    GangOutcome.BOUND: ("bound", "good"),
    GangOutcome.PIPELINED: ("pipelined", "warn"),
    GangOutcome.NOT_PLACED: ("unschedulable", "bad"),
    GangOutcome.PANIC: ("the scheduler panics", "bad"),
}


def render_gangs(answers: Sequence[GangAnswer], options: RenderOptions) -> str:
    """Each job; several are separated by a line and closed by a table of all."""
    page = Page(options.width)
    if not answers:
        page.paragraph("No job matches.")
    for number, answer in enumerate(answers):
        if number:
            _add_separator(page)
        _add_gang(page, answer, options)
    if len(answers) > 1:
        _add_separator(page)
        _add_summary(page, answers)
    return finished(page, options)


def _add_separator(page: Page) -> None:
    page.blank()
    page.paragraph(Span("─" * page.width, "dim"))
    page.blank()


def _add_summary(page: Page, answers: Sequence[GangAnswer]) -> None:
    titles = ("JOB", "QUEUE", "TASKS", "VICTIMS", "OUTCOME")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for answer in answers:
        numbers = (f"{len(answer.tasks):,}",), (f"{len(answer.victims):,}",)
        rows.append(((strong(answer.job),), (answer.queue,), *numbers, (Span(*_WORDS[answer.outcome]),)))
    page.table(rows, aligns=("left", "left", "right", "right", "left"))


def _add_gang(page: Page, answer: GangAnswer, options: RenderOptions) -> None:
    """The outcome, the tasks, the victims, what is missing, what comes then, and the sessions in short."""
    last = answer.sessions[-1] if answer.sessions else None
    page.paragraph(*headline_of_gang(answer))
    kind, _, name = answer.origin.partition(" ")
    origin = f"a {kind}" if name == answer.job else f"from {answer.origin}" if answer.origin else ""
    needs = f"needs {count(answer.min_available, 'task')} at once"
    page.paragraph(" · ".join(part for part in (f"queue {answer.queue}", needs, origin) if part), indent=_INDENT)
    if last is not None:
        page.paragraph(facts(last), indent=_INDENT, hanging=_INDENT)
        add_panic(page, last)
        if answer.outcome in _WAITING:
            add_no_eviction_note(page, last)
    _add_tasks(page, answer, options)
    _add_victims(page, answer, options)
    _add_missing(page, answer)
    _add_afterwards(page, answer)
    for number, session in enumerate(answer.sessions, 1):
        _add_session(page, answer, session, number, options)
    add_sample_section(page, answer.sample, options)
    add_assumptions_section(page, answer.assumptions, options)


def headline_of_gang(answer: GangAnswer) -> Phrase:
    """The outcome in one sentence."""
    job, why = strong(answer.job), f": {answer.reason}" if answer.reason else ""
    total, victims = len(answer.tasks), len(answer.victims)
    if answer.outcome == GangOutcome.REFUSED:
        return (job, " would be ", Span("refused", "bad"), f"{why}.")
    if answer.outcome == GangOutcome.NOT_ENQUEUED:
        return (job, " would ", Span("not be enqueued", "bad"), f": rejected by {answer.reason or 'a plugin'}.")
    if answer.outcome == GangOutcome.INVALID:
        return (job, " would ", Span("not be valid", "bad"), f"{why}.")
    if answer.outcome == GangOutcome.IGNORED:
        return (job, " would be ", Span("ignored", "bad"), f" by Volcano{why}.")
    if answer.outcome == GangOutcome.PANIC:
        return ("The scheduler would ", Span("panic", "bad"), " before ", job, " is allocated.")
    if answer.outcome == GangOutcome.BOUND:
        bound = sum(task.status in _PLACED for task in answer.tasks)
        evicted = f"{count(victims, 'task')} {agree(victims, 'is')} evicted all the same"
        whom = evicted if victims else "no task is evicted"
        return (job, " would be ", Span("bound at once", "good"), f" with {_part(bound, total)}; {whom}.")
    if answer.outcome == GangOutcome.PIPELINED:
        promised = sum(task.status == "Pipelined" for task in answer.tasks)
        whom = (
            f"{count(victims, 'other task')} {agree(victims, 'is')} evicted for it"
            if victims
            else "other tasks are terminating already"
        )
        return (job, " would be ", Span("pipelined", "warn"), f" with {_part(promised, total)}; {whom}.")
    evicts = f", and yet {count(victims, 'task')} {agree(victims, 'is')} evicted for it" if victims else ""
    unschedulable = Span("unschedulable", "bad")
    return (job, " would be enqueued, but ", unschedulable, f": too few of its tasks fit{evicts}{why}.")


def _part(number: int, total: int) -> str:
    """So many of its tasks."""
    if total == 1:
        return "its only task"
    return f"all {total:,} tasks" if number == total else f"{number:,} of {total:,} tasks"


def _add_tasks(page: Page, answer: GangAnswer, options: RenderOptions) -> None:
    """``TASKS``: the status of each, its node, and its pod's condition."""
    if not answer.tasks:
        if answer.outcome == GangOutcome.NOT_ENQUEUED:
            _add_veto(page, answer)
        return
    page.blank()
    page.labelled(Span("TASKS", "heading"), f"{len(answer.tasks):,}", column=LABEL_COLUMN)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for task in answer.tasks:
        message = masked(task.message, task.task)
        groups.setdefault((task.status, task.node, message), []).append(task.task)
    for (status, node, message), tasks in groups.items():
        named = tasks_in_words(tasks, home=answer.job, limit=None if options.verbose else 4)
        style: Style = "good" if status in _PLACED else "bad" if status in ("Pending", "Evicted") else "warn"
        where = (Span(status, style), f" on {node}" if node else "")
        page.paragraph(strong(named), "  ", *where, indent=_INDENT, hanging=2)
        if message and status not in _PLACED:
            page.paragraph(Span(message, "dim"), indent=2 * _INDENT, hanging=2)
    if answer.outcome == GangOutcome.NOT_ENQUEUED:
        _add_veto(page, answer)


def _add_veto(page: Page, answer: GangAnswer) -> None:
    """``REJECTED``: the plugins' words, and that there are no pods."""
    plugins = [plugin.strip() for plugin in answer.reason.split(",") if plugin.strip()]
    page.blank()
    label: Span | str = Span("REJECTED", "bad")
    for plugin in plugins if answer.sessions else []:
        page.labelled(label, f"by {veto_in_words(plugin, answer.job, answer.sessions[-1])}", column=LABEL_COLUMN)
        label = ""
        for action in answer.sessions[-1].actions:
            if action.action == "enqueue" and (room := queue_room_in_words(plugin, answer.queue, action)):
                page.labelled("", room, column=LABEL_COLUMN)
    made = "Its pods stay Pending" if answer.tasks else "Its pods are not created"
    page.labelled(label, f"{made}; every later session tries again.", column=LABEL_COLUMN)


def _add_victims(page: Page, answer: GangAnswer, options: RenderOptions) -> None:
    """``VICTIMS``: by queue and job, with the task for which each is evicted."""
    if not answer.victims:
        return
    page.blank()
    page.labelled(Span("VICTIMS", "heading"), f"{len(answer.victims):,}", column=LABEL_COLUMN)
    groups: dict[tuple[str, str, str], dict[tuple[str, str], list[str]]] = {}
    for victim in answer.victims:
        group = groups.setdefault((victim.queue, victim.job, victim.action), {})
        group.setdefault((victim.node, victim.by), []).append(victim.task)
    limit = None if options.verbose else 4
    for (queue, job, action), nodes in groups.items():
        facts_of = f"  queue {queue}" if queue else ""
        page.paragraph(strong(job or "without a job"), Span(f"{facts_of}, by {action}", "dim"), indent=_INDENT)
        for (node, by), tasks in nodes.items():
            taker = tasks_in_words([by], home=answer.job)
            named = Span(tasks_in_words(tasks, home=job, limit=limit), "bad")
            page.paragraph(named, f" on {node}, for {taker}", indent=2 * _INDENT, hanging=2)


def _add_missing(page: Page, answer: GangAnswer) -> None:
    """``MISSING``: for a job that waits, the node that comes nearest to having room, and what it lacks."""
    if not answer.missing:
        return
    page.blank()
    task = tasks_in_words([answer.missing_for], home=answer.job)
    words = f"{amounts_in_words(answer.missing)} on {answer.missing_on}, the node that is nearest to fitting {task}"
    page.labelled(Span("MISSING", "heading"), f"{words}{_even_then(answer)}", column=LABEL_COLUMN)


def _even_then(answer: GangAnswer) -> str:
    """Whether somebody could have been evicted where the room is missing."""
    for action in reversed(answer.sessions[-1].actions if answer.sessions else []):
        for attempt in action.attempts:
            for node in attempt.nodes if attempt.task == answer.missing_for else []:
                if node.node == answer.missing_on and node.missing == answer.missing and node.candidates:
                    return ", even without all possible victims" if node.victims else "; it has no possible victim"
    return ""


def _add_afterwards(page: Page, answer: GangAnswer) -> None:
    """``THEN``: what the next session makes of pipelined tasks, once the victims are gone."""
    if answer.afterwards is None:
        return
    promised = sum(task.status == "Pipelined" for task in answer.tasks)
    if not promised:
        return
    page.blank()
    label = Span("THEN", "heading")
    when = "once the Releasing tasks are gone, the next session"
    if answer.afterwards.panics:
        page.labelled(label, f"{when} ", Span("panics", "bad"), column=LABEL_COLUMN)
        return
    if answer.bound_afterwards:
        words = Span(f"binds {count(answer.bound_afterwards, 'task')}", "good")
        page.labelled(label, f"{when} ", words, " of this job", column=LABEL_COLUMN)
        return
    others = dict.fromkeys(bind.task for action in answer.afterwards.actions for bind in action.binds)
    whom = f", and binds others: {tasks_in_words(others)}" if others else ""
    words = Span("binds none of its tasks", "bad")
    page.labelled(label, f"{when} ", words, f"{whom}. A task is pipelined for one session only.", column=LABEL_COLUMN)


def _add_session(page: Page, answer: GangAnswer, session: SessionVerdict, number: int, options: RenderOptions) -> None:
    """What concerns the job in the session; with ``verbose`` all of it."""
    if len(answer.sessions) > 1:
        page.blank()
        lets = "enqueues the job; its pods are created" if number == 1 else "schedules the pods"
        page.paragraph(Span(f"SESSION {number}", "heading"), f"  {lets}")
    if options.verbose:
        add_story(page, session, options)
        return
    if answer.outcome == GangOutcome.NOT_ENQUEUED:
        return
    for action in session.actions:
        if any(attempt.job == answer.job for attempt in action.attempts):
            add_action(page, action, session, options, only=answer.job)
    if number < len(answer.sessions):
        return
    active = {
        action.action
        for each in answer.sessions
        for action in each.actions
        if any(attempt.job == answer.job for attempt in action.attempts)
    }
    if silent := [action.action for action in session.actions if action.action not in active]:
        page.blank()
        words = f"{join_names(silent)} {agree(len(silent), 'does')} nothing about this job."
        page.paragraph(Span(words[0].upper() + words[1:], "dim"))
