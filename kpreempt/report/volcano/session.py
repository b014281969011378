"""A Volcano session: a summary, the queues and jobs, every action, what users see, and chance.

For each action: the jobs that took a turn, what they tried, and the result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import (
    Block,
    Listing,
    Node,
    Phrase,
    Report,
    Section,
    Sentence,
    Span,
    Table,
    Tree,
    Words,
    columns,
    joined,
    strong,
)
from kpreempt.report.evidence import assumption_sections, by_text, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.attempts import (
    EVICTING,
    Turn,
    alike,
    attempts_nodes,
    change,
    enqueued,
    masked,
    placements,
    subtraction_in_words,
    tasks_in_words,
    turns_of,
    volcano_amount,
)
from kpreempt.verdict.volcano import (
    ActionEvidence,
    AttemptOutcome,
    JobState,
    OperationKind,
    Purpose,
    QueueState,
    Sample,
    SampledOutcome,
    SessionAnswer,
    SessionVerdict,
    StatementEnd,
    StatementOutcome,
)

_VICTIMS_LISTED = 3
_QUEUES_SHOWN = 8
_JOBS_SHOWN = 8
_GROUPS_SHOWN = 4
_MESSAGES_SHOWN = 4
_OUTCOMES_SHOWN = 5
_EVICTING = ("preempt", "reclaim")
# If tasks wait for several nodes, the number of tasks matters more than the node.
_ASSIGNED = re.compile(r"(can possibly be assigned to )[^\s,]+")


def report(answer: SessionAnswer, options: RenderOptions) -> Report:
    """The session, then the sample if there is one, and the assumptions."""
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
            *session_sections(session, options),
            Section("IGNORED", blocks=[Listing(ignored, noun="reason")], is_inline=True, style="warn"),
            sample_section(answer.sample, options),
            *assumption_sections(session.assumptions),
        ],
        is_complete=True,
    )


def session_sections(session: SessionVerdict, options: RenderOptions) -> list[Section]:
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
    actions = _actions(session)
    if (panic := session.panic) is not None:
        before = f" Before that, it {join_names(actions, limit=len(actions))}." if actions else ""
        place = "when it opens a session" if session.opening is None else "when it closes the session"
        if panic.action:
            place = f"in {panic.action}{f', at {panic.subject}' if panic.subject else ''}"
        return (Span(f"The scheduler panics {place}", "bad"), f".{before}")
    if actions:
        note = ""
        if not any(action.pipelined for action in session.actions) and any(each.evictions for each in session.actions):
            note = " It pipelines no task."
        return ("The session ", strong(join_names(actions, limit=len(actions))), f".{note}")
    undone = sum(map(num_attempted_evictions, session.actions))
    tries = f" It discards {count(undone, 'eviction')}." if undone else ""
    return ("The session ", strong("changes nothing"), f".{tries}")


def _actions(session: SessionVerdict) -> list[str]:
    evicted = [eviction.task for action in session.actions for eviction in action.evictions]
    promised = {placement.task for action in session.actions for placement in action.pipelined}
    bound = {placement.task for action in session.actions for placement in action.binds}
    enqueued_jobs = {job for action in session.actions for job in action.enqueued or ()}
    actions: list[str] = []
    if evicted:
        named = f" ({tasks_in_words(evicted)})" if len(evicted) <= _VICTIMS_LISTED else ""
        actions.append(f"evicts {count(len(evicted), 'task')}{named}")
    if promised:
        actions.append(f"pipelines {len(promised):,}" if actions else f"pipelines {count(len(promised), 'task')}")
    if bound:
        actions.append(f"binds {len(bound):,}" if actions else f"binds {count(len(bound), 'task')}")
    if enqueued_jobs:
        actions.append(f"enqueues {count(len(enqueued_jobs), 'job')}")
    return actions


def facts(session: SessionVerdict) -> str:
    """The version, the actions, and the numbers of jobs, queues and tasks."""
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
    """``PANIC``: its message, what it means, and that it recurs."""
    panic = session.panic
    if panic is None:
        return Section("PANIC")
    lines = []
    subtraction = subtraction_in_words(panic.message)
    if subtraction:
        lines.append(f"The session would subtract {subtraction}; Volcano panics if the result is negative.")
    if subtraction and session.opening is None:
        lines.append(
            "The pods on a node request more than its allocatable resources, or queues are guaranteed more than the"
            " cluster has."
        )
    elif " -" in subtraction and panic.on.startswith("node "):
        lines.append(f"The pods on {panic.on} request more than its allocatable resources.")
    elif panic.on:
        lines.append(f"The panic concerns {panic.on}.")
    lines.append(
        "Every later session also panics until the cause is fixed; until then, Volcano schedules and evicts nothing."
    )
    return Section("PANIC", panic.message, [Sentence(each) for each in lines], is_inline=True, style="bad")


def no_eviction_section(session: SessionVerdict) -> Section:
    """``NOTE``: no pod is ever evicted if neither of the two evicting actions is configured."""
    words = ""
    if not any(action in _EVICTING for action in session.configured_actions):
        tried = ", ".join([*session.configured_actions, *_EVICTING])
        words = (
            "The actions include neither preempt nor reclaim, so this configuration never evicts a task. "
            f'To try them: --actions "{tried}"'
        )
    return Section("NOTE", words, style="warn")


def _queues(session: SessionVerdict, options: RenderOptions) -> Section:
    """A row per resource of each queue, changed queues first."""
    if session.opening is None:
        return Section("QUEUES")
    before = session.opening.queues
    after = session.actions[-1].queues if session.actions else before
    if not before:
        words = "no shares: the proportion plugin is not configured" if session.opening.jobs else "no queue has jobs"
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
    """The jobs that change or are pending; the others are counted."""
    if session.opening is None or not session.opening.jobs:
        return Section("JOBS")
    before = session.opening.jobs
    after = session.actions[-1].jobs if session.actions else before
    phases = {name: group.phase for name, group in session.final.pod_groups.items()} if session.final else {}
    has_shares = any(state.share is not msgspec.UNSET for state in before.values())
    items: list[list[Words]] = []
    unchanged = 0
    for name in _changed_first(before, after):
        was, now = before[name], after.get(name, before[name])
        if not options.verbose and was == now and now.ready_num >= now.min_available and not now.tasks.get("Pending"):
            unchanged += 1
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
            Sentence(Span(f"{count(unchanged, 'unchanged job')} without pending tasks" if unchanged else "", "dim")),
        ],
    )


def _share_and_counts(state: JobState) -> tuple[str, str]:
    """The job's share, and its tasks by status."""
    share = "-" if isinstance(state.share, msgspec.UnsetType) else f"{state.share:.3g}"
    return share, ", ".join(f"{number:,} {status}" for status, number in state.tasks.items() if number) or "no tasks"


