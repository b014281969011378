"""A session of Volcano for a terminal: what it did, the queues and jobs, the story of every action, what users see."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.actions import add_action, tried_evictions
from kpreempt.report.volcano.closing import add_sample_section, add_shown_section
from kpreempt.report.volcano.state import add_jobs_section, add_queues_section
from kpreempt.report.volcano.words import by_text, subtraction_in_words, tasks_in_words
from kpreempt.verdict.volcano import Panic, SessionAnswer, SessionVerdict

_VICTIMS_NAMED = 3
_INDENT = 2
_EVICTING = ("preempt", "reclaim")


def render_session(answer: SessionAnswer, options: RenderOptions) -> str:
    """The whole session, then the sample where there is one, and what is assumed."""
    page = Page(options.width)
    session = answer.session
    page.paragraph(*headline(session))
    page.paragraph(facts(session), indent=_INDENT, hanging=_INDENT)
    add_panic(page, session)
    add_no_eviction_note(page, session)
    add_story(page, session, options)
    _add_ignored(page, session, options)
    add_sample_section(page, answer.sample, options)
    add_assumptions_section(page, session.assumptions, options)
    return finished(page, options)


def add_story(page: Page, session: SessionVerdict, options: RenderOptions) -> None:
    """Queues, jobs, actions, and what users see."""
    add_queues_section(page, session, options)
    add_jobs_section(page, session, options)
    for action in session.actions:
        add_action(page, action, session, options)
    add_shown_section(page, session, options)


def headline(session: SessionVerdict) -> Phrase:
    """What the session did, in a sentence or two."""
    deeds = _deeds(session)
    if session.panic is not None:
        before = f" Before that it {join_names(deeds, limit=len(deeds))}." if deeds else ""
        return (Span(f"The scheduler panics {_where(session, session.panic)}", "bad"), f".{before}")
    if deeds:
        in_vain = ""
        if not any(action.pipelined for action in session.actions) and any(each.evictions for each in session.actions):
            in_vain = " It pipelines no task."
        return ("The session ", strong(join_names(deeds, limit=len(deeds))), f".{in_vain}")
    undone = sum(map(tried_evictions, session.actions))
    tries = f" It discards {count(undone, 'eviction')}." if undone else ""
    return ("The session ", strong("changes nothing"), f".{tries}")


def _deeds(session: SessionVerdict) -> list[str]:
    evicted = [eviction.task for action in session.actions for eviction in action.evictions]
    promised = {placement.task for action in session.actions for placement in action.pipelined}
    bound = {placement.task for action in session.actions for placement in action.binds}
    let_in = {job for action in session.actions for job in action.enqueued or ()}
    deeds = []
    if evicted:
        named = f" ({tasks_in_words(evicted)})" if len(evicted) <= _VICTIMS_NAMED else ""
        deeds.append(f"evicts {count(len(evicted), 'task')}{named}")
    if promised:
        deeds.append(f"pipelines {len(promised):,}" if deeds else f"pipelines {count(len(promised), 'task')}")
    if bound:
        deeds.append(f"binds {len(bound):,}" if deeds else f"binds {count(len(bound), 'task')}")
    if let_in:
        deeds.append(f"enqueues {count(len(let_in), 'job')}")
    return deeds


def _where(session: SessionVerdict, panic: Panic) -> str:
    if panic.action:
        return f"in {panic.action}" + (f", at {panic.subject}" if panic.subject else "")
    return "when it opens a session" if session.opening is None else "when it closes the session"


def facts(session: SessionVerdict) -> str:
    """The version, the actions, and how much there is."""
    parts = [session.algorithm, f"actions {', '.join(session.configured_actions) or 'none'}"]
    if session.opening is not None:
        jobs = session.opening.jobs
        waiting = sum(state.tasks.get("Pending", 0) for state in jobs.values())
        queues = len({state.queue for state in jobs.values()})
        parts += [
            f"{count(len(jobs), 'job')} in {count(queues, 'queue')}",
            count(waiting, "pending task"),
        ]
    return " · ".join(parts)


def add_panic(page: Page, session: SessionVerdict) -> None:
    """``PANIC``: its message, what that means, and that it does not pass."""
    panic = session.panic
    if panic is None:
        return
    page.blank()
    page.labelled(Span("PANIC", "bad"), panic.message, column=LABEL_COLUMN)
    subtraction = subtraction_in_words(panic.message)
    if subtraction:
        page.labelled("", f"It would subtract {subtraction}, and panics rather than go below 0.", column=LABEL_COLUMN)
    if subtraction and session.opening is None:
        cause = "Pods on nodes request more than is allocatable, or queues are guaranteed more than the cluster has."
        page.labelled("", cause, column=LABEL_COLUMN)
    elif " -" in subtraction and panic.on.startswith("node "):
        page.labelled("", f"Pods on {panic.on} request more than is allocatable.", column=LABEL_COLUMN)
    elif panic.on:
        page.labelled("", f"It panics over {panic.on}.", column=LABEL_COLUMN)
    page.labelled(
        "",
        "Every later session panics, too, until the cause is gone; until then Volcano schedules and evicts nothing.",
        column=LABEL_COLUMN,
    )


def add_no_eviction_note(page: Page, session: SessionVerdict) -> None:
    """``NOTE``: that nobody is ever evicted where neither of the two actions is configured that do."""
    if any(action in _EVICTING for action in session.configured_actions):
        return
    tried = ", ".join([*session.configured_actions, *_EVICTING])
    page.blank()
    page.labelled(
        Span("NOTE", "warn"),
        "The actions have neither preempt nor reclaim: no task is ever evicted with this configuration. "
        f'To try them: --actions "{tried}"',
        column=LABEL_COLUMN,
    )


def _add_ignored(page: Page, session: SessionVerdict, options: RenderOptions) -> None:
    """``IGNORED``: the pod groups that Volcano does not look at, by reason."""
    if not session.ignored:
        return
    page.blank()
    label: Span | str = Span("IGNORED", "warn")
    for reason, names in by_text(session.ignored).items():
        named = tasks_in_words(names, limit=None if options.verbose else 4)
        page.labelled(label, f"{named}: {reason}", column=LABEL_COLUMN)
        label = ""
