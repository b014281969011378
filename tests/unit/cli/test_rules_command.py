"""``kpreempt rules``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt.gate_rules import RuleId

Kpreempt = Callable[..., Any]


def test_all_rules_are_listed_with_default_and_severity(kpreempt: Kpreempt) -> None:
    assert kpreempt("rules", "-o", "name").stdout.split() == list(RuleId)
    items = json.loads(kpreempt("rules", "-o", "json").stdout)["items"]
    assert {"name": "max-victims", "default": "off", "severity": "error"}.items() <= items[1].items()
    assert all(len(line) <= 80 for line in kpreempt("rules").stdout.splitlines())


def test_a_rule_is_explained_with_an_example_and_its_fix(kpreempt: Kpreempt) -> None:
    shown = kpreempt("rules", "max-victims").stdout
    assert "with --max-victims 0, this fails:" in shown
    assert shown.count("kind: Deployment") == 2


def test_what_a_rule_does_not_check_is_listed_with_reasons(kpreempt: Kpreempt) -> None:
    shown = kpreempt("rules", "apply-rejected").stdout
    assert "NOT CHECKED: PODS AND POD TEMPLATES\n  - Privileged containers" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if not line.startswith("    "))
    [rule] = json.loads(kpreempt("rules", "apply-rejected", "-o", "json").stdout)["items"]
    assert rule["topics"][0]["heading"] == "What is checked"
    assert all(each["items"] for each in rule["topics"])


def test_a_rule_that_there_is_not_is_named_with_the_nearest(kpreempt: Kpreempt) -> None:
    run = kpreempt("rules", "max-victim")
    assert (run.returncode, run.stdout) == (2, "")
    assert 'unknown rule "max-victim"' in run.stderr
    assert "max-victims" in run.stderr


def test_rules_of_ones_own_are_listed_and_explained(
    kpreempt: Kpreempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kpreempt.toml").write_text(
        '[[check.rule]]\nname = "few"\nexpression = "result.evictions.max < 3"\nmessage = "many"\nseverity = "warn"\n'
    )
    assert kpreempt("rules", "-o", "name").stdout.split() == [*RuleId, "few"]
    assert {"name": "few", "severity": "warn"}.items() <= json.loads(kpreempt("rules", "-o", "json").stdout)["items"][
        -1
    ].items()
    assert "result.evictions.max < 3" in kpreempt("rules", "few").stdout
    assert kpreempt("rules", "few", "--config", "missing.toml").returncode == 3
