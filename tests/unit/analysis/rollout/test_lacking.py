"""Kinds that a dump has nothing of though there must be some: one finding each, with the command that adds them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.analysis.rollout.changes import plan_of, served, template, workload

Document = dict[str, Any]


def owned_pod(kind: str, owner: str, name: str = "p", **spec: Any) -> Document:
    api_version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    owners = [{"apiVersion": api_version, "kind": kind, "name": owner, "controller": True, "uid": "u"}]
    metadata = {"name": name, "namespace": "shop", "ownerReferences": owners, "labels": {"pod-template-hash": "1"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [], **spec}}


def found_in(plan: Any) -> list[tuple[str, str]]:
    return [
        (each.subject, each.message.rpartition("; ")[2] if each.field == "list" else each.message)
        for each in plan.assumptions
        if each.field == "list" or "and not itself" in each.message
    ]


@pytest.mark.parametrize(
    ("kind", "owner", "command"),
    [
        ("StatefulSet", "api", "kubectl get statefulsets.apps -A -o json adds them"),
        ("DaemonSet", "api", "kubectl get daemonsets.apps -A -o json adds them"),
        ("ReplicationController", "api", "kubectl get replicationcontrollers -A -o json adds them"),
        ("Job", "api", "kubectl get jobs.batch -A -o json adds them"),
        ("Deployment", "api-1", "kubectl get deployments.apps -A -o json adds them"),
    ],
)
def test_a_workload_of_which_there_are_pods_alone(kind: str, owner: str, command: str) -> None:
    pod = owned_pod("ReplicaSet" if kind == "Deployment" else kind, owner)
    # Two of a kind are one finding.
    manifests = [workload(kind), workload(kind, "other")]
    assert found_in(plan_of(manifests, pod)) == [(kind, command)]
    # One that is truly new is none.
    assert found_in(plan_of([workload(kind, "other")], pod)) == []


def test_a_workload_is_named_where_the_dump_has_others_of_its_kind() -> None:
    plan = plan_of(workload(), owned_pod("ReplicaSet", "api-1"), served(workload(name="other")))
    message = "the input has its pods, and not itself; how it was before is told from them"
    assert found_in(plan) == [("Deployment shop/api", message)]


def test_a_cron_job_of_which_there_are_jobs_alone() -> None:
    job = served(workload("Job", "api-1"))
    job["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "api", "controller": True, "uid": "u"}
    ]
    assert found_in(plan_of(workload("CronJob"), job)) == [
        ("CronJob", "kubectl get cronjobs.batch -A -o json adds them")
    ]


CLAIMED = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "shop"},
    "spec": {"volumeName": "pv", "storageClassName": "fast"},
}
VOLUME = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {}}
PROVISIONED = {**VOLUME, "metadata": {"name": "pv", "annotations": {"pv.kubernetes.io/provisioned-by": "d"}}}


def claiming() -> Document:
    pod = template()
    return workload(template={**pod, "spec": {**pod["spec"], **CLAIMED}})


@pytest.mark.parametrize(
    ("manifest", "there", "command"),
    [
        pytest.param(claiming(), [], "", id="nothing else mounts claims"),
        pytest.param(workload(), [owned_pod("X", "x", **CLAIMED)], "", id="the change needs none"),
        pytest.param(claiming(), [owned_pod("X", "x", **CLAIMED)], "persistentvolumeclaims", id="there must be claims"),
        pytest.param(claiming(), [CLAIM], "persistentvolumes", id="there must be volumes"),
        pytest.param(claiming(), [CLAIM, PROVISIONED], "storageclasses.storage.k8s.io", id="there must be a class"),
        pytest.param(claiming(), [CLAIM, VOLUME], "", id="volumes made by hand need no class"),
    ],
)
def test_what_decides_where_volumes_can_be_is_one_finding(
    manifest: Document, there: list[Document], command: str
) -> None:
    found = found_in(plan_of(manifest, *there))
    assert [text for _, text in found] == ([f"kubectl get {command} -A -o json adds them"] if command else [])


def test_runtime_classes() -> None:
    pod = template()
    manifest = workload(template={**pod, "spec": {**pod["spec"], "runtimeClassName": "gvisor"}})
    there = owned_pod("X", "x", runtimeClassName="gvisor")
    command = "kubectl get runtimeclasses.node.k8s.io -A -o json adds them"
    assert found_in(plan_of(manifest, there)) == [("RuntimeClass", command)]
    assert found_in(plan_of(manifest)) == []


def test_priority_classes() -> None:
    there = owned_pod("X", "x", priorityClassName="system-node-critical")
    command = "kubectl get priorityclasses.scheduling.k8s.io -A -o json adds them"
    assert found_in(plan_of(workload(), there)) == [("PriorityClass", command)]
    assert found_in(plan_of(workload(), owned_pod("X", "x"))) == []
    known = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "a"}, "value": 1}
    assert found_in(plan_of(workload(), there, known)) == []
