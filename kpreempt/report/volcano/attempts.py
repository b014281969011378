"""What became of tasks that asked for room: nodes in the order of trying, with the votes on each.

And in which turns: what a job tried until its statement ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import agree
from kpreempt.report.layout import Page, Phrase, Span, Style
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.votes import add_votes, nodes_in_words, outcome_in_words, votes_pattern
from kpreempt.report.volcano.words import amounts_in_words, by_text, masked, refusal_in_words, tasks_in_words
from kpreempt.verdict.volcano import (
    ActionEvidence,
    Attempt,
    AttemptOutcome,
    NodeOutcome,
    NodeTried,
    Purpose,
    StatementEnd,
    StatementOutcome,
)

_PLACES_SHOWN = 4
_NODES_SHOWN = 2
_NODES_TIED = 3
_INDENT = 2

# The purposes for which others may have to go.
EVICTING = (Purpose.PREEMPT_BETWEEN_JOBS, Purpose.PREEMPT_WITHIN_JOB, Purpose.RECLAIM)


def alike(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Attempts of which the same is to say, together. Those that evict stand alone."""
    groups: dict[tuple[object, ...], list[Attempt]] = {}
    for attempt in attempts:
        if any(node.evicted for node in attempt.nodes):
            key: tuple[object, ...] = (id(attempt),)
        elif attempt.outcome == AttemptOutcome.NO_VOLUMES:
            key = (attempt.outcome, masked(attempt.reason, attempt.task), tuple(node.node for node in attempt.nodes))
        elif attempt.purpose not in EVICTING and attempt.nodes:
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


def add_attempts(page: Page, group: Sequence[Attempt], told: set[tuple[object, ...]], options: RenderOptions) -> None:
    """What became of tasks alike; ``told`` are the votes that stand above."""
    attempt = group[0]
    if attempt.outcome == AttemptOutcome.NO_VOLUMES:
        tasks = tasks_in_words([each.task for each in group], home=attempt.job, limit=None if options.verbose else 4)
        page.paragraph(tasks, *_attempt_in_words(attempt, len(group)), indent=2 * _INDENT, hanging=2)
        return
    if attempt.purpose not in EVICTING and attempt.nodes:
        for line in placements(group, options):
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
            words = f"nearest {attempt.nearest.node}: short of {amounts_in_words(attempt.nearest.missing)}"
            page.paragraph(Span(words, "dim"), indent=3 * _INDENT, hanging=2)
    _add_nodes(page, attempt, nodes, told, options)


def _telling_nodes(attempt: Attempt, options: RenderOptions) -> Sequence[NodeTried]:
    """The nodes to tell of: where room was found in the end, not those on which there was nobody to ask."""
    if options.verbose or attempt.outcome != AttemptOutcome.PIPELINED or not attempt.nodes:
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
        noun = "candidate" if len(node.candidates) == 1 else "candidates"
        page.paragraph(Span(f"{noun}: {named}; the plugins say the same", "dim"), indent=indent, hanging=2)
        return
    if node.votes:
        told.add(pattern)
    add_votes(page, node, home=attempt.job, indent=indent, options=options)


def _attempt_in_words(attempt: Attempt, number: int) -> Phrase:
    node = attempt.nodes[-1].node if attempt.nodes else ""
    words: dict[AttemptOutcome, tuple[str, Style]] = {
        AttemptOutcome.NOT_ALLOCATABLE: (
            f"{agree(number, 'requests')} more than queue {attempt.queue} has left of its deserved resources",
            "warn",
        ),
        AttemptOutcome.PRE_PREDICATE_FAILED: (f"{agree(number, 'fails')} prePredicates: {attempt.reason}", "bad"),
        AttemptOutcome.NO_NODE: (f"{agree(number, 'fits')} no node", "bad"),
        AttemptOutcome.NO_VOLUMES: (
            f"{agree(number, 'gets')} no volumes on {node}: {attempt.reason}",
            "bad",
        ),
        AttemptOutcome.PIPELINED: (f"pipelined to {node}", "warn"),
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
            page.paragraph(Span(f"the same on {nodes_in_words(rest, options)}", "dim"), indent=3 * _INDENT, hanging=2)
    if others > _NODES_SHOWN:
        page.paragraph(Span("… and more nodes that do not fit (-v)", "dim"), indent=3 * _INDENT)


def placements(group: Sequence[Attempt], options: RenderOptions) -> list[Phrase]:
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
    words = Span("pipelined to ", "warn") if is_promised else Span("allocated to ", "good")
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


class Turn(NamedTuple):
    """The attempts of a job until its statement ended; none where an action makes no statements."""

    job: str
    queue: str
    purpose: Purpose
    attempts: list[Attempt]
    statement: StatementEnd | None


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
        if end is None or (end.outcome == StatementOutcome.COMMITTED and turn.purpose not in EVICTING):
            key: tuple[object, ...] = (turn.job, turn.purpose, end is None)
        else:
            key = (id(turn),)
        if key in joined:
            first = joined[key]
            joined[key] = Turn(*first[:3], [*first.attempts, *turn.attempts], end)
        else:
            joined[key] = turn
    return list(joined.values())
