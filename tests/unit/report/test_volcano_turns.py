"""The attempts of recorded sessions by turns."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import msgspec
import pytest

from kpreempt.admission import apply_cluster_defaults
from kpreempt.errors import KpreemptError
from kpreempt.report.volcano.attempts import turns_of
from kpreempt.schedulers.volcano import configuration_of, run_session
from kpreempt.snapshot.documents import parse_document
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.verdict.volcano import (
    ActionEvidence,
    Attempt,
    AttemptOutcome,
    Purpose,
    SessionVerdict,
    StatementEnd,
    StatementOutcome,
)
from tests.conformance.cases import FIXTURES, read_lines

# Every nth recorded session.
STEP = 8
SCENARIOS = list(read_lines(FIXTURES.parent / "volcano-1.8" / "generated.jsonl.gz"))[::STEP]


def session_of(scenario: dict[str, object]) -> SessionVerdict | None:
    objects = [msgspec.Raw(msgspec.json.encode(each)) for each in scenario["objects"]]  # type: ignore[attr-defined]
    cluster = apply_cluster_defaults(cluster_from_json(objects, "scenario"))
    conf = scenario.get("conf")
    try:
        configuration = configuration_of(parse_document(str(conf), "conf") if conf else None)
    except KpreemptError:
        return None
    return run_session(cluster, configuration, now=datetime(2024, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_every_attempt_and_every_statement_that_did_something_is_in_one_turn(scenario: dict[str, object]) -> None:
    session = session_of(scenario)
    for action in session.actions if session else []:
        turns = turns_of(action)
        attempts = Counter(id(attempt) for turn in turns for attempt in turn.attempts)
        assert attempts == Counter(id(each) for each in action.attempts if each.purpose != Purpose.ENQUEUE)
        for turn in turns:
            assert {(each.job, each.purpose) for each in turn.attempts} <= {(turn.job, turn.purpose)}
            if turn.statement is not None and turn.statement.outcome == StatementOutcome.DISCARDED:
                by = {by for _, _, _, by in turn.statement.operations}
                assert by <= {each.task for each in turn.attempts}


def end_of(purpose: Purpose, *tasks: str, outcome: StatementOutcome = StatementOutcome.COMMITTED) -> StatementEnd:
    operations = [("evict", f"{task}-victim", "n1", task) for task in tasks]
    return StatementEnd(
        purpose=purpose,
        job="ml/a",
        outcome=outcome,
        ready=0,
        waiting=0,
        min_available=1,
        operations=msgspec.convert(operations, type=list[tuple[str, str, str, str]]),
    )


def attempt(purpose: Purpose, task: str) -> Attempt:
    return Attempt(purpose=purpose, queue="q", job="ml/a", task=task, outcome=AttemptOutcome.NO_NODE)


def action_of(attempts: list[Attempt], statements: list[StatementEnd]) -> ActionEvidence:
    return ActionEvidence(
        action="preempt",
        evictions=[],
        pipelined=[],
        binds=[],
        allocated=[],
        enqueued=None,
        trace=[],
        skipped=[],
        attempts=attempts,
        statements=statements,
        jobs={},
        queues={},
    )


BETWEEN, WITHIN = Purpose.PREEMPT_BETWEEN_JOBS, Purpose.PREEMPT_WITHIN_JOB


def test_two_turns_of_a_job_in_a_row_are_distinguished_by_who_evicted() -> None:
    attempts = [attempt(BETWEEN, "ml/a-0"), attempt(BETWEEN, "ml/a-1")]
    turns = turns_of(action_of(attempts, [end_of(BETWEEN, "ml/a-0"), end_of(BETWEEN, "ml/a-1")]))
    assert [[each.task for each in turn.attempts] for turn in turns] == [["ml/a-0"], ["ml/a-1"]]


def test_a_job_whose_tasks_were_used_up_before_its_queue_came_has_a_turn_without_attempts() -> None:
    ends = [end_of(WITHIN), end_of(BETWEEN, outcome=StatementOutcome.DISCARDED)]
    turns = turns_of(action_of([attempt(WITHIN, "ml/a-0")], ends))
    assert [(turn.purpose, len(turn.attempts)) for turn in turns] == [(WITHIN, 1), (BETWEEN, 0)]


def test_a_job_that_has_no_task_to_ask_for_has_no_turn() -> None:
    assert turns_of(action_of([], [end_of(BETWEEN, outcome=StatementOutcome.DISCARDED)])) == []