def _changed_first(before: Mapping[str, msgspec.Struct], after: Mapping[str, msgspec.Struct]) -> Sequence[str]:
    return sorted(before, key=lambda name: after.get(name, before[name]) == before[name])


def _group_lines(session: SessionVerdict, options: RenderOptions) -> list[Phrase]:
    """Pod groups with their conditions; ready pod groups only if verbose."""
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
    """The conditions of pods, with equal messages merged; conditions of their pod groups are not repeated."""
    if session.final is None:
        return []
    groups: dict[tuple[str, str], list[str]] = {}
    for task, condition in session.final.pods.items():
        message = masked(condition.message, task)
        if not options.verbose:
            message = _ASSIGNED.sub(r"\1…", message)
        groups.setdefault((condition.reason, message), []).append(task)
    known = {condition.message for group in session.final.pod_groups.values() for condition in group.conditions}
    lines: list[Phrase] = []
    for (reason, message), tasks in groups.items():
        exact = dict.fromkeys(masked(session.final.pods[task].message, task) for task in tasks)
        words = next(iter(exact)) if len(exact) == 1 else message
        words = session.final.pods[tasks[0]].message if len(tasks) == 1 else words
        words = "same as its pod group" if words in known else words
        named = tasks_in_words(tasks, limit=None if options.verbose else 4)
        noun = "pod " if len(tasks) == 1 else "pods "
        lines.append((noun, strong(named), f": {reason}: " if reason else ": ", words))
    return lines


def _event_lines(session: SessionVerdict, options: RenderOptions) -> list[Phrase]:
    """Events with equal messages merged; only if verbose, because conditions and messages say the same."""
    if session.final is None or not options.verbose:
        return []
    groups = grouped(
        session.final.events,
        lambda event: (event.kind, f"{event.type} {event.reason}: {masked(event.message, event.subject)}"),
    )
    return [
        (f"event on {kind} ", strong(tasks_in_words([each.subject for each in events], limit=None)), f": {text}")
        for (kind, text), events in groups.items()
    ]


