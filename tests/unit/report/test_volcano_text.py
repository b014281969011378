"""What a reader finds in a report on a session, and on a job that is submitted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.report import RenderOptions
from kpreempt.report.answers import Answer, render_answer
from kpreempt.verdict.volcano import (
    ActionEvidence,
    Attempt,
    AttemptOutcome,
    Closing,
    Eviction,
    GangAnswer,
    GangAnswers,
    GangOutcome,
    GangTask,
    GangVictim,
    NodeAttempt,
    NodeOutcome,
    Opening,
    OperationKind,
    Panic,
    Placement,
    PodMessage,
    Purpose,
    Sample,
    SampledOutcome,
    SessionAnswer,
    SessionVerdict,
    Skip,
    StatementEnd,
    StatementOutcome,
)

SUBTRACTION = "resource is not sufficient to do operation: <cpu {}.00, memory 0.00> sub <cpu {}.00, memory 0.00>"


def action(name: str, **fields: Any) -> ActionEvidence:
    empty: dict[str, Any] = {
        "evictions": [],
        "pipelined": [],
        "binds": [],
        "allocated": [],
        "enqueued": None,
        "trace": [],
        "skipped": [],
        "attempts": [],
        "statements": [],
        "jobs": {},
        "queues": {},
    }
    return ActionEvidence(action=name, **{**empty, **fields})


def session(*actions: ActionEvidence, **fields: Any) -> SessionVerdict:
    known: dict[str, Any] = {"opening": Opening({}, {}, {}), "final": Closing({}, {}, {}, [])}
    names = [each.action for each in actions] or ["allocate", "preempt"]
    return SessionVerdict(actions=list(actions), **{"configured_actions": names, **known, **fields})


def text(answer: Answer | SessionVerdict, **options: Any) -> str:
    """The report with its lines joined, as far as words are concerned."""
    if isinstance(answer, SessionVerdict):
        answer = SessionAnswer(session=answer)
    return " ".join(render_answer(answer, "text", RenderOptions(**options)).split())


def gang(outcome: GangOutcome, **fields: Any) -> GangAnswer:
    known: dict[str, Any] = {
        "job": "ml/train",
        "origin": "Job ml/train",
        "queue": "training",
        "min_available": 2,
        "reason": "",
        "tasks": [],
        "victims": [],
        "sessions": [],
    }
    return GangAnswer(outcome=outcome, **{**known, **fields})


EVICTED = action("reclaim", evictions=[Eviction("ml/a-0", "n1", "reclaim", "shop/b-0")])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(session(), "The session changes nothing.", id="nothing happens"),
        pytest.param(
            session(action("allocate", enqueued=["ml/a"], binds=[Placement("ml/a-0", "n1")])),
            "The session binds 1 task and enqueues 1 job.",
            id="a job is let in, and bound",
        ),
        pytest.param(
            session(EVICTED),
            "The session evicts 1 task (ml/a-0). It pipelines no task.",
            id="an eviction in vain",
        ),
        pytest.param(
            session(action("preempt", pipelined=[Placement("ml/a-0", "n1")], evictions=EVICTED.evictions * 4)),
            "The session evicts 4 tasks and pipelines 1.",
            id="many victims, which are not named",
        ),
        pytest.param(
            session(
                action(
                    "preempt",
                    statements=[
                        StatementEnd(
                            purpose=Purpose.PREEMPT_BETWEEN_JOBS,
                            job="ml/a",
                            outcome=StatementOutcome.DISCARDED,
                            ready=0,
                            waiting=1,
                            min_available=2,
                            operations=[(OperationKind.EVICT, "ml/b-0", "n1", "ml/a-0")],
                        )
                    ],
                )
            ),
            "The session changes nothing. It discards 1 eviction.",
            id="an eviction is undone",
        ),
        pytest.param(
            session(opening=None, panic=Panic("", "", SUBTRACTION.format(4000, 6000)), panics=True),
            "The scheduler panics when it opens a session. ",
            id="it panics at the opening",
        ),
        pytest.param(
            session(EVICTED, panic=Panic("preempt", "ml/a-0", "no node has a score"), panics=True),
            "The scheduler panics in preempt, at ml/a-0. Before that, it evicts 1 task (ml/a-0).",
            id="it panics in an action, and others came before",
        ),
        pytest.param(
            session(action("preempt"), panic=Panic("", "", "no"), panics=True),
            "The scheduler panics when it closes the session.",
            id="it panics at the end",
        ),
    ],
)
def test_a_session_begins_with_what_it_did(given: SessionVerdict, words: str) -> None:
    assert text(given).startswith(words)


@pytest.mark.parametrize(
    ("panic", "is_open", "words"),
    [
        pytest.param(
            Panic("", "", SUBTRACTION.format(4000, 6000)),
            False,
            ["The session would subtract cpu 6 from cpu 4", "queues are guaranteed more than the cluster has"],
            id="more than there is, at the opening",
        ),
        pytest.param(
            Panic("preempt", "ml/a-0", SUBTRACTION.format(-2000, 0), "node n1"),
            True,
            [
                "The session would subtract cpu 0 from cpu -2",
                "The pods on node n1 request more than its allocatable resources.",
            ],
            id="a node that holds too much",
        ),
        pytest.param(
            Panic("reclaim", "ml/a-0", SUBTRACTION.format(4000, 6000), "queue training"),
            True,
            ["The session would subtract cpu 6 from cpu 4", "The panic concerns queue training."],
            id="more than a queue has",
        ),
        pytest.param(Panic("preempt", "", "no node has a score"), True, ["no node has a score"], id="something else"),
    ],
)
def test_a_panic_says_what_it_is_about_and_that_it_does_not_pass(panic: Panic, is_open: bool, words: list[str]) -> None:
    opening = {} if is_open else {"opening": None}
    shown = text(session(panic=panic, panics=True, **opening))
    assert [each for each in words if each not in shown] == []
    assert "Every later session also panics until the cause is fixed" in shown


@pytest.mark.parametrize(
    ("actions", "is_reported"),
    [
        pytest.param(["enqueue", "allocate", "backfill"], True, id="neither"),
        pytest.param(["enqueue", "preempt"], False, id="preempt"),
        pytest.param(["reclaim"], False, id="reclaim"),
    ],
)
def test_a_configuration_that_evicts_no_pod_says_so(actions: list[str], is_reported: bool) -> None:
    shown = text(session(configured_actions=actions))
    assert ("this configuration never evicts a task" in shown) == is_reported


def placed(task: str, outcome: AttemptOutcome, node: str, tied: list[str]) -> Attempt:
    reached = NodeOutcome.ALLOCATED if outcome == AttemptOutcome.ALLOCATED else NodeOutcome.PIPELINED
    tried = NodeAttempt(node=node, outcome=reached)
    return Attempt(
        purpose=Purpose.ALLOCATE, queue="q", job="ml/a", task=task, outcome=outcome, nodes=[tried], tied=tied
    )


def statement(outcome: StatementOutcome, *tasks: str) -> StatementEnd:
    return StatementEnd(
        purpose=Purpose.ALLOCATE,
        job="ml/a",
        outcome=outcome,
        ready=1,
        waiting=2,
        min_available=3,
        operations=[(OperationKind.ALLOCATE, task, "n1", task) for task in tasks],
    )


def test_nodes_that_are_as_good_are_named_next_to_the_one_that_is_shown() -> None:
    attempts = [placed("ml/a-0", AttemptOutcome.ALLOCATED, "n1", ["n1", "n2"])]
    ends = [statement(StatementOutcome.COMMITTED, "ml/a-0")]
    assert "a-0: allocated to n1 (or n2, at random)" in text(
        session(action("allocate", attempts=attempts, statements=ends))
    )


def test_tasks_on_many_nodes_are_reported_together_unless_verbose() -> None:
    attempts = [placed(f"ml/a-{at}", AttemptOutcome.ALLOCATED, f"n{at}", []) for at in range(9)]
    ends = [statement(StatementOutcome.COMMITTED, *(attempt.task for attempt in attempts))]
    given = session(action("allocate", attempts=attempts, statements=ends))
    assert "a-0 … a-8 (9): allocated to n0, n1, n2 and 6 more nodes" in text(given)
    assert "a-8: allocated to n8" in text(given, verbose=True)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        pytest.param(
            StatementOutcome.DISCARDED,
            "discarded: 1 ready + 2 pipelined of 3 needed; 1 allocation is undone",
            id="discarded",
        ),
        pytest.param(
            StatementOutcome.HELD,
            "kept: 1 ready + 2 pipelined of 3 needed; nothing is bound, and the resources stay allocated"
            " until the session closes",
            id="held",
        ),
    ],
)
def test_a_statement_says_what_became_of_it_and_by_which_numbers(outcome: StatementOutcome, words: str) -> None:
    attempts = [placed("ml/a-0", AttemptOutcome.ALLOCATED, "n1", [])]
    assert words in text(session(action("allocate", attempts=attempts, statements=[statement(outcome, "ml/a-0")])))


@pytest.mark.parametrize(
    ("skips", "words"),
    [
        pytest.param([Skip("ml/a", "it is not starving")], "skipped ml/a: it is not starving", id="one job"),
        pytest.param(
            [Skip("ml/a", "it is not starving"), Skip("ml/b", "it is not starving")],
            "skipped ml/a and ml/b: they are not starving",
            id="several jobs",
        ),
        pytest.param(
            [Skip("training", "the queue is overused")] * 2,
            "skipped queue training: it is overused",
            id="a queue, twice",
        ),
    ],
)
def test_what_was_skipped_is_reported_by_reason(skips: list[Skip], words: str) -> None:
    assert text(session(action("preempt", skipped=skips))).endswith(words)


def test_the_same_message_of_several_pods_is_reported_once() -> None:
    message = "Pod {} can possibly be assigned to {}, once resource is released"
    pods = {f"ml/a-{at}": PodMessage("Unschedulable", message.format(f"ml/a-{at}", f"n{at}")) for at in range(3)}
    shown = text(session(final=Closing({}, {}, pods, [])))
    assert "pods ml/a-0 … a-2 (3): Unschedulable: Pod … can possibly be assigned to …, once" in shown


def test_a_sample_says_which_victims_are_up_to_chance() -> None:
    def end(times: int, *evicted: str) -> SampledOutcome:
        return SampledOutcome(
            times=times, evicted=list(evicted), pipelined=[], binds=[], enqueued=[], panics=not evicted
        )

    sample = Sample(
        runs=10,
        seed=7,
        outcomes=[end(6, "ml/a-0", "ml/b-0"), end(3, "ml/a-1", "ml/b-0"), end(1)],
        evicted={"ml/a-0": 6, "ml/a-1": 3, "ml/b-0": 9},
    )
    shown = text(SessionAnswer(session=session(), sample=sample))
    assert "10 sessions with different random choices (seed 7): 3 outcomes" in shown
    assert "1 of 10 the scheduler panics" in shown
    assert "evicted in some sessions: ml/b-0 (9), ml/a-0 (6), ml/a-1 (3) of 10" in shown


TASKS = [GangTask(task="ml/train-0", status="Pipelined", node="n1"), GangTask(task="ml/train-1", status="Pending")]
BOUND = [GangTask(task=f"ml/train-{at}", status="Bound", node="n1") for at in range(2)]
VICTIM = GangVictim(task="ml/old-0", node="n1", job="ml/old", queue="batch", action="reclaim", by="ml/train-0")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(
            gang(GangOutcome.BOUND, tasks=BOUND), "bound immediately with both tasks; no task is evicted.", id="bound"
        ),
        pytest.param(
            gang(GangOutcome.PIPELINED, tasks=TASKS, victims=[VICTIM]),
            "pipelined with 1 of 2 tasks; 1 other task is evicted for it.",
            id="pipelined in place of victims",
        ),
        pytest.param(
            gang(GangOutcome.PIPELINED, tasks=TASKS),
            "pipelined with 1 of 2 tasks; other tasks are already terminating.",
            id="pipelined to what is releasing",
        ),
        pytest.param(
            gang(GangOutcome.NOT_PLACED, tasks=TASKS, victims=[VICTIM]),
            "unschedulable: too few of its tasks fit, although 1 task is evicted for it.",
            id="evictions, and it stays unschedulable",
        ),
        pytest.param(
            gang(GangOutcome.NOT_ENQUEUED, reason="overcommit"),
            "not be enqueued: rejected by overcommit.",
            id="rejected",
        ),
        pytest.param(gang(GangOutcome.REJECTED, reason="its queue is closed"), "its queue is closed.", id="refused"),
        pytest.param(
            gang(GangOutcome.IGNORED, reason="no such queue"), "ignored by Volcano: no such queue.", id="ignored"
        ),
        pytest.param(gang(GangOutcome.INVALID, reason="too few pods"), "not be valid: too few pods.", id="invalid"),
        pytest.param(
            gang(GangOutcome.PANIC, sessions=[session(panic=Panic("preempt", "ml/a-0", "no"), panics=True)]),
            "The scheduler would panic before ml/train is allocated.",
            id="the scheduler panics",
        ),
    ],
)
def test_a_job_begins_with_what_becomes_of_it(answer: GangAnswer, words: str) -> None:
    assert words in text(answer).partition(" queue training ")[0]


def test_what_is_missing_names_the_node_that_comes_nearest() -> None:
    answer = gang(GangOutcome.NOT_PLACED, missing={"cpu": 500}, missing_for="ml/train-1", missing_on="n2")
    assert "MISSING cpu 500m on n2, the node closest to fitting train-1" in text(answer)


@pytest.mark.parametrize(
    ("bound", "afterwards", "words"),
    [
        pytest.param(2, session(), "the next session binds 2 tasks of this job", id="it gets the room"),
        pytest.param(
            0,
            session(action("allocate", binds=[Placement("ml/other-0", "n1")])),
            "binds none of this job's tasks, but binds ml/other-0. A task is pipelined for one session only.",
            id="another gets it",
        ),
        pytest.param(0, session(panics=True), "the next session panics", id="the scheduler panics then"),
    ],
)
def test_a_promise_is_followed_to_the_next_session(bound: int, afterwards: SessionVerdict, words: str) -> None:
    answer = gang(GangOutcome.PIPELINED, tasks=TASKS, next_session=afterwards, bound_in_next_session=bound)
    assert words in text(answer)


def test_several_jobs_are_closed_by_a_table() -> None:
    answers = GangAnswers(items=[gang(GangOutcome.BOUND, tasks=BOUND), gang(GangOutcome.IGNORED, job="ml/other")])
    lines = render_answer(answers, "text", RenderOptions()).splitlines()
    assert [line.split() for line in lines[-3:]] == [
        ["JOB", "QUEUE", "TASKS", "VICTIMS", "OUTCOME"],
        ["ml/train", "training", "2", "0", "bound"],
        ["ml/other", "training", "0", "0", "ignored"],
    ]


def test_names_are_the_victims_of_a_session_and_the_nodes_of_a_job() -> None:
    assert render_answer(SessionAnswer(session=session(EVICTED, EVICTED)), "name", RenderOptions()) == "pod/a-0\n"
    assert render_answer(gang(GangOutcome.PIPELINED, tasks=[*TASKS, *BOUND]), "name", RenderOptions()) == "node/n1\n"


def test_every_outcome_of_a_job_has_words() -> None:
    for outcome in GangOutcome:
        answers = GangAnswers(items=[gang(outcome), msgspec.structs.replace(gang(outcome), job="ml/other")])
        assert text(answers).count("ml/train") > 1, outcome
