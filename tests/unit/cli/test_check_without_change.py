"""What happens without the change as well does not fail it, and says so; what only the change does fails it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.conftest import DEMO, Kpreempt

NOW = "2026-11-28T12:00:00Z"


def node(name: str, cpu: str = "2") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "20"}},
    }


def pod(name: str, cpu: str, on: str = "", priority: int = 0, started: int = 0) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name.rpartition("-")[0], "uid": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "creationTimestamp": "2026-11-28T11:00:00Z",
            "labels": {"app": name.rpartition("-")[0]},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "priority": priority,
            "containers": [{"name": "main", "image": "main:1", "resources": resources}],
            **({"nodeName": on} if on else {}),
        },
        "status": {"phase": "Running", "startTime": f"2026-11-28T11:00:{started:02}Z"} if on else {"phase": "Pending"},
    }


def deployment(name: str, cpu: str, replicas: int = 1, priority: int = 0) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "priority": priority, **({"priorityClassName": "high"} if priority else {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 10,
}
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}, "data": {}}
# A pending pod evicts one of two equal pods on each of two nodes: which node and which pod is a matter of chance.
CROWDED = [
    *(node(name) for name in ("n1", "n2")),
    *(pod(f"low-{number}", "1", f"n{number // 2 + 1}") for number in range(4)),
    pod("urgent-1", "1", priority=100),
]


@pytest.fixture
def check(kpreempt: Kpreempt, tmp_path: Path) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """Check documents against a cluster: exit code, result and text."""

    def checked(cluster: list[Any], change: list[Any], *options: str) -> tuple[int, dict[str, Any], str]:
        items = {"apiVersion": "v1", "kind": "List", "items": [*cluster, CLASS, SPACE]}
        (tmp_path / "cluster.json").write_text(json.dumps(items), encoding="utf-8")
        (tmp_path / "change.yaml").write_text(yaml.safe_dump_all(change), encoding="utf-8")
        words = ["-f", str(tmp_path / "change.yaml"), "--snapshot", str(tmp_path / "cluster.json"), "--now", NOW]
        kinds = [word for kind in ("quota", "services", "pdb") for word in ("--assume-none", kind)]
        found = kpreempt("check", *words, *kinds, "-o", f"json={tmp_path / 'answer.json'}", "-o", "text", *options)
        return (
            found.returncode,
            json.loads((tmp_path / "answer.json").read_text(encoding="utf-8")),
            " ".join(found.stdout.split()),
        )

    return checked


def test_a_change_without_an_effect_passes_although_pods_are_evicted(kpreempt: Kpreempt, tmp_path: Path) -> None:
    manifest = tmp_path / "settings.yaml"
    manifest.write_text(yaml.safe_dump(SETTINGS), encoding="utf-8")
    cluster = DEMO.parent / "on-call" / "cluster.yaml"
    found = kpreempt("check", "-f", str(manifest), "--snapshot", str(cluster), "--now", NOW)
    assert found.returncode == 0
    text = " ".join(found.stdout.split())
    assert text.startswith("PASS no effect; without the change, pending pods evict 4 pods and 5 pending pods stay")
    assert "4 pods evicted (all without the change as well)" in text


def test_chance_is_the_same_with_the_change_and_without_it(check: Any) -> None:
    code, answer, text = check(CROWDED, [SETTINGS], "--max-victims", "0")
    assert (code, answer["runs"] > 1, len(answer["simulation"]["displaced"])) == (0, True, 1)
    assert {each["status"] for each in answer["findings"]} == {"NotNew"}
    assert text.startswith("PASS no effect; without the change, pending pods evict 1 pod")


def test_the_same_manifests_as_before_have_no_effect(check: Any, tmp_path: Path) -> None:
    change = [deployment("extra", "1", priority=10)]
    before = tmp_path / "before.yaml"
    before.write_text(yaml.safe_dump_all(change), encoding="utf-8")
    limit = ("--max-victims", "0")
    assert check(CROWDED, change, *limit)[0] == 1
    assert check(CROWDED, change, *limit, "--base", str(before))[0] == 0


def test_only_what_the_change_adds_counts(check: Any) -> None:
    change = [deployment("extra", "1", priority=10)]
    code, answer, text = check(CROWDED, change, "--max-victims", "0")
    assert code == 1
    assert len(answer["simulation"]["displaced"]) == 2
    assert len(answer["withoutChange"]["displaced"]) == 1
    (finding,) = [each for each in answer["findings"] if each["rule"] == "max-victims"]
    assert ("status" in finding, finding["change"]) == (False, "Deployment shop/extra")
    assert "1 pod is evicted" in text
    assert "without the change, pending pods evict 1 pod" in text


def test_a_quiet_cluster_is_simulated_only_with_the_change(check: Any) -> None:
    _, answer, text = check(CROWDED[:-1], [SETTINGS])
    assert "withoutChange" not in answer or answer["withoutChange"] is None
    assert "without the change" not in text


def test_a_pod_that_stays_pending_anyway_is_not_held_against_the_change(check: Any) -> None:
    giant = pod("giant-1", "64")
    code, _, text = check([*CROWDED[:-1], giant], [deployment("small", "10m")])
    assert code in (0, 1)
    assert "without the change, 1 pending pod stays pending anyway" in text


def test_a_drain_does_not_answer_for_pending_pods(kpreempt: Kpreempt, tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "low", "namespace": "shop"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "low"}}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 4, "desiredHealthy": 4, "expectedPods": 4},
    }
    cluster = tmp_path / "cluster.json"
    items = [*CROWDED, node("n3"), budget, SPACE]
    items[-3]["spec"] = {"unschedulable": True}
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    quiet = ("--assume-none", "quota", "--assume-none", "services")
    found = kpreempt("drain", "n3", "--snapshot", str(cluster), *quiet, "-o", "text")
    text = " ".join(found.stdout.split())
    assert found.returncode == 0, text
    assert "without the drain, pending pods evict 1 pod" in text
    assert "not new: present without the change" in text
