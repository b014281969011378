"""``docs/gate.md`` is held to the rules that it tells of."""

from __future__ import annotations

import re
from pathlib import Path

from kpreempt.cli.gate_config import parse_config
from kpreempt.gate_rules import RuleId, Takes

_TEXT = (Path(__file__).parents[3] / "docs" / "gate.md").read_text(encoding="utf-8")


def test_the_last_four_rules_are_those_that_have_no_option() -> None:
    without = [rule for rule in RuleId if rule.row.takes is Takes.NOTHING]
    assert without == list(RuleId)[-4:]


def test_the_example_of_a_file_is_one() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", _TEXT, re.DOTALL)
    config = parse_config(example.encode(), "docs/gate.md")
    assert [len(each) for each in (config.limits, config.overrides, config.forbidden, config.waivers)] == [4, 2, 2, 1]
