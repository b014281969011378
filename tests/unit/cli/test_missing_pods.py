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


def test_nothing_lands_that_a_quota_rejects_until_it_is_raised(kpreempt: Kpreempt) -> None:
    answer = text(kpreempt, "explain", "deploy/quota", "-n", "shop")
    assert "FIRST POD" not in answer
    before, _, fix = answer.partition(" FIX ")
    assert "land" not in before
    assert fix.startswith(
        "set hard.requests.memory: 1920Mi in ResourceQuota shop/team: lands on n2 or n1; no pod is evicted; 2 of 2"
    )
    ran = kpreempt("explain", "deploy/quota", "-n", "shop", "--snapshot", str(CLUSTER), *NOW, "-o", "json")
    found = json.loads(ran.stdout)
    assert found["outcome"] == "Rejected"
    assert [each["edits"] for each in found["remedies"]] == [
        [{"object": "ResourceQuota shop/team", "patch": {"spec": {"hard": {"requests.memory": "1920Mi"}}}}]
    ]


def test_a_quota_is_not_raised_for_pods_that_fit_nowhere(kpreempt: Kpreempt, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(CLUSTER.read_text(encoding="utf-8").replace("cpu: '4'", "cpu: 100m"), encoding="utf-8")
    assert " FIX " not in text(kpreempt, "explain", "deploy/quota", "-n", "shop", snapshot=cluster)


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


def test_the_wide_answer_has_a_line_for_each_workload(kpreempt: Kpreempt) -> None:
    lines = kpreempt("pending", "--snapshot", str(CLUSTER), *NOW, "-o", "wide").stdout.splitlines()
    assert lines[0] == "No pod is pending."
    assert (
        'shop/nosa (Deployment) lacks 3 of 3: serviceaccount "deployer" not found (12 failed attempts, the last 9m ago)'
        in lines
    )
    assert len(lines) == 2 + 7


def test_a_dump_without_controllers_says_that_it_lacks_them(kpreempt: Kpreempt, tmp_path: Path) -> None:
    dump = tmp_path / "pods.yaml"
    kept = [each for each in yaml.safe_load_all(CLUSTER.read_text(encoding="utf-8")) if each["kind"] in ("Node", "Pod")]
    dump.write_text(yaml.safe_dump_all(kept), encoding="utf-8")
    answer = text(kpreempt, "pending", snapshot=dump)
    assert answer.startswith("No pod is pending. NOT CREATED unknown for Deployments, ReplicaSets, ")
    assert "lacks" not in answer


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}], "shop/retry has failed and creates no more pods: BackoffLimitExceeded: Job has reached the specified backoff limit. If another pod were created: 1 more replica lands."),
        ([{"type": "Complete", "status": "True"}], "shop/retry is complete and creates no more pods. If another pod were created: 1 more replica lands."),
    ],
    ids=["failed", "complete"],
)  # fmt: skip
def test_a_finished_job_creates_no_more_pods(
    kpreempt: Kpreempt, tmp_path: Path, conditions: list[Any], expected: str
) -> None:
    documents = [*yaml.safe_load_all(CLUSTER.read_text(encoding="utf-8"))]
    job = next(each for each in documents if each["kind"] == "Job" and each["metadata"]["name"] == "retry")
    job["status"]["conditions"] = conditions
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    assert text(kpreempt, "explain", "job/retry", "-n", "shop", snapshot=cluster).startswith(expected)
    assert "retry" not in text(kpreempt, "pending", snapshot=cluster)


def test_a_suspended_cron_job_creates_no_jobs(kpreempt: Kpreempt, tmp_path: Path) -> None:
    documents = [*yaml.safe_load_all(CLUSTER.read_text(encoding="utf-8"))]
    job = next(each for each in documents if each["kind"] == "Job")
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "shop"},
        "spec": {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": job["spec"]}},
    }
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all([*documents, cron_job]), encoding="utf-8")
    answer = text(kpreempt, "explain", "cj/nightly", "-n", "shop", snapshot=cluster)
    assert answer.startswith("shop/nightly is suspended (spec.suspend) and creates no pods. If they were created: ")
    assert """kubectl patch cj nightly -n shop -p '{"spec":{"suspend":false}}'""" in answer


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, 'shop/logs lacks all 2 pods: the DaemonSet controller cannot create them: serviceaccount "logs" not found (5 failed attempts, the last 60s ago). If they were created: both missing replicas land.'),
        ({"gpu": "yes"}, "shop/logs creates no pods: all 3 nodes are excluded."),
    ],
    ids=["pods that are rejected", "no node"],
)  # fmt: skip
def test_a_daemon_set_without_pods(kpreempt: Kpreempt, tmp_path: Path, selector: dict[str, str], expected: str) -> None:
    container = {"name": "main", "image": "logs:1", "resources": {"requests": {"memory": "1Mi"}}}
    pod = {"serviceAccountName": "logs", "nodeSelector": selector, "containers": [container]}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "logs", "namespace": "shop"},
        "spec": {"selector": {}, "template": {"metadata": {"labels": {"app": "logs"}}, "spec": pod}},
        "status": {"observedGeneration": 1, "desiredNumberScheduled": 0 if selector else 2},
    }
    message = 'pods "logs-" is forbidden: error looking up service account shop/logs: serviceaccount "logs" not found'
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "logs.1", "namespace": "shop"},
        "reason": "FailedCreate",
        "note": f"Error creating: {message}",
        "deprecatedCount": 5,
        "deprecatedLastTimestamp": "2026-11-22T11:59:00Z",
        "regarding": {"kind": "DaemonSet", "namespace": "shop", "name": "logs"},
    }
    cluster = tmp_path / "cluster.yaml"
    documents = [*yaml.safe_load_all(CLUSTER.read_text(encoding="utf-8")), daemon_set, *([] if selector else [event])]
    cluster.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    answer = text(kpreempt, "explain", "ds/logs", "-n", "shop", "-v", snapshot=cluster)
    assert answer.startswith(expected)
    assert "EXCLUDED" in answer


