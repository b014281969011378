"""``docs/gate.md`` is held to the rules that it tells of."""

from __future__ import annotations

import re
from pathlib import Path

from kpreempt.analysis.gate import NOT_KNOWN, SWITCHES, GateRules
from kpreempt.cli.gate_config import parse_config
from kpreempt.verdict.check import RuleId

_TEXT = (Path(__file__).parents[3] / "docs" / "gate.md").read_text(encoding="utf-8")


def _default(rule: RuleId) -> str:
    limit = GateRules().general(rule)
    if rule is RuleId.FORBID_VICTIMS:
        return "nobody"
    if limit is None:
        return "off"
    return "on" if rule in SWITCHES else str(limit)


def test_the_table_has_every_rule_with_its_default() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| ([a-z0-9]+) \|", _TEXT, re.MULTILINE)
    assert rows == [(rule, _default(rule)) for rule in RuleId]


def test_the_last_rules_are_those_that_have_no_option() -> None:
    assert tuple(RuleId)[-len(NOT_KNOWN) :] == NOT_KNOWN


def test_the_example_of_a_file_is_one() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", _TEXT, re.DOTALL)
    config = parse_config(example.encode(), "docs/gate.md")
    assert [len(each) for each in (config.limits, config.overrides, config.forbidden, config.waivers)] == [4, 2, 2, 1]
