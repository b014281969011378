"""A real rollout ends as ``kpreempt check`` predicted from the cluster just before."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.live.crowd import NAMESPACE, REPLICAS, crowd, web
from tests.live.plane import ControlPlane, program
from tests.live.plugin import needs_kubectl
from tests.live.rollout import NAMES, ROLLOUTS, Stage, documents_of
from tests.live.rollout_prediction import disagreements, predict

SEED = int(os.environ.get("KPREEMPT_LIVE_SEED", "1"))
pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A control plane with Kubernetes' own controllers and simulated kubelets, for one rollout after the other."""
    needs_kubectl()
    with ControlPlane(program(), moving=True) as plane:
        yield Stage(plane)


@pytest.mark.parametrize("name", NAMES)
def test_a_rollout_ends_as_predicted(stage: Stage, name: str, tmp_path: Path, compared: Counter[str]) -> None:
    before = stage.set(name)
    change = ROLLOUTS / name / "change.yaml"
    check = predict(change, stage.plane, tmp_path)
    rollout = stage.play(documents_of(change), before)
    assert disagreements(check, rollout) == []
    compared["rollouts"] += 1
    compared["evictions"] += rollout.preempted.total()


def test_a_rollout_with_many_evictions_matches_its_simulations(
    stage: Stage, tmp_path: Path, compared: Counter[str]
) -> None:
    change = tmp_path / "change.json"
    before = stage.make([crowd(Random(SEED))])
    manifest = web(REPLICAS[1], 1500)
    change.write_text(json.dumps(manifest), encoding="utf-8")
    check = predict(change, stage.plane, tmp_path, "--runs", "20")
    rollout = stage.play([manifest], before)
    reported, real = check["evictions"], rollout.preempted.total()
    # Twenty runs are a sample: the outcome on a busy machine may lie slightly outside.
    slack = reported["max"] // 4
    assert reported["min"] - slack <= real <= reported["max"] + slack, f"{rollout.preempted} of {reported}"
    (deployment,) = [
        each for each in check["simulation"]["workloads"] if each["workload"] == f"Deployment {NAMESPACE}/web"
    ]
    assert (deployment["readyAfter"], rollout.after.workloads[deployment["workload"]].ready) == (REPLICAS[1],) * 2
    compared["rollouts"] += 1
    compared["evictions"] += real