def test_events_alone_are_reported_without_numbers(kpreempt: Kpreempt, tmp_path: Path) -> None:
    kept = [
        each
        for each in yaml.safe_load_all(CLUSTER.read_text(encoding="utf-8"))
        if each["kind"] in ("Node", "Pod", "Event")
    ]
    dump = tmp_path / "dump.yaml"
    dump.write_text(yaml.safe_dump_all(kept), encoding="utf-8")
    answer = text(kpreempt, "pending", snapshot=dump)
    assert answer.startswith(
        "No pod is pending. Events report that 4 controllers could not create pods; whether pods are missing is"
        ' unknown, because they are not in the input. NOT CREATED shop/nosa-5d8f (ReplicaSet): serviceaccount "deployer"'
    )
    assert "lacks" not in answer


def store(name: str, zone: str, *, node: str = "") -> dict[str, Any]:
    """A pod of a StatefulSet that spreads over zones, and that a volume ties to its zone."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeAffinityPolicy": "Ignore",
        "labelSelector": {"matchLabels": {"app": "store"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "db",
            "labels": {"app": "store"},
            "creationTimestamp": "2026-11-22T11:00:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "store", "controller": True}],
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "nodeSelector": {"zone": zone},
            "topologySpreadConstraints": [spread],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def spread_cluster(tmp_path: Path, *pending: tuple[str, str], replicas: int | None = None, policy: str = "") -> Path:
    """Three zones, two of which have a pod of the StatefulSet, with more of its pods pending."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n-{zone}", "labels": {"zone": zone}},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}},
        }
        for zone in "abc"
    ]
    spec = {"replicas": replicas, **({"podManagementPolicy": policy} if policy else {})}
    metadata = {"name": "store", "namespace": "db"}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    pods = [store("store-1", "a", node="n-a"), store("store-2", "b", node="n-b"), *(store(*each) for each in pending)]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([*nodes, *pods, *([owner] if replicas else [])]), encoding="utf-8")
    return path


def outcomes(kpreempt: Kpreempt, cluster: Path) -> tuple[dict[str, str], list[str], list[str]]:
    """The outcome of each replica, the messages of those that stay pending, and what is assumed."""
    ran = kpreempt("explain", "sts/store", "-n", "db", "--snapshot", str(cluster), *NOW, "-o", "json")
    found = json.loads(ran.stdout)
    items = {each["pod"].partition("/")[2]: each["outcome"] for each in found["workload"]["items"]}
    pending = [each["message"] for each in found["workload"].get("pending", [])]
    return items, pending, [f"{each['field']}: {each['message']}" for each in found["assumptions"]]


def test_existing_pods_of_a_stateful_set_are_tried_again_after_others_have_landed(
    kpreempt: Kpreempt, tmp_path: Path
) -> None:
    # The first pod violates the spread until the second one has filled the empty zone.
    cluster = spread_cluster(tmp_path, ("store-0", "a"), ("store-3", "c"), replicas=4)
    items, pending, _ = outcomes(kpreempt, cluster)
    assert (items, pending) == ({"store-0": "Lands", "store-3": "Lands"}, [])


def test_which_of_two_pods_lands_may_depend_on_when_they_are_tried_again(kpreempt: Kpreempt, tmp_path: Path) -> None:
    cluster = spread_cluster(tmp_path, ("store-0", "a"), ("store-3", "c"), ("store-4", "a"), replicas=5)
    items, pending, assumed = outcomes(kpreempt, cluster)
    assert items == {"store-0": "Uncertain", "store-3": "Lands", "store-4": "Uncertain"}
    assert len(pending) == 1
    assert "not created" not in pending[0]
    message = "which of db/store-0, db/store-4 find a node depends on when the scheduler tries them again"
    assert f"replicas: {message}" in assumed


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("", ["pending", "not created before store-0 is ready"]),
        ("Parallel", ["pending"]),
    ],
)
def test_a_new_pod_of_a_stateful_set_waits_for_a_pending_one(
    kpreempt: Kpreempt, tmp_path: Path, policy: str, expected: list[str]
) -> None:
    cluster = spread_cluster(tmp_path, ("store-0", "a"), replicas=4, policy=policy)
    items, pending, _ = outcomes(kpreempt, cluster)
    created = [] if len(expected) > 1 else ["store-3"]
    assert list(items) == ["store-0", *created]
    assert ["not created" in each for each in pending] == ["not created" in each for each in expected]
    assert pending[-1] == expected[-1] or policy


def test_the_policy_of_a_stateful_set_that_is_not_in_the_input_is_assumed(kpreempt: Kpreempt, tmp_path: Path) -> None:
    start = "spec.podManagementPolicy: unknown"
    _, _, assumed = outcomes(kpreempt, spread_cluster(tmp_path))
    assert [each for each in assumed if each.startswith(start)]
    # Existing pods need no policy.
    _, _, assumed = outcomes(kpreempt, spread_cluster(tmp_path, ("store-3", "c")))
    assert not [each for each in assumed if each.startswith(start)]


@pytest.mark.parametrize("replicas", [2_000_000_000, 2_003])
def test_too_many_missing_pods_are_refused(kpreempt: Kpreempt, tmp_path: Path, replicas: int) -> None:
    cluster = spread_cluster(tmp_path, replicas=replicas)
    ran = kpreempt("explain", "sts/store", "-n", "db", "--snapshot", str(cluster), *NOW)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "too many replicas: 2,001 (maximum 2,000)" in ran.stderr
