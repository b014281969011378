"""The order of each node's pods known to a recording is that of the scheduler's own cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest

from kpreempt.snapshot.recording.changes import Order
from kpreempt.snapshot.recording.orders import CachedPod, NodeOrders
from tests.parity.reference import Reference, program_for_tests

NODES = ("n1", "n2")
RUNS = 300
STEPS = 40


class Story:
    """A sequence of pod events: ``steps`` for the scheduler's cache, ``orders`` for a recording.

    ``quiet`` has, by number of steps, what the recording knew when no pod was assumed anywhere.
    """

    def __init__(self, random: Random) -> None:
        self.steps: list[dict[str, str]] = [{"Do": "addNode", "Node": node} for node in NODES]
        self.orders = NodeOrders()
        self.quiet: dict[int, dict[str, Order]] = {}
        self._random = random
        self._waiting: list[str] = []
        self._assumed: dict[str, str] = {}
        self._bound: dict[str, str] = {}
        for number in range(random.randrange(4)):
            self._bound[f"old-{number}"] = node = random.choice(NODES)
            self._do("add", f"old-{number}", node)
        for pod in sorted(self._bound):
            self.orders.add_existing(_seen(pod, self._bound[pod]))
        for number in range(STEPS):
            self._happen(f"pod-{number}")
            if not self._assumed:
                self.quiet[len(self.steps)] = dict(self.orders.known())

    def _do(self, what: str, pod: str, node: str) -> None:
        self.steps.append({"Do": what, "Pod": pod, "Node": node})

    def _happen(self, name: str) -> None:
        random = self._random
        what = random.choice(["create", "assume", "assume", "bind", "bind", "update", "remove", "fail", "delete"])
        if what == "create":
            self._waiting.append(name)
            self.orders.change(_seen(name))
        elif what == "assume" and self._waiting:
            pod, node = self._waiting.pop(random.randrange(len(self._waiting))), random.choice(NODES)
            self._assumed[pod] = node
            self._do("assume", pod, node)
        elif what == "bind" and self._assumed:
            pod = random.choice(list(self._assumed))
            self._bound[pod] = node = self._assumed.pop(pod)
            self._do("add", pod, node)
            self.orders.change(_seen(pod, node))
        elif what in ("fail", "delete") and self._assumed:
            pod, node = self._assumed.popitem()
            self._do("forget", pod, node)
            if what == "delete":
                self.orders.delete(pod)
            else:
                self.orders.change(_seen(pod, has_failed=True))
                self._waiting.append(pod)
        elif what in ("update", "remove") and self._bound:
            pod = random.choice(list(self._bound))
            node = self._bound[pod]
            self._do(what, pod, node)
            if what == "update":
                self.orders.change(_seen(pod, node))
            else:
                del self._bound[pod]
                self.orders.delete(pod)


def _seen(pod: str, node: str = "", *, has_failed: bool = False) -> CachedPod:
    return CachedPod(pod, f"uid-{pod}", node, is_waiting=not node, has_failed=has_failed)


@pytest.fixture(scope="module")
def cache() -> Iterator[Reference]:
    with closing(Reference(program_for_tests("cache"))) as running:
        yield running


@pytest.mark.go
def test_places_that_a_recording_knows_are_those_of_the_schedulers_cache(cache: Reference) -> None:
    reported: Counter[bool] = Counter()
    for seed in range(RUNS):
        story = Story(Random(seed))
        pods: list[dict[str, list[str]]] = cache.ask({"steps": story.steps})["pods"]
        for number, known in story.quiet.items():
            for node, order in known.items():
                real = pods[number - 1][node]
                assert len(order.places) == len(real), (seed, number)
                pairs: list[tuple[str, str]] = list(zip(order.places, real, strict=True))
                assert all(not mine or mine == its for mine, its in pairs), (seed, number, node, pairs)
                assert {each for each in order.places if each}.union(order.unplaced) == set(real), (seed, number)
                reported.update(bool(mine) for mine, _ in pairs)
    # Otherwise nothing would have been compared.
    assert reported[True] > reported[False] / 2, reported


@pytest.mark.go
def test_another_order_than_the_caches_is_detected(cache: Reference) -> None:
    steps: list[dict[str, Any]] = [{"Do": "addNode", "Node": "n1"}]
    steps += [{"Do": "add", "Pod": pod, "Node": "n1"} for pod in "abc"]
    answer = cache.ask({"steps": [*steps, {"Do": "remove", "Pod": "a", "Node": "n1"}]})
    # The last one fills the gap: simply removing a pod would leave "b" before "c".
    assert answer["pods"][-1] == {"n1": ["c", "b"]}
