"""The story of a session, action by action: who asked, what was tried, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import agree, count
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, Style, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano_votes import add_node, nodes_in_words, votes_pattern
from kpreempt.report.volcano_words import (
    amounts_in_words,
    by_text,
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

_TURNS_SHOWN = 6
_ATTEMPTS_SHOWN = 4
_NODES_SHOWN = 2
_NAMES_SHOWN = 3
_INDENT = 2
_EVICTING = (Purpose.PREEMPT_BETWEEN_JOBS, Purpose.PREEMPT_WITHIN_JOB, Purpose.RECLAIM)
# What overcommit and proportion mean when they keep a job out (``overcommit.go``, ``proportion.go`` of Volcano v1.8.0).
_VETOES = {
    "overcommit": "what has been let in and it would ask for more than the nodes have idle, with the overcommit factor",
    "proportion": "its queue would hold more than it may",
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
    turns = [turn for turn in turns_of(action) if only in ("", turn.job)]
    told = [turn for turn in turns if options.verbose or not _is_dull(turn)]
    shown = told if options.verbose else told[:_TURNS_SHOWN]
    for turn in shown:
        _add_turn(page, turn, options)
    if rest := len(told) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more turn')} of jobs (--verbose)", "dim"), indent=_INDENT)
    if not options.verbose:
        _add_dull(page, [turn for turn in turns if _is_dull(turn)])
    if not only:
        _add_skipped(page, action, options)


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
        if mine or end.operations:
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
    """Why a plugin keeps a job out: its event, and what that means."""
    events = session.final.events if session.final else []
    said = {
        "overcommit": "resource in cluster is overused",
        "proportion": "queue resource quota insufficient",
    }.get(plugin, "")
    is_said = any(event.subject == job and event.message == said for event in events)
    meaning = _VETOES.get(plugin, "")
    quoted = f'"{said}"' if is_said else ""
    return ": ".join(part for part in (quoted, meaning) if part)


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
            f" {tasks_in_words(jobs, limit=None if options.verbose else 4)} of queue {queue}, by {plugins}: "
            f"{veto_in_words(plugins, jobs[0], session)}",
            indent=_INDENT,
            hanging=4,
        )
        state = action.queues.get(queue)
        if "proportion" in plugins and state is not None:
            page.paragraph(
                Span(
                    f"the queue may hold {amounts_in_words(state.capability)}; it has "
                    f"{amounts_in_words(state.allocated)}, and let in {amounts_in_words(state.inqueue)} more",
                    "dim",
                ),
                indent=_INDENT + 4,
                hanging=2,
            )


def _is_dull(turn: Turn) -> bool:
    """Whether nothing was there to try: told in a line for all."""
    nodes = [node for attempt in turn.attempts for node in attempt.nodes]
    return (
        turn.purpose == Purpose.PREEMPT_WITHIN_JOB
        and not any(node.evicted or node.outcome == NodeOutcome.PIPELINED for node in nodes)
        and all(attempt.outcome == AttemptOutcome.NO_NODE for attempt in turn.attempts)
    )


def _add_dull(page: Page, turns: Sequence[Turn]) -> None:
    if not turns:
        return
    jobs = list(dict.fromkeys(turn.job for turn in turns))
    page.paragraph(
        Span(f"within the job there is no room to make: {tasks_in_words(jobs)}", "dim"), indent=_INDENT, hanging=2
    )


_TITLES: dict[Purpose, str] = {
    Purpose.ENQUEUE: "",
    Purpose.ALLOCATE: "",
    Purpose.BACKFILL: ", tasks that ask for nothing",
    Purpose.PREEMPT_BETWEEN_JOBS: " asks the other jobs of its queue",
    Purpose.PREEMPT_WITHIN_JOB: " asks its own tasks",
    Purpose.RECLAIM: " asks the other queues",
}


def _add_turn(page: Page, turn: Turn, options: RenderOptions) -> None:
    queue = Span(f"  queue {turn.queue}" if turn.queue else "", "dim")
    page.paragraph(strong(turn.job), _TITLES[turn.purpose], queue, indent=_INDENT, hanging=2)
    groups = _alike(turn.attempts)
    shown = groups if options.verbose else groups[:_ATTEMPTS_SHOWN]
    for group in shown:
        _add_attempts(page, group, options)
    if rest := sum(map(len, groups[len(shown) :])):
        page.paragraph(Span(f"… and {count(rest, 'more task')} (--verbose)", "dim"), indent=2 * _INDENT)
    if turn.statement is not None:
        _add_statement(page, turn.statement)


def _alike(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Attempts of which the same is to say, together. Those that evict stand alone."""
    groups: dict[tuple[object, ...], list[Attempt]] = {}
    for attempt in attempts:
        if any(node.evicted for node in attempt.nodes):
            key: tuple[object, ...] = (id(attempt),)
        elif attempt.outcome in (AttemptOutcome.ALLOCATED, AttemptOutcome.PIPELINED) and not attempt.nodes[-1].votes:
            key = (attempt.outcome,)
        else:
            patterns = tuple((node.node, votes_pattern(node)) for node in attempt.nodes)
            key = (attempt.outcome, attempt.reason.replace(attempt.task, ""), patterns, _refusals(attempt))
        groups.setdefault(key, []).append(attempt)
    return list(groups.values())


