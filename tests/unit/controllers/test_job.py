"""Which pods a Job creates and deletes, and when it ends, in a shorthand.

``a b!f 3p``: of an indexed Job a digit is a pod with that index, which is its name, too. ``!`` is a pod that is counted
already. The states are ``p`` pending, ``f`` failed, ``s`` succeeded, ``t`` terminating, ``d`` terminating after a
preemption, ``e`` failed after one, and ``r``, running, which is also meant where there is none. ``+2`` are two pods
that are made, ``+[3]`` one with an index, ``-a`` one that is deleted, ``~a`` one that is released.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kpreempt.controllers.actions import DEFAULT_RULES, Action, ControlledPod, CreatePods, DeletePod, ReleasePod
from kpreempt.controllers.job import FailureRule, JobState, JobStep, first_missing, reconcile_job, total, with_indexes

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=3)
PHASES = {"p": "Pending", "f": "Failed", "s": "Succeeded", "e": "Failed"}
PREEMPTED = (("Ready", "False"), ("DisruptionTarget", "True"))


def pod(text: str, finished_at: datetime | None = LONG_AGO, **fields: Any) -> ControlledPod:
    matched = re.fullmatch(r"([a-z0-9])(!?)([pfstder]?)", text)
    assert matched
    state = matched[3] or "r"
    return ControlledPod(
        matched[1],
        uid=matched[1],
        **{
            "phase": PHASES.get(state, "Running"),
            "node_name": "" if state == "p" else "n",
            "is_ready": state == "r",
            "ready_since": LONG_AGO,
            "created": LONG_AGO,
            "is_terminating": state in "td",
            "index": int(matched[1]) if matched[1].isdecimal() else None,
            "is_tracked": not matched[2],
            "finished_at": finished_at,
            "conditions": PREEMPTED if state in "de" else (),
            **fields,
        },
    )


def step(job: JobState, pods: str) -> JobStep:
    return reconcile_job(job, [pod(text) for text in pods.split()], NOW)


def short(actions: Iterable[Action]) -> str:
    words = []
    for action in actions:
        assert isinstance(action, CreatePods | DeletePod | ReleasePod)
        if isinstance(action, CreatePods):
            words.append(f"+{action.count}" if action.index is None else f"+[{action.index}]")
        else:
            words.append(f"{'-' if isinstance(action, DeletePod) else '~'}{action.name}")
    return " ".join(words)


def job(parallelism: int = 3, completions: int | None = 5, **fields: Any) -> JobState:
    return JobState(parallelism, completions, **fields)


ONE_SUCCESS = job(completions=None)

PODS = [
    pytest.param(job(), "", "+3", id="as many come as may run at a time"),
    pytest.param(job(), "a b", "+1", id="beside those that are there"),
    pytest.param(job(), "a bp cp", "", id="pending ones are there"),
    pytest.param(job(), "as b c", "+1 ~a", id="a success is counted, released, and another comes"),
    pytest.param(job(), "a!s b c", "+1", id="one that is counted is not counted again"),
    pytest.param(job(succeeded=3), "a b", "", id="no more come than are still wanted"),
    pytest.param(job(succeeded=4), "a bp c", "~b -b ~a -a", id="those that are not wanted go, and count for nothing"),
    pytest.param(job(parallelism=1), "a b!", "~a -a", id="fewer may run at a time: of equals the first goes"),
    pytest.param(job(parallelism=0), "a", "~a -a", id="none may run"),
    pytest.param(job(), "a b cf", "+1 ~c", id="a failed one is replaced"),
    pytest.param(job(), "a b ct", "+1 ~c", id="one that was told to end counts as failed, and is replaced at once"),
    pytest.param(job(replaces_failed_only=True), "a b ct", "", id="or only once it has ended, if the Job says so"),
    pytest.param(job(replaces_failed_only=True), "a b cf", "+1 ~c", id="and then it is"),
    pytest.param(job(failure_rules=()), "a b ct", "", id="so it is with any policy for failures"),
    pytest.param(job(is_suspended=True), "a bp", "~b -b ~a -a", id="a suspended Job has no pods"),
    pytest.param(job(is_suspended=True), "", "", id="and makes none"),
    pytest.param(ONE_SUCCESS, "a", "+2", id="until the first success as many as may run"),
    pytest.param(ONE_SUCCESS, "as b c", "~a", id="after it those that run go on, and no others come"),
    pytest.param(ONE_SUCCESS, "a b c de f", "~a -a ~d", id="one too many goes"),
    pytest.param(job(2**31 - 1, 2**31 - 1), "", "+500", id="at most 500 at a time"),
]
INDEXED = [
    pytest.param(job(is_indexed=True), "", "+[0] +[1] +[2]", id="the first indexes come first"),
    pytest.param(job(is_indexed=True), "0s 1 3", "+[2] ~0", id="a gap is filled"),
    pytest.param(job(is_indexed=True), "0 1f 2", "+[1] ~1", id="a failed index comes again"),
    pytest.param(job(is_indexed=True), "0 1t 2", "+[1] ~1", id="so does one that leaves, at once"),
    pytest.param(job(is_indexed=True, replaces_failed_only=True), "0 1t", "+[2]", id="or not before it has ended"),
    pytest.param(job(is_indexed=True, completed_indexes=((0, 2),)), "", "+[3] +[4]", id="what is done is done"),
    pytest.param(job(is_indexed=True), "0 1 7", "~7 -7", id="an index beyond the last goes"),
    pytest.param(job(is_indexed=True), "0 1 a", "~a -a", id="so does a pod without one"),
    pytest.param(job(is_indexed=True), "0 1 7f", "+[2] ~7", id="a wrong one that failed counts for nothing"),
    pytest.param(job(2**31 - 1, 2**31 - 1, is_indexed=True), "", " ".join(f"+[{i}]" for i in range(500)), id="500"),
]


@pytest.mark.parametrize(("state", "pods", "expected"), PODS + INDEXED)
def test_pods(state: JobState, pods: str, expected: str) -> None:
    found = step(state, pods)
    assert short(found.actions) == expected
    assert found.job.ending == ""


def test_of_two_pods_with_an_index_the_later_to_go_stays() -> None:
    running, pending = pod("a", index=1), pod("bp", index=1)
    for pods in ([running, pending], [pending, running]):
        assert short(reconcile_job(job(is_indexed=True), pods, NOW).actions) == "~b -b"


COUNTS = [
    pytest.param(job(), "as bs cf d!s e!f", (2, 1), id="what has ended and is not counted yet"),
    pytest.param(job(succeeded=1, failed=1), "as ct", (2, 2), id="beside what was counted"),
    pytest.param(job(replaces_failed_only=True), "at bd", (0, 0), id="not before the end, if the Job waits for it"),
    pytest.param(job(is_indexed=True), "0s 1s 7s 2f 8f", (2, 1), id="only indexes that there are"),
    pytest.param(job(is_indexed=True, succeeded=1, completed_indexes=((0, 0),)), "0s", (1, 0), id="and each but once"),
]


@pytest.mark.parametrize(("state", "pods", "expected"), COUNTS)
def test_counts(state: JobState, pods: str, expected: tuple[int, int]) -> None:
    found = step(state, pods).job
    assert (found.succeeded, found.failed) == expected


IGNORE = (FailureRule("Ignore", conditions=(("DisruptionTarget", "True"),)),)
FAIL = (FailureRule("FailJob", conditions=(("DisruptionTarget", "True"),)),)
CODES = (
    FailureRule("FailJob", exit_code_operator="In", exit_codes=(42,), container="main"),
    FailureRule("Ignore", exit_code_operator="NotIn", exit_codes=(1, 2)),
)

PREEMPTIONS = [
    pytest.param(job(backoff_limit=0), "ad", ("Failed", 1), id="by default it fails the Job that may not fail at all"),
    pytest.param(job(), "ad", ("", 1), id="by default it counts as soon as it is told to end"),
    pytest.param(job(failure_rules=IGNORE, backoff_limit=0), "ad", ("", 0), id="ignored, it counts for nothing"),
    pytest.param(job(failure_rules=IGNORE, backoff_limit=0), "ae", ("", 0), id="nor once it has ended"),
    pytest.param(job(failure_rules=IGNORE, backoff_limit=0), "af", ("Failed", 1), id="but what fails by itself does"),
    pytest.param(job(failure_rules=FAIL), "ad b", ("", 0), id="a rule that fails the Job waits for its end"),
    pytest.param(job(failure_rules=FAIL), "ae b", ("Failed", 2), id="and then fails it, with all that run"),
    pytest.param(job(failure_rules=FAIL), "a!e", ("Failed", 0), id="even after it was counted"),
    pytest.param(job(failure_rules=(*FAIL, *IGNORE)), "ae", ("Failed", 1), id="the first rule that matches counts"),
    pytest.param(job(failure_rules=(*IGNORE, *FAIL)), "ae", ("", 0), id="whichever it is"),
]


@pytest.mark.parametrize(("state", "pods", "expected"), PREEMPTIONS)
def test_what_a_preemption_means(state: JobState, pods: str, expected: tuple[str, int]) -> None:
    found = step(state, pods).job
    assert (found.ending, found.failed) == expected


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param((("main", 42),), ("Failed", 1), id="a code that ends it all"),
        pytest.param((("other", 42),), ("", 0), id="only of that container"),
        pytest.param((("main", 143),), ("", 0), id="a code that is none of those is ignored"),
        pytest.param((("main", 1),), ("", 1), id="one of those counts"),
        pytest.param((("main", 0),), ("", 1), id="nought is no failure's code"),
        pytest.param((), ("", 1), id="without codes no rule matches"),
    ],
)
def test_rules_on_exit_codes(codes: tuple[tuple[str, int], ...], expected: tuple[str, int]) -> None:
    found = reconcile_job(job(failure_rules=CODES), [pod("af", exit_codes=codes)], NOW).job
    assert (found.ending, found.failed) == expected


ENDS = [
    pytest.param(job(2, 2), "as bs", "~a ~b", ("Complete", "CompletionsReached", True), id="all that was wanted"),
    pytest.param(job(2, 2), "as bs c", "~c -c ~a ~b", ("Complete", "CompletionsReached", False), id="and one too many"),
    pytest.param(
        job(2, 2, succeeded=2), "ct", "~c", ("Complete", "CompletionsReached", False), id="not while one leaves"
    ),
    pytest.param(ONE_SUCCESS, "as", "~a", ("Complete", "CompletionsReached", True), id="one success, and none runs"),
    pytest.param(job(2, 0), "", "", ("Complete", "CompletionsReached", True), id="nothing was wanted"),
    pytest.param(
        job(backoff_limit=1),
        "af bf c",
        "-c ~a ~b ~c",
        ("Failed", "BackoffLimitExceeded", False),
        id="too many failures",
    ),
    pytest.param(job(ending="Failed", reason="x"), "c!t", "", ("Failed", "x", False), id="it ends with its last pod"),
    pytest.param(job(ending="Failed", reason="x"), "c!f", "", ("Failed", "x", True), id="that has ended"),
    pytest.param(
        job(active_deadline_seconds=60, start_time=NOW - timedelta(seconds=60)),
        "a",
        "-a ~a",
        ("Failed", "DeadlineExceeded", False),
        id="too late",
    ),
    pytest.param(
        job(3, 5, backoff_limit=0, is_indexed=True),
        "0f 1",
        "-1 ~0 ~1",
        ("Failed", "BackoffLimitExceeded", False),
        id="index",
    ),
]


@pytest.mark.parametrize(("state", "pods", "actions", "expected"), ENDS)
def test_ends(state: JobState, pods: str, actions: str, expected: tuple[str, str, bool]) -> None:
    found = step(state, pods)
    assert short(found.actions) == actions
    assert (found.job.ending, found.job.reason, found.job.has_ended) == expected


@pytest.mark.parametrize(("keeps", "ended"), [(True, False), (False, True)], ids=["since 1.31", "before"])
def test_whether_a_job_has_ended_while_its_pods_leave(keeps: bool, ended: bool) -> None:
    rules = DEFAULT_RULES._replace(keeps_jobs_until_their_pods_end=keeps)
    assert step(job(backoff_limit=0, rules=rules), "af b").job.has_ended is ended
    assert step(job(1, 1, replaces_failed_only=True, rules=rules), "as bt").job.has_ended is ended


def test_a_job_that_has_ended_does_nothing_more() -> None:
    ended = job(ending="Complete", has_ended=True)
    assert step(ended, "a bf cs") == JobStep([], ended)


def test_when_a_job_starts() -> None:
    assert step(job(), "").job.start_time == NOW
    assert step(job(start_time=LONG_AGO), "").job.start_time == LONG_AGO
    assert step(job(start_time=LONG_AGO, is_suspended=True), "").job.start_time is None
    suspended = job(active_deadline_seconds=1, start_time=LONG_AGO, is_suspended=True)
    assert step(suspended, "").job.ending == ""


@pytest.mark.parametrize(
    ("failures", "seconds_ago", "wait"),
    [
        pytest.param(1, 0, 10, id="ten seconds after the first failure"),
        pytest.param(1, 4, 6, id="less what has passed"),
        pytest.param(1, 10, None, id="then there is no wait any more"),
        pytest.param(2, 0, 20, id="twice as long after the second"),
        pytest.param(6, 0, 320, id="and so on"),
        pytest.param(7, 0, 600, id="up to ten minutes"),
        pytest.param(2**31, 0, 600, id="however many there are"),
        pytest.param(1, -5, 15, id="a clock that is behind is taken"),
    ],
)
def test_backoff(failures: int, seconds_ago: int, wait: int | None) -> None:
    last = NOW - timedelta(seconds=seconds_ago)
    found = step(job(failures_in_a_row=failures, last_failure=last), "a")
    assert found.retry_after == (None if wait is None else timedelta(seconds=wait))
    assert short(found.actions) == ("+2" if wait is None else "")


def test_a_preempted_pod_is_replaced_after_ten_seconds() -> None:
    victim = pod("ad", finished_at=NOW)
    first = reconcile_job(job(1, 1), [victim], NOW)
    assert (short(first.actions), first.retry_after, first.job.failed) == ("~a", timedelta(seconds=10), 1)
    released = pod("a!d", finished_at=NOW)
    later = NOW + timedelta(seconds=10)
    second = reconcile_job(first.job, [released], later)
    assert (short(second.actions), second.retry_after, second.job.failed) == ("+1", None, 1)


def test_a_success_ends_the_row_of_failures() -> None:
    earlier, later = LONG_AGO - timedelta(minutes=1), LONG_AGO + timedelta(minutes=1)
    row = job(failures_in_a_row=5, last_failure=earlier)
    after = reconcile_job(row, [pod("as"), pod("bf", earlier), pod("cf", later)], NOW).job
    assert (after.failures_in_a_row, after.last_failure) == (1, later)
    after = reconcile_job(row, [pod("as"), pod("bf", earlier)], NOW).job
    assert (after.failures_in_a_row, after.last_failure) == (0, None)
    after = reconcile_job(row, [pod("bf", earlier), pod("cf", later)], NOW).job
    assert (after.failures_in_a_row, after.last_failure) == (7, later)


def test_a_pod_that_does_not_say_when_it_ended() -> None:
    unknown = pod("af", None, created=None)
    assert reconcile_job(job(), [unknown], NOW).job.last_failure == NOW


@pytest.mark.parametrize(
    ("intervals", "indexes", "expected"),
    [
        pytest.param((), [3, 1, 2], ((1, 3),), id="neighbours are one interval"),
        pytest.param(((0, 4),), [2, 6], ((0, 4), (6, 6)), id="what is in it already changes nothing"),
        pytest.param(((5, 9), (0, 5)), [], ((0, 9),), id="a status out of order is put in order"),
    ],
)
def test_intervals(intervals: Any, indexes: list[int], expected: Any) -> None:
    merged = with_indexes(intervals, indexes)
    assert merged == expected
    assert total(merged) == sum(last - first + 1 for first, last in expected)


@pytest.mark.parametrize(
    ("intervals", "count", "end", "expected"),
    [
        pytest.param((), 2, 5, [0, 1], id="from the first"),
        pytest.param(((0, 1), (3, 3)), 9, 5, [2, 4], id="around what is there"),
        pytest.param(((0, 9),), 3, 5, [], id="none is missing"),
        pytest.param(((7, 9),), 9, 3, [0, 1, 2], id="what is beyond the end does not count"),
    ],
)
def test_missing_indexes(intervals: Any, count: int, end: int, expected: list[int]) -> None:
    assert first_missing(intervals, count, end) == expected
