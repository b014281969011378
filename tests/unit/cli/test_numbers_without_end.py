"""Numbers in the input that would cause endless loops are reported, each with its field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpreempt.cli import process

MOST = 2**31 - 1
TEMPLATE = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}},
}


def workload(kind: str, api_version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    selector = {"app": "w"} if kind == "ReplicationController" else {"matchLabels": {"app": "w"}}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "w", "namespace": "shop"},
        "spec": {"selector": selector, "template": TEMPLATE, **spec},
    }


CASES = {
    "a StatefulSet whose ordinals end": (
        [],
        workload("StatefulSet", replicas=3, ordinals={"start": MOST}),
        "StatefulSet shop/w: spec.ordinals.start: results in an ordinal above 2147483647",
    ),
    "a StatefulSet of one replica behind the end": (
        [],
        workload("StatefulSet", replicas=2, ordinals={"start": MOST}),
        "StatefulSet shop/w: spec.ordinals.start: results in an ordinal above 2147483647",
    ),
    "a ReplicaSet that lacks all its pods": (
        [workload("ReplicaSet", replicas=MOST)],
        workload("ReplicaSet", replicas=MOST, minReadySeconds=1),
        "w in namespace shop: the simulation creates more than 40,000 pods",
    ),
    "a ReplicationController that lacks all its pods": (
        [workload("ReplicationController", "v1", replicas=MOST)],
        workload("ReplicationController", "v1", replicas=MOST, minReadySeconds=1),
        "w in namespace shop: the simulation creates more than 40,000 pods",
    ),
}


# To make 40,000 pods takes longer than all else here.
_MARKS = {name: [pytest.mark.slow] for name in CASES if "lacks all its pods" in name}


@pytest.mark.parametrize(
    ("there", "change", "message"),
    [pytest.param(*case, id=name, marks=_MARKS.get(name, ())) for name, case in CASES.items()],
)
def test_a_number_without_end_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], there: list[Any], change: dict[str, Any], message: str
) -> None:
    cluster, manifest = tmp_path / "cluster.json", tmp_path / "change.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *there]}))
    manifest.write_text(json.dumps(change))
    code = process.run(["check", "-f", str(manifest), "--snapshot", str(cluster)])
    shown = capsys.readouterr()
    assert message in shown.err
    assert (code, shown.out) == (3, "")


def test_the_last_ordinal_there_is_can_be_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster, manifest = tmp_path / "cluster.json", tmp_path / "change.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE]}))
    manifest.write_text(json.dumps(workload("StatefulSet", replicas=1, ordinals={"start": MOST})))
    none = ["--assume-none", "pods", "--assume-none", "quota"]
    assert process.run(["check", "-f", str(manifest), "--snapshot", str(cluster), *none]) == 0
    assert "SETTLED" not in capsys.readouterr().err


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "shop", "labels": {"app": "w"}},
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "8"}}}]},
}
WAITING = {
    **POD,
    "metadata": {"name": "waiting", "namespace": "shop"},
    "spec": {"priority": 9, "containers": POD["spec"]["containers"]},  # type: ignore[index]
}


@pytest.mark.parametrize("command", ["budgets", "at-risk", "pending", "check"])
@pytest.mark.parametrize("number", [100, 101])
def test_an_unrealistic_number_of_budgets_on_a_pod_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, number: int
) -> None:
    budgets = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{each}", "namespace": "shop"},
            "spec": {"minAvailable": each, "selector": {"matchLabels": {"app": "w"}}},
        }
        for each in range(number)
    ]
    cluster, manifest = tmp_path / "cluster.json", tmp_path / "change.json"
    items = [NODE, POD, WAITING, *budgets]
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    manifest.write_text(json.dumps(workload("Deployment", replicas=1)))
    given = ["-f", str(manifest)] if command == "check" else ["-A"]
    code = process.run([command, *given, "--snapshot", str(cluster)])
    is_reported = "Pod shop/p: more than 100 PodDisruptionBudgets select it" in capsys.readouterr().err
    assert (is_reported, code == 3) == (number > 100, number > 100)
