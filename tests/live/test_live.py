"""A real scheduler on a real API server does what kpreempt predicted just before."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest

from kpreempt.verdict import Outcome
from tests.live import cluster
from tests.live.drawing import drawn
from tests.live.observation import observe
from tests.live.plane import ControlPlane, Object, RefusedError
from tests.live.prediction import disagreements, expected_victims, predict

SCENARIOS = int(os.environ.get("KPREEMPT_LIVE_SCENARIOS", "60"))
SEED = int(os.environ.get("KPREEMPT_LIVE_SEED", "1"))
# Other scenarios than those with lists in the scheduler's order.
_SHUFFLED_SEED = 1_000_000


@lru_cache(maxsize=2)
def scenarios(start: int) -> Iterator[Object]:
    """More than are needed: pods that the API server rejects are skipped."""
    return iter(drawn(SCENARIOS * 3, start))


@pytest.mark.live
@pytest.mark.parametrize("number", range(SCENARIOS))
@pytest.mark.parametrize("is_shuffled", [False, True], ids=["as listed", "shuffled"])
def test_the_scheduler_does_as_predicted(
    plane: ControlPlane, number: int, is_shuffled: bool, tmp_path: Path, compared: Counter[str]
) -> None:
    has_compared = False
    start = SEED + _SHUFFLED_SEED * is_shuffled
    while not has_compared:
        scenario = next(scenarios(start))
        try:
            cluster.fill(plane, scenario["objects"], Random(start * 1000 + number) if is_shuffled else None)
            for index, pod in enumerate(map(cluster.live_pod, scenario["pods"])):
                pod["metadata"]["name"] = f"incoming-{number}-{index}"
                verdict = predict(plane, pod, tmp_path)
                try:
                    observed = observe(plane, pod, expected_victims(verdict))
                except RefusedError:
                    continue
                assert verdict["outcome"] != Outcome.REJECTED, verdict["reason"]
                assert disagreements(verdict, observed) == []
                has_compared = True
                compared[observed.end] += 1
                compared["evictions"] += len(observed.evicted)
        finally:
            cluster.clear(plane)
