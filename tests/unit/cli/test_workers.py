"""Work over several processes comes out as it would from one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpreempt.cli import workers
from kpreempt.cli.output import Stopwatch
from kpreempt.cli.workers import Spread, in_order, num_cores
from kpreempt.errors import InputError, KpreemptError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes share what is loaded on Linux only")

ROOT = Path(__file__).parents[3]


def square_and_process(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def test_results_are_in_the_order_of_the_items() -> None:
    results = list(in_order(range(100), square_and_process, 3, patience=0))
    assert [square for square, _ in results] == [number * number for number in range(100)]


def test_only_the_first_item_is_worked_at_here_once_it_pays() -> None:
    processes = [process for _, process in in_order(range(20), square_and_process, 2, patience=1e-9)]
    assert processes[0] == os.getpid()
    assert os.getpid() not in processes[1:]


def test_nothing_is_worked_at_here_without_patience() -> None:
    processes = {process for _, process in in_order(range(20), square_and_process, 2, patience=0)}
    assert processes and os.getpid() not in processes


def test_what_is_shared_is_not_sent() -> None:
    here = [[1], [2]]

    def one_of_them(number: int) -> tuple[list[int], list[int]]:
        return here[number], [number]

    results = list(in_order(range(2), one_of_them, 2, patience=0, shared=here))
    assert all(result is each for (result, _), each in zip(results, here, strict=True))
    assert [own for _, own in results] == [[0], [1]]


@pytest.mark.parametrize(
    ("jobs", "patience"), [pytest.param(1, 0, id="one job"), pytest.param(2, 1e9, id="too little to do")]
)
def test_no_process_is_started_where_it_does_not_pay(jobs: int, patience: float) -> None:
    assert {process for _, process in in_order(range(5), square_and_process, jobs, patience=patience)} == {os.getpid()}


def test_no_items_are_no_results() -> None:
    assert list(in_order([], square_and_process, 2, patience=0)) == []


def test_a_failure_to_read_comes_after_the_results_before_it() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise InputError("cannot be read", source="lines")

    squares = []
    with pytest.raises(InputError, match="cannot be read"):
        for square, _ in in_order(items(), square_and_process, 2, patience=0):
            squares.append(square)
    assert squares == [0, 1, 4, 9, 16]


def fail_at_three(number: int) -> int:
    if number == 3:
        raise ValueError("three")
    return number


def test_a_failure_of_the_work_is_raised_after_the_results_before_it() -> None:
    found = []
    with pytest.raises(ValueError, match="three") as caught:
        for number in in_order(range(10), fail_at_three, 2, patience=0):
            found += [number]
    assert found == [0, 1, 2]
    assert caught.traceback[-1].name == "fail_at_three"


def test_what_the_work_took_is_added_up_over_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE_SECONDS", 0)
    stopwatch = Stopwatch()

    def work(number: int) -> int:
        stopwatch.add({"filter": number})
        return number

    assert list(Spread(stopwatch, 2)(range(10), work)) == list(range(10))
    assert stopwatch.seconds == {"filter": 45}


def die_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_worker_is_reported() -> None:
    with pytest.raises(KpreemptError, match="a worker process was killed"):
        list(in_order(range(50), die_at_three, 2, patience=0))


class Unreadable:
    """A result that takes too much memory where it arrives, or where it is sent from."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __reduce__(self) -> Any:
        if self.where == "the worker":
            raise MemoryError
        return (_too_much, ())


def _too_much() -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("where", "message"),
    [
        pytest.param("this process", "not enough memory for this number of workers", id="here"),
        pytest.param("the worker", "a worker process was killed", id="in the worker"),
    ],
)
def test_too_little_memory_for_a_result_ends_the_run_without_a_word_of_its_own(
    where: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KpreemptError) as caught:
        list(in_order(range(20), lambda number: Unreadable(where) if number else None, 2, patience=0))
    assert (caught.value.message, caught.value.hint) == (
        message,
        "--jobs 1, which needs less memory",
    )
    assert capfd.readouterr() == ("", "")


def test_too_little_memory_for_the_work_is_that_of_the_work() -> None:
    def work(number: int) -> int:
        if number > 3:
            raise MemoryError
        return number

    with pytest.raises(MemoryError):
        list(in_order(range(20), work, 2, patience=0))


def test_a_process_that_cannot_be_started_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(os, "fork", fail)
    with pytest.raises(KpreemptError, match=r"cannot start a worker process: .*Cannot allocate memory"):
        list(in_order(range(20), square_and_process, 2, patience=0))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_result_does_not_wait_for_the_next_item(jobs: int) -> None:
    seen = threading.Semaphore(1)

    def items() -> Iterator[int]:
        for number in range(6):
            # The item comes only after the result of the one before has been seen.
            assert seen.acquire(timeout=60)
            yield number

    squares = []
    for square, _ in in_order(items(), square_and_process, jobs, patience=0):
        squares.append(square)
        seen.release()
    assert squares == [0, 1, 4, 9, 16, 25]


def test_workers_are_gone_when_no_one_wants_more_results() -> None:
    results = in_order(iter(range(10**9)), square_and_process, 2, patience=0)
    workers = {next(results)[1] for _ in range(10)} - {os.getpid()}
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert workers
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_a_batch_over_several_cores_prints_the_same() -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}
    lines = "".join(json.dumps({"name": str(number), "pod": pod}) + "\n" for number in range(30)) + "nonsense\n"
    program = (
        "import kpreempt.cli.workers as workers; workers.PATIENCE_SECONDS = 0;"
        "from kpreempt.cli.process import run; raise SystemExit(run(['batch', '-', '--jobs', '{}']))"
    )
    one, two = (
        subprocess.run(
            [sys.executable, "-c", program.format(jobs)],
            check=False,
            input=lines,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        for jobs in (1, 2)
    )
    assert one.returncode == two.returncode == 3
    assert one.stdout == two.stdout
    assert one.stdout.count("\n") == 31


def test_there_is_a_core_at_least() -> None:
    assert num_cores() >= 1
