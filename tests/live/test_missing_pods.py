# ruff: noqa: E501 - a row of the table is one case
"""Controllers that have not created all of their pods: what is reported is what the real controllers reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kpreempt.model.creation_failures import parse_failure
from tests.live.patience import until
from tests.live.plane import ControlPlane, Object, RefusedError, program
from tests.live.plugin import kubectl_kpreempt, needs_kubectl

pytestmark = pytest.mark.live

APPS, BATCH = "/apis/apps/v1/namespaces", "/apis/batch/v1/namespaces"
CORE = "/api/v1/namespaces"
HOOK = "refuse.test.example"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane with controllers, one node that takes pods and one that is tainted."""
    needs_kubectl()
    with ControlPlane(program(), ["-service-accounts"], moving=True) as running:
        for name, taints in (("free", []), ("gpu", [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}])):
            amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
            document = {
                "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}},
                "spec": {"taints": taints},
                "status": {"capacity": amounts, "allocatable": amounts},
            }
            running.request("POST", "/api/v1/nodes", document)
        yield running


def namespace(plane: ControlPlane, name: str, **labels: str) -> str:
    """A namespace with its default service account, in which pods can be created."""
    plane.request("POST", CORE, {"metadata": {"name": name, "labels": labels}})
    plane.request("POST", f"{CORE}/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    until(lambda: accepts(plane, name), f"service account {name}/default")
    return name


def accepts(plane: ControlPlane, name: str) -> bool:
    """Whether admission has seen the service account; other reasons to reject the pod do not matter here."""
    try:
        pod = {"metadata": {"name": "try"}, "spec": template()["spec"]}
        plane.request("POST", f"{CORE}/{name}/pods?dryRun=All", pod)
    except RefusedError as error:
        return "service account" not in str(error)
    return True


def template(**spec: Any) -> Object:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **spec}}


def deploy(plane: ControlPlane, place: str, pod: Object, *, replicas: int = 3, **spec: Any) -> None:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": pod, **spec}
    plane.request("POST", f"{APPS}/{place}/deployments", {"metadata": {"name": "web"}, "spec": spec})


