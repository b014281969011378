"""If the order of equal volumes decides, the real scheduler's results are among the reported ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parity.reference import CHECKOUT, Genuine
from tests.parity.volume_orders import (
    real_outcome,
    repeated,
    reported,
    reported_outcomes,
    untold,
    volume_order_search,
)

EQUAL_VOLUMES = CHECKOUT / "fixtures" / "volumes" / "equal-pvs.json"
# Each of two orders is equally likely: one of them is missed once in 2^49 times.
OFTEN = 50


@pytest.fixture(scope="module")
def real(reference: Path) -> Iterator[Genuine]:
    with Genuine(reference) as running:
        yield running


@pytest.mark.go
def test_reported_outcomes_are_exactly_those_of_the_real_scheduler(real: Genuine) -> None:
    scenario = json.loads(EQUAL_VOLUMES.read_text(encoding="utf-8"))
    answers, ours = repeated(real.answer, OFTEN, scenario), reported(scenario)
    assert untold(answers, ours) == []
    outcomes = reported_outcomes(ours["verdict"])
    assert len(outcomes) == 2
    seen = [real_outcome(answer) for answer in answers["answers"]]
    assert all(outcome in seen for outcome in outcomes)


@pytest.mark.go
def test_real_results_are_among_the_reported_ones(reference: Path) -> None:
    found = volume_order_search(reference, 60, 1)
    assert found.difference is None, found.difference.lines
    # Otherwise no order would matter.
    assert found.outcomes["2 outcomes"]


def test_an_unreported_result_is_detected() -> None:
    scenario = json.loads(EQUAL_VOLUMES.read_text(encoding="utf-8"))
    ours = reported(scenario)
    elsewhere = {"verdict": {"chosenNodes": ["n7"], "feasibleNodes": ["n7"], "filter": {"n0": {"code": "Success"}}}}
    assert untold({"answers": [elsewhere]}, ours) == [
        "not told: {'nodes': ['n7'], 'victims': {}, 'message': ''}",
    ]
