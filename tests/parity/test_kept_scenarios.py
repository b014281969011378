"""Scenarios that once told kpreempt and the real scheduler apart no longer do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.answers import kpreempt_answer
from tests.parity.differences import differences
from tests.parity.kept import expected_answer, kept_scenarios


@pytest.mark.parametrize("scenario", list(kept_scenarios()), ids=lambda scenario: scenario["name"])
def test_a_kept_scenario_is_decided_as_the_real_scheduler_did(scenario: dict[str, Any]) -> None:
    assert differences(expected_answer(scenario), kpreempt_answer(scenario)) == []
