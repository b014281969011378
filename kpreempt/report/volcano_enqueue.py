"""Who is let into a queue and who is kept out, with what the plugins say of it."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Page, Span
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano_words import amounts_in_words, tasks_in_words
from kpreempt.verdict.volcano import ActionEvidence, Attempt, AttemptOutcome, SessionVerdict

_INDENT = 2
# What overcommit and proportion mean when they keep a job out (``overcommit.go``, ``proportion.go`` of Volcano v1.8.0).
_VETOES = {
    "overcommit": (
        "resource in cluster is overused",
        "what has been let in and it would ask for more than the nodes have idle, with the overcommit factor",
    ),
    "proportion": ("queue resource quota insufficient", "its queue would hold more than it may"),
}


def veto_in_words(plugin: str, job: str, session: SessionVerdict) -> str:
    """Who keeps a job out, with the event that says so, and what that means."""
    said, meaning = _VETOES.get(plugin, ("", ""))
    events = session.final.events if session.final else []
    quoted = f' ("{said}")' if any(event.subject == job and event.message == said for event in events) else ""
    return f"{plugin}{quoted}" + (f": {meaning}" if meaning else "")


def add_enqueued(
    page: Page, attempts: Sequence[Attempt], action: ActionEvidence, session: SessionVerdict, options: RenderOptions
) -> None:
    """The jobs that are let in, by queue, and those that are kept out, by who does it."""
    let_in: dict[str, list[str]] = {}
    for attempt in attempts:
        if attempt.outcome == AttemptOutcome.ENQUEUED:
            let_in.setdefault(attempt.queue, []).append(attempt.job)
    for queue, jobs in let_in.items():
        page.paragraph(
            Span("in", "good"),
            f"  {tasks_in_words(jobs, limit=None if options.verbose else 4)} to queue {queue}",
            indent=_INDENT,
            hanging=4,
        )
    out: dict[tuple[str, str], list[str]] = {}
    for attempt in attempts:
        if attempt.outcome == AttemptOutcome.NOT_ENQUEUED:
            out.setdefault((attempt.queue, join_names(attempt.vetoes)), []).append(attempt.job)
    for (queue, plugins), jobs in out.items():
        page.paragraph(
            Span("out", "bad"),
            f" {tasks_in_words(jobs, limit=None if options.verbose else 4)} of queue {queue}, by "
            f"{veto_in_words(plugins, jobs[0], session)}",
            indent=_INDENT,
            hanging=4,
        )
        if room := queue_room_in_words(plugins, queue, action):
            page.paragraph(Span(room, "dim"), indent=_INDENT + 4, hanging=2)


def queue_room_in_words(plugin: str, queue: str, action: ActionEvidence) -> str:
    """What a queue may hold, has and has let in, where that is why a job was kept out; else an empty text."""
    state = action.queues.get(queue)
    if plugin != "proportion" or state is None:
        return ""
    holds, has, let_in = map(amounts_in_words, (state.capability, state.allocated, state.inqueue))
    return f"the queue may hold {holds}; it has {has}, and jobs that it let in are to get {let_in}"
