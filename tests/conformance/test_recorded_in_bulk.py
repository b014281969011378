"""The recorded scenarios again, with the bulk dry runs of all nodes used on big clusters."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from kpreempt.analysis.explain.pods import explain_pod
from kpreempt.library import explain
from kpreempt.schedulers.kube import scheduler
from tests.conformance.cases import FIXTURES, read_lines
from tests.conformance.comparison import batch_answers, disagreeing
from tests.tiers import Sample

SUITES = sorted(FIXTURES.glob("*.jsonl.gz"))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_all_verdicts_of_a_suite_agree_in_bulk(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Sample
) -> None:
    monkeypatch.setattr(scheduler, "MIN_PODS_OF_TABLE", 0)
    monkeypatch.setattr(explain, "explain_pod", partial(explain_pod, records_steps=False))
    scenarios = sample(read_lines(suite))
    assert disagreeing(scenarios, batch_answers(scenarios, tmp_path)) == {}
