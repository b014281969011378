"""Pods that are pending for other reasons than capacity, on a real control plane.

The scheduler, the API server and the controllers are real. What a kubelet would report is written to the status and the
events of the pods, in the words of ``pkg/kubelet`` of v1.36.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.live.eviction import create, events
from tests.live.patience import until
from tests.live.plane import ControlPlane, Object, program
from tests.live.plugin import kubectl_kpreempt, needs_kubectl

pytestmark = pytest.mark.live

SHOP = "kestrel-shop"
PODS = f"/api/v1/namespaces/{SHOP}/pods"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLASSES, CLAIMS = "/apis/storage.k8s.io/v1/storageclasses", f"/api/v1/namespaces/{SHOP}/persistentvolumeclaims"
FINALIZER = "kestrel.example/upload"
PULL = 'Back-off pulling image "registry.example/web:2": ErrImagePull: manifest unknown'
LOST = "Kubelet stopped posting node status."


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _node(name: str, *, ready: bool) -> Object:
    amounts = {"pods": "110", "memory": "8Gi", "cpu": "4"}
    condition = {"type": "Ready", "status": "True" if ready else "Unknown", "lastTransitionTime": _now()}
    condition |= {"reason": "KubeletReady"} if ready else {"reason": "NodeStatusUnknown", "message": LOST}
    # No controller runs that would taint it.
    taints = [] if ready else [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "spec": {"taints": taints},
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [condition]},
    }


def _pod(name: str, cpu: str = "100m", **spec: Any) -> Object:
    container = {"name": "main", "image": "registry.example/web:2", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": SHOP}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def _report(plane: ControlPlane, name: str, status: Object) -> None:
    """Write a pod's status as its kubelet would."""
    plane.request("PATCH", f"{PODS}/{name}/status", {"status": status})


def _waiting(reason: str, message: str = "") -> Object:
    state = {"waiting": {"reason": reason, "message": message}}
    status = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    return {"phase": "Pending", "startTime": _now(), "containerStatuses": [status]}


def _event(plane: ControlPlane, name: str, reason: str, message: str) -> None:
    uid = plane.request("GET", f"{PODS}/{name}")["metadata"]["uid"]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name}.", "namespace": SHOP},
        "involvedObject": {"kind": "Pod", "namespace": SHOP, "name": name, "uid": uid},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "source": {"component": "kubelet"},
        "firstTimestamp": _now(),
        "lastTimestamp": _now(),
        "count": 1,
    }
    plane.request("POST", f"/api/v1/namespaces/{SHOP}/events", event)


