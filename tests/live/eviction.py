"""A small cluster in which the real scheduler has just evicted two pods for a third, next to other pending pods."""

from __future__ import annotations

from pathlib import Path

from tests.live.cluster import RESOURCES
from tests.live.patience import until
from tests.live.plane import ControlPlane, Object
from tests.live.plugin import kubectl_kpreempt

PRIORITIES = (10, 50, 100, 500, 501, 1000)
NAMESPACES = ("kestrel-batch", "kestrel-shop", "kestrel-lab")
BATCH, SHOP, LAB = NAMESPACES
GPU = "example.com/gpu"
FINALIZER = "batch.example/upload"
GATE = "shop.example/quota"
GRACE_SECONDS = 3600


def pod(
    namespace: str, name: str, priority: int, requests: Object, *, app: str = "", node: str = "", **spec: object
) -> Object:
    """A pod as a user would create it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app or name}},
        "spec": {
            "priorityClassName": f"level-{priority}",
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "containers": [
                {
                    "name": "main",
                    "image": f"registry.example/{name}:1",
                    "env": [{"name": "PASSWORD", "value": "hunter2"}],
                    "resources": {"requests": requests, "limits": {GPU: requests[GPU]} if GPU in requests else {}},
                }
            ],
            **({"nodeName": node} if node else {}),
            **spec,
        },
    }


def _node(name: str, allocatable: Object) -> Object:
    amounts = {"pods": "110", "memory": "8Gi", **allocatable}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kestrel.example/rack": f"rack-of-{name}"},
        },
        "status": {"capacity": amounts, "allocatable": amounts},
    }


RUNNING = [
    pod(BATCH, "encode-1", 10, {"cpu": "2"}, app="encode", node="osprey-1"),
    pod(BATCH, "encode-2", 10, {"cpu": "1500m"}, app="encode", node="osprey-1"),
    pod(SHOP, "web-1", 100, {"cpu": "2"}, app="web", node="osprey-2"),
    pod(SHOP, "web-2", 100, {"cpu": "2"}, app="web", node="osprey-2"),
    pod(LAB, "train-1", 500, {"cpu": "500m", GPU: "1"}, app="train", node="heron-1"),
]
RUNNING[0]["metadata"]["finalizers"] = [FINALIZER]
NODES = [
    _node("heron-1", {"cpu": "600m", GPU: "1"}),
    _node("osprey-1", {"cpu": "4"}),
    _node("osprey-2", {"cpu": "4"}),
]
# The scheduler evicts both encode pods for it: the other node would need a PDB violation.
CHECKOUT = pod(SHOP, "checkout-1", 1000, {"cpu": "3"}, app="checkout")
# Other pending pods: one that fits nowhere, two of the same priority, and two that are never tried.
HUGE = pod(BATCH, "huge-1", 50, {"cpu": "64"}, app="huge")
LATE = [pod(BATCH, f"late-{number}", 10, {"cpu": "2"}, app="late") for number in (1, 2)]
GATED = pod(SHOP, "gated-1", 100, {"cpu": "1"}, schedulingGates=[{"name": GATE}])
ELSEWHERE = pod(SHOP, "elsewhere-1", 100, {"cpu": "1"}, schedulerName="nobodys-scheduler")


def path_of(document: Object) -> str:
    """The path of the collection of its kind."""
    group, _, plural = RESOURCES[document["kind"]].rpartition("/")
    namespace = document["metadata"].get("namespace")
    return f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"


def current(plane: ControlPlane, document: Object) -> Object:
    """Return the current object."""
    return plane.request("GET", f"{path_of(document)}/{document['metadata']['name']}")


def create(plane: ControlPlane, document: Object) -> Object:
    """Create an object, and return it; a pod with a node runs there."""
    made = plane.request("POST", path_of(document), document)
    if document["kind"] == "Pod" and document["spec"].get("nodeName"):
        status = {"phase": "Running", "startTime": made["metadata"]["creationTimestamp"]}
        plane.request("PATCH", f"{path_of(document)}/{document['metadata']['name']}/status", {"status": status})
    return made


def rejection(plane: ControlPlane, document: Object) -> str:
    """The scheduler's own reason why the pod was not placed; empty before its first attempt."""
    conditions = current(plane, document)["status"].get("conditions", [])
    return next((each["message"] for each in conditions if each["type"] == "PodScheduled" and "message" in each), "")


def events(plane: ControlPlane, reason: str) -> dict[str, Object]:
    """The events with that reason, by pod name."""
    items = plane.request("GET", f"/api/v1/events?fieldSelector=reason%3D{reason}")["items"]
    return {each["involvedObject"]["name"]: each for each in items}


def play(plane: ControlPlane, before: Path) -> None:
    """Create the cluster, write a snapshot to ``before``, and let the scheduler evict."""
    for priority in PRIORITIES:
        metadata = {"name": f"level-{priority}"}
        create(
            plane,
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": priority},
        )
    for namespace in NAMESPACES:
        create(plane, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for document in (*NODES, *RUNNING):
        create(plane, document)
    _protect_web(plane)
    assert kubectl_kpreempt(plane.kubeconfig, "snapshot", "--to", before).code == 0
    create(plane, CHECKOUT)
    until(lambda: len(events(plane, "Preempted")) == 2, "two Preempted events")
    for document in (HUGE, *LATE):
        create(plane, document)
        name = document["metadata"]["name"]
        until(lambda name=name: events(plane, "FailedScheduling").get(name), f"an event about {name}")
    # In name order, which decides for those created within the same second.
    for document in (ELSEWHERE, GATED):
        create(plane, document)


def _protect_web(plane: ControlPlane) -> None:
    budget: Object = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web-budget", "namespace": SHOP},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    create(plane, budget)
    status = {
        "disruptionsAllowed": 0,
        "currentHealthy": 2,
        "desiredHealthy": 2,
        "expectedPods": 2,
        "observedGeneration": 1,
    }
    plane.request("PATCH", f"{path_of(budget)}/web-budget/status", {"status": status})
