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


@pytest.mark.go
def test_the_gates_of_one_scenario_do_not_reach_the_next(reference: Path) -> None:
    requests = {"requests": {"cpu": "1"}}
    node = {"kind": "Node", "metadata": {"name": "n0"}, "status": {"allocatable": {"cpu": "600m", "pods": "9"}}}
    limits = {"limits": {"cpu": "100m", "memory": "1Mi"}}
    spec = {"containers": [{"name": "c0", "image": "img0", "resources": requests}], "resources": limits}
    scenario = {
        "name": "s",
        "objects": [node],
        "pod": {"metadata": {"name": "p", "namespace": "default"}, "spec": spec},
    }
    gates = {"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False}
    with Genuine(reference) as genuine:
        before = genuine.answer(scenario)
        genuine.answer(scenario | {"featureGates": gates})
        assert genuine.answer(scenario) == before
