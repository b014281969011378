"""The examples of the gate's rules, put to a cluster: what is to fail fails, and what mends it passes that rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt.gate_rules import RuleId
from kpreempt.report.options import RenderOptions
from kpreempt.report.rules.examples import EXAMPLES
from kpreempt.report.rules.text import render_rules, rules_of

Kpreempt = Callable[..., Any]
CLUSTER = Path(__file__).parents[3] / "fixtures" / "check" / "rules" / "cluster.yaml"
OF_MANIFESTS = [rule for rule in RuleId if EXAMPLES[rule].language == "yaml"]


def broken(kpreempt: Kpreempt, rule: RuleId, manifest: Path, text: str) -> set[str]:
    manifest.write_text(text)
    options = ("--now", "2026-11-21T00:00:00Z", "--algorithm", "kube-1.36", "-o", "json", *EXAMPLES[rule].options)
    run = kpreempt("check", "--snapshot", str(CLUSTER), "-f", str(manifest), *options)
    assert run.returncode in (0, 1), run.stderr
    return {each["rule"] for each in json.loads(run.stdout)["findings"]}


@pytest.mark.parametrize("rule", OF_MANIFESTS)
def test_what_is_to_fail_fails_and_what_mends_it_keeps_all_rules(
    kpreempt: Kpreempt, tmp_path: Path, rule: RuleId
) -> None:
    assert rule in broken(kpreempt, rule, tmp_path / "change.yaml", EXAMPLES[rule].fails)
    assert broken(kpreempt, rule, tmp_path / "fixed.yaml", EXAMPLES[rule].fix) == set()


@pytest.mark.parametrize("rule", RuleId)
def test_a_rule_is_told_whole_on_a_narrow_terminal(rule: RuleId) -> None:
    shown = render_rules(rules_of([rule]), RenderOptions(width=80))
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.startswith(f"{rule}  {rule.row.promise}\n")
    assert "this fails:" in shown
