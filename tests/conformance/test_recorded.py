"""What the real kube-scheduler 1.36.3 decided on recorded scenarios, held against ``kpreempt batch``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpreempt.cli import process
from tests.conformance.cases import FIXTURES, read_lines
from tests.conformance.comparison import disagreements

SUITES = sorted(FIXTURES.glob("*.jsonl.gz"))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_all_verdicts_of_a_suite_agree(suite: Path, tmp_path: Path) -> None:
    scenarios = list(read_lines(suite))
    given = "".join(
        json.dumps({key: value for key, value in each.items() if key != "expect"}) + "\n" for each in scenarios
    )
    (tmp_path / "in.jsonl").write_text(given, encoding="utf-8")
    process.run(["batch", str(tmp_path / "in.jsonl"), "-o", f"jsonl={tmp_path}/out.jsonl"])
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [answer["name"] for answer in answers] == [each["name"] for each in scenarios]
    found = {
        each["name"]: disagreements(each["expect"], answer.get("verdict", {}))
        for each, answer in zip(scenarios, answers, strict=True)
        if "error" not in each["expect"]
    }
    assert {name: lines for name, lines in found.items() if lines} == {}
