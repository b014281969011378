"""The story of a session, action by action: who asked, what was tried, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import agree, count
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, Style, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano_votes import add_votes, nodes_in_words, outcome_in_words, votes_pattern
from kpreempt.report.volcano_words import (
    amounts_in_words,
    by_text,
    masked,
    refusal_in_words,
    tasks_in_words,
)
from kpreempt.verdict.volcano import (
    ActionEvidence,
    Attempt,
    AttemptOutcome,
    NodeOutcome,
    NodeTried,
    OperationKind,
    Purpose,
    SessionVerdict,
    StatementEnd,
    StatementOutcome,
)

_TURNS_IN_FULL = 2
_TURNS_SHOWN = 6
_ATTEMPTS_SHOWN = 3
_PLACES_SHOWN = 4
_NODES_SHOWN = 2
_NODES_TIED = 3
_NAMES_SHOWN = 3
_INDENT = 2
_EVICTING = (Purpose.PREEMPT_BETWEEN_JOBS, Purpose.PREEMPT_WITHIN_JOB, Purpose.RECLAIM)
# What overcommit and proportion mean when they keep a job out (``overcommit.go``, ``proportion.go`` of Volcano v1.8.0).
_VETOES = {
    "overcommit": (
        "resource in cluster is overused",
        "what has been let in and it would ask for more than the nodes have idle, with the overcommit factor",
    ),
    "proportion": ("queue resource quota insufficient", "its queue would hold more than it may"),
}


class Turn(NamedTuple):
    """The attempts of a job until its statement ended; none where an action makes no statements."""

    job: str
    queue: str
    purpose: Purpose
    attempts: list[Attempt]
    statement: StatementEnd | None


def add_action(
    page: Page, action: ActionEvidence, session: SessionVerdict, options: RenderOptions, *, only: str = ""
) -> None:
    """A section for the action: what it came to, then each job's turns, then what it passed over.

    ``only`` leaves out all jobs but one.
    """
    page.blank()
    page.labelled(Span(action.action.upper(), "heading"), *_summary(action), column=LABEL_COLUMN)
    attempts = [attempt for attempt in action.attempts if only in ("", attempt.job)]
    if enqueues := [attempt for attempt in attempts if attempt.purpose == Purpose.ENQUEUE]:
        _add_enqueued(page, enqueues, action, session, options)
    _add_turns(page, [turn for turn in turns_of(action) if only in ("", turn.job)], options)
    if not only:
        _add_skipped(page, action, session, options)


def turns_of(action: ActionEvidence) -> list[Turn]:
    """The attempts by turn. Attempts before the one that a statement holds belong to it, too."""
    attempts = [attempt for attempt in action.attempts if attempt.purpose != Purpose.ENQUEUE]
    statements = list(action.statements)
    turns: list[Turn] = []
    at = 0
    for index, end in enumerate(statements):
        following = statements[index + 1] if index + 1 < len(statements) else None
        mine: list[Attempt] = []
        while at < len(attempts) and _is_of(attempts[at], end, following, len(mine)):
            mine.append(attempts[at])
            at += 1
        while not mine and at < len(attempts) and _comes_before(attempts[at:], end):
            turns.append(_alone(attempts[at]))
            at += 1
            while at < len(attempts) and _is_of(attempts[at], end, following, len(mine)):
                mine.append(attempts[at])
                at += 1
        if mine or end.operations or _has_no_task_left(end, turns):
            turns.append(Turn(end.job, mine[0].queue if mine else "", end.purpose, mine, end))
    turns += [_alone(attempt) for attempt in attempts[at:]]
    return _joined(turns)


def _is_of(attempt: Attempt, end: StatementEnd, following: StatementEnd | None, taken: int) -> bool:
    if (attempt.job, attempt.purpose) != (end.job, end.purpose):
        return False
    if end.purpose == Purpose.PREEMPT_WITHIN_JOB:
        return taken == 0
    if following is None or (following.job, following.purpose) != (end.job, end.purpose):
        return True
    return attempt.task not in {by for _, _, _, by in following.operations}


def _has_no_task_left(end: StatementEnd, turns: Sequence[Turn]) -> bool:
    """Whether a job's turn among its queue came to nothing because its tasks had had theirs among themselves before.

    That happens where another queue was served first: after each queue all starving jobs ask their own tasks.
    """
    return end.purpose == Purpose.PREEMPT_BETWEEN_JOBS and any(
        (turn.job, turn.purpose) == (end.job, Purpose.PREEMPT_WITHIN_JOB) for turn in turns
    )


def _comes_before(attempts: Sequence[Attempt], end: StatementEnd) -> bool:
    """Whether attempts of a turn without a statement stand before those of this one."""
    return any((attempt.job, attempt.purpose) == (end.job, end.purpose) for attempt in attempts[1:])


def _alone(attempt: Attempt) -> Turn:
    return Turn(attempt.job, attempt.queue, attempt.purpose, [attempt], None)


def _joined(turns: Sequence[Turn]) -> list[Turn]:
    """The turns of a job together where they ended alike: allocate gives a task a turn, and so does reclaim."""
    joined: dict[tuple[object, ...], Turn] = {}
    for turn in turns:
        end = turn.statement
        if end is None or (end.outcome == StatementOutcome.COMMITTED and turn.purpose not in _EVICTING):
            key: tuple[object, ...] = (turn.job, turn.purpose, end is None)
        else:
            key = (id(turn),)
        if key in joined:
            first = joined[key]
            joined[key] = Turn(*first[:3], [*first.attempts, *turn.attempts], end)
        else:
            joined[key] = turn
    return list(joined.values())


def _summary(action: ActionEvidence) -> Phrase:
    """What the action came to, in a line."""
    kept_out = sum(attempt.outcome == AttemptOutcome.NOT_ENQUEUED for attempt in action.attempts)
    parts: list[Phrase] = []
    if action.enqueued:
        why = "" if action.action == "enqueue" else " (enqueue is not among the actions)"
        parts.append((Span(f"lets {count(len(action.enqueued), 'job')} in{why}", "good"),))
    if kept_out:
        parts.append((Span(f"keeps {count(kept_out, 'job')} out", "bad"),))
    if action.evictions:
        parts.append((Span(f"evicts {count(len(action.evictions), 'task')}", "bad"),))
    if action.pipelined:
        parts.append((Span(f"promises room to {count(len(action.pipelined), 'task')}", "warn"),))
    if action.binds:
        parts.append((Span(f"binds {count(len(action.binds), 'task')}", "good"),))
    if action.allocated:
        parts.append((Span(f"holds room for {count(len(action.allocated), 'task')} without binding", "warn"),))
    if undone := tried_evictions(action):
        parts.append((Span(f"takes back {count(undone, 'eviction')}", "warn"),))
    if not parts:
        return (_NOTHING.get(action.action, "does nothing"),)
    phrase: list[Span | str] = []
    for index, part in enumerate(parts):
        phrase += [", " if index else "", *part]
    return tuple(phrase)


_NOTHING = {
    "enqueue": "no job waits to be let in",
    "allocate": "places nobody",
    "backfill": "places nobody",
    "preempt": "evicts nobody",
    "reclaim": "evicts nobody",
}


def tried_evictions(action: ActionEvidence) -> int:
    """How many evictions the action took back."""
    return sum(
        operation[0] == OperationKind.EVICT
        for end in action.statements
        if end.outcome == StatementOutcome.DISCARDED
        for operation in end.operations
    )


def veto_in_words(plugin: str, job: str, session: SessionVerdict) -> str:
    """Who keeps a job out, with the event that says so, and what that means."""
    said, meaning = _VETOES.get(plugin, ("", ""))
    events = session.final.events if session.final else []
    quoted = f' ("{said}")' if any(event.subject == job and event.message == said for event in events) else ""
    return f"{plugin}{quoted}" + (f": {meaning}" if meaning else "")


def _add_enqueued(
    page: Page, attempts: Sequence[Attempt], action: ActionEvidence, session: SessionVerdict, options: RenderOptions
) -> None:
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


def _is_in_vain(turn: Turn) -> bool:
    """Whether a job found nothing to evict among its own tasks: told in a line for all."""
    return turn.purpose == Purpose.PREEMPT_WITHIN_JOB and all(
        attempt.outcome == AttemptOutcome.NO_NODE and not any(node.evicted for node in attempt.nodes)
        for attempt in turn.attempts
    )


def _asks_too_much(turn: Turn) -> bool:
    """Whether all that is to say is that its queue has too little left: told in a line for each queue."""
    return bool(turn.attempts) and all(attempt.outcome == AttemptOutcome.NOT_ALLOCATABLE for attempt in turn.attempts)


def _is_placed(turn: Turn) -> bool:
    """Whether all its tasks were simply placed and bound: told in a line for each job."""
    is_kept = turn.statement is None or turn.statement.outcome == StatementOutcome.COMMITTED
    return turn.purpose not in _EVICTING and is_kept and all(attempt.nodes for attempt in turn.attempts)


def _add_turns(page: Page, turns: Sequence[Turn], options: RenderOptions) -> None:
    """The turns that tell something, then in a line each those that tell the same."""
    too_much = [turn for turn in turns if _asks_too_much(turn)]
    in_vain = [] if options.verbose else [turn for turn in turns if _is_in_vain(turn)]
    others = [turn for turn in turns if turn not in too_much and turn not in in_vain]
    shown = others if options.verbose else _most_telling(others)
    full = 0
    told: set[tuple[object, ...]] = set()
    for turn in shown:
        if _is_placed(turn):
            _add_placed_turn(page, turn, options)
        elif full < _TURNS_IN_FULL or options.verbose:
            full += 1
            _add_turn(page, turn, told, options)
        else:
            _add_turn_in_short(page, turn)
    if rest := len({turn.job for turn in others} - {turn.job for turn in shown}):
        page.paragraph(Span(f"… and {count(rest, 'more job')} (--verbose)", "dim"), indent=_INDENT)
    queues: dict[str, list[str]] = {}
    for turn in too_much:
        queues.setdefault(turn.queue, []).extend(attempt.task for attempt in turn.attempts)
    for queue, tasks in queues.items():
        named = tasks_in_words(tasks, limit=None if options.verbose else 4)
        words = f": {agree(len(set(tasks)), 'asks')} for more than queue {queue} has left of what it deserves"
        page.paragraph(strong(named), Span(words, "warn"), indent=_INDENT, hanging=2)
    if in_vain:
        jobs = tasks_in_words(dict.fromkeys(turn.job for turn in in_vain))
        words = (
            f"among {'its' if len({turn.job for turn in in_vain}) == 1 else 'their'} own tasks nobody can go: {jobs}"
        )
        page.paragraph(Span(words, "dim"), indent=_INDENT, hanging=2)


def _most_telling(turns: Sequence[Turn]) -> list[Turn]:
    """As many turns as are shown, those first in which somebody was to go; in the order in which they came."""
    ranked = sorted(range(len(turns)), key=lambda at: not any(n.evicted for a in turns[at].attempts for n in a.nodes))
    return [turns[at] for at in sorted(ranked[:_TURNS_SHOWN])]


def _title(turn: Turn) -> Phrase:
    """The job, and whom it asks."""
    queue = f"queue {turn.queue}" if turn.queue else "its queue"
    words = {
        Purpose.BACKFILL: f"  {queue}, tasks that ask for nothing",
        Purpose.PREEMPT_BETWEEN_JOBS: f" asks the other jobs of {queue}",
        Purpose.PREEMPT_WITHIN_JOB: " asks its own tasks",
        Purpose.RECLAIM: f" of {queue} asks the other queues",
    }.get(turn.purpose)
    return (strong(turn.job), words or Span(f"  {queue}", "dim"))


def _add_turn(page: Page, turn: Turn, told: set[tuple[object, ...]], options: RenderOptions) -> None:
    """What the job tried; ``told`` are the votes that stand above."""
    page.paragraph(*_title(turn), indent=_INDENT, hanging=2)
    if not turn.attempts:
        words = "in vain: its tasks have had their turn among themselves, when another queue was served before"
        page.paragraph(Span(words, "warn"), indent=2 * _INDENT, hanging=2)
    groups = _alike(turn.attempts)
    shown = groups if options.verbose else groups[:_ATTEMPTS_SHOWN]
    for group in shown:
        _add_attempts(page, group, told, options)
    if rest := sum(map(len, groups[len(shown) :])):
        page.paragraph(Span(f"… and {count(rest, 'more task')} (--verbose)", "dim"), indent=2 * _INDENT)
    if turn.statement is not None:
        _add_statement(page, turn.statement)


def _add_turn_in_short(page: Page, turn: Turn) -> None:
    """How many of the job's tasks found room, how many others went, and what its statement came to."""
    outcomes = Counter(attempt.outcome for attempt in turn.attempts)
    evicted = [task for attempt in turn.attempts for node in attempt.nodes for task in node.evicted]
    parts = [
        f"{words} {count(outcomes[outcome], 'task')}"
        for outcome, words in (
            (AttemptOutcome.ALLOCATED, "places"),
            (AttemptOutcome.PIPELINED, "promises room to"),
            (AttemptOutcome.NO_NODE, "finds no node for"),
            (AttemptOutcome.PRE_PREDICATE_FAILED, "refuses at once"),
            (AttemptOutcome.NOT_ALLOCATABLE, "asks too much of the queue for"),
        )
        if outcomes[outcome]
    ]
    if evicted:
        parts.insert(0, f"evicts {tasks_in_words(evicted, home=turn.job)}")
    page.paragraph(*_title(turn), ": ", join_names(parts, limit=len(parts)), indent=_INDENT, hanging=2)
    if turn.statement is not None:
        _add_statement(page, turn.statement)


