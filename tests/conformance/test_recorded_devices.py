"""Decisions of kube-scheduler 1.36.3 on pods with ResourceClaims."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.cases import read_lines
from tests.conformance.comparison import batch_answers, disagreements
from tests.tiers import Sample

SCENARIOS = Path(__file__).resolve().parents[2] / "fixtures" / "conformance" / "dra" / "scenarios.jsonl.gz"


def test_all_verdicts_on_claims_for_devices_agree(tmp_path: Path, sample: Sample) -> None:
    scenarios = sample(read_lines(SCENARIOS))
    answers = batch_answers(scenarios, tmp_path)
    wrong = {
        each["name"]: lines
        for each, answer in zip(scenarios, answers, strict=True)
        if (lines := disagreements(each["expect"], answer["verdict"]))
    }
    assert wrong == {}


def test_a_failed_attempt_has_its_error_next_to_the_verdict(tmp_path: Path) -> None:
    scenarios = [each for each in read_lines(SCENARIOS) if "error" in each["expect"]]
    answers = batch_answers(scenarios, tmp_path)
    assert [answer["error"]["message"] for answer in answers] == [each["expect"]["error"] for each in scenarios]


def test_no_verdict_is_uncertain(tmp_path: Path, sample: Sample) -> None:
    answers = batch_answers(sample(read_lines(SCENARIOS)), tmp_path)
    assert not [answer["name"] for answer in answers if answer["verdict"]["outcome"] == "Uncertain"]
