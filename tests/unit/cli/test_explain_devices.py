"""``kpreempt explain`` of pods with claims for devices: templates, what-ifs, replicas, and what follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CASE = ROOT / "fixtures" / "golden" / "devices-of-lower-priority"
ASKED = ("explain", "-f", str(CASE / "pod.yaml"), "--snapshot", str(CASE / "snapshot.yaml"), "--algorithm", "kube-1.36")
ROOMY = ROOT / "fixtures" / "golden" / "devices-for-claims" / "snapshot.yaml"

Kpreempt = Callable[..., Any]


def verdict_on(kpreempt: Kpreempt, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(kpreempt(*arguments, "-o", "json").stdout)
    return answer


def test_a_claim_is_made_from_the_template_of_the_cluster(kpreempt: Kpreempt) -> None:
    verdict = verdict_on(kpreempt, *ASKED, "--without", "pod/ml/batch-0", "--without", "pod/ml/batch-3")
    assert verdict["outcome"] == "Lands"
    assert [(each["claim"], each["device"]) for each in verdict["devices"]["gpu-1"]] == [
        ("ml/train-gpus", "gpu-0"),
        ("ml/train-gpus", "gpu-3"),
    ]


@pytest.mark.parametrize(
    ("removed", "outcome"),
    [
        pytest.param(("resourceclaim/ml/batch-0", "resourceclaim/ml/batch-7"), "Lands", id="two claims"),
        pytest.param(("resourceclaim/ml/batch-0",), "Unschedulable", id="one claim is not enough"),
    ],
)
def test_what_if_there_was_no_such_claim(kpreempt: Kpreempt, removed: tuple[str, ...], outcome: str) -> None:
    options = [part for each in removed for part in ("--without", each)]
    assert verdict_on(kpreempt, *ASKED, *options)["outcome"] == outcome


def test_a_claim_that_is_not_there_is_named(kpreempt: Kpreempt) -> None:
    run = kpreempt(*ASKED, "--without", "resourceclaim/ml/batch-99")
    assert run.complaint.splitlines()[0] == 'ResourceClaim "ml/batch-99" not found'


def test_what_if_there_were_more_devices(kpreempt: Kpreempt, tmp_path: Path) -> None:
    slice_ = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSlice",
        "metadata": {"name": "more"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "more", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "cpu-1",
            "devices": [{"name": "a", "basic": {}}, {"name": "b", "basic": {}}],
        },
    }
    path = tmp_path / "more.json"
    path.write_text(json.dumps(slice_), encoding="utf-8")
    assert verdict_on(kpreempt, *ASKED, "--with", str(path))["landsOn"] == ["cpu-1"]


def test_a_new_node_brings_the_devices_that_are_missing(kpreempt: Kpreempt) -> None:
    (remedy,) = verdict_on(kpreempt, *ASKED)["remedies"]
    assert [(change["kind"], change["subject"]) for change in remedy["changes"]] == [("addNode", "gpu-1")]
    after = verdict_on(kpreempt, *ASKED, *remedy["options"])
    assert (after["outcome"], after["landsOn"]) == ("Lands", remedy["nodes"])


def deployment(replicas: int) -> dict[str, Any]:
    pod = {
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two-gpus"}],
        "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "gpus"}]}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "train"}},
            "template": {"metadata": {"labels": {"app": "train"}}, "spec": pod},
        },
    }


def test_each_replica_takes_devices_of_its_own(kpreempt: Kpreempt, tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text(json.dumps(deployment(3)), encoding="utf-8")
    # Of four devices one is taken, so that there are two for one replica alone.
    run = kpreempt("explain", "-f", str(path), "--snapshot", str(ROOMY), "--replicas", "3", "--algorithm", "kube-1.36")
    assert " ".join(run.stdout.split()).startswith("ml/train: 1 of 3 replicas lands, and 2 stay pending")


@pytest.mark.parametrize(
    ("replicas", "pending"), [pytest.param(1, 0, id="devices for all"), pytest.param(3, 2, id="devices for one")]
)
def test_a_rollout_gives_each_pod_devices_of_its_own(
    kpreempt: Kpreempt, tmp_path: Path, replicas: int, pending: int
) -> None:
    path = tmp_path / "train.json"
    path.write_text(json.dumps(deployment(replicas)), encoding="utf-8")
    ask = ("check", "-f", str(path), "--snapshot", str(ROOMY), "--algorithm", "kube-1.36", "--assume-none", "quota")
    run = kpreempt(*ask)
    assert (run.returncode == 0) is (pending == 0)
    assert (f"{pending} new pods unschedulable" in run.stdout) is (pending > 0)
