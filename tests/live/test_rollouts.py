"""A real rollout ends as ``kpreempt check`` said from a dump taken just before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.plane import ControlPlane
from tests.live.plugin import needs_kubectl
from tests.live.rollout import NAMES, Stage
from tests.live.rollout_prediction import disagreements, predict
from tests.parity.reference import program_for_tests

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A control plane with Kubernetes' own controllers and with fake kubelets, for one rollout after the other."""
    needs_kubectl()
    with ControlPlane(program_for_tests("controlplane"), moving=True) as plane:
        yield Stage(plane)


@pytest.mark.parametrize("name", NAMES)
def test_a_rollout_ends_as_was_predicted(stage: Stage, name: str, tmp_path: Path, compared: Counter[str]) -> None:
    dump = tmp_path / "dump.json"
    before = stage.set(name, dump)
    check = predict(name, dump, tmp_path)
    rollout = stage.play(name, before)
    assert disagreements(check, rollout) == []
    compared["rollouts"] += 1
    compared["evictions"] += rollout.preempted.total()
