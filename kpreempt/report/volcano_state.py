"""Queues and jobs as a session finds them and as it leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.report.amounts import count
from kpreempt.report.layout import LABEL_COLUMN, Align, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano_words import change, volcano_amount
from kpreempt.verdict.volcano import JobState, QueueState, SessionVerdict

_INDENT = 2
_QUEUES_SHOWN = 8
_JOBS_SHOWN = 12


def add_queues_section(page: Page, session: SessionVerdict, options: RenderOptions) -> None:
    """``QUEUES``: a line for each resource of each queue, those that change first."""
    if session.opening is None:
        return
    before = session.opening.queues
    after = session.actions[-1].queues if session.actions else before
    page.blank()
    if not before:
        words = "have no shares here: no proportion plugin" if session.opening.jobs else "none has a job"
        page.labelled(Span("QUEUES", "heading"), words, column=LABEL_COLUMN)
        return
    names = _changed_first(before, after)
    shown = names if options.verbose else names[:_QUEUES_SHOWN]
    page.labelled(Span("QUEUES", "heading"), f"{len(before):,} with jobs, before → after", column=LABEL_COLUMN)
    titles = ("QUEUE", "WEIGHT", "SHARE", "", "DESERVES", "HAS")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for name in shown:
        rows += _queue_rows(name, before[name], after.get(name, before[name]), options)
    aligns: tuple[Align, ...] = ("left", "right", "left", "left", "right", "left")
    page.table(rows, aligns=aligns, indent=_INDENT)
    if rest := len(names) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more queue')} (--verbose)", "dim"), indent=_INDENT)


def _queue_rows(name: str, before: QueueState, after: QueueState, options: RenderOptions) -> list[tuple[Phrase, ...]]:
    resources = [
        resource
        for resource in dict.fromkeys((*before.deserved, *before.request, *after.allocated))
        if options.verbose
        or any(
            amounts.get(resource) for amounts in (before.deserved, before.allocated, before.request, after.allocated)
        )
    ]
    overused = "overused" if after.overused else "no longer overused" if before.overused else ""
    rows: list[tuple[Phrase, ...]] = []
    for number, resource in enumerate(resources or ["cpu"]):
        has = change(*(volcano_amount(resource, state.allocated.get(resource, 0)) for state in (before, after)))
        deserves = change(*(volcano_amount(resource, state.deserved.get(resource, 0)) for state in (before, after)))
        is_first = number == 0
        share = change(share_in_words(before.share), share_in_words(after.share))
        rows.append(
            (
                (strong(name if is_first else ""),),
                (str(before.weight) if is_first else "",),
                (share if is_first else "",),
                (resource,),
                (deserves,),
                (has, Span(f"  {overused}" if is_first and overused else "", "warn" if after.overused else "dim")),
            )
        )
    return rows


def add_jobs_section(page: Page, session: SessionVerdict, options: RenderOptions) -> None:
    """``JOBS``: a line for each, those that change first; the others counted where they are many."""
    if session.opening is None or not session.opening.jobs:
        return
    before = session.opening.jobs
    after = session.actions[-1].jobs if session.actions else before
    phases = {name: group.phase for name, group in session.final.pod_groups.items()} if session.final else {}
    names = _changed_first(before, after)
    shown = names if options.verbose else names[:_JOBS_SHOWN]
    page.blank()
    page.labelled(Span("JOBS", "heading"), f"{len(before):,}, before → after", column=LABEL_COLUMN)
    titles = ["JOB", "QUEUE", "PRIORITY", "READY", "PHASE", "TASKS"]
    has_shares = any(state.share is not msgspec.UNSET for state in before.values())
    if has_shares:
        titles.insert(3, "SHARE")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for name in shown:
        first, last = before[name], after.get(name, before[name])
        cells: list[Phrase] = [(strong(name),), (first.queue,), (f"{first.priority:,}",)]
        if has_shares:
            cells.append((change(_job_share(first), _job_share(last)),))
        cells += [_ready(first, last), (change(first.phase, phases.get(name, last.phase)),), (_tasks(first, last),)]
        rows.append(tuple(cells))
    aligns: list[Align] = ["left"] * len(titles)
    aligns[2] = "right"
    page.table(rows, aligns=aligns, indent=_INDENT)
    if rest := len(names) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more job')} (--verbose)", "dim"), indent=_INDENT)


def share_in_words(share: float) -> str:
    """A share as a part of what is deserved, to three digits."""
    return f"{share:.3g}"


def _job_share(state: JobState) -> str:
    return "-" if isinstance(state.share, msgspec.UnsetType) else share_in_words(state.share)


def _ready(before: JobState, after: JobState) -> Phrase:
    """How many tasks are ready, of how many that it needs; with those for which room is made."""
    numbers = change(f"{before.ready_num:,}", f"{after.ready_num:,}")
    waiting = f", {after.waiting_num:,} waits" if after.waiting_num else ""
    style = "" if after.ready_num >= after.min_available else "warn"
    return (Span(f"{numbers} of {after.min_available:,}", style), waiting if after.waiting_num < 2 else waiting[:-1])


def _tasks(before: JobState, after: JobState) -> str:
    return change(_counts(before), _counts(after))


def _counts(state: JobState) -> str:
    return ", ".join(f"{number:,} {status}" for status, number in state.tasks.items() if number) or "none"


def _changed_first(before: Mapping[str, msgspec.Struct], after: Mapping[str, msgspec.Struct]) -> Sequence[str]:
    return sorted(before, key=lambda name: after.get(name, before[name]) == before[name])