def sample_section(sample: Sample | None, options: RenderOptions) -> Section:
    """``CHANCE``: the outcomes of the sampled sessions, and the victims that only some of them have."""
    if sample is None:
        return Section("CHANCE")
    number = len(sample.outcomes)
    results = "the same outcome every time" if number == 1 else f"{number:,} outcomes"
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
        shown_names = named if options.verbose else named[:_MESSAGES_SHOWN]
        more = f" and {len(named) - len(shown_names):,} more" if len(shown_names) < len(named) else ""
        blocks.append(
            Sentence((Span("evicted in some sessions", "warn"), f": {', '.join(shown_names)}{more} of {sample.runs:,}"))
        )
    if always:
        blocks.append(Sentence((Span("evicted in every session", "bad"), f": {tasks_in_words(always)}")))
    elif not sample.evicted:
        blocks.append(Sentence("no session evicts a task"))
    lead = f"{count(sample.runs, 'session')} with different random choices (seed {sample.seed}): {results}"
    return Section("CHANCE", lead, blocks)


def _outcome(outcome: SampledOutcome, options: RenderOptions) -> Phrase:
    limit = None if options.verbose else 4
    parts: list[Phrase] = []
    if outcome.panics:
        parts.append((Span("the scheduler panics", "bad"),))
    if outcome.evicted:
        parts.append((Span("evicts ", "bad"), tasks_in_words(outcome.evicted, limit=limit)))
    for verb, placed in (("pipelines ", outcome.pipelined), ("binds ", outcome.binds)):
        if nodes := grouped(placed, lambda placement: placement.node):
            tasks = {node: tasks_in_words([each.task for each in there], limit=limit) for node, there in nodes.items()}
            parts.append((verb, ", ".join(f"{named} on {node}" for node, named in tasks.items())))
    if outcome.enqueued:
        parts.append(("enqueues ", tasks_in_words(outcome.enqueued, limit=limit)))
    return joined(parts or [("nothing happens",)], "; ")


_TURNS_IN_FULL = 2
_TURNS_SHOWN = 6
_ATTEMPTS_SHOWN = 3
_NAMES_SHOWN = 3
# Plurals of the reasons for skipping jobs.
_PLURALS = {
    "it is not starving": "they are not starving",
    "it is not enqueued yet": "they are not enqueued yet",
}
_OF_QUEUE = "the queue "
_ENDS_QUEUE = "which ends the queue's turns"

_NOTHING = {
    "enqueue": "no job to enqueue",
    "allocate": "allocates no task",
    "backfill": "allocates no task",
    "preempt": "evicts no task",
    "reclaim": "evicts no task",
}


def action_section(
    action: ActionEvidence, session: SessionVerdict, options: RenderOptions, *, only: str = ""
) -> Section:
    """The result of the action, then each job's turns, then what it skipped.

    ``only`` limits it to one job.
    """
    is_last = session.panic is not None and bool(session.panic.action) and action is session.actions[-1]
    until = Span(", then panics", "bad") if is_last else ""
    attempts = [attempt for attempt in action.attempts if only in ("", attempt.job)]
    enqueues = [attempt for attempt in attempts if attempt.purpose == Purpose.ENQUEUE]
    turns, lines = _turns([turn for turn in turns_of(action) if only in ("", turn.job)], options)
    if not only:
        lines += [Span(words, "dim") for words in _skipped(action, session, options)]
    return Section(
        action.action.upper(),
        (*_summary(action), until),
        [
            enqueued(enqueues, action, session, options),
            Tree(turns, noun="turn"),
            Listing([[line] for line in lines], noun="reason"),
        ],
    )


