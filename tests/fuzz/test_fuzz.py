"""A few cases of the fuzzer, the same in every run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fuzz.cases import ROOT, case_of


@pytest.mark.slow
def test_mutated_input_ends_in_an_answer_or_one_message() -> None:
    # In a separate process, since it forks.
    command = [sys.executable, "-m", "tests.fuzz", "--cases", "30", "--seed", "36"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_case_is_the_same_for_equal_seeds() -> None:
    assert case_of(1, 7) == case_of(1, 7)
    assert case_of(1, 7) != case_of(2, 7)
