"""Cycles run by Kueue 0.19.2, recorded with every intermediate result, compared with ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.cases import read_lines
from tests.conformance.comparison import batch_answers, disagreeing
from tests.tiers import Sample

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "conformance" / "kueue-0.19"
SUITES = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.jsonl.gz"))


@pytest.mark.parametrize("suite", SUITES)
def test_all_cycles_of_a_suite_agree(suite: str, tmp_path: Path, sample: Sample) -> None:
    scenarios = list(read_lines(FOLDER / f"{suite}.jsonl.gz"))
    assert len(scenarios) >= 100
    scenarios = sample(scenarios)
    assert disagreeing(scenarios, batch_answers(scenarios, tmp_path)) == {}