def _summary(action: ActionEvidence) -> Phrase:
    """The result of the action, in a line."""
    rejected = sum(attempt.outcome == AttemptOutcome.NOT_ENQUEUED for attempt in action.attempts)
    parts: list[Phrase] = []
    if action.enqueued:
        why = "" if action.action == "enqueue" else " (enqueue is not among the actions)"
        parts.append((Span(f"enqueues {count(len(action.enqueued), 'job')}{why}", "good"),))
    if rejected:
        parts.append((Span(f"rejects {count(rejected, 'job')}", "bad"),))
    if action.evictions:
        parts.append((Span(f"evicts {count(len(action.evictions), 'task')}", "bad"),))
    if action.pipelined:
        parts.append((Span(f"pipelines {count(len(action.pipelined), 'task')}", "warn"),))
    if action.binds:
        parts.append((Span(f"binds {count(len(action.binds), 'task')}", "good"),))
    if action.allocated:
        parts.append((Span(f"allocates {count(len(action.allocated), 'task')} without binding", "warn"),))
    if undone := num_attempted_evictions(action):
        parts.append((Span(f"discards {count(undone, 'eviction')}", "warn"),))
    if not parts:
        return (_NOTHING.get(action.action, "does nothing"),)
    return joined(parts)


def num_attempted_evictions(action: ActionEvidence) -> int:
    """The number of evictions that the action discarded."""
    return sum(
        operation[0] == OperationKind.EVICT
        for end in action.statements
        if end.outcome == StatementOutcome.DISCARDED
        for operation in end.operations
    )


def _turns(turns: Sequence[Turn], options: RenderOptions) -> tuple[list[Node], list[Words]]:
    """The informative turns, and a line for each group of others."""
    # The remaining resources of the queue are too small: one line per queue.
    too_much = [
        turn
        for turn in turns
        if turn.attempts and all(attempt.outcome == AttemptOutcome.NOT_ALLOCATABLE for attempt in turn.attempts)
    ]
    # A job found nothing to evict among its own tasks: one line for all.
    without_victims = [
        turn
        for turn in turns
        if not options.verbose
        and turn.purpose == Purpose.PREEMPT_WITHIN_JOB
        and all(
            attempt.outcome == AttemptOutcome.NO_NODE and not any(node.evicted for node in attempt.nodes)
            for attempt in turn.attempts
        )
    ]
    others = [turn for turn in turns if turn not in too_much and turn not in without_victims]
    # Turns with victims first, otherwise in order.
    ranked = sorted(others, key=lambda turn: not any(node.evicted for each in turn.attempts for node in each.nodes))
    selected = ranked[:_TURNS_SHOWN]
    shown = [turn for turn in others if options.verbose or any(turn is each for each in selected)]
    full = 0
    printed: set[tuple[object, ...]] = set()
    nodes = []
    for turn in shown:
        end = turn.statement
        is_kept = turn.purpose not in EVICTING and (end is None or end.outcome == StatementOutcome.COMMITTED)
        # All its tasks were simply placed and bound: one line per job.
        if is_kept and all(attempt.nodes for attempt in turn.attempts):
            numbers = f", {end.ready:,} ready of {end.min_available:,} needed" if end and end.operations else ""
            lines_of_job = [Node(line) for group in alike(turn.attempts) for line in placements(group, options)]
            nodes.append(Node((*_title(turn), Span(numbers, "dim")), lines_of_job))
        elif full < _TURNS_IN_FULL or options.verbose:
            full += 1
            nodes.append(_turn(turn, printed, options))
        else:
            nodes.append(_turn_in_short(turn))
    if rest := len({turn.job for turn in others} - {turn.job for turn in shown}):
        nodes.append(Node(Span(f"… and {count(rest, 'more job')} (-v)", "dim")))
    lines: list[Words] = []
    queues: dict[str, list[str]] = {}
    for turn in too_much:
        queues.setdefault(turn.queue, []).extend(attempt.task for attempt in turn.attempts)
    for queue, tasks in queues.items():
        named = tasks_in_words(tasks, limit=None if options.verbose else 4)
        words = f": {agree(len(set(tasks)), 'requests')} more than the remaining deserved resources of queue {queue}"
        lines.append((strong(named), Span(words, "warn")))
    if without_victims:
        jobs = list(dict.fromkeys(turn.job for turn in without_victims))
        words = f"no victims within {'the job' if len(jobs) == 1 else 'these jobs'}: {tasks_in_words(jobs)}"
        lines.append(Span(words, "dim"))
    return nodes, lines


def _title(turn: Turn) -> Phrase:
    """The job, and the scope in which it looks for victims."""
    queue = f"queue {turn.queue}" if turn.queue else "its queue"
    words = {
        Purpose.BACKFILL: f"  {queue}, tasks without requests",
        Purpose.PREEMPT_BETWEEN_JOBS: f"  between jobs of {queue}",
        Purpose.PREEMPT_WITHIN_JOB: "  within the job",
        Purpose.RECLAIM: f"  {queue}, from other queues",
    }.get(turn.purpose)
    return (strong(turn.job), words or Span(f"  {queue}", "dim"))


