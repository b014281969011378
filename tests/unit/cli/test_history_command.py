"""``kpreempt history``: what happened to pods, nodes and budgets in recordings that are made up."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.snapshot.recording.making import Document, Making, a_node, a_pod

Kpreempt = Callable[..., Any]
RECORDING = "fixtures/recording"


def reported(kpreempt: Kpreempt, folder: str, *words: str) -> list[dict[str, Any]]:
    result = kpreempt("history", *words, "--snapshot", folder, "-o", "json")
    assert result.returncode == 0, result.stderr
    steps: list[dict[str, Any]] = json.loads(result.stdout)["items"]
    return steps


def in_short(steps: list[dict[str, Any]]) -> list[str]:
    keys = ("type", "pod", "node", "message", "preemptor")
    return [" ".join(each[key] for key in keys if key in each) for each in steps]


def labelled(pod: Document, **labels: str) -> Document:
    return pod | {"metadata": pod["metadata"] | {"labels": labels}}


def a_budget(allowed: int) -> Document:
    return {
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1},
    }


def test_a_pod_from_its_coming_to_its_binding(kpreempt: Kpreempt) -> None:
    steps = reported(kpreempt, RECORDING, "api", "-n", "shop")
    assert in_short(steps) == [
        "Added shop/api",
        "Nominated shop/api node-a 0/1 nodes are available: 1 Insufficient cpu.",
        "Bound shop/api node-a",
    ]
    assert steps[1]["victims"] == ["shop/encode-1"]


def test_a_victim_has_its_preemptor_though_it_is_gone(kpreempt: Kpreempt) -> None:
    assert in_short(reported(kpreempt, RECORDING, "pod/encode-1", "-n", "shop")) == [
        "Added shop/encode-1",
        "Bound shop/encode-1 node-a",
        "Preempted shop/encode-1 node-a shop/api",
        "Deleted shop/encode-1 node-a",
    ]


def test_each_command_runs_and_explains_its_line(kpreempt: Kpreempt) -> None:
    lines = kpreempt("history", "node/node-a", "--snapshot", RECORDING).stdout.splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.lstrip().startswith("kpreempt ")]
    assert len(commands) == 5
    answers = [kpreempt(*command).stdout.splitlines()[0] for command in commands]
    starts = [
        "shop/encode-2 lands on node-a; nothing is evicted.",
        "shop/encode-1 lands on node-a; nothing is evicted.",
        "shop/api preempts 1 pod on node-a and lands there; no budget is violated.",
        "shop/encode-1 was preempted by shop/api (priority 1,000) on node-a, 0s ago.",
        "shop/api lands on its nominated node, node-a; nothing is evicted.",
    ]
    assert [answer for answer, start in zip(answers, starts, strict=True) if not answer.startswith(start)] == []


def test_refusals_are_reported_as_their_messages_change(kpreempt: Kpreempt, tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")], "Pod": [a_pod("big")]})
    for message in ("no room", "no room", "no node"):
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        making.change("MODIFIED", "Pod", a_pod("big", conditions=[condition]))
    making.change("DELETED", "Pod", a_pod("big"))
    making.end()
    assert in_short(reported(kpreempt, making.folder, "big", "-n", "shop")) == [
        "Unschedulable shop/big no room",
        "Unschedulable shop/big no node",
        "Deleted shop/big",
    ]


def test_a_node_is_cordoned_and_drained(kpreempt: Kpreempt, tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")], "Pod": [a_pod("a", "n1"), a_pod("b", "n2")]})
    making.change("MODIFIED", "Node", a_node("n1") | {"spec": {"unschedulable": True}})
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    for name, node in (("a", "n1"), ("b", "n2")):
        making.change("MODIFIED", "Pod", a_pod(name, node, conditions=[target]))
        making.change("DELETED", "Pod", a_pod(name, node))
    making.change("DELETED", "Node", a_node("n1"))
    making.end()
    assert in_short(reported(kpreempt, making.folder, "node/n1")) == [
        "Changed cordoned",
        "Terminating shop/a n1 EvictionByEvictionAPI",
        "Deleted shop/a n1",
        "Deleted",
    ]


def test_a_budget_and_the_pods_that_it_selects(kpreempt: Kpreempt, tmp_path: Path) -> None:
    objects = {"Node": [a_node("n1")], "Pod": [labelled(a_pod("web-1", "n1"), app="web"), a_pod("other", "n1")]}
    making = Making(tmp_path / "rec", objects | {"PodDisruptionBudget": [a_budget(1)]})
    for name in ("web-1", "other"):
        making.change("DELETED", "Pod", labelled(a_pod(name, "n1"), app=name.partition("-")[0]))
    making.change("MODIFIED", "PodDisruptionBudget", a_budget(0))
    making.end()
    assert in_short(reported(kpreempt, making.folder, "pdb/web", "-n", "shop")) == [
        "Deleted shop/web-1 n1",
        "Changed 0 disruptions allowed (1 healthy, 1 needed)",
    ]


def test_a_name_that_comes_again_is_another_pod(kpreempt: Kpreempt, tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")], "Pod": [a_pod("db-0", "n1", uid="one")]})
    making.change("MODIFIED", "Pod", a_pod("db-0", uid="two"))
    making.end()
    assert in_short(reported(kpreempt, making.folder, "db-0", "-n", "shop")) == [
        "Deleted shop/db-0 n1",
        "Added shop/db-0",
    ]


def test_a_time_in_which_nothing_was_recorded_is_reported(kpreempt: Kpreempt, tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Pod": [a_pod("a")]})
    making.end()
    making.change("MODIFIED", "Pod", a_pod("a", "n1"), reported=False, seconds=60)
    making.begin()
    making.end()
    result = kpreempt("history", "a", "-n", "shop", "--snapshot", making.folder)
    assert "nothing was recorded until 2026-11-21T03:01:00Z" in result.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["deploy/api", "--snapshot", RECORDING], 2, '"deploy/api" is not a pod, node or budget'),
        (["api"], 2, "history needs one recording"),
        (["nobody", "-n", "shop", "--snapshot", RECORDING], 3, "has no pods shop/nobody"),
        (["node/n9", "--snapshot", RECORDING], 3, "has no nodes n9"),
        (["api", "--snapshot", "fixtures/demo"], 3, "not a recording"),
    ],
)
def test_what_cannot_be_determined_is_reported(kpreempt: Kpreempt, words: list[str], code: int, said: str) -> None:
    result = kpreempt("history", *words)
    assert (result.returncode, said in result.complaint) == (code, True), result.stderr
