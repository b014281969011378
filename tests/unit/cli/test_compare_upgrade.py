"""``kpreempt compare --upgrade-to`` on the command line: which pods, outputs, exit codes, and mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kpreempt.report.schema import verdict_schema
from tests.unit.report.test_formats import closed

FIXTURES = Path(__file__).parents[3] / "fixtures"
NOW = ["--now", "2026-11-21T03:12:00Z"]
Kpreempt = Callable[..., Any]

_DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      resources: {requests: {cpu: "3"}}
      containers: [{name: main, resources: {requests: {cpu: "1"}}}]
"""


def cluster(name: str) -> list[str]:
    return ["--snapshot", str(FIXTURES / "versions" / f"{name}.yaml"), *NOW]


FULL = [*cluster("pod-level-resources"), "--algorithm", "kube-1.33"]
TO = ["compare", "--upgrade-to", "1.34"]
NEW = ["compare", "--upgrade-to", "1.37"]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([*TO, *FULL], id="a certain difference"),
        pytest.param([*NEW, *cluster("counts-image-volumes"), "--algorithm", "kube-1.35"], id="a possible one"),
        pytest.param([*TO, *cluster("dynamic-resource-allocation"), "--algorithm", "kube-1.33"], id="not known"),
        pytest.param([*NEW, *cluster("reports-preemption"), "--algorithm", "kube-1.36"], id="none"),
        pytest.param([*TO, *FULL, "-n", "nowhere"], id="no pod"),
        pytest.param([*NEW, "--snapshot", str(FIXTURES / "on-call/cluster.yaml"), *NOW], id="many pods"),
    ],
)
def test_every_format_says_something_and_the_schema_describes_it(kpreempt: Kpreempt, arguments: list[str]) -> None:
    document = json.loads(kpreempt(*arguments, "-o", "json").stdout)
    jsonschema.Draft202012Validator(closed(verdict_schema())).validate(document)
    assert document["kind"] == "UpgradeComparison"
    for format_name in ("text", "yaml", "markdown", "jsonl", "name"):
        run = kpreempt(*arguments, "-o", format_name)
        assert (run.returncode, run.stderr) == (0, "")
        assert all(len(line) <= 80 for line in run.stdout.splitlines()) or format_name != "text"


def test_the_change_is_reported_with_its_source_and_the_pods_below_it(kpreempt: Kpreempt) -> None:
    said = " ".join(kpreempt(*TO, *FULL).stdout.split())
    assert "From kube-1.33 to kube-1.34: 1 of 1 pod has a different outcome." in said
    assert "PodLevelResources is on by default" in said
    assert "(pkg/features/kube_features.go)" in said
    assert "shop/new no longer lands lands on worker → unschedulable" in said


def test_a_difference_fails_only_if_that_is_requested(kpreempt: Kpreempt) -> None:
    assert kpreempt(*TO, *FULL).returncode == 0
    assert kpreempt(*TO, *FULL, "--fail-on-difference").returncode == 1
    same = (*NEW, *cluster("reports-preemption"), "--algorithm", "kube-1.36", "--fail-on-difference")
    assert kpreempt(*same, "--assume-none", "pdb").returncode == 0
    assert kpreempt(*same).returncode == 1


@pytest.mark.parametrize("name", ["dynamic-resource-allocation", "counts-image-volumes"])
def test_what_may_be_or_is_not_known_fails_as_well(kpreempt: Kpreempt, name: str) -> None:
    assert kpreempt(*NEW, *cluster(name), "--algorithm", "kube-1.33", "--fail-on-difference").returncode == 1


def test_without_an_algorithm_it_is_the_clusters_own_version(kpreempt: Kpreempt, tmp_path: Path) -> None:
    plain = (FIXTURES / "versions/pod-level-resources.yaml").read_text()
    dated = tmp_path / "cluster.yaml"
    info = "nodeInfo: {kubeletVersion: v1.33.4}"
    dated.write_text(plain.replace("status: {allocatable", f"status: {{{info}, allocatable", 1))
    document = json.loads(kpreempt(*TO, "--snapshot", str(dated), *NOW, "-o", "json").stdout)
    assert document["base"] == "kube-1.33"
    assert "1.33" in document["assumptions"][0]["message"]
    assert document["differing"] == 1


def test_pods_of_manifests_and_of_workloads_are_compared_as_well(kpreempt: Kpreempt, tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    manifest.write_text(_DEPLOYMENT)
    items = json.loads(kpreempt(*TO, *FULL, "-f", str(manifest), "-o", "json").stdout)["items"]
    assert [(item["pod"], item.get("origin", "")) for item in items] == [
        ("shop/new", ""),
        ("shop/web-new", "Deployment shop/web"),
    ]
    both = [*FULL, "--snapshot", str(manifest), "--workloads"]
    assert json.loads(kpreempt(*TO, *both, "-o", "json").stdout)["items"] == items


def test_a_pod_of_the_cluster_is_explained_alone(kpreempt: Kpreempt) -> None:
    document = json.loads(kpreempt(*TO, "first", "-n", "shop", *FULL, "-o", "json").stdout)
    assert (document["compared"], document["items"]) == (1, [])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--upgrade-to", "1.28"], "unsupported version '1.28'"),
        (["--upgrade-to", "1.33"], "not newer than 1.33"),
        (["--upgrade-to", "1.34", "--algorithms", "kube-1.33,kube-1.34"], "cannot be used together"),
        (["--upgrade-to", "1.34", "--batch", "x.jsonl"], "cannot be used together"),
        (["--upgrade-to", "1.34", "new", "--workloads"], "selected twice"),
        (["--upgrade-to", "1.34", "--select", "pod/a"], "--select needs a manifest"),
        (["--upgrade-to", "1.34", "--feature-gates", "SchedulerQueueingHints=false"], "cannot set feature gate"),
        (["--algorithms", "kube-1.33,kube-1.34"], "--algorithm needs --upgrade-to"),
    ],
)
def test_mistakes_are_said(kpreempt: Kpreempt, arguments: list[str], says: str) -> None:
    run = kpreempt("compare", *arguments, *FULL)
    assert run.returncode == 2
    assert says in run.stderr


def test_an_old_scheduler_is_no_version_to_upgrade(kpreempt: Kpreempt) -> None:
    run = kpreempt(*TO, *cluster("pod-level-resources"), "--algorithm", "kube-1.18")
    assert (run.returncode, "kube-1.18" in run.complaint) == (2, True)


@pytest.mark.parametrize("command", [["explain", "new", "-n", "shop"], ["pending"]])
def test_a_configuration_of_a_managed_service_is_taken_by_its_name(kpreempt: Kpreempt, command: list[str]) -> None:
    snapshot = cluster("scores-change-of-balance")
    plain = kpreempt(*command, *snapshot)
    assert kpreempt(*command, *snapshot, "--scheduler-config", "eks").stdout == plain.stdout != ""


def test_a_service_whose_configuration_is_not_documented_has_no_name(kpreempt: Kpreempt) -> None:
    run = kpreempt("pending", *cluster("reports-preemption"), "--scheduler-config", "gke-optimize-utilization")
    assert (run.returncode, "does not publish" in run.stderr) == (2, True)
