"""Random scenarios have the same decision as in the real scheduler."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kpreempt.scheduler_table import DEFAULT_VERSION, RELEASES
from kpreempt.schedulers.kube.versions import known_gates, needed_gates
from tests.parity.reference import SOURCES, Genuine, program_for_tests, version_of
from tests.parity.search import search
from tests.strategies_configuration import gate_settings


@pytest.mark.go
@pytest.mark.parametrize(("version", "seed"), [(DEFAULT_VERSION, 11), (DEFAULT_VERSION, 12), ("1.33", 13)])
def test_random_scenarios_match_the_real_scheduler(version: str, seed: int) -> None:
    path = program_for_tests("reference", version)
    assert version_of(path) == f"v{RELEASES[version]}"
    with Genuine(path) as real:
        found = search(real.answer, 100, seed, version)
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
    with Genuine(reference) as real:
        before = real.answer(scenario)
        real.answer(scenario | {"featureGates": gates})
        assert real.answer(scenario) == before


@pytest.mark.parametrize("minor", RELEASES)
def test_the_reference_of_each_version_is_its_recorded_release(minor: str) -> None:
    path = SOURCES / ("go.mod" if minor == DEFAULT_VERSION else f"versions/{minor}.mod")
    assert re.findall(r"^(?:require |\t)k8s\.io/kubernetes v(\S+)$", path.read_text(), re.MULTILINE) == [
        RELEASES[minor]
    ]


@pytest.mark.parametrize("minor", RELEASES)
def test_gates_are_drawn_that_the_version_lets_be_set(minor: str) -> None:
    known, needed = known_gates(minor), needed_gates(minor)
    for setting in gate_settings(minor):
        assert all(known[name].stage != "locked" and known[name].default != value for name, value in setting.items())
        is_on = {name: gate.default for name, gate in known.items()} | setting
        assert [name for name, others in needed.items() if is_on.get(name) and not all(map(is_on.get, others))] == []
    settings = gate_settings(minor)
    assert ({"VolumeCapacityPriority": True} in settings) == (minor in ("1.29", "1.30", "1.31", "1.32"))
    scoring = known.get("StorageCapacityScoring")
    assert (scoring is None) == (minor in ("1.29", "1.30", "1.31", "1.32"))
    assert scoring is None or {"StorageCapacityScoring": not scoring.default} in settings