def _turn(turn: Turn, printed: set[tuple[object, ...]], options: RenderOptions) -> Node:
    """What the job tried; ``printed`` are the votes that were already printed."""
    below: list[Node] = []
    if not turn.attempts:
        words = "nothing to try: all tasks of the job were tried within the job, after the turns of an earlier queue"
        below.append(Node(Span(words, "warn")))
    groups = alike(turn.attempts)
    shown = groups if options.verbose else groups[:_ATTEMPTS_SHOWN]
    for group in shown:
        below += attempts_nodes(group, printed, options)
    if rest := sum(map(len, groups[len(shown) :])):
        below.append(Node(Span(f"… and {count(rest, 'more task')} (-v)", "dim")))
    return Node(_title(turn), [*below, *_statement(turn.statement)])


def _turn_in_short(turn: Turn) -> Node:
    """The number of the job's tasks by result, its victims, and the result of its statement."""
    outcomes = Counter(attempt.outcome for attempt in turn.attempts)
    evicted = [task for attempt in turn.attempts for node in attempt.nodes for task in node.evicted]
    parts = [
        f"{words} {count(outcomes[outcome], 'task')}"
        for outcome, words in (
            (AttemptOutcome.ALLOCATED, "allocates"),
            (AttemptOutcome.PIPELINED, "pipelines"),
            (AttemptOutcome.NO_NODE, "finds no node for"),
            (AttemptOutcome.PRE_PREDICATE_FAILED, "fails prePredicates for"),
            (AttemptOutcome.NOT_ALLOCATABLE, "has no deserved resources left for"),
        )
        if outcomes[outcome]
    ]
    if evicted:
        parts.insert(0, f"evicts {tasks_in_words(evicted, home=turn.job)}")
    words = (*_title(turn), ": ", join_names(parts, limit=len(parts)))
    return Node(words, _statement(turn.statement))


def _statement(end: StatementEnd | None) -> list[Node]:
    """The result of the job's turn, and the numbers that decided it."""
    if end is None or not end.operations:
        return []
    waiting = f" + {end.waiting:,} pipelined" if end.waiting else ""
    numbers = f"{end.ready:,} ready{waiting} of {end.min_available:,} needed"
    done = Counter(operation[0] for operation in end.operations)
    if end.outcome == StatementOutcome.DISCARDED:
        parts = [
            count(done[kind], noun)
            for kind, noun in (
                (OperationKind.EVICT, "eviction"),
                (OperationKind.PIPELINE, "pipelined task"),
                (OperationKind.ALLOCATE, "allocation"),
            )
            if done[kind]
        ]
        verb = agree(sum(done.values()), "is")
        words: Phrase = (Span("discarded", "bad"), f": {numbers}; {join_names(parts)} {verb} undone")
    elif end.outcome == StatementOutcome.HELD:
        words = (
            Span("kept", "warn"),
            f": {numbers}; nothing is bound, and the resources stay allocated until the session closes",
        )
    else:
        words = (Span("committed", "good"), f": {numbers}")
    return [Node(("→ ", *words))]


def _skipped(action: ActionEvidence, session: SessionVerdict, options: RenderOptions) -> list[str]:
    """The skipped jobs and queues by reason; unless verbose, without those that an earlier action also skipped."""
    printed: set[str] = set()
    if not options.verbose:
        for earlier in session.actions:
            if earlier is action:
                break
            printed.update(_skips(earlier, options))
    return [words for words in _skips(action, options) if words not in printed]


def _skips(action: ActionEvidence, options: RenderOptions) -> list[str]:
    reasons: dict[str, dict[str, None]] = {}
    for skip in action.skipped:
        reasons.setdefault(skip.reason, {})[skip.subject] = None
    lines = []
    for reason, subjects in reasons.items():
        names = tasks_in_words(subjects, limit=None if options.verbose else _NAMES_SHOWN)
        if reason.startswith(_OF_QUEUE) or _ENDS_QUEUE in reason:
            lines.append(f"skipped queue {names}: {reason.replace(_OF_QUEUE, 'it ', 1)}")
        else:
            lines.append(f"skipped {names}: {_PLURALS.get(reason, reason) if len(subjects) > 1 else reason}")
    return lines
