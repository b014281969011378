"""``docs/gate.md`` is held to the rules that it tells of."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from kpreempt.analysis.check.gate import GateRules, Suppressions, with_custom_rules
from kpreempt.gate_rules import OptionType, RuleId
from kpreempt.library.gate.config import parse_config
from tests.checks import passed, whole_check

_TEXT = (Path(__file__).parents[3] / "docs" / "gate.md").read_text(encoding="utf-8")
_EXAMPLES = re.findall(r"```toml\n(.*?)```", _TEXT, re.DOTALL)


def test_the_last_rules_are_those_that_have_no_option() -> None:
    without = [rule for rule in RuleId if rule.row.takes is OptionType.NOTHING]
    assert without == list(RuleId)[-len(without) :]


def test_the_example_of_a_file_is_one() -> None:
    example, _ = _EXAMPLES
    config = parse_config(example.encode(), "docs/gate.md")
    assert [len(each) for each in (config.limits, config.overrides, config.forbidden, config.waivers)] == [4, 2, 2, 1]


def test_custom_rules_can_be_evaluated() -> None:
    _, example = _EXAMPLES
    rules = parse_config(example.encode(), "docs/gate.md").rules
    for check in (passed(), whole_check()):
        requested = with_custom_rules(check, rules, GateRules(), Suppressions(today=date(2026, 11, 21)))
        assert requested.findings == check.findings
        assert [str(each.rule) for each in requested.rules[-2:]] == ["monitoring-stays-up", "few-changes-at-once"]
