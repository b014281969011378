"""Decisions of the real kube-scheduler 1.36.3 on recorded scenarios, compared with ``kpreempt batch``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.cases import FIXTURES, read_lines
from tests.conformance.comparison import batch_answers, disagreeing
from tests.tiers import Sample

SUITES = sorted(FIXTURES.glob("*.jsonl.gz"))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_all_verdicts_of_a_suite_agree(suite: Path, tmp_path: Path, sample: Sample) -> None:
    scenarios = sample(read_lines(suite))
    assert disagreeing(scenarios, batch_answers(scenarios, tmp_path)) == {}