def pending(plane: ControlPlane, place: str) -> list[Any]:
    ran = kubectl_kpreempt(plane.kubeconfig, "pending", "-n", place, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    found: list[Any] = json.loads(ran.out)["missingPods"]
    return found


def first_sentence(plane: ControlPlane, *words: str) -> str:
    ran = kubectl_kpreempt(plane.kubeconfig, "explain", *words)
    assert ran.code in (0, 12), ran.err
    return " ".join(ran.out.partition("\n\n")[0].split())


def condition(plane: ControlPlane, place: str) -> Object | None:
    """The condition of the ReplicaSet, once its controller has reported a failure."""
    sets = plane.request("GET", f"{APPS}/{place}/replicasets")["items"]
    found = (each for item in sets for each in item["status"].get("conditions", []))
    return next((each for each in found if each["type"] == "ReplicaFailure"), None)


def events(plane: ControlPlane, place: str) -> list[str]:
    """Why pods could not be created, by all events."""
    items = plane.request("GET", f"{CORE}/{place}/events?fieldSelector=reason=FailedCreate")["items"]
    return [parse_failure(each["message"]).message for each in items]


INCIDENTS = {
    "a missing service account": ("ServiceAccount", template(serviceAccountName="deployer"), 'serviceaccount "deployer" not found'),
    "Pod Security": ("PodSecurity", template(), 'violates PodSecurity "restricted:latest"'),
    "a quota": ("ResourceQuota", template(), "exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1"),
    "a limit range": ("LimitRanger", template(), "minimum cpu usage per Container is 1, but request is 100m"),
    "a webhook that is down": ("WebhookCall", template(), f'failed calling webhook "{HOOK}"'),
    "a missing runtime class": ("RuntimeClass", template(runtimeClassName="gvisor"), 'RuntimeClass "gvisor" not found'),
}  # fmt: skip


def prepare(plane: ControlPlane, place: str, step: str) -> None:
    """Create what rejects the pods of the namespace."""
    if step == "PodSecurity":
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        plane.request("PATCH", f"{CORE}/{place}", {"metadata": {"labels": labels}})
    elif step == "ResourceQuota":
        hard = {"pods": "1"}
        quota = {"metadata": {"name": "team"}, "spec": {"hard": hard}}
        plane.request("POST", f"{CORE}/{place}/resourcequotas", quota)
        # No controller counts the pods.
        status = {"status": {"hard": hard, "used": {"pods": "1"}}}
        plane.request("PATCH", f"{CORE}/{place}/resourcequotas/team/status", status)
    elif step == "LimitRanger":
        limits = {"limits": [{"type": "Container", "min": {"cpu": "1"}}]}
        plane.request("POST", f"{CORE}/{place}/limitranges", {"metadata": {"name": "least"}, "spec": limits})
    elif step == "WebhookCall":
        hook = {
            "name": HOOK,
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        plane.request("POST", path, {"metadata": {"name": "refuse"}, "webhooks": [hook]})
    if step in ("PodSecurity", "ResourceQuota", "LimitRanger", "WebhookCall"):
        until(lambda: rejects(plane, place), f"{step} in {place}")


def rejects(plane: ControlPlane, place: str) -> bool:
    try:
        plane.request("POST", f"{CORE}/{place}/pods?dryRun=All", {"metadata": {"name": "try"}, **template()})
    except RefusedError:
        return True
    return False


@pytest.mark.parametrize("name", INCIDENTS)
def test_pods_that_the_api_server_rejects(plane: ControlPlane, name: str) -> None:
    step, pod, reason = INCIDENTS[name]
    place = namespace(plane, step.lower())
    prepare(plane, place, step)
    deploy(plane, place, pod)
    until(lambda: condition(plane, place) and events(plane, place), "a failed attempt")
    [found] = pending(plane, place)
    assert (found["workload"], found["reason"], found["missing"]) == (f"Deployment {place}/web", "FailedCreate", 3)
    failure = found["failure"]
    assert failure["step"] == step
    assert failure["message"] in events(plane, place)
    assert failure["attempts"] >= 1
    answer = first_sentence(plane, "deploy/web", "-n", place)
    assert answer.startswith(f"{place}/web lacks all 3 pods: ReplicaSet web-")
    assert reason in answer
    if step in ("ServiceAccount", "WebhookCall"):
        # Neither accounts nor webhooks are read.
        assert "If they were created: all 3 missing replicas land." in answer
    else:
        rejecter = "A quota" if step == "ResourceQuota" else "The API server"
        assert f"{rejecter} would reject all 3 now, too." in answer
        assert "land" not in answer


def test_pods_are_not_missing_any_more_once_the_account_exists(plane: ControlPlane) -> None:
    place = namespace(plane, "repaired")
    deploy(plane, place, template(serviceAccountName="late"))
    until(lambda: condition(plane, place), "a failed attempt")
    assert [each["missing"] for each in pending(plane, place)] == [3]
    plane.request("POST", f"{CORE}/{place}/serviceaccounts", {"metadata": {"name": "late"}})
    until(lambda: condition(plane, place) is None, "a repaired ReplicaSet")
    assert pending(plane, place) == []


def test_a_suspended_job_creates_no_pods(plane: ControlPlane) -> None:
    place = namespace(plane, "jobs")
    spec = {"parallelism": 2, "completions": 2, "suspend": True, "template": template(restartPolicy="Never")}
    plane.request("POST", f"{BATCH}/{place}/jobs", {"metadata": {"name": "load"}, "spec": spec})

    def is_seen() -> bool:
        status = plane.request("GET", f"{BATCH}/{place}/jobs/load").get("status", {})
        return any(each["type"] == "Suspended" for each in status.get("conditions", []))

    until(is_seen, "a suspended Job")
    assert [(each["reason"], each["missing"]) for each in pending(plane, place)] == [("Suspended", 2)]
    answer = first_sentence(plane, "job/load", "-n", place)
    assert answer.startswith("jobs/load is suspended (spec.suspend) and creates no pods. If they were created: ")


def test_a_job_delays_its_next_pod_after_a_failure(plane: ControlPlane) -> None:
    place = namespace(plane, "failures")
    spec = {"template": template(restartPolicy="Never")}
    plane.request("POST", f"{BATCH}/{place}/jobs", {"metadata": {"name": "load"}, "spec": spec})
    pods = f"{CORE}/{place}/pods"
    pod = until(
        # Before, the stand-in of the kubelet would write its phase again.
        lambda: next(
            (each for each in plane.request("GET", pods)["items"] if each["status"]["phase"] == "Running"), None
        ),
        "a running pod",
    )
    plane.request("PATCH", f"{pods}/{pod['metadata']['name']}/status", {"status": {"phase": "Failed"}})
    until(lambda: plane.request("GET", f"{BATCH}/{place}/jobs/load")["status"].get("failed"), "a failed pod")
    [found] = pending(plane, place)
    assert (found["reason"], found["failed"], found["longestDelaySeconds"]) == ("BackingOff", 1, 10)


def test_a_stateful_set_waits_for_a_pod_that_is_not_ready(plane: ControlPlane) -> None:
    place = namespace(plane, "stores")
    spec = {"replicas": 1, "serviceName": "store", "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    path = f"{APPS}/{place}/statefulsets"
    plane.request("POST", path, {"metadata": {"name": "store"}, "spec": spec})
    until(lambda: plane.request("GET", f"{path}/store")["status"].get("readyReplicas"), "a ready pod")
    conditions = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
    unready = {"status": {"conditions": conditions}}
    plane.request("PATCH", f"{CORE}/{place}/pods/store-0/status", unready, patch="strategic-merge")
    until(lambda: not plane.request("GET", f"{path}/store")["status"].get("readyReplicas"), "an unready pod")
    plane.request("PATCH", f"{path}/store", {"spec": {"replicas": 3}})
    until(lambda: plane.request("GET", f"{path}/store")["status"]["observedGeneration"] == 2, "a larger StatefulSet")
    [found] = pending(plane, place)
    assert (found["reason"], found["missing"], found["waitsFor"]["pod"]) == ("WaitsForPod", 2, "stores/store-0")
    answer = first_sentence(plane, "sts/store", "-n", place)
    assert answer.startswith(
        "stores/store lacks 2 of 3 pods, which are created one by one once stores/store-0 is ready; it is on free but"
        " not ready."
    )


def test_a_paused_deployment_creates_no_pods(plane: ControlPlane) -> None:
    place = namespace(plane, "paused")
    deploy(plane, place, template(), paused=True)
    path = f"{APPS}/{place}/deployments/web"
    until(lambda: plane.request("GET", path)["status"].get("observedGeneration"), "a paused Deployment")
    assert [(each["reason"], each["missing"]) for each in pending(plane, place)] == [("Paused", 3)]


def test_a_daemon_set_excludes_the_tainted_node(plane: ControlPlane) -> None:
    place = namespace(plane, "agents")
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template()}
    plane.request("POST", f"{APPS}/{place}/daemonsets", {"metadata": {"name": "agent"}, "spec": spec})
    path = f"{APPS}/{place}/daemonsets/agent"
    until(lambda: plane.request("GET", path)["status"].get("numberReady"), "a pod of the DaemonSet")
    assert plane.request("GET", path)["status"]["desiredNumberScheduled"] == 1
    ran = kubectl_kpreempt(plane.kubeconfig, "explain", "ds/agent", "-n", place, "-o", "json")
    excluded = json.loads(ran.out)["workload"]["excludedNodes"]
    assert excluded == [{"node": "gpu", "taint": "dedicated=gpu:NoSchedule", "stays": True}]
