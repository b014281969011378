"""One input, put to ``explain``, ``pending`` and ``batch``, in files and by ``--with``: one answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.batch_lines import as_document
from tests.one_input import Object, ask_all_ways, assumptions_of, write_list

READY = {"type": "Ready", "status": "True"}


def node(**status: Any) -> Object:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n0", "labels": {"kubernetes.io/hostname": "n0"}},
        "status": status or {"allocatable": amounts},
    }


def pod(name: str, resources: Object | None = None, **spec: Any) -> Object:
    container = {"name": "c", "image": "x", "resources": resources or {}, "ports": spec.pop("ports", [])}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
        "status": {"phase": "Running", "conditions": [READY]} if "nodeName" in spec else {"phase": "Pending"},
    }


def old(resources: Object | None = None, **spec: Any) -> Object:
    return pod("old", resources, nodeName="n0", **spec)


def new(cpu: str = "2", **spec: Any) -> Object:
    return pod("new", {"requests": {"cpu": cpu}}, **spec)


def priority_class(name: str, value: int, **more: Any) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "old"}}, "minAvailable": 0},
}

INPUTS = [
    pytest.param(
        [node(), old({"limits": {"cpu": "3"}}, priority=0), new(priority=5)],
        ("Preempts", ["default/old"]),
        id="a limit is a request that is missing",
    ),
    pytest.param(
        [
            node(),
            old(priority=0, hostNetwork=True, ports=[{"containerPort": 80}]),
            new(priority=5, hostNetwork=True, ports=[{"containerPort": 80}]),
        ],
        ("Preempts", ["default/old"]),
        id="a port of the host's network is one of the host",
    ),
    pytest.param(
        [
            node(),
            priority_class("high", 1000),
            old({"requests": {"cpu": "3"}}, priorityClassName="high"),
            new(priority=5),
        ],
        ("Unschedulable", []),
        id="a running pod has the priority of its class",
    ),
    pytest.param(
        [node(), priority_class("high", 1000), old({"requests": {"cpu": "3"}}), new(priorityClassName="high")],
        ("Preempts", ["default/old"]),
        id="a pending pod has the priority of its class",
    ),
    pytest.param(
        [
            node(),
            priority_class("quiet", 1000, preemptionPolicy="Never"),
            old({"requests": {"cpu": "3"}}),
            new(priorityClassName="quiet", priority=1000),
        ],
        ("Unschedulable", []),
        id="a pending pod has the policy of its class",
    ),
    pytest.param(
        [node(), old({"requests": {"cpu": "3"}}, priorityClassName="system-node-critical"), new(priority=5)],
        ("Unschedulable", []),
        id="every cluster has the system's classes",
    ),
    pytest.param(
        [node(), old({"requests": {"cpu": "3"}}, priorityClassName="gone"), new(priority=5)],
        ("Preempts", ["default/old"]),
        id="an unknown class counts as 0, which is said",
    ),
    pytest.param(
        [node(capacity={"cpu": "4", "pods": "110"}), old({"requests": {"cpu": "3"}}, priority=0), new(priority=5)],
        ("Preempts", ["default/old"]),
        id="the capacity of a node is what it has for pods",
    ),
    pytest.param(
        [node(), old({"requests": {"cpu": "3"}}, priority=0), new(priority=5), BUDGET],
        ("Preempts", ["default/old"]),
        id="a budget without a status gets one",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), INPUTS)
def test_all_ways_to_ask_give_one_answer(
    objects: list[Object], expected: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    answers = ask_all_ways(objects, tmp_path)
    assert all(each == answers["explain"] for each in answers.values())
    assert (answers["explain"].outcome, [each.pod for each in answers["explain"].victims]) == expected
    assert all(each.grace_seconds == 30 for each in answers["explain"].victims)


@pytest.mark.parametrize("way", ["explain", "pending", "batch"])
def test_what_is_not_known_of_a_priority_is_said(way: str, tmp_path: Path) -> None:
    unknown = old({"requests": {"cpu": "3"}}, priorityClassName="gone")
    (assumption, *_) = assumptions_of([node(), unknown, new(priority=5)], way, tmp_path)
    assert assumption["subject"] == "PriorityClass gone"
    assert assumption["kind"] == "Uncertain"


def test_a_global_default_is_for_what_comes_now(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    default = priority_class("usual", 7, globalDefault=True)
    running = old({"requests": {"cpu": "3"}})
    there = write_list(tmp_path, "there", [node(), default, running])
    bare = write_list(tmp_path, "bare", [node(), default])
    coming = write_list(tmp_path, "coming", [running])
    command = ("explain", "--algorithm=kube-1.36", "--cpu=2", "--priority=5", "-o", "json")
    was_there = json.loads(kpreempt(*command, "--snapshot", there).stdout)
    comes = json.loads(kpreempt(*command, "--snapshot", bare, "--with", coming).stdout)
    assert was_there["outcome"] == "Preempts"
    assert [each["kind"] for each in was_there["assumptions"]] == ["Uncertain", "Absent"]
    assert comes["outcome"] == "Unschedulable"
    assert [each["kind"] for each in comes["assumptions"]] == ["Informational", "WhatIf", "Absent"]


def test_a_dump_is_as_it_was_read(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    objects = [node(), priority_class("high", 9), old({"limits": {"cpu": "3"}}, priorityClassName="high"), BUDGET]
    there, dump = write_list(tmp_path, "there", objects), str(tmp_path / "dump.json")
    assert kpreempt("snapshot", "--snapshot", there, "--to", dump).returncode == 0
    texts = [kpreempt("explain", "--cpu=2", "--snapshot", each, "-o", "json").stdout for each in (there, dump)]
    first, second = ({**json.loads(text), "cluster": None} for text in texts)
    assert first == second


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("high", "priority 1,000", id="the priority of its class"),
        pytest.param("gone", 'PriorityClass "gone" not found', id="a class that is not there is refused"),
    ],
)
def test_a_pod_of_an_event_has(kpreempt: Callable[..., Any], tmp_path: Path, name: str, expected: str) -> None:
    there = write_list(tmp_path, "there", [node(), priority_class("high", 1000)])
    (tmp_path / "events.yaml").write_text(json.dumps({"event": "addPod", "pod": new(priorityClassName=name)}))
    run = kpreempt("queue", "--snapshot", there, "--events", str(tmp_path / "events.yaml"))
    assert expected in run.stdout + run.stderr


def test_what_if_it_were_on_the_network_of_the_host(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    ports = [{"containerPort": 80}]
    running = old(priority=0, hostNetwork=True, ports=ports)
    there = write_list(tmp_path, "there", [node(), running, new("1", priority=5, ports=ports)])
    command = ("explain", "pod/new", "--snapshot", there, "-o", "json")
    assert json.loads(kpreempt(*command).stdout)["outcome"] == "Lands"
    assert json.loads(kpreempt(*command, "--set", "spec.hostNetwork=true").stdout)["outcome"] == "Preempts"


def test_a_class_that_comes_with_a_line_is_known(kpreempt: Callable[..., Any], tmp_path: Path) -> None:
    running = old({"requests": {"cpu": "3"}}, priorityClassName="high")
    there = write_list(tmp_path, "there", [node(), running])
    lines = [{"pod": new(priority=5)}, {"pod": new(priority=5), "objects": [priority_class("high", 1000)]}]
    run = kpreempt("batch", "--snapshot", there, stdin="".join(f"{json.dumps(line)}\n" for line in lines))
    unknown, known = (as_document(json.loads(line)["verdict"]) for line in run.stdout.splitlines())
    kinds = [each["kind"] for each in unknown["assumptions"]]
    assert (unknown["outcome"], kinds) == ("Preempts", ["Uncertain", "Absent"])
    assert (known["outcome"], [each["kind"] for each in known["assumptions"]]) == ("Unschedulable", ["Informational"])


NONE = ("--assume-none", "pods", "--assume-none", "quota")
