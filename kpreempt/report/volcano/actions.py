"""The story of a session, action by action: who asked, what was tried, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.attempts import EVICTING, Turn, add_attempts, alike, placements, turns_of
from kpreempt.report.volcano.votes import add_enqueued
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
_INDENT = 2


def add_action(
    page: Page, action: ActionEvidence, session: SessionVerdict, options: RenderOptions, *, only: str = ""
) -> None:
    """A section for the action: what it came to, then each job's turns, then what it passed over.

    ``only`` leaves out all jobs but one.
    """
    page.blank()
    is_last = session.panic is not None and bool(session.panic.action) and action is session.actions[-1]
    until = Span(", until it panics", "bad") if is_last else ""
    page.labelled(Span(action.action.upper(), "heading"), *_summary(action), until, column=LABEL_COLUMN)
    attempts = [attempt for attempt in action.attempts if only in ("", attempt.job)]
    if enqueues := [attempt for attempt in attempts if attempt.purpose == Purpose.ENQUEUE]:
        add_enqueued(page, enqueues, action, session, options)
    _add_turns(page, [turn for turn in turns_of(action) if only in ("", turn.job)], options)
    if not only:
        _add_skipped(page, action, session, options)


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
    phrase: list[Span | str] = []
    for index, part in enumerate(parts):
        phrase += [", " if index else "", *part]
    return tuple(phrase)


_NOTHING = {
    "enqueue": "no job to enqueue",
    "allocate": "allocates no task",
    "backfill": "allocates no task",
    "preempt": "evicts no task",
    "reclaim": "evicts no task",
}


def tried_evictions(action: ActionEvidence) -> int:
    """How many evictions the action discarded."""
    return sum(
        operation[0] == OperationKind.EVICT
        for end in action.statements
        if end.outcome == StatementOutcome.DISCARDED
        for operation in end.operations
    )


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
    return turn.purpose not in EVICTING and is_kept and all(attempt.nodes for attempt in turn.attempts)


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
        page.paragraph(Span(f"… and {count(rest, 'more job')} (-v)", "dim"), indent=_INDENT)
    queues: dict[str, list[str]] = {}
    for turn in too_much:
        queues.setdefault(turn.queue, []).extend(attempt.task for attempt in turn.attempts)
    for queue, tasks in queues.items():
        named = tasks_in_words(tasks, limit=None if options.verbose else 4)
        words = f": {agree(len(set(tasks)), 'requests')} more than queue {queue} has left of its deserved resources"
        page.paragraph(strong(named), Span(words, "warn"), indent=_INDENT, hanging=2)
    if in_vain:
        jobs = tasks_in_words(dict.fromkeys(turn.job for turn in in_vain))
        words = f"no victim among {'its' if len({turn.job for turn in in_vain}) == 1 else 'their'} own tasks: {jobs}"
        page.paragraph(Span(words, "dim"), indent=_INDENT, hanging=2)


def _most_telling(turns: Sequence[Turn]) -> list[Turn]:
    """As many turns as are shown, those first in which somebody was to go; in the order in which they came."""
    ranked = sorted(range(len(turns)), key=lambda at: not any(n.evicted for a in turns[at].attempts for n in a.nodes))
    return [turns[at] for at in sorted(ranked[:_TURNS_SHOWN])]


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


def _add_turn(page: Page, turn: Turn, told: set[tuple[object, ...]], options: RenderOptions) -> None:
    """What the job tried; ``told`` are the votes that stand above."""
    page.paragraph(*_title(turn), indent=_INDENT, hanging=2)
    if not turn.attempts:
        words = "nothing to try: all its tasks were tried between tasks of the job, after an earlier queue"
        page.paragraph(Span(words, "warn"), indent=2 * _INDENT, hanging=2)
    groups = alike(turn.attempts)
    shown = groups if options.verbose else groups[:_ATTEMPTS_SHOWN]
    for group in shown:
        add_attempts(page, group, told, options)
    if rest := sum(map(len, groups[len(shown) :])):
        page.paragraph(Span(f"… and {count(rest, 'more task')} (-v)", "dim"), indent=2 * _INDENT)
    if turn.statement is not None:
        _add_statement(page, turn.statement)


def _add_turn_in_short(page: Page, turn: Turn) -> None:
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
    page.paragraph(*_title(turn), ": ", join_names(parts, limit=len(parts)), indent=_INDENT, hanging=2)
    if turn.statement is not None:
        _add_statement(page, turn.statement)


def _add_placed_turn(page: Page, turn: Turn, options: RenderOptions) -> None:
    """A job whose tasks all found a node: in a line, where it fits in one."""
    lines = [line for group in alike(turn.attempts) for line in placements(group, options)]
    end = turn.statement
    numbers = f", {end.ready:,} ready of {end.min_available:,} needed" if end and end.operations else ""
    page.paragraph(*_title(turn), Span(numbers, "dim"), indent=_INDENT, hanging=2)
    for line in lines:
        page.paragraph(*line, indent=2 * _INDENT, hanging=2)


def _add_statement(page: Page, end: StatementEnd) -> None:
    """What became of the job's turn, and the numbers that decided."""
    if not end.operations:
        return
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
    page.paragraph("→ ", *words, indent=2 * _INDENT, hanging=2)


# Several jobs that are passed over for one reason.
_PLURALS = {
    "it is not starving": "they are not starving",
    "it is not enqueued yet": "they are not enqueued yet",
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
            lines.append(f"skipped queue {names}: {reason.replace(_OF_QUEUE, 'it ', 1)}")
        else:
            lines.append(f"skipped {names}: {_PLURALS.get(reason, reason) if len(subjects) > 1 else reason}")
    return lines
