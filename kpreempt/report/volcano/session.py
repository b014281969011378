"""A session of Volcano: what it did, the queues and jobs, the story of every action, what users see, and chance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.report.amounts import count
from kpreempt.report.blocks import (
    Block,
    Listing,
    Phrase,
    Report,
    Section,
    Sentence,
    Span,
    Table,
    Words,
    columns,
    joined,
    strong,
)
from kpreempt.report.closing_section import assumption_sections
from kpreempt.report.evidence import join_names
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.actions import action_section, tried_evictions
from kpreempt.report.volcano.words import (
    by_text,
    change,
    masked,
    subtraction_in_words,
    tasks_in_words,
    volcano_amount,
)
from kpreempt.verdict.volcano import (
    JobState,
    QueueState,
    Sample,
    SampledOutcome,
    SessionAnswer,
    SessionVerdict,
)

_VICTIMS_NAMED = 3
_QUEUES_SHOWN = 8
_JOBS_SHOWN = 8
_GROUPS_SHOWN = 4
_MESSAGES_SHOWN = 4
_OUTCOMES_SHOWN = 5
_EVICTING = ("preempt", "reclaim")
# Where tasks wait for several nodes, which one matters less than how many tasks do.
_ASSIGNED = re.compile(r"(can possibly be assigned to )[^\s,]+")


def report(answer: SessionAnswer, options: RenderOptions) -> Report:
    """The whole session, then the sample where there is one, and what is assumed."""
    session = answer.session
    ignored: list[list[Words]] = [
        [f"{tasks_in_words(names, limit=None if options.verbose else 4)}: {reason}"]
        for reason, names in by_text(session.ignored).items()
    ]
    return Report(
        lead=_headline(session),
        facts=[facts(session)],
        sections=[
            panic_section(session),
            no_eviction_section(session),
            *story(session, options),
            Section("IGNORED", blocks=[Listing(ignored, noun="reason")], is_beside=True, style="warn"),
            sample_section(answer.sample, options),
            *assumption_sections(session.assumptions),
        ],
        is_whole=True,
    )


def story(session: SessionVerdict, options: RenderOptions) -> list[Section]:
    """Queues, jobs, actions, and what users see."""
    # The conditions of pod groups that are not ready, and of pods; events if verbose.
    lists = [
        Listing([[line] for line in lines], noun=noun, shown=shown)
        for lines, noun, shown in (
            (_group_lines(session, options), "pod group", _GROUPS_SHOWN),
            (_pod_lines(session, options), "message", _MESSAGES_SHOWN),
            (_event_lines(session, options), "event", _MESSAGES_SHOWN),
        )
    ]
    return [
        _queues(session, options),
        _jobs(session, options),
        *(action_section(action, session, options) for action in session.actions),
        Section("CONDITIONS", "of pod groups and pods" if any(each.items for each in lists) else "", lists),
    ]


def _headline(session: SessionVerdict) -> Phrase:
    """What the session did, in a sentence or two."""
    deeds = _deeds(session)
    if (panic := session.panic) is not None:
        before = f" Before that it {join_names(deeds, limit=len(deeds))}." if deeds else ""
        where = "when it opens a session" if session.opening is None else "when it closes the session"
        if panic.action:
            where = f"in {panic.action}{f', at {panic.subject}' if panic.subject else ''}"
        return (Span(f"The scheduler panics {where}", "bad"), f".{before}")
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


def panic_section(session: SessionVerdict) -> Section:
    """``PANIC``: its message, what that means, and that it does not pass."""
    panic = session.panic
    if panic is None:
        return Section("PANIC")
    told = []
    subtraction = subtraction_in_words(panic.message)
    if subtraction:
        told.append(f"It would subtract {subtraction}, and panics rather than go below 0.")
    if subtraction and session.opening is None:
        told.append(
            "Pods on nodes request more than is allocatable, or queues are guaranteed more than the cluster has."
        )
    elif " -" in subtraction and panic.on.startswith("node "):
        told.append(f"Pods on {panic.on} request more than is allocatable.")
    elif panic.on:
        told.append(f"It panics over {panic.on}.")
    told.append(
        "Every later session panics, too, until the cause is gone; until then Volcano schedules and evicts nothing."
    )
    return Section("PANIC", panic.message, [Sentence(each) for each in told], is_beside=True, style="bad")


def no_eviction_section(session: SessionVerdict) -> Section:
    """``NOTE``: that nobody is ever evicted where neither of the two actions is configured that do."""
    words = ""
    if not any(action in _EVICTING for action in session.configured_actions):
        tried = ", ".join([*session.configured_actions, *_EVICTING])
        words = (
            "The actions have neither preempt nor reclaim: no task is ever evicted with this configuration. "
            f'To try them: --actions "{tried}"'
        )
    return Section("NOTE", words, style="warn")


def _queues(session: SessionVerdict, options: RenderOptions) -> Section:
    """A line for each resource of each queue, those that change first."""
    if session.opening is None:
        return Section("QUEUES")
    before = session.opening.queues
    after = session.actions[-1].queues if session.actions else before
    if not before:
        words = "no shares: the proportion plugin is not configured" if session.opening.jobs else "none with jobs"
        return Section("QUEUES", words)
    names = _changed_first(before, after)
    shown = names if options.verbose else names[:_QUEUES_SHOWN]
    rest = len(names) - len(shown)
    titles = columns("QUEUE", "WEIGHT", "SHARE", "RESOURCE", "DESERVED", "ALLOCATED", right=["WEIGHT", "DESERVED"])
    rows = [row for name in shown for row in _queue_rows(name, before[name], after.get(name, before[name]), options)]
    return Section(
        "QUEUES",
        f"{len(before):,} with jobs, before → after",
        [
            Table(titles, rows),
            Sentence(Span(f"… and {count(rest, 'more queue')} (-v)" if rest else "", "dim")),
        ],
    )


def _queue_rows(name: str, before: QueueState, after: QueueState, options: RenderOptions) -> list[tuple[Words, ...]]:
    resources = [
        resource
        for resource in dict.fromkeys((*before.deserved, *before.request, *after.allocated))
        if options.verbose
        or any(
            amounts.get(resource) for amounts in (before.deserved, before.allocated, before.request, after.allocated)
        )
    ]
    overused = "overused" if after.overused else "was overused" if before.overused else ""
    rows: list[tuple[Words, ...]] = []
    for number, resource in enumerate(resources or ["cpu"]):
        has = change(*(volcano_amount(resource, state.allocated.get(resource, 0)) for state in (before, after)))
        deserves = change(*(volcano_amount(resource, state.deserved.get(resource, 0)) for state in (before, after)))
        is_first = number == 0
        share = change(f"{before.share:.3g}", f"{after.share:.3g}")
        rows.append(
            (
                strong(name if is_first else ""),
                str(before.weight) if is_first else "",
                share if is_first else "",
                resource,
                deserves,
                (has, Span(f"  {overused}" if is_first and overused else "", "warn" if after.overused else "dim")),
            )
        )
    return rows


def _jobs(session: SessionVerdict, options: RenderOptions) -> Section:
    """The jobs that change or wait; the others are counted."""
    if session.opening is None or not session.opening.jobs:
        return Section("JOBS")
    before = session.opening.jobs
    after = session.actions[-1].jobs if session.actions else before
    phases = {name: group.phase for name, group in session.final.pod_groups.items()} if session.final else {}
    has_shares = any(state.share is not msgspec.UNSET for state in before.values())
    items: list[list[Words]] = []
    stay = 0
    for name in _changed_first(before, after):
        was, now = before[name], after.get(name, before[name])
        if not options.verbose and was == now and now.ready_num >= now.min_available and not now.tasks.get("Pending"):
            stay += 1
            continue
        (old_share, old), (new_share, new) = map(_share_and_counts, (was, now))
        share = f", share {change(old_share, new_share)}" if has_shares else ""
        ready = f"{change(f'{was.ready_num:,}', f'{now.ready_num:,}')} of {now.min_available:,}"
        items.append(
            [
                (strong(name), Span(f"  queue {was.queue}, priority {was.priority:,}{share}", "dim")),
                (
                    f"{change(was.phase or 'none', phases.get(name, '') or now.phase or 'none')} · ",
                    Span(ready, "" if now.ready_num >= now.min_available else "warn"),
                    f" ready · {change(old, new)}",
                ),
            ]
        )
    return Section(
        "JOBS",
        f"{len(before):,}{', before → after' if items else ''}",
        [
            Listing(items, noun="job", shown=_JOBS_SHOWN),
            Sentence(Span(f"{count(stay, 'job')} with all tasks, unchanged" if stay else "", "dim")),
        ],
    )


def _share_and_counts(state: JobState) -> tuple[str, str]:
    """The job's share, and its tasks by status."""
    share = "-" if isinstance(state.share, msgspec.UnsetType) else f"{state.share:.3g}"
    return share, ", ".join(f"{number:,} {status}" for status, number in state.tasks.items() if number) or "none"