def _alike(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Attempts of which the same is to say, together. Those that evict stand alone."""
    groups: dict[tuple[object, ...], list[Attempt]] = {}
    for attempt in attempts:
        if any(node.evicted for node in attempt.nodes):
            key: tuple[object, ...] = (id(attempt),)
        elif attempt.purpose not in _EVICTING and attempt.nodes:
            key = (attempt.outcome,)
        else:
            patterns = tuple((node.node, votes_pattern(node)) for node in attempt.nodes)
            key = (attempt.outcome, masked(attempt.reason, attempt.task), patterns, _refusals(attempt))
        groups.setdefault(key, []).append(attempt)
    return list(groups.values())


def _refusals(attempt: Attempt) -> tuple[tuple[str, str], ...]:
    """Why each node was refused: what its predicates said where that is known."""
    because = attempt.because
    return tuple((node, because.get(node) or refusal_in_words(reason)) for node, reason in attempt.refused.items())


def _add_attempts(page: Page, group: Sequence[Attempt], told: set[tuple[object, ...]], options: RenderOptions) -> None:
    """What became of tasks alike; ``told`` are the votes that stand above."""
    attempt = group[0]
    if attempt.outcome == AttemptOutcome.NO_VOLUMES:
        tasks = tasks_in_words([each.task for each in group], home=attempt.job, limit=None if options.verbose else 4)
        page.paragraph(tasks, *_attempt_in_words(attempt, len(group)), indent=2 * _INDENT, hanging=2)
        return
    if attempt.purpose not in _EVICTING and attempt.nodes:
        for line in _placements(group, options):
            page.paragraph(*line, indent=2 * _INDENT, hanging=2)
        return
    tasks = tasks_in_words([each.task for each in group], home=attempt.job, limit=None if options.verbose else 4)
    refusals = by_text(dict(_refusals(attempt)))
    nodes = _telling_nodes(attempt, options)
    if len(nodes) == 1 and not (refusals and attempt.outcome == AttemptOutcome.NO_NODE):
        node = nodes[0]
        outcome = outcome_in_words(node, attempt.job, attempt.purpose, options)
        page.paragraph(tasks, f", on {_scored(node)}: ", *outcome, indent=2 * _INDENT, hanging=2)
        _add_votes_once(page, node, attempt, told, 3 * _INDENT, options)
        return
    page.paragraph(tasks, *_attempt_in_words(attempt, len(group)), indent=2 * _INDENT, hanging=2)
    if attempt.outcome == AttemptOutcome.NO_NODE or options.verbose:
        for reason, refusing in refusals.items():
            page.paragraph(
                Span(f"on {nodes_in_words(refusing, options)}: ", "dim"), reason, indent=3 * _INDENT, hanging=2
            )
        if attempt.nearest is not None and attempt.nearest.missing:
            words = f"{attempt.nearest.node} comes nearest: short of {amounts_in_words(attempt.nearest.missing)}"
            page.paragraph(Span(words, "dim"), indent=3 * _INDENT, hanging=2)
    _add_nodes(page, attempt, nodes, told, options)


def _telling_nodes(attempt: Attempt, options: RenderOptions) -> Sequence[NodeTried]:
    """The nodes to tell of: where room was found in the end, not those on which there was nobody to ask."""
    if options.verbose or attempt.outcome != AttemptOutcome.PIPELINED:
        return attempt.nodes
    *earlier, last = attempt.nodes
    return [*(node for node in earlier if node.candidates), last]


def _scored(node: NodeTried) -> str:
    return node.node if node.score is None else f"{node.node} (score {node.score:,.4g})"


def _add_votes_once(
    page: Page, node: NodeTried, attempt: Attempt, told: set[tuple[object, ...]], indent: int, options: RenderOptions
) -> None:
    """The votes on a node; in short where the plugins said the same above."""
    if not node.candidates:
        return
    # Where a plugin tells tasks apart, the same reasons are of other tasks on another node.
    is_divided = any(vote.victims and vote.refused for vote in node.votes)
    pattern = (*votes_pattern(node)[-1:], node.node if is_divided else "")
    if pattern in told and not options.verbose:
        named = tasks_in_words(node.candidates, home=attempt.job)
        page.paragraph(Span(f"asked: {named}; the plugins say the same", "dim"), indent=indent, hanging=2)
        return
    if node.votes:
        told.add(pattern)
    add_votes(page, node, home=attempt.job, indent=indent, options=options)


def _attempt_in_words(attempt: Attempt, number: int) -> Phrase:
    node = attempt.nodes[-1].node if attempt.nodes else ""
    words: dict[AttemptOutcome, tuple[str, Style]] = {
        AttemptOutcome.NOT_ALLOCATABLE: (
            f"{agree(number, 'asks')} for more than queue {attempt.queue} has left of what it deserves",
            "warn",
        ),
        AttemptOutcome.PRE_PREDICATE_FAILED: (f"{agree(number, 'is')} refused at once: {attempt.reason}", "bad"),
        AttemptOutcome.NO_NODE: (f"{agree(number, 'finds')} no node", "bad"),
        AttemptOutcome.NO_VOLUMES: (
            f"{agree(number, 'gets')} no room on {node}, for lack of volumes: {attempt.reason}",
            "bad",
        ),
        AttemptOutcome.PIPELINED: (f"promised room on {node}", "warn"),
    }
    text, style = words.get(attempt.outcome, (str(attempt.outcome), ""))
    return (": ", Span(text, style))


def _add_nodes(
    page: Page,
    attempt: Attempt,
    nodes: Sequence[NodeTried],
    told: set[tuple[object, ...]],
    options: RenderOptions,
) -> None:
    """The nodes in the order of trying: in full where somebody goes, others by what the plugins said there."""
    groups: dict[tuple[object, ...], list[NodeTried]] = {}
    for node in nodes:
        key = (node.node,) if node.evicted or options.verbose else votes_pattern(node)
        groups.setdefault(key, []).append(node)
    others = 0
    for group in groups.values():
        first = group[0]
        if not first.evicted and not options.verbose and first.outcome != NodeOutcome.PIPELINED:
            others += 1
            if others > _NODES_SHOWN:
                continue
        rest = [node.node for node in group[1:]]
        named = _scored(first) if not rest or first.candidates else nodes_in_words([first.node, *rest], options)
        outcome = outcome_in_words(first, attempt.job, attempt.purpose, options)
        page.paragraph(f"on {named}: ", *outcome, indent=3 * _INDENT, hanging=2)
        _add_votes_once(page, first, attempt, told, 4 * _INDENT, options)
        if rest and first.candidates:
            page.paragraph(Span(f"the like on {nodes_in_words(rest, options)}", "dim"), indent=3 * _INDENT, hanging=2)
    if others > _NODES_SHOWN:
        page.paragraph(Span("… and other nodes in vain (--verbose)", "dim"), indent=3 * _INDENT)


def _placements(group: Sequence[Attempt], options: RenderOptions) -> list[Phrase]:
    """Tasks that found a node, by node; where several are as good, that is said."""
    is_promised = group[0].outcome == AttemptOutcome.PIPELINED
    by_node: dict[tuple[str, str], list[str]] = {}
    for attempt in group:
        others = [node for node in attempt.tied if node != attempt.nodes[-1].node]
        if options.verbose or len(others) <= _NODES_TIED:
            tied = f" (or {' or '.join(others)}, at random)" if others else ""
        else:
            tied = f" (or any of {len(others):,} others, at random)"
        by_node.setdefault((attempt.nodes[-1].node, tied), []).append(attempt.task)
    words = Span("promised room on ", "warn") if is_promised else Span("placed on ", "good")
    if len(by_node) > _PLACES_SHOWN and not options.verbose:
        tasks = tasks_in_words([attempt.task for attempt in group], home=group[0].job)
        nodes = list(dict.fromkeys(node for node, _ in by_node))
        drawn = sum(len(attempt.tied) > 1 for attempt in group)
        luck = f" (for {drawn:,} of them at random among equals)" if drawn else ""
        return [(f"{tasks}: ", words, nodes_in_words(nodes, options), Span(luck, "dim"))]
    once = " once it is free" if is_promised else ""
    return [
        (
            f"{tasks_in_words(tasks, home=group[0].job, limit=None if options.verbose else 4)}: ",
            words,
            f"{node}{once}",
            Span(tied, "dim"),
        )
        for (node, tied), tasks in by_node.items()
    ]


def _add_placed_turn(page: Page, turn: Turn, options: RenderOptions) -> None:
    """A job whose tasks all found a node: in a line, where it fits in one."""
    lines = [line for group in _alike(turn.attempts) for line in _placements(group, options)]
    end = turn.statement
    numbers = f", {end.ready:,} ready of {end.min_available:,} needed" if end and end.operations else ""
    page.paragraph(*_title(turn), Span(numbers, "dim"), indent=_INDENT, hanging=2)
    for line in lines:
        page.paragraph(*line, indent=2 * _INDENT, hanging=2)


def _add_statement(page: Page, end: StatementEnd) -> None:
    """What became of the job's turn, and the numbers that decided."""
    if not end.operations:
        return
    waiting = f" + {end.waiting:,} promised" if end.waiting else ""
    numbers = f"{end.ready:,} ready{waiting} of {end.min_available:,} needed"
    done = Counter(operation[0] for operation in end.operations)
    if end.outcome == StatementOutcome.DISCARDED:
        parts = [
            count(done[kind], noun)
            for kind, noun in (
                (OperationKind.EVICT, "eviction"),
                (OperationKind.PIPELINE, "promise"),
                (OperationKind.ALLOCATE, "placement"),
            )
            if done[kind]
        ]
        verb = agree(sum(done.values()), "is")
        words: Phrase = (Span("thrown away", "bad"), f": {numbers}; {join_names(parts)} {verb} undone")
    elif end.outcome == StatementOutcome.HELD:
        words = (Span("held", "warn"), f": {numbers}; nothing binds, and the room stays taken until the session ends")
    else:
        words = (Span("committed", "good"), f": {numbers}")
    page.paragraph("→ ", *words, indent=2 * _INDENT, hanging=2)


# Several jobs that are passed over for one reason.
_PLURALS = {
    "it is not starving": "they are not starving",
    "it is not in its queue yet": "they are not in their queues yet",
}
_OF_QUEUE = "the queue "
_ENDS_QUEUE = "which ends the queue's turns"


def _add_skipped(page: Page, action: ActionEvidence, session: SessionVerdict, options: RenderOptions) -> None:
    """Jobs and queues that were passed over, by reason; not again where an earlier action did so, unless verbose."""
    said: set[str] = set()
    if not options.verbose:
        for earlier in session.actions:
            if earlier is action:
                break
            said.update(_skips(earlier, options))
    for words in _skips(action, options):
        if words not in said:
            page.paragraph(Span(words, "dim"), indent=_INDENT, hanging=2)


def _skips(action: ActionEvidence, options: RenderOptions) -> list[str]:
    reasons: dict[str, dict[str, None]] = {}
    for skip in action.skipped:
        reasons.setdefault(skip.reason, {})[skip.subject] = None
    lines = []
    for reason, subjects in reasons.items():
        names = tasks_in_words(subjects, limit=None if options.verbose else _NAMES_SHOWN)
        if reason.startswith(_OF_QUEUE) or _ENDS_QUEUE in reason:
            lines.append(f"passed over queue {names}: {reason.replace(_OF_QUEUE, 'it ', 1)}")
        else:
            lines.append(f"passed over {names}: {_PLURALS.get(reason, reason) if len(subjects) > 1 else reason}")
    return lines
