# ruff: noqa: E501 - a row of the table is one case
"""Workloads with fewer pods than replicas: what is reported first, and that dumps keep what it is read from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.conftest import Kpreempt

CLUSTER = Path(__file__).parents[3] / "fixtures" / "missing-pods" / "cluster.yaml"
NOW = ["--now", "2026-11-22T12:00:00Z"]
PRIVATE = ("nosa", "deployer", "shop", "policy", "team", "store", "main", "kube-system")


def text(kpreempt: Kpreempt, *arguments: str, snapshot: Path = CLUSTER) -> str:
    """The words of the answer, without line breaks."""
    ran = kpreempt(*arguments, "--snapshot", str(snapshot), *NOW)
    assert ran.returncode in (0, 12), ran.stderr
    return " ".join(ran.stdout.split())


def reasons(kpreempt: Kpreempt, snapshot: Path) -> list[tuple[Any, ...]]:
    """What is missing in the whole cluster, without names."""
    ran = kpreempt("pending", "--snapshot", str(snapshot), *NOW, "-o", "json")
    found = json.loads(ran.stdout)["missingPods"]
    return sorted(
        (
            each["reason"],
            each["missing"],
            each.get("failure", {}).get("step", ""),
            each.get("failure", {}).get("attempts"),
        )
        for each in found
    )


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        pytest.param(["deploy/nosa", "-n", "shop"], 'shop/nosa lacks all 3 pods: ReplicaSet nosa-5d8f cannot create them: serviceaccount "deployer" not found (12 failed attempts, the last 9m ago). If they were created: all 3 missing replicas land.', id="a missing ServiceAccount"),
        pytest.param(["rs/hook-5d8f", "-n", "shop"], 'shop/hook-5d8f lacks all 3 pods: the ReplicaSet controller cannot create them: failed calling webhook "policy.example.com": failed to call webhook: Post', id="a webhook that does not answer"),
        pytest.param(["deploy/quota", "-n", "shop"], "shop/quota lacks all 2 pods: ReplicaSet quota-5d8f cannot create them: exceeded quota: team, requested: requests.memory=640Mi, used: requests.memory=640Mi, limited: requests.memory=1Gi (12 failed attempts, the last 9m ago). A quota would reject both now, too.", id="a quota"),
        pytest.param(["sts/store", "-n", "db"], "db/store lacks 2 of 4 pods, which are created one by one once db/store-1 is ready; it is on n2 but not ready. If they were created: both missing replicas land.", id="a StatefulSet that waits"),
        pytest.param(["job/import", "-n", "shop"], "shop/import is suspended (spec.suspend) and creates no pods. If they were created: both missing replicas land.", id="a suspended Job"),
        pytest.param(["ds/agent", "-n", "db"], "db/agent has a pod on each of its 2 nodes; it creates none for 1 other node. EXCLUDED gpu-1: taint dedicated=gpu:NoSchedule is not tolerated", id="a DaemonSet that excludes a node"),
    ],
)  # fmt: skip
def test_the_first_sentence_says_why_pods_were_not_created(
    kpreempt: Kpreempt, arguments: list[str], first: str
) -> None:
    assert text(kpreempt, "explain", *arguments).startswith(first)


def test_nothing_lands_that_a_quota_rejects(kpreempt: Kpreempt) -> None:
    answer = text(kpreempt, "explain", "deploy/quota", "-n", "shop", "-v")
    assert "lands" not in answer
    assert "FIRST POD" not in answer
    ran = kpreempt("explain", "deploy/quota", "-n", "shop", "--snapshot", str(CLUSTER), *NOW, "-o", "json")
    assert json.loads(ran.stdout)["outcome"] == "Rejected"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}", 'violates PodSecurity "restricted:latest"'),
        ("apiVersion: v1\nkind: LimitRange\nmetadata: {name: least, namespace: shop}\nspec: {limits: [{type: Container, min: {cpu: 4}}]}", "minimum cpu usage per Container is 4, but request is 500m"),
    ],
    ids=["Pod Security", "a limit range"],
)  # fmt: skip
def test_a_workload_of_which_all_pods_are_rejected_is_answered(
    kpreempt: Kpreempt, tmp_path: Path, change: str, reason: str
) -> None:
    cluster = tmp_path / "cluster.yaml"
    documents = [
        each for each in yaml.safe_load_all(CLUSTER.read_text(encoding="utf-8")) if each["metadata"]["name"] != "shop"
    ]
    cluster.write_text(f"{yaml.safe_dump_all(documents)}---\n{change}\n", encoding="utf-8")
    answer = text(kpreempt, "explain", "deploy/psa", "-n", "shop", snapshot=cluster)
    assert answer.startswith("shop/psa lacks all 3 pods: ReplicaSet psa-5d8f cannot create them: violates PodSecurity ")
    assert "The API server would reject all 3 now, too." in answer
    assert "lands" not in answer
    ran = kpreempt("explain", "deploy/psa", "-n", "shop", "--snapshot", str(cluster), *NOW, "-o", "json")
    found = json.loads(ran.stdout)
    assert (found["outcome"], found["workload"]["totals"]["rejected"]) == ("Rejected", 3)
    assert reason in found["reason"]
    # A pod that is changed on the command line is not the workload's.
    changed = kpreempt("explain", "deploy/psa", "-n", "shop", "--priority", "7", "--snapshot", str(cluster), *NOW)
    assert changed.returncode == 3


def test_what_helps_for_certain_is_a_command(kpreempt: Kpreempt) -> None:
    assert "kubectl create serviceaccount deployer -n shop" in text(kpreempt, "explain", "deploy/nosa", "-n", "shop")
    resumed = text(kpreempt, "explain", "job/import", "-n", "shop")
    assert """kubectl patch job import -n shop -p '{"spec":{"suspend":false}}'""" in resumed


def test_a_dump_has_what_it_is_read_from(kpreempt: Kpreempt, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    assert kpreempt("snapshot", "--snapshot", str(CLUSTER), "--to", str(dump)).returncode == 0
    for arguments in (["pending"], ["explain", "deploy/psa", "-n", "shop"], ["explain", "sts/store", "-n", "db"]):
        # A dump also has the time at which it was written.
        found, expected = text(kpreempt, *arguments, snapshot=dump), text(kpreempt, *arguments)
        assert found.partition("kube-1.36")[0] == expected.partition("kube-1.36")[0]


def test_a_redacted_dump_has_the_same_reasons_without_names(kpreempt: Kpreempt, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    assert kpreempt("snapshot", "--snapshot", str(CLUSTER), "--redact", "--to", str(dump)).returncode == 0
    content = dump.read_text(encoding="utf-8")
    assert [each for each in PRIVATE if each in content] == []
    # Names of pods, which have the ordinals of a StatefulSet, are replaced.
    expected = [each for each in reasons(kpreempt, CLUSTER) if each[0] != "WaitsForPod"]
    assert reasons(kpreempt, dump) == expected
    assert 'violates PodSecurity "restricted:latest" (12 failed attempts' in text(kpreempt, "pending", snapshot=dump)


def test_a_dump_without_controllers_says_that_it_lacks_them(kpreempt: Kpreempt, tmp_path: Path) -> None:
    dump = tmp_path / "pods.yaml"
    kept = [each for each in yaml.safe_load_all(CLUSTER.read_text(encoding="utf-8")) if each["kind"] in ("Node", "Pod")]
    dump.write_text(yaml.safe_dump_all(kept), encoding="utf-8")
    answer = text(kpreempt, "pending", snapshot=dump)
    assert answer.startswith("No pod is pending. NOT CREATED whether controllers could not create pods is unknown: ")
    assert "lacks" not in answer
