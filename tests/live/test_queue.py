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
from typing import NamedTuple

import pytest

from tests.live.crowded import EVICTING, MAX_PENDING, REJECTED, Kind, Queue, drawn
from tests.live.holding import HoldingPlane, Turn
from tests.live.patience import until
from tests.live.turn_prediction import Served, details, disagreements, open_pods, predict, snapshot

SEED = int(os.environ.get("KPREEMPT_LIVE_SEED", "1"))
UNTRIED, TRIED = 15, 5
MIN_PENDING, MIN_TRIED = 5, 16
# The same for every attempt: that of pods that have been pending for long always has its maximum.
BACKOFF_SECONDS = 2
# The least number of queues in which every pod is certain, and how many pods are open at most in the others.
CERTAIN = 14
MOST_OPEN = 8
pytestmark = pytest.mark.live


def test_queues_are_served_as_predicted_and_the_outcome_of_few_pods_is_open(
    tmp_path: Path, compared: Counter[str]
) -> None:
    served = [*_new_queues(tmp_path), *_rejected_queues(tmp_path)]
    for each in served:
        compared.update(each.counts)
    assert {each.name: each.wrong for each in served if each.wrong} == {}
    numbers = {each.name: len(each.open) for each in served}
    assert sum(number == 0 for number in numbers.values()) >= CERTAIN, numbers
    assert max(numbers.values()) <= MOST_OPEN, {each.name: each.open for each in served if each.open}


class _Compared(NamedTuple):
    """What was wrong about a queue, its open pods, and how much was compared."""

    name: str
    wrong: list[str]
    open: set[str]
    counts: Counter[str]


def _new_queues(folder: Path) -> Iterator[_Compared]:
    """Queues of pods that were never tried."""
    with HoldingPlane() as plane:
        for number in range(UNTRIED):
            queue = _queue("new", number, UNTRIED, MIN_PENDING, EVICTING)
            plane.set_up(queue)
            before = plane.fill(queue)
            cluster = snapshot(plane, folder)
            turn = plane.after(plane.release, before)
            yield _compared(queue, predict(cluster), turn)


def _rejected_queues(folder: Path) -> Iterator[_Compared]:
    """Queues of pods that were tried and rejected, before a node is added."""
    configuration = folder / "scheduler.json"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "podInitialBackoffSeconds": BACKOFF_SECONDS,
        "podMaxBackoffSeconds": BACKOFF_SECONDS,
    }
    configuration.write_text(json.dumps(document), encoding="utf-8")
    with HoldingPlane(f"-scheduler-config={configuration}") as plane:
        for number in range(TRIED):
            queue = _queue("old", number, TRIED, MIN_TRIED, REJECTED)
            plane.set_up(queue)
            turn = plane.after(plane.release, plane.fill(queue))
            # Nothing shows how long the last attempts are ago, except that they are over.
            since = time.monotonic()
            until(partial(_is_past, since + BACKOFF_SECONDS), "the end of the backoff")
            cluster, node = snapshot(plane, folder), folder / "node.json"
            turn = plane.after(partial(plane.add, queue.later), turn.after)
            node.write_text(json.dumps(queue.later), encoding="utf-8")
            served = predict(cluster, "--add-node", str(node), "--scheduler-config", str(configuration))
            yield _compared(queue, served, turn)


def _is_past(end: float) -> bool:
    return time.monotonic() >= end


def _queue(name: str, number: int, of: int, least: int, kind: Kind) -> Queue:
    """The queue of that number, of which the last one is the longest."""
    size = least + (MAX_PENDING - least) * number // (of - 1)
    return drawn(Random(f"{SEED} {name} {number}"), f"{name}-{number}", size, kind)


def _compared(queue: Queue, served: Served, turn: Turn) -> _Compared:
    wrong, others = disagreements(served, turn), details(served, turn)
    if not turn.victims and not served["displaced"]:
        wrong = [*wrong, *others]
    counts = Counter(f"pods {each['outcome']}" for each in served["inTurn"].values())
    counts["queues"] = 1
    counts["pods in queues"] = len(served["inTurn"])
    counts["victims"] = sum(map(len, turn.victims.values()))
    counts["other nodes or victims than reported"] = len(others)
    return _Compared(queue.namespace, wrong, open_pods(served), counts)
