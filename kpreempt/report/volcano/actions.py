"""The story of a session, action by action: who asked, what was tried, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Listing, Node, Phrase, Section, Span, Tree, Words, joined, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.attempts import EVICTING, Turn, alike, attempts_nodes, enqueued, placements, turns_of
from kpreempt.report.volcano.words import tasks_in_words
from kpreempt.verdict.volcano import (
    ActionEvidence,
    AttemptOutcome,
    OperationKind,
    Purpose,
    SessionVerdict,
    StatementEnd,
    StatementOutcome,
)

_TURNS_IN_FULL = 2
_TURNS_SHOWN = 6
_ATTEMPTS_SHOWN = 3
_NAMES_SHOWN = 3
# Several jobs that are passed over for one reason.
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
    """What the action came to, then each job's turns, then what it passed over.

    ``only`` leaves out all jobs but one.
    """
    is_last = session.panic is not None and bool(session.panic.action) and action is session.actions[-1]
    until = Span(", until it panics", "bad") if is_last else ""
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
    """What the action came to, in a line."""
    kept_out = sum(attempt.outcome == AttemptOutcome.NOT_ENQUEUED for attempt in action.attempts)
    parts: list[Phrase] = []
    if action.enqueued:
        why = "" if action.action == "enqueue" else " (enqueue is not among the actions)"
        parts.append((Span(f"enqueues {count(len(action.enqueued), 'job')}{why}", "good"),))
    if kept_out:
        parts.append((Span(f"rejects {count(kept_out, 'job')}", "bad"),))
    if action.evictions:
        parts.append((Span(f"evicts {count(len(action.evictions), 'task')}", "bad"),))
    if action.pipelined:
        parts.append((Span(f"pipelines {count(len(action.pipelined), 'task')}", "warn"),))
    if action.binds:
        parts.append((Span(f"binds {count(len(action.binds), 'task')}", "good"),))
    if action.allocated:
        parts.append((Span(f"allocates {count(len(action.allocated), 'task')} without binding", "warn"),))
    if undone := tried_evictions(action):
        parts.append((Span(f"discards {count(undone, 'eviction')}", "warn"),))
    if not parts:
        return (_NOTHING.get(action.action, "does nothing"),)
    return joined(parts)


def tried_evictions(action: ActionEvidence) -> int:
    """How many evictions the action discarded."""
    return sum(
        operation[0] == OperationKind.EVICT
        for end in action.statements
        if end.outcome == StatementOutcome.DISCARDED
        for operation in end.operations
    )


def _turns(turns: Sequence[Turn], options: RenderOptions) -> tuple[list[Node], list[Words]]:
    """The turns that tell something, and in a line each those that tell the same."""
    # All that is to say is that its queue has too little left: told in a line for each queue.
    too_much = [
        turn
        for turn in turns
        if turn.attempts and all(attempt.outcome == AttemptOutcome.NOT_ALLOCATABLE for attempt in turn.attempts)
    ]
    # A job found nothing to evict among its own tasks: told in a line for all.
    in_vain = [
        turn
        for turn in turns
        if not options.verbose
        and turn.purpose == Purpose.PREEMPT_WITHIN_JOB
        and all(
            attempt.outcome == AttemptOutcome.NO_NODE and not any(node.evicted for node in attempt.nodes)
            for attempt in turn.attempts
        )
    ]
    others = [turn for turn in turns if turn not in too_much and turn not in in_vain]
    # Those first in which somebody was to go, in the order in which they came.
    ranked = sorted(others, key=lambda turn: not any(node.evicted for each in turn.attempts for node in each.nodes))
    telling = ranked[:_TURNS_SHOWN]
    shown = [turn for turn in others if options.verbose or any(turn is each for each in telling)]
    full = 0
    told: set[tuple[object, ...]] = set()
    nodes = []
    for turn in shown:
        end = turn.statement
        is_kept = turn.purpose not in EVICTING and (end is None or end.outcome == StatementOutcome.COMMITTED)
        # All its tasks were simply placed and bound: told in a line for each job.
        if is_kept and all(attempt.nodes for attempt in turn.attempts):
            numbers = f", {end.ready:,} ready of {end.min_available:,} needed" if end and end.operations else ""
            lines_of_job = [Node(line) for group in alike(turn.attempts) for line in placements(group, options)]
            nodes.append(Node((*_title(turn), Span(numbers, "dim")), lines_of_job))
        elif full < _TURNS_IN_FULL or options.verbose:
            full += 1
            nodes.append(_turn(turn, told, options))
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
        words = f": {agree(len(set(tasks)), 'requests')} more than queue {queue} has left of its deserved resources"
        lines.append((strong(named), Span(words, "warn")))
    if in_vain:
        jobs = list(dict.fromkeys(turn.job for turn in in_vain))
        words = f"no victim among {'its' if len(jobs) == 1 else 'their'} own tasks: {tasks_in_words(jobs)}"
        lines.append(Span(words, "dim"))
    return nodes, lines


def _title(turn: Turn) -> Phrase:
    """The job, and whom it asks."""
    queue = f"queue {turn.queue}" if turn.queue else "its queue"
    words = {
        Purpose.BACKFILL: f"  {queue}, tasks without requests",
        Purpose.PREEMPT_BETWEEN_JOBS: f"  between jobs of {queue}",
        Purpose.PREEMPT_WITHIN_JOB: "  between tasks of the job",
        Purpose.RECLAIM: f"  {queue}, from the other queues",
    }.get(turn.purpose)
    return (strong(turn.job), words or Span(f"  {queue}", "dim"))


def _turn(turn: Turn, told: set[tuple[object, ...]], options: RenderOptions) -> Node:
    """What the job tried; ``told`` are the votes that stand above."""
    below: list[Node] = []
    if not turn.attempts:
        words = "nothing to try: all its tasks were tried between tasks of the job, after an earlier queue"
        below.append(Node(Span(words, "warn")))
    groups = alike(turn.attempts)
    shown = groups if options.verbose else groups[:_ATTEMPTS_SHOWN]
    for group in shown:
        below += attempts_nodes(group, told, options)
    if rest := sum(map(len, groups[len(shown) :])):
        below.append(Node(Span(f"… and {count(rest, 'more task')} (-v)", "dim")))
    return Node(_title(turn), [*below, *_statement(turn.statement)])


def _turn_in_short(turn: Turn) -> Node:
    """How many of the job's tasks found room, how many others went, and what its statement came to."""
    outcomes = Counter(attempt.outcome for attempt in turn.attempts)
    evicted = [task for attempt in turn.attempts for node in attempt.nodes for task in node.evicted]
    parts = [
        f"{words} {count(outcomes[outcome], 'task')}"
        for outcome, words in (
            (AttemptOutcome.ALLOCATED, "allocates"),
            (AttemptOutcome.PIPELINED, "pipelines"),
            (AttemptOutcome.NO_NODE, "finds no node for"),
            (AttemptOutcome.PRE_PREDICATE_FAILED, "fails prePredicates of"),
            (AttemptOutcome.NOT_ALLOCATABLE, "has no deserved resources left for"),
        )
        if outcomes[outcome]
    ]
    if evicted:
        parts.insert(0, f"evicts {tasks_in_words(evicted, home=turn.job)}")
    words = (*_title(turn), ": ", join_names(parts, limit=len(parts)))
    return Node(words, _statement(turn.statement))


def _statement(end: StatementEnd | None) -> list[Node]:
    """What became of the job's turn, and the numbers that decided."""
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
            f": {numbers}; nothing binds, and it stays allocated until the session closes",
        )
    else:
        words = (Span("committed", "good"), f": {numbers}")
    return [Node(("→ ", *words))]


def _skipped(action: ActionEvidence, session: SessionVerdict, options: RenderOptions) -> list[str]:
    """Jobs and queues that were passed over, by reason; not again where an earlier action did so, unless verbose."""
    said: set[str] = set()
    if not options.verbose:
        for earlier in session.actions:
            if earlier is action:
                break
            said.update(_skips(earlier, options))
    return [words for words in _skips(action, options) if words not in said]


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