def _refusals(attempt: Attempt) -> tuple[tuple[str, str], ...]:
    return tuple((node, refusal_in_words(reason)) for node, reason in attempt.refused.items())


def _add_attempts(page: Page, group: Sequence[Attempt], options: RenderOptions) -> None:
    attempt = group[0]
    home = attempt.job
    tasks = tasks_in_words([each.task for each in group], home=home, limit=None if options.verbose else 4)
    if attempt.purpose not in _EVICTING and attempt.nodes and attempt.outcome != AttemptOutcome.NO_VOLUMES:
        _add_placed(page, group, options)
        return
    page.paragraph(tasks, *_attempt_in_words(attempt, len(group)), indent=2 * _INDENT, hanging=2)
    if attempt.outcome == AttemptOutcome.NO_NODE or options.verbose:
        for reason, nodes in by_text({node: refusal_in_words(why) for node, why in attempt.refused.items()}).items():
            page.paragraph(Span(f"{nodes_in_words(nodes, options)}: ", "dim"), reason, indent=3 * _INDENT, hanging=2)
    if attempt.outcome != AttemptOutcome.NO_VOLUMES:
        _add_nodes(page, attempt, options)


def _attempt_in_words(attempt: Attempt, number: int) -> Phrase:
    plain: dict[AttemptOutcome, tuple[str, Style]] = {
        AttemptOutcome.NOT_ALLOCATABLE: (
            f"{agree(number, 'asks')} for more than queue {attempt.queue} has left of what it deserves",
            "warn",
        ),
        AttemptOutcome.PRE_PREDICATE_FAILED: (f"{agree(number, 'is')} refused at once: {attempt.reason}", "bad"),
        AttemptOutcome.NO_NODE: (f"{agree(number, 'finds')} no node", "bad"),
        AttemptOutcome.NO_VOLUMES: (
            f"{agree(number, 'gets')} no room on {' '.join(node.node for node in attempt.nodes)}, for lack of volumes: "
            f"{attempt.reason}",
            "bad",
        ),
        AttemptOutcome.PIPELINED: (f"{agree(number, 'is')} promised room", "warn"),
    }
    text, style = plain.get(attempt.outcome, (str(attempt.outcome), ""))
    return (": ", Span(text, style))


def _add_nodes(page: Page, attempt: Attempt, options: RenderOptions) -> None:
    """The nodes that were tried: in full where somebody goes, others by what the plugins said there."""
    groups: dict[tuple[object, ...], list[NodeTried]] = {}
    for node in attempt.nodes:
        key = (node.node,) if node.evicted or options.verbose else votes_pattern(node)
        groups.setdefault(key, []).append(node)
    others = 0
    for group in groups.values():
        first = group[0]
        if not first.evicted and not options.verbose and first.outcome != NodeOutcome.PIPELINED:
            if others >= _NODES_SHOWN:
                continue
            others += 1
        add_node(page, first, home=attempt.job, purpose=attempt.purpose, indent=3 * _INDENT, options=options)
        if len(group) > 1:
            rest = nodes_in_words([node.node for node in group[1:]], options)
            page.paragraph(Span(f"the same on {rest}", "dim"), indent=3 * _INDENT, hanging=2)


def _add_placed(page: Page, group: Sequence[Attempt], options: RenderOptions) -> None:
    """Tasks that found a node, by node; where several are as good, that is said."""
    is_promised = group[0].outcome == AttemptOutcome.PIPELINED
    by_node: dict[tuple[str, str], list[str]] = {}
    for attempt in group:
        others = [node for node in attempt.tied if node != attempt.nodes[-1].node]
        tied = f" (or {join_names(others).replace(' and ', ' or ')}, at random)" if others else ""
        by_node.setdefault((attempt.nodes[-1].node, tied), []).append(attempt.task)
    for (node, tied), tasks in by_node.items():
        named = tasks_in_words(tasks, home=group[0].job, limit=None if options.verbose else 4)
        words: Phrase = (Span("promised room on ", "warn"),) if is_promised else (Span("placed on ", "good"),)
        once = " once it is free" if is_promised else ""
        page.paragraph(f"{named}: ", *words, node, once, Span(tied, "dim"), indent=2 * _INDENT, hanging=2)


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
        total = sum(done.values())
        verb = agree(total, "is")
        words: Phrase = (Span("thrown away", "bad"), f": {numbers}; {join_names(parts)} {verb} undone")
    elif end.outcome == StatementOutcome.HELD:
        words = (
            Span("held", "warn"),
            f": {numbers}; nothing binds, and the room stays taken until the session ends",
        )
    else:
        words = (Span("committed", "good"), f": {numbers}")
    page.paragraph("→ ", *words, indent=2 * _INDENT, hanging=2)


def _add_skipped(page: Page, action: ActionEvidence, options: RenderOptions) -> None:
    """Jobs and queues that were passed over, by reason."""
    reasons: dict[str, dict[str, None]] = {}
    for skip in action.skipped:
        reasons.setdefault(skip.reason, {})[skip.subject] = None
    for reason, subjects in reasons.items():
        names = tasks_in_words(subjects, limit=None if options.verbose else _NAMES_SHOWN)
        page.paragraph(Span(f"passed over {names}: {reason}", "dim"), indent=_INDENT, hanging=2)
