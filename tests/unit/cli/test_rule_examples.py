"""The examples of the gate's rules, put to a cluster: what is to fail fails, and what mends it passes that rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt.gate_rules import RuleId
from kpreempt.report.answers import render_answer
from kpreempt.report.options import RenderOptions
from kpreempt.report.rules import rules_of
from tests.rule_examples import arguments_of, lay_out

Kpreempt = Callable[..., Any]


@pytest.mark.parametrize("rule", list(RuleId))
def test_what_is_to_fail_fails_and_what_mends_it_keeps_all_rules(
    kpreempt: Kpreempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: RuleId
) -> None:
    monkeypatch.chdir(tmp_path)
    for mends in (False, True):
        lay_out(tmp_path, rule.row.example, mends=mends)
        run = kpreempt(*arguments_of(rule.row.example, mends=mends), "-o", "json")
        assert run.returncode == (0 if mends else 1), run.stderr
        broken = {each["rule"] for each in json.loads(run.stdout)["findings"] if each.get("status") != "Waived"}
        assert broken == set() if mends else rule in broken


@pytest.mark.parametrize("rule", RuleId)
def test_a_rule_is_shown_completely_on_a_narrow_terminal(rule: RuleId) -> None:
    shown = render_answer(rules_of([rule]), "text", RenderOptions(width=80))
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.startswith(f"{rule}  {rule.row.promise}\n")
    assert "this fails:" in shown
