"""The recorded scenarios once more, with the dry runs of all nodes at once that big clusters get."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from kpreempt.analysis.explain import explain_pod
from kpreempt.cli import batch_run, process
from kpreempt.schedulers.kube import scheduler
from tests.conformance.cases import FIXTURES, read_lines
from tests.conformance.comparison import disagreements

SUITES = sorted(FIXTURES.glob("*.jsonl.gz"))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_all_verdicts_of_a_suite_agree_in_bulk(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "MIN_PODS_OF_TABLE", 0)
    monkeypatch.setattr(batch_run, "explain_pod", partial(explain_pod, records_steps=False))
    scenarios = list(read_lines(suite))
    given = "".join(
        json.dumps({key: value for key, value in each.items() if key != "expect"}) + "\n" for each in scenarios
    )
    (tmp_path / "in.jsonl").write_text(given, encoding="utf-8")
    process.run(["batch", str(tmp_path / "in.jsonl"), "-o", f"jsonl={tmp_path}/out.jsonl"])
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    found = {
        each["name"]: disagreements(each["expect"], answer.get("verdict", {}))
        for each, answer in zip(scenarios, answers, strict=True)
        if "error" not in each["expect"]
    }
    assert {name: lines for name, lines in found.items() if lines} == {}
