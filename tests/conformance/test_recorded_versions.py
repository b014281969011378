"""Decisions of each kube-scheduler since 1.29 on the same scenarios, and on some made for one difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpreempt.scheduler_table import RELEASES
from tests.conformance.cases import read_lines
from tests.conformance.comparison import batch_answers, disagreeing
from tests.tiers import Sample

VERSIONS = Path(__file__).resolve().parents[2] / "fixtures" / "conformance" / "versions"


@pytest.mark.parametrize("minor", RELEASES)
def test_all_verdicts_of_a_version_agree(minor: str, tmp_path: Path, sample: Sample) -> None:
    scenarios = sample(read_lines(VERSIONS / f"kube-{minor}.jsonl.gz"))
    assert {each["algorithm"] for each in scenarios} <= {f"kube-{minor}"}
    assert disagreeing(scenarios, batch_answers(scenarios, tmp_path)) == {}


def test_all_verdicts_on_single_differences_agree(tmp_path: Path, sample: Sample) -> None:
    scenarios = sample(read_lines(VERSIONS / "extra.jsonl.gz"))
    answers = batch_answers(scenarios, tmp_path)
    wrong = {
        f"{each['name']} {each['algorithm']}": lines
        for each, answer in zip(scenarios, answers, strict=True)
        if (lines := disagreeing([each], [answer]).get(each["name"]))
    }
    assert wrong == {}
