"""The real scheduler serves a whole queue as ``kpreempt pending`` predicted from the cluster just before."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.live.crowded import EVICTING, MAX_PENDING, REJECTED, Kind, Queue, drawn
from tests.live.holding import HoldingPlane, Turn
from tests.live.turn_prediction import Served, details, disagreements, open_pods, predict, snapshot

SEED = int(os.environ.get("KPREEMPT_LIVE_SEED", "1"))
UNTRIED, TRIED = 15, 5
MIN_PENDING, MIN_TRIED = 5, 16
# The same for every attempt: that of pods that have been pending for long always has its maximum.
BACKOFF_SECONDS = 2
# The least number of queues in which every pod is certain, and how many pods are open at most in the others.
CERTAIN = 14
MOST_OPEN = 3
pytestmark = pytest.mark.live

OPEN: list[int] = []


@pytest.fixture(scope="module")
def plane() -> Iterator[HoldingPlane]:
    """A control plane for one queue after the other."""
    with HoldingPlane() as running:
        yield running


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HoldingPlane, Path]]:
    """The same, and the configuration of its scheduler, in which every backoff is as long as that of old pods."""
    path = tmp_path_factory.mktemp("configuration") / "scheduler.json"
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "podInitialBackoffSeconds": BACKOFF_SECONDS,
        "podMaxBackoffSeconds": BACKOFF_SECONDS,
    }
    path.write_text(json.dumps(configuration), encoding="utf-8")
    with HoldingPlane(f"-scheduler-config={path}") as running:
        yield running, path


@pytest.mark.parametrize("number", range(UNTRIED))
def test_a_new_queue_is_served_as_predicted(
    plane: HoldingPlane, number: int, tmp_path: Path, compared: Counter[str]
) -> None:
    queue = _queue("new", number, UNTRIED, MIN_PENDING, EVICTING)
    plane.set_up(queue)
    before = plane.fill(queue)
    cluster = snapshot(plane, tmp_path)
    turn = plane.after(plane.release, before)
    served = predict(cluster)
    _compare(compared, served, turn)


@pytest.mark.parametrize("number", range(TRIED))
def test_rejected_pods_get_a_new_node_as_predicted(
    settled: tuple[HoldingPlane, Path], number: int, tmp_path: Path, compared: Counter[str]
) -> None:
    plane, configuration = settled
    queue = _queue("old", number, TRIED, MIN_TRIED, REJECTED)
    plane.set_up(queue)
    turn = plane.after(plane.release, plane.fill(queue))
    # Nothing shows how long the last attempts are ago.
    time.sleep(BACKOFF_SECONDS)
    cluster, node = snapshot(plane, tmp_path), tmp_path / "node.json"
    turn = plane.after(partial(plane.add, queue.later), turn.after)
    node.write_text(json.dumps(queue.later), encoding="utf-8")
    served = predict(cluster, "--add-node", str(node), "--scheduler-config", str(configuration))
    _compare(compared, served, turn)


def test_the_outcome_of_few_pods_is_open() -> None:
    if len(OPEN) < UNTRIED + TRIED:
        pytest.skip("not all queues were served")
    assert sum(number == 0 for number in OPEN) >= CERTAIN, OPEN
    assert max(OPEN) <= MOST_OPEN, OPEN


def _queue(name: str, number: int, of: int, least: int, kind: Kind) -> Queue:
    """The queue of that number, of which the last one is the longest."""
    size = least + (MAX_PENDING - least) * number // (of - 1)
    return drawn(Random(f"{SEED} {name} {number}"), f"{name}-{number}", size, kind)


def _compare(compared: Counter[str], served: Served, turn: Turn) -> None:
    wrong, others = disagreements(served, turn), details(served, turn)
    assert wrong == [], others
    if not turn.victims and not served["displaced"]:
        assert others == []
    OPEN.append(len(open_pods(served)))
    compared["queues"] += 1
    compared["pods in queues"] += len(served["inTurn"])
    compared["victims"] += sum(map(len, turn.victims.values()))
    compared["other nodes or victims than reported"] += len(others)
    for each in served["inTurn"].values():
        compared[f"pods {each['outcome']}"] += 1
