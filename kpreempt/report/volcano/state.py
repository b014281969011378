"""Queues and jobs as a session finds them and as it leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from kpreempt.report.amounts import count
from kpreempt.report.layout import LABEL_COLUMN, Align, Page, Phrase, Span, Style, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.words import change, volcano_amount
from kpreempt.verdict.volcano import JobState, QueueState, SessionVerdict

_INDENT = 2
_QUEUES_SHOWN = 8
_JOBS_SHOWN = 8


def add_queues_section(page: Page, session: SessionVerdict, options: RenderOptions) -> None:
    """``QUEUES``: a line for each resource of each queue, those that change first."""
    if session.opening is None:
        return
    before = session.opening.queues
    after = session.actions[-1].queues if session.actions else before
    page.blank()
    if not before:
        words = "no shares: the proportion plugin is not configured" if session.opening.jobs else "none with jobs"
        page.labelled(Span("QUEUES", "heading"), words, column=LABEL_COLUMN)
        return
    names = _changed_first(before, after)
    shown = names if options.verbose else names[:_QUEUES_SHOWN]
    page.labelled(Span("QUEUES", "heading"), f"{len(before):,} with jobs, before → after", column=LABEL_COLUMN)
    titles = ("QUEUE", "WEIGHT", "SHARE", "", "DESERVED", "ALLOCATED")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for name in shown:
        rows += _queue_rows(name, before[name], after.get(name, before[name]), options)
    aligns: tuple[Align, ...] = ("left", "right", "left", "left", "right", "left")
    page.table(rows, aligns=aligns, indent=_INDENT)
    if rest := len(names) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more queue')} (-v)", "dim"), indent=_INDENT)


def _queue_rows(name: str, before: QueueState, after: QueueState, options: RenderOptions) -> list[tuple[Phrase, ...]]:
    resources = [
        resource
        for resource in dict.fromkeys((*before.deserved, *before.request, *after.allocated))
        if options.verbose
        or any(
            amounts.get(resource) for amounts in (before.deserved, before.allocated, before.request, after.allocated)
        )
    ]
    overused = "overused" if after.overused else "was overused" if before.overused else ""
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
    """``JOBS``: those that change or wait, as a table where the page is wide enough; the others are counted."""
    if session.opening is None or not session.opening.jobs:
        return
    before = session.opening.jobs
    after = session.actions[-1].jobs if session.actions else before
    phases = {name: group.phase for name, group in session.final.pod_groups.items()} if session.final else {}
    names = _changed_first(before, after)
    told = [name for name in names if options.verbose or _is_told(before[name], after.get(name, before[name]))]
    shown = told if options.verbose else told[:_JOBS_SHOWN]
    page.blank()
    arrow = ", before → after" if shown else ""
    page.labelled(Span("JOBS", "heading"), f"{len(before):,}{arrow}", column=LABEL_COLUMN)
    lines = [_JobLine(name, before[name], after.get(name, before[name]), phases.get(name, "")) for name in shown]
    has_shares = any(state.share is not msgspec.UNSET for state in before.values())
    if lines:
        _add_job_lines(page, lines, has_shares=has_shares)
    if rest := len(told) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more job')} (-v)", "dim"), indent=_INDENT)
    if stay := len(names) - len(told):
        words = f"{count(stay, 'job')} with all tasks, unchanged"
        page.paragraph(Span(words, "dim"), indent=_INDENT)


def _is_told(before: JobState, after: JobState) -> bool:
    return before != after or after.ready_num < after.min_available or bool(after.tasks.get("Pending"))


class _JobLine(NamedTuple):
    """A job, its states, and its phase at the end where that is known."""

    name: str
    before: JobState
    after: JobState
    phase: str

    @property
    def share(self) -> str:
        return change(_job_share(self.before), _job_share(self.after))

    @property
    def phases(self) -> str:
        return change(self.before.phase or "none", self.phase or self.after.phase or "none")

    @property
    def tasks(self) -> str:
        return change(_counts(self.before), _counts(self.after))


def _add_job_lines(page: Page, lines: Sequence[_JobLine], *, has_shares: bool) -> None:
    titles = ["JOB", "QUEUE", "PRIORITY", *(["SHARE"] if has_shares else []), "READY", "PHASE", "TASKS"]
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for line in lines:
        share: list[Phrase] = [(line.share,)] if has_shares else []
        cells: list[Phrase] = [(strong(line.name),), (line.before.queue,), (f"{line.before.priority:,}",), *share]
        rows.append((*cells, _ready(line.before, line.after), (line.phases,), (line.tasks,)))
    if page.fits(rows, indent=_INDENT):
        aligns: list[Align] = ["left"] * len(titles)
        aligns[2] = "right"
        page.table(rows, aligns=aligns, indent=_INDENT)
        return
    for line in lines:
        facts = [f"queue {line.before.queue}", f"priority {line.before.priority:,}"]
        facts += [f"share {line.share}"] if has_shares else []
        page.paragraph(strong(line.name), Span(f"  {', '.join(facts)}", "dim"), indent=_INDENT, hanging=_INDENT)
        ready = _ready(line.before, line.after)
        page.paragraph(f"{line.phases} · ", *ready, f" ready · {line.tasks}", indent=2 * _INDENT, hanging=_INDENT)


def share_in_words(share: float) -> str:
    """A share as a part of what is deserved, to three digits."""
    return f"{share:.3g}"


def _job_share(state: JobState) -> str:
    return "-" if isinstance(state.share, msgspec.UnsetType) else share_in_words(state.share)


def _ready(before: JobState, after: JobState) -> Phrase:
    """How many tasks are ready, and how many it needs."""
    numbers = change(f"{before.ready_num:,}", f"{after.ready_num:,}")
    style: Style = "" if after.ready_num >= after.min_available else "warn"
    return (Span(f"{numbers} of {after.min_available:,}", style),)


def _counts(state: JobState) -> str:
    return ", ".join(f"{number:,} {status}" for status, number in state.tasks.items() if number) or "none"


def _changed_first(before: Mapping[str, msgspec.Struct], after: Mapping[str, msgspec.Struct]) -> Sequence[str]:
    return sorted(before, key=lambda name: after.get(name, before[name]) == before[name])