@pytest.fixture(scope="module")
def situation() -> Iterator[ControlPlane]:
    """A cluster in which each pod is pending for another reason."""
    needs_kubectl()
    with ControlPlane(program()) as plane:
        create(plane, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
        create(plane, _node("osprey-1", ready=True))
        create(plane, _node("heron-1", ready=False))
        late = {"provisioner": "kestrel.example/local", "volumeBindingMode": "WaitForFirstConsumer"}
        plane.request("POST", CLASSES, {"metadata": {"name": "local"}, **late})
        request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        plane.request("POST", CLAIMS, {"metadata": {"name": "data"}, "spec": {"storageClassName": "local", **request}})
        volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        plane.request("POST", PODS, _pod("pinned", nodeName="osprey-1", volumes=volumes))
        plane.request("POST", PODS, _pod("unpulled", nodeName="osprey-1"))
        _report(plane, "unpulled", _waiting("ImagePullBackOff", PULL))
        plane.request("POST", PODS, _pod("unmounted", nodeName="osprey-1"))
        _report(plane, "unmounted", _waiting("ContainerCreating"))
        _event(plane, "unmounted", "FailedMount", 'MountVolume.SetUp failed for volume "tls" : secret "tls" not found')
        plane.request("POST", PODS, _pod("stranded", nodeName="heron-1"))
        plane.request("POST", PODS, _pod("gated", schedulingGates=[{"name": "kestrel.example/quota"}]))
        _play_preemption(plane)
        plane.request("POST", PODS, _pod("huge", "64"))
        until(lambda: events(plane, "FailedScheduling").get("huge"), "an event about huge")
        yield plane


def _play_preemption(plane: ControlPlane) -> None:
    """Let a pod preempt one that a finalizer keeps."""
    for name, value in (("low", 1), ("high", 1000)):
        plane.request(
            "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value}
        )
    victim = _pod("victim", "3", nodeName="osprey-1", priorityClassName="low", terminationGracePeriodSeconds=3600)
    victim["metadata"]["finalizers"] = [FINALIZER]
    plane.request("POST", PODS, victim)
    _report(plane, "victim", {"phase": "Running", "startTime": _now()})
    plane.request("POST", PODS, _pod("urgent", "3", priorityClassName="high"))
    until(lambda: events(plane, "Preempted").get("victim"), "an event about the victim")
    until(lambda: plane.request("GET", f"{PODS}/urgent")["status"].get("nominatedNodeName"), "a nomination")


def _answer(plane: ControlPlane, *words: str) -> Any:
    return json.loads(kubectl_kpreempt(plane.kubeconfig, *words, "-o", "json").out)


def _said(plane: ControlPlane, *words: str) -> str:
    """The first sentences, on one line."""
    out = kubectl_kpreempt(plane.kubeconfig, *words).out
    return " ".join(out.partition("\n\n")[0].split())


def test_pending_agrees_with_kubectl_get_pods(situation: ControlPlane) -> None:
    answer = _answer(situation, "pending", "-n", SHOP)
    listed = situation.request("GET", f"{PODS}?fieldSelector=status.phase%3DPending")["items"]
    named = [each["pod"] for each in (*answer["items"], *answer["onNodes"])]
    assert sorted(named) == sorted(f"{SHOP}/{each['metadata']['name']}" for each in listed)


def test_each_pod_on_a_node_waits_for_something_else(situation: ControlPlane) -> None:
    items = {each["pod"].rpartition("/")[2]: each for each in _answer(situation, "pending", "-n", SHOP)["onNodes"]}
    assert {name: (each["cause"], each["status"]) for name, each in items.items()} == {
        "pinned": ("UnboundClaim", "Pending"),
        "unpulled": ("Image", "ImagePullBackOff"),
        "unmounted": ("Volume", "ContainerCreating"),
        "stranded": ("NodeNotReady", "Pending"),
    }
    assert (items["pinned"]["claimState"], items["pinned"]["claim"]) == ("NoNodeSelected", f"{SHOP}/data")
    assert (items["unpulled"]["message"], items["stranded"]["message"]) == (PULL, LOST)


def test_the_first_sentences_count_the_pods_on_nodes(situation: ControlPlane) -> None:
    said = _said(situation, "pending", "-n", SHOP)
    assert "4 more are pending on their nodes: " in said
    for part in ("1 waits for a claim that is not bound", "1 can't pull an image", "1 waits for a volume"):
        assert part in said
    assert "1 is on a node that is not ready" in said


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        pytest.param(
            "pinned",
            f"{SHOP}/pinned is pending on its node osprey-1: the scheduler never sees it, because spec.nodeName is set,"
            f" so it selects no node for PersistentVolumeClaim {SHOP}/data (class local: WaitForFirstConsumer).",
            id="nodeName and a claim that waits for the scheduler",
        ),
        pytest.param(
            "unpulled",
            f"{SHOP}/unpulled is pending on its node osprey-1: ImagePullBackOff (container main): {PULL}.",
            id="an image that cannot be pulled",
        ),
        pytest.param(
            "gated",
            "waiting for scheduling gates: [kestrel.example/quota]. The controller that set it has to remove it",
            id="a gate",
        ),
        pytest.param(
            "urgent", f"{SHOP}/victim is held by finalizer {FINALIZER}.", id="a victim that a finalizer holds"
        ),
    ],
)
def test_explain_says_first_what_the_pod_waits_for(situation: ControlPlane, pod: str, text: str) -> None:
    assert text in _said(situation, "explain", pod, "-n", SHOP)


def test_explain_and_pending_have_the_same_state(situation: ControlPlane) -> None:
    items = {each["pod"]: each["state"] for each in _answer(situation, "pending", "-n", SHOP)["items"]}
    assert items[f"{SHOP}/urgent"] == "WaitsForVictims"
    assert items[f"{SHOP}/gated"] == "Gated"
    # In the meantime, its backoff may end.
    assert items[f"{SHOP}/huge"] in ("BackingOff", "WaitsForChange")
    for name in ("urgent", "gated"):
        explained = _answer(situation, "explain", name, "-n", SHOP)
        assert explained["stillPending"]["state"] == items[f"{SHOP}/{name}"]
    state = _answer(situation, "explain", "huge", "-n", SHOP)["stillPending"]["state"]
    assert state in ("BackingOff", "WaitsForChange")
