"""The attempts of an action by turns: what a job tried until its statement ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.verdict.volcano import ActionEvidence, Attempt, Purpose, StatementEnd, StatementOutcome

# The purposes for which others may have to go.
EVICTING = (Purpose.PREEMPT_BETWEEN_JOBS, Purpose.PREEMPT_WITHIN_JOB, Purpose.RECLAIM)


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
