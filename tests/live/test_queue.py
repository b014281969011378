"""The real scheduler serves a whole queue as ``kpreempt pending`` predicted from the cluster just before."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.live.crowded import MAX_PENDING, Queue, drawn
from tests.live.holding import HoldingPlane
from tests.live.turn_prediction import Served, disagreements, open_pods, predict, snapshot

SEED = int(os.environ.get("KPREEMPT_LIVE_SEED", "1"))
UNTRIED, TRIED = 14, 6
MIN_PENDING = 5
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


@pytest.mark.parametrize("number", range(UNTRIED))
def test_a_new_queue_is_served_as_predicted(
    plane: HoldingPlane, number: int, tmp_path: Path, compared: Counter[str]
) -> None:
    queue = _queue("new", number, UNTRIED)
    plane.set_up(queue)
    before = plane.fill(queue)
    cluster = snapshot(plane, tmp_path)
    turn = plane.after(plane.release, before)
    served = predict(cluster)
    _count(compared, served)
    assert disagreements(served, turn) == []


@pytest.mark.parametrize("number", range(TRIED))
def test_rejected_pods_get_a_new_node_as_predicted(
    plane: HoldingPlane, number: int, tmp_path: Path, compared: Counter[str]
) -> None:
    queue = _queue("old", number, TRIED)
    plane.set_up(queue)
    turn = plane.after(plane.release, plane.fill(queue))
    cluster, node = snapshot(plane, tmp_path), tmp_path / "node.json"
    turn = plane.after(partial(plane.add, queue.later), turn.after)
    node.write_text(json.dumps(queue.later), encoding="utf-8")
    served = predict(cluster, "--add-node", str(node))
    _count(compared, served)
    assert disagreements(served, turn) == []


def test_the_outcome_of_few_pods_is_open() -> None:
    if len(OPEN) < UNTRIED + TRIED:
        pytest.skip("not all queues were served")
    assert sum(number == 0 for number in OPEN) >= CERTAIN, OPEN
    assert max(OPEN) <= MOST_OPEN, OPEN


def _queue(kind: str, number: int, of: int) -> Queue:
    """The queue of that number, of which the last one is the longest."""
    size = MIN_PENDING + (MAX_PENDING - MIN_PENDING) * number // (of - 1)
    return drawn(Random(f"{SEED} {kind} {number}"), f"{kind}-{number}", size)


def _count(compared: Counter[str], served: Served) -> None:
    OPEN.append(len(open_pods(served)))
    compared["queues"] += 1
    compared["pods in queues"] += len(served["inTurn"])
    compared["pods whose outcome is open"] += OPEN[-1]
    for each in served["inTurn"].values():
        compared[f"pods {each['outcome']}"] += 1
