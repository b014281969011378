"""Any equal pod that the real scheduler evicts is among the predicted ones."""

from __future__ import annotations

import os
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random

import pytest

from tests.live import cluster
from tests.live.observation import Observed, observe
from tests.live.plane import ControlPlane
from tests.live.prediction import disagreements, expected_victims, predict, victims_on
from tests.live.ties import play_ties, tie_scenario

SCENARIOS = int(os.environ.get("KPREEMPT_LIVE_TIES", "20"))
SEED = int(os.environ.get("KPREEMPT_LIVE_SEED", "1"))
# Not every scenario has a tie.
SEEDS = count(SEED * 1000)


@pytest.mark.live
@pytest.mark.parametrize("number", range(SCENARIOS))
def test_victims_among_equals_are_reported(
    plane: ControlPlane, number: int, tmp_path: Path, compared: Counter[str]
) -> None:
    is_tie = False
    while not is_tie:
        seed = next(SEEDS)
        scenario = tie_scenario(Random(seed))
        pod = {**scenario["pod"], "metadata": {**scenario["pod"]["metadata"], "name": f"equal-{number}"}}
        try:
            play_ties(plane, scenario)
            verdict = predict(plane, pod, tmp_path)
            is_tie = "alternatives" in verdict
            observed = observe(plane, pod, expected_victims(verdict))
            assert disagreements(verdict, observed) == [], f"seed {seed}"
            if is_tie:
                _count(compared, verdict, observed)
        finally:
            cluster.clear(plane)


def _count(compared: Counter[str], verdict: dict[str, object], observed: Observed) -> None:
    compared["ties"] += 1
    compared["evictions"] += len(observed.evicted)
    if observed.evicted == victims_on(verdict, observed.nominated_to):
        compared["ties that went as is likely"] += 1