def _changed_first(before: Mapping[str, msgspec.Struct], after: Mapping[str, msgspec.Struct]) -> Sequence[str]:
    return sorted(before, key=lambda name: after.get(name, before[name]) == before[name])


def _group_lines(session: SessionVerdict, options: RenderOptions) -> list[Phrase]:
    """Pod groups with their conditions; those that are ready only where verbose."""
    if session.final is None:
        return []
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
    if session.final is None:
        return []
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


def sample_section(sample: Sample | None, options: RenderOptions) -> Section:
    """``CHANCE``: the ends of the sampled runs, and the victims that only some of them have."""
    if sample is None:
        return Section("CHANCE")
    number = len(sample.outcomes)
    ends = "all with the same outcome" if number == 1 else f"with {number:,} outcomes"
    blocks: list[Block] = []
    if number > 1:
        shown = sample.outcomes if options.verbose else sample.outcomes[:_OUTCOMES_SHOWN]
        rows = [(strong(f"{each.times:,} of {sample.runs:,}"), _outcome(each, options)) for each in shown]
        blocks.append(Table(columns("SESSIONS", "OUTCOME", right=["SESSIONS"]), rows, is_untitled=True))
        if rest := sample.outcomes[len(shown) :]:
            times = count(sum(outcome.times for outcome in rest), "session")
            blocks.append(Sentence(Span(f"… and {count(len(rest), 'more outcome')} in {times} (-v)", "dim")))
    always = [task for task, times in sample.evicted.items() if times == sample.runs]
    up_to_chance = {task: times for task, times in sample.evicted.items() if 0 < times < sample.runs}
    if up_to_chance:
        named = [f"{task} ({times:,})" for task, times in sorted(up_to_chance.items(), key=lambda item: -item[1])]
        kept = named if options.verbose else named[:_MESSAGES_SHOWN]
        more = f" and {len(named) - len(kept):,} more" if len(kept) < len(named) else ""
        blocks.append(Sentence((Span("by chance", "warn"), f": {', '.join(kept)}{more} of {sample.runs:,}")))
    if always:
        blocks.append(Sentence((Span("always evicted", "bad"), f": {tasks_in_words(always)}")))
    elif not sample.evicted:
        blocks.append(Sentence("none of them evicts a task"))
    lead = f"{count(sample.runs, 'session')} with every random choice drawn anew (seed {sample.seed}), {ends}"
    return Section("CHANCE", lead, blocks)


def _outcome(outcome: SampledOutcome, options: RenderOptions) -> Phrase:
    limit = None if options.verbose else 4
    parts: list[Phrase] = []
    if outcome.panics:
        parts.append((Span("the scheduler panics", "bad"),))
    if outcome.evicted:
        parts.append((Span("evicts ", "bad"), tasks_in_words(outcome.evicted, limit=limit)))
    for verb, placements in (("pipelines ", outcome.pipelined), ("binds ", outcome.binds)):
        if placements:
            nodes: dict[str, list[str]] = {}
            for placement in placements:
                nodes.setdefault(placement.node, []).append(placement.task)
            parts.append(
                (verb, ", ".join(f"{tasks_in_words(tasks, limit=limit)} on {node}" for node, tasks in nodes.items()))
            )
    if outcome.enqueued:
        parts.append(("enqueues ", tasks_in_words(outcome.enqueued, limit=limit)))
    return joined(parts or [("nothing happens",)], "; ")
