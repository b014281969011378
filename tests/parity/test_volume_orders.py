"""Where the order of equal volumes decides, the real scheduler's answers are those told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parity.reference import CHECKOUT, Genuine
from tests.parity.volume_orders import (
    asked_often,
    genuine_outcome,
    outcomes_told,
    told,
    untold,
    volume_order_search,
)

EQUAL_VOLUMES = CHECKOUT / "fixtures" / "volumes" / "equal-pvs.json"
# Each of two orders is as likely as the other: one of them is missed once in 2^49 times.
OFTEN = 50


@pytest.fixture(scope="module")
def genuine(reference: Path) -> Iterator[Genuine]:
    with Genuine(reference) as running:
        yield running


@pytest.mark.go
def test_each_outcome_told_is_one_of_the_real_scheduler_and_the_other_way_round(genuine: Genuine) -> None:
    scenario = json.loads(EQUAL_VOLUMES.read_text(encoding="utf-8"))
    answers, ours = asked_often(genuine.answer, OFTEN, scenario), told(scenario)
    assert untold(answers, ours) == []
    outcomes = outcomes_told(ours["verdict"])
    assert len(outcomes) == 2
    seen = [genuine_outcome(answer) for answer in answers["answers"]]
    assert all(outcome in seen for outcome in outcomes)


@pytest.mark.go
def test_the_real_answers_to_random_scenarios_are_among_those_told(reference: Path) -> None:
    found = volume_order_search(reference, 60, 1)
    assert found.difference is None, found.difference.lines
    # Otherwise nothing would be left to an order.
    assert found.outcomes["2 outcomes"]


def test_an_answer_that_is_not_told_is_noticed() -> None:
    scenario = json.loads(EQUAL_VOLUMES.read_text(encoding="utf-8"))
    ours = told(scenario)
    elsewhere = {"verdict": {"chosenNodes": ["n7"], "feasibleNodes": ["n7"], "filter": {"n0": {"code": "Success"}}}}
    assert untold({"answers": [elsewhere]}, ours) == [
        "not told: {'nodes': ['n7'], 'victims': {}, 'message': ''}",
    ]
