"""Random scenarios are decided as the real scheduler decides them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parity.reference import Genuine
from tests.parity.search import search


@pytest.mark.go
@pytest.mark.parametrize("seed", [11, 12])
def test_random_scenarios_are_decided_as_the_real_scheduler_does(reference: Path, seed: int) -> None:
    with Genuine(reference) as genuine:
        found = search(genuine.answer, 100, seed)
    assert found.difference is None, found.difference
    assert found.examples >= 100
