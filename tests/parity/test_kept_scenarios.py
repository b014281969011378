"""Scenarios on which kpreempt and the real scheduler once differed no longer differ."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.answers import kpreempt_answer
from tests.parity.differences import differences
from tests.parity.kept import expected_answer, kept_scenarios


@pytest.mark.parametrize("scenario", list(kept_scenarios()), ids=lambda scenario: scenario["name"])
def test_a_kept_scenario_matches_the_real_scheduler(scenario: dict[str, Any]) -> None:
    assert differences(expected_answer(scenario), kpreempt_answer(scenario)) == []
