"""All commands show one queue: in the same order, served in the same way, whichever pod is asked about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt import Cluster

Kpreempt = Callable[..., Any]

NOW = "2026-11-21T03:10:00Z"
NAMES = ["r-0", "r-1", "r-2", "r-3"]
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status:
  allocatable: {cpu: "2", memory: 16Gi, pods: "110"}
  nodeInfo: {kubeletVersion: v1.36.3}
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata:
  name: %(name)s
  namespace: ci
  uid: uid-%(name)s
  creationTimestamp: "%(created)s"
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %(owner)s, uid: uid-%(owner)s, controller: true}]
spec:
  schedulerName: default-scheduler
  priority: %(priority)s
  nodeName: "%(node)s"
  containers: [{name: main, resources: {requests: {cpu: %(cpu)s}}}]
status: {phase: %(phase)s}
"""


def pod(name: str, minute: int, *, cpu: str = "600m", priority: int = 0, node: str = "") -> str:
    owner, phase = name.rpartition("-")[0], "Running" if node else "Pending"
    created = f"2026-11-21T03:{minute:02}:00Z"
    values = {"name": name, "created": created, "owner": owner, "priority": priority, "node": node}
    return POD % {**values, "cpu": cpu, "phase": phase}


@pytest.fixture
def answer(kpreempt: Kpreempt, tmp_path: Path) -> Callable[..., Any]:
    """Runs a command on a cluster of these pods and one node, and returns its JSON."""

    def run(pods: list[str], *words: str) -> Any:
        path = tmp_path / "cluster.yaml"
        path.write_text(NODE + "".join(pods))
        found = kpreempt(*words, "--snapshot", str(path), "--now", NOW, "-o", "json")
        assert found.stderr == ""
        return json.loads(found.stdout)

    return run


# Four equal pods that were never tried, and room for three.
QUEUE = [pod(name, minute) for minute, name in enumerate(NAMES)]


def test_pending_and_queue_show_the_same_order(answer: Callable[..., Any]) -> None:
    expected = [f"ci/{name}" for name in NAMES]
    for pods in (QUEUE, QUEUE[::-1]):
        assert [each["pod"] for each in answer(pods, "pending")["items"]] == expected
        assert [each["pod"] for each in answer(pods, "queue")["items"]] == expected


@pytest.mark.parametrize("name", NAMES)
def test_an_aftermath_does_not_depend_on_which_pod_is_asked_about(answer: Callable[..., Any], name: str) -> None:
    aftermath = answer(QUEUE, "explain", name, "-n", "ci", "--aftermath")["aftermath"]
    bound = [(each["at"], each["pod"]) for each in aftermath["steps"] if each["kind"] == "Bound"]
    assert bound == [(0, "ci/r-0"), (0, "ci/r-1"), (0, "ci/r-2")]


def test_at_risk_names_those_who_threaten_a_pod_in_queue_order(answer: Callable[..., Any]) -> None:
    running = [pod("low-0", 0, cpu="2", node="n1")]
    waiting = [
        pod("late-0", 5, cpu="2", priority=9),
        pod("first-0", 6, cpu="2", priority=99),
        pod("early-0", 4, cpu="2", priority=9),
    ]
    expected = ["ci/first-0", "ci/early-0", "ci/late-0"]
    (item,) = answer([*running, *waiting], "at-risk", "-n", "ci")["items"]
    assert [(each["pod"], each["position"]) for each in item["threats"]] == list(zip(expected, (1, 2, 3), strict=True))
    assert [each["pod"] for each in answer([*running, *waiting], "queue")["items"]] == expected


ROOM = [pod("low-0", 0, cpu="2", node="n1"), pod("wait-0", 5, cpu="2")]


def test_a_removed_pod_leaves_room_for_the_queue_and_joins_it(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(NODE + "".join(ROOM))
    cluster = Cluster.load(path)
    after = cluster.without("pod/ci/low-0").pending()
    assert [turn.outcome for turn in cluster.pending().served.in_turn.values()] == ["LeftPending"]
    assert {key: turn.outcome for key, turn in after.served.in_turn.items()} == {
        "ci/wait-0": "Scheduled",
        "ci/low-new": "LeftPending",
    }
    (stated,) = [each for each in after.assumptions if each.subject == "Pod ci/low-new"]
    assert stated.message == "ReplicaSet low creates it in place of a removed pod; it is pending"


def test_an_aftermath_without_a_pod_serves_those_first_that_waited_before(answer: Callable[..., Any]) -> None:
    found = answer(ROOM, "explain", "wait-0", "-n", "ci", "--without", "pod/ci/low-0", "--aftermath")["aftermath"]
    assert [each["pod"] for each in found["steps"] if each["kind"] == "Bound"] == ["ci/wait-0"]
