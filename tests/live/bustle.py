"""A cluster in which some 300 pods are created and deleted: rollouts, preemptions, budgets, and a drained node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random

from tests.live.patience import until
from tests.live.plane import ControlPlane, Object, RefusedError
from tests.live.resting import RESOURCES, at_rest

NAMESPACE = "bustle"
NODES = 12
PRIORITIES = {"batch": 10, "web": 500, "urgent": 1000}
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_NAMESPACED = f"namespaces/{NAMESPACE}"


def begin(plane: ControlPlane) -> None:
    """Create the cluster: nodes, classes, budgets, workloads without replicas, and the lease of its only scheduler."""
    lease = {"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "the-only-one"}}
    plane.request("POST", _LEASE, lease)
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for name, value in PRIORITIES.items():
        plane.request("POST", _CLASSES, {"metadata": {"name": name}, "value": value})
    for number in range(1, NODES + 1):
        plane.request("POST", "/api/v1/nodes", _node(f"node-{number:02}", _cpu(number)))
    for name in ("web", "shop"):
        budget = {
            "metadata": {"name": name},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
        }
        plane.request("POST", f"/apis/policy/v1/{_NAMESPACED}/poddisruptionbudgets", budget)
    for name, (priority, cpu) in WORKLOADS.items():
        plane.request("POST", f"/apis/apps/v1/{_NAMESPACED}/deployments", _deployment(name, priority, cpu))


WORKLOADS = {
    "encode": ("batch", 500),
    "index": ("batch", 1000),
    "web": ("web", 700),
    "shop": ("web", 1200),
    "alert": ("urgent", 1500),
}


def happen(plane: ControlPlane, random: Random) -> Iterator[str]:
    """Run the events step by step; after each, the cluster is idle, and the step's name is yielded."""
    yield from _scaled(plane, encode=60, index=16)
    yield from _scaled(plane, web=30)
    yield from _scaled(plane, shop=10)
    yield from _scaled(plane, alert=8)
    drained = f"node-{random.randrange(1, NODES + 1):02}"
    _drain(plane, drained)
    yield f"drained {drained}"
    yield from _scaled(plane, encode=20, alert=2)
    plane.request("PATCH", f"/api/v1/nodes/{drained}", {"spec": {"unschedulable": False}})
    yield from _scaled(plane, encode=70, web=36)
    yield from _scaled(plane, alert=10)
    yield from _scaled(plane, encode=10, index=0)
    yield from _scaled(plane, encode=90)
    # Budgets of others cannot all be kept.
    yield from _scaled(plane, alert=38)


def _scaled(plane: ControlPlane, **replicas: int) -> Iterator[str]:
    for name, number in replicas.items():
        path = f"/apis/apps/v1/{_NAMESPACED}/deployments/{name}"
        plane.request("PATCH", path, {"spec": {"replicas": number}})
    at_rest(plane)
    yield "scaled " + ", ".join(f"{name} to {number}" for name, number in replicas.items())


def _drain(plane: ControlPlane, node: str) -> None:
    """Cordon a node and evict its pods, retrying as budgets require."""
    plane.request("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})

    def is_empty() -> bool:
        pods = plane.request("GET", f"{RESOURCES['Pod']}?fieldSelector=spec.nodeName%3D{node}")["items"]
        for pod in pods:
            name = pod["metadata"]["name"]
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            with suppress(RefusedError):
                plane.request("POST", f"/api/v1/{_NAMESPACED}/pods/{name}/eviction", eviction)
        return not pods

    until(is_empty, f"{node} without pods")
    at_rest(plane)


def _cpu(number: int) -> int:
    """Uneven nodes."""
    return (4, 6, 8)[number % 3]


def _node(name: str, cpu: int) -> Object:
    amounts = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "40"}
    labels, annotations = {"kubernetes.io/hostname": name}, {"kwok.x-k8s.io/node": "fake"}
    return {
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _deployment(name: str, priority: str, cpu: int) -> Object:
    requests = {"cpu": f"{cpu}m", "memory": f"{cpu}Mi"}
    labels = {"app": name}
    pod = {
        "priorityClassName": priority,
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": f"{name}:1", "resources": {"requests": requests}}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}
