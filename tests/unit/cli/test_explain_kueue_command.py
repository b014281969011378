"""``kpreempt explain --algorithm kueue-0.19``: what is reported for Jobs and Workloads, and what is rejected."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kpreempt.report.remedies import action
from kpreempt.verdict.kueue import KueueAnswer

FIXTURES = Path(__file__).parents[3] / "fixtures" / "kueue"
NOW = "2026-11-22T12:00:00Z"
QUEUE = "kueue.x-k8s.io/queue-name"


def _job(name: str, cpu: str, **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team", "labels": {QUEUE: "vision"}, **metadata},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


@pytest.fixture
def ask(kpreempt: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """What the command answers about a manifest, in the cluster of the fixtures with ``more`` objects."""

    def run(document: dict[str, Any], *options: str, more: Sequence[dict[str, Any]] = ()) -> Any:
        manifest, other = tmp_path / "manifest.json", tmp_path / "more.json"
        manifest.write_text(json.dumps(document))
        other.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*more]}))
        snapshots = ["--snapshot", str(FIXTURES / "cluster.yaml"), *(["--snapshot", str(other)] if more else [])]
        return kpreempt(
            *("explain", "--algorithm", "kueue-0.19", "-f", str(manifest), *snapshots, "--now", NOW, *options)
        )

    return run


@pytest.mark.parametrize(
    ("cpu", "outcome", "code"),
    [
        ("2", "Admitted", 0),
        ("4", "Admitted", 12),
        ("5", "Preempts", 10),
        ("8", "Preempts", 12),
        ("20", "Pending", 12),
    ],
    ids=["fits", "fits no node", "reclaims", "reclaims and fits no node", "is more than all quota"],
)
def test_the_exit_code_counts_nodes_as_well_as_quota(
    ask: Callable[..., Any], cpu: str, outcome: str, code: int
) -> None:
    run = ask(_job("one", cpu), "-o", "json", "--exit-code")
    assert json.loads(run.stdout)["alone"]["outcome"] == outcome
    assert run.returncode == code


@pytest.mark.parametrize(
    ("controller", "reported"),
    [
        ("example.com/budget", ""),
        ("kueue.x-k8s.io/provisioning-request", "it may provision new nodes"),
        ("kueue.x-k8s.io/multikueue", "its Workloads run in another cluster"),
    ],
    ids=["a check of one's own", "ProvisioningRequest", "MultiKueue"],
)
def test_a_workload_that_waits_for_checks_is_not_reported_as_admitted(
    ask: Callable[..., Any], controller: str, reported: str
) -> None:
    group = {
        "coveredResources": ["cpu", "memory"],
        "flavors": [
            {
                "name": "on-demand",
                "resources": [{"name": "cpu", "nominalQuota": 8}, {"name": "memory", "nominalQuota": "8Gi"}],
            }
        ],
    }
    version = "kueue.x-k8s.io/v1beta1"
    more = [
        {
            "apiVersion": version,
            "kind": "AdmissionCheck",
            "metadata": {"name": "budget"},
            "spec": {"controllerName": controller},
            "status": {"conditions": [{"type": "Active", "status": "True"}]},
        },
        {
            "apiVersion": version,
            "kind": "ClusterQueue",
            "metadata": {"name": "checked"},
            "spec": {"namespaceSelector": {}, "admissionChecks": ["budget"], "resourceGroups": [group]},
        },
        {
            "apiVersion": version,
            "kind": "LocalQueue",
            "metadata": {"name": "checked", "namespace": "team"},
            "spec": {"clusterQueue": "checked"},
        },
    ]
    run = ask(_job("one", "1", labels={QUEUE: "checked"}), "--exit-code", more=more)
    assert " ".join(run.stdout.split()).startswith(
        "Workload team/job-one gets quota with flavor on-demand and waits for its admission checks"
    )
    assert run.returncode == 13
    answer = json.loads(ask(_job("one", "1", labels={QUEUE: "checked"}), "-o", "json", more=more).stdout)
    of_checks = [each["message"] for each in answer["assumptions"] if each["field"] == "AdmissionCheck budget"]
    assert [each.startswith(reported) for each in of_checks] == [True] * bool(reported)


def test_a_job_without_its_queue_in_the_namespace_is_not_queued(ask: Callable[..., Any]) -> None:
    run = ask(_job("one", "1", labels={QUEUE: "nowhere"}))
    assert run.stdout.startswith("Workload team/job-one is not queued.")
    assert "LocalQueue 'nowhere' does not exist in namespace team" in run.stdout


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (_job("one", "1", labels={}), f"contains no Workload and no object with the label {QUEUE}"),
        ({**_job("one", "1"), "kind": "RayJob"}, "Kueue's Workload for a RayJob is not modeled"),
        (
            _job("one", "1", labels={QUEUE: "vision", "kueue.x-k8s.io/priority-class": "high"}),
            "WorkloadPriorityClass 'high' does not exist in the cluster",
        ),
    ],
    ids=["no queue", "not modelled", "no class"],
)
def test_what_cannot_be_answered_is_refused(ask: Callable[..., Any], document: dict[str, Any], message: str) -> None:
    run = ask(document)
    assert message in run.stderr
    assert run.returncode == 3


_CONTAINER = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
_TEMPLATE = {"metadata": {"labels": {"app": "one"}}, "spec": {"containers": [_CONTAINER]}}


def _of_kind(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "one", "namespace": "team", "labels": {QUEUE: "vision"}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


def _replicated(name: str, replicas: int, **job: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "template": {"spec": {**job, "template": _TEMPLATE}}}


@pytest.mark.parametrize(
    ("document", "workloads"),
    [
        (_of_kind("StatefulSet", {"replicas": 3, "template": _TEMPLATE}), {"team/statefulset-one": {"main": 3}}),
        (
            _of_kind("Deployment", {"replicas": 2, "template": _TEMPLATE}),
            {"team/pod-one-0": {"main": 1}, "team/pod-one-1": {"main": 1}},
        ),
        (
            _of_kind(
                "JobSet",
                {
                    "replicatedJobs": [
                        _replicated("leader", 1),
                        _replicated("workers", 2, parallelism=3, completions=2),
                    ]
                },
            ),
            {"team/jobset-one": {"leader": 1, "workers": 4}},
        ),
    ],
    ids=["a StatefulSet is one Workload", "each pod of a Deployment is one", "a JobSet has a pod set for each job"],
)
def test_workloads_are_made_as_the_integrations_make_them(
    ask: Callable[..., Any], document: dict[str, Any], workloads: dict[str, dict[str, int]]
) -> None:
    answer = json.loads(ask(document, "-o", "json").stdout)
    made = {
        each["workload"]: {one["name"]: one["count"] for one in each["alone"]["podSets"]}
        for each in answer.get("items", [answer])
    }
    assert made == workloads


def test_pods_of_workloads_that_are_explained_together_land_next_to_each_other(ask: Callable[..., Any]) -> None:
    container = {**_CONTAINER, "ports": [{"containerPort": 80, "hostPort": 80}]}
    document = _of_kind("Deployment", {"replicas": 3, "template": {"spec": {"containers": [container]}}})
    # There is quota for all, and a free port on two nodes.
    items = json.loads(ask(document, "-o", "json").stdout)["items"]
    assert [each["alone"]["outcome"] for each in items] == ["Admitted"] * 3
    assert sorted(each["placement"][0]["placed"] for each in items) == [0, 1, 1]


def _grouped(name: str, total: str, **annotations: str) -> dict[str, Any]:
    labels = {QUEUE: "vision", "kueue.x-k8s.io/pod-group-name": "gang"}
    annotations = {"kueue.x-k8s.io/pod-group-total-count": total, **annotations}
    metadata = {"name": name, "namespace": "team", "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [_CONTAINER]}}


def test_pods_of_a_group_are_one_workload(ask: Callable[..., Any]) -> None:
    pods = {"apiVersion": "v1", "kind": "List", "items": [_grouped("a", "2"), _grouped("b", "2")]}
    answer = json.loads(ask(pods, "-o", "json").stdout)
    assert answer["workload"] == "team/gang"
    assert [each["count"] for each in answer["alone"]["podSets"]] == [2]


def test_a_group_that_lacks_pods_is_refused_unless_kueue_takes_it_at_once(ask: Callable[..., Any]) -> None:
    assert "only 1 of its 3 pods are present" in ask(_grouped("a", "3")).stderr
    at_once = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}
    answer = json.loads(ask(_grouped("a", "3", **at_once), "-o", "json").stdout)
    assert [each["count"] for each in answer["alone"]["podSets"]] == [3]


def test_the_priority_comes_from_the_workloads_class(ask: Callable[..., Any]) -> None:
    job = _job("one", "1", labels={QUEUE: "vision", "kueue.x-k8s.io/priority-class": "high"})
    more = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    ]
    assert json.loads(ask(job, "-o", "json", more=more).stdout)["priority"] == 1000


def test_a_configuration_that_is_none_is_refused(ask: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("kind: KubeSchedulerConfiguration\n")
    assert "not a Kueue Configuration" in ask(_job("one", "1"), "--scheduler-config", str(path)).stderr


def test_what_is_not_modeled_is_assumed(ask: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("kind: Configuration\nadmissionFairSharing: {usageHalfLifeTime: 1h}\nfeatureGates: {Made: true}\n")
    run = ask(_job("one", "1"), "--scheduler-config", str(path), "-o", "json")
    assumed = {each["field"] for each in json.loads(run.stdout)["assumptions"]}
    assert {"admissionFairSharing", "featureGates.Made"} <= assumed


def _remedies(run: Any) -> list[str]:
    return [action(each) for each in msgspec.json.decode(run.stdout, type=KueueAnswer).remedies]


def test_remedies_are_reported_for_what_stays_pending(ask: Callable[..., Any]) -> None:
    # 4 CPU are free in the cohort, and vision has a quota of 8.
    job = _job("one", "2")
    job["spec"]["parallelism"] = 5
    expected = [
        "set parallelism: 2 in Job team/one",
        "request 800m cpu instead of 2",
        "raise the nominalQuota of cpu in flavor on-demand of ClusterQueue vision from 8 to 14",
    ]
    assert _remedies(ask(job, "-o", "json")) == expected
    text = " ".join(ask(job).stdout.split())
    assert "FIX any one of these set parallelism: 2 in Job team/one: gets quota; no Workload is preempted" in text
    assert "kube-scheduler places 2 of its 5 pods kubectl patch clusterqueue vision" in text
    assert "kubectl patch job" not in text


def test_a_priority_that_would_preempt_is_among_the_changes(ask: Callable[..., Any]) -> None:
    group = {
        "coveredResources": ["cpu", "memory"],
        "flavors": [
            {
                "name": "on-demand",
                "resources": [{"name": "cpu", "nominalQuota": 2}, {"name": "memory", "nominalQuota": "8Gi"}],
            }
        ],
    }
    version = "kueue.x-k8s.io/v1beta2"
    queue = {
        "apiVersion": version,
        "kind": "ClusterQueue",
        "metadata": {"name": "own"},
        "spec": {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [group],
        },
    }
    local = {
        "apiVersion": version,
        "kind": "LocalQueue",
        "metadata": {"name": "own", "namespace": "team"},
        "spec": {"clusterQueue": "own"},
    }

    def running(name: str, priority: int) -> dict[str, Any]:
        given = {"name": "main", "count": 1, "flavors": {"cpu": "on-demand"}, "resourceUsage": {"cpu": "1"}}
        return {
            "apiVersion": version,
            "kind": "Workload",
            "metadata": {"name": name, "namespace": "team", "uid": name, "creationTimestamp": "2026-11-22T08:00:00Z"},
            "spec": {"queueName": "own", "priority": priority, "podSets": [{"name": "main", "template": _TEMPLATE}]},
            "status": {
                "conditions": [
                    {"type": kind, "status": "True", "lastTransitionTime": "2026-11-22T08:00:00Z"}
                    for kind in ("QuotaReserved", "Admitted")
                ],
                "admission": {"clusterQueue": "own", "podSetAssignments": [given]},
            },
        }

    more = [queue, local, running("low", 5), running("high", 50)]
    job = _job("one", "1", labels={QUEUE: "own"})
    found = _remedies(ask(job, "-o", "json", more=more))
    assert "raise the nominalQuota of cpu in flavor on-demand of ClusterQueue own from 2 to 3" in found
    assert "raise the priority of Workload team/job-one from 0 to 6" in found


def test_what_is_admitted_needs_no_remedy(ask: Callable[..., Any]) -> None:
    assert _remedies(ask(_job("one", "1"), "-o", "json")) == []
