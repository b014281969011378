"""Write the objects of a scenario to an API server, read them back, and delete them."""

from __future__ import annotations

import copy
from contextlib import suppress
from random import Random
from typing import Any

from tests.live.plane import ControlPlane, Object, RefusedError
from tests.strategies import NAMESPACES

# In the order in which the scheduler must see them.
RESOURCES = {
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "Service": "/api/v1/services",
    "ReplicationController": "/api/v1/replicationcontrollers",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "Pod": "/api/v1/pods",
}
PRIORITIES = (-10, 0, 10, 50, 100, 500, 1000, 2000, 5000)
# Namespace names in alphabetical order, the order of every list.
NAMES = tuple(each["metadata"]["name"] for each in NAMESPACES)
# Kinds that stay from one scenario to the next.
KEPT = ("PriorityClass", "Namespace")


def priority_class(priority: int, policy: str | None = None) -> str:
    """The name of the class with that priority."""
    return f"p{priority}{'-never' if policy == 'Never' else ''}".replace("p-", "minus-")


def prepare(plane: ControlPlane) -> None:
    """Create what all scenarios share."""
    for priority in PRIORITIES:
        for policy in ("PreemptLowerPriority", "Never"):
            document = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": priority_class(priority, policy)},
                "value": priority,
                "preemptionPolicy": policy,
            }
            plane.request("POST", RESOURCES["PriorityClass"], document)
    for namespace in NAMESPACES:
        path = f"{RESOURCES['Namespace']}/{namespace['metadata']['name']}"
        if namespace["metadata"]["name"] == "default":
            plane.request("PATCH", path, {"metadata": {"labels": namespace["metadata"]["labels"]}})
        else:
            plane.request("POST", RESOURCES["Namespace"], namespace)


def fill(plane: ControlPlane, objects: list[Object], shuffled: Random | None = None) -> None:
    """Create the objects with their statuses, one after the other; those that the API server rejects are omitted.

    A pod is complete before the next one is created: the scheduler moves a changed pod behind the others of its node.
    With ``shuffled``, no list is in the scheduler's order: pods are created in random order, and some change later.
    """
    for kind in RESOURCES:
        if kind not in KEPT and kind != "Pod":
            for document in objects:
                if document["kind"] == kind:
                    create(plane, document)
    pods = [live_pod(each) for each in sorted((each for each in objects if each["kind"] == "Pod"), key=_place)]
    if shuffled is not None:
        shuffled.shuffle(pods)
    for pod in pods:
        create(plane, pod)
    for pod in shuffled.sample(pods, len(pods) // 2) if shuffled is not None else ():
        touch(plane, pod)


def touch(plane: ControlPlane, pod: Object) -> None:
    """Change a created pod without affecting decisions; rejected pods are skipped."""
    with suppress(RefusedError):
        plane.request("PATCH", f"{_path(pod)}/{pod['metadata']['name']}", {"metadata": {"labels": {"touched": "yes"}}})


def _place(pod: Object) -> tuple[int, str]:
    return NAMES.index(pod["metadata"]["namespace"]), pod["metadata"]["name"]


def live_pod(pod: Object) -> Object:
    """The pod as a user would create it: with a priority class, and without fields that only a running cluster adds."""
    pod = copy.deepcopy(pod)
    spec, metadata = pod["spec"], pod["metadata"]
    spec["priorityClassName"] = priority_class(spec.pop("priority", 0), spec.pop("preemptionPolicy", None))
    spec.pop("overhead", None)
    spec["terminationGracePeriodSeconds"] = 3600
    for container in (*spec["containers"], *spec.get("initContainers", [])):
        container.pop("restartPolicyRules", None)
    # Names in numerical order, because lists are in name order.
    name = metadata["name"]
    if name.startswith("p") and name[1:].isdigit():
        metadata["name"] = f"p{int(name[1:]):03}"
    metadata.pop("uid")
    metadata.pop("ownerReferences", None)
    return pod


def _path(document: Object) -> str:
    path = RESOURCES[document["kind"]]
    namespace = document["metadata"].get("namespace")
    if not namespace:
        return path
    group, _, plural = path.rpartition("/")
    return f"{group}/namespaces/{namespace}/{plural}"


def create(plane: ControlPlane, document: Object) -> None:
    """Create one object with its status; do nothing if the API server rejects it."""
    document = copy.deepcopy(document)
    metadata = document["metadata"]
    is_leaving = metadata.pop("deletionTimestamp", None) is not None
    metadata.pop("uid", None)
    status = document.pop("status", {})
    if document["kind"] == "Node":
        document["status"] = status
    path = _path(document)
    try:
        plane.request("POST", path, completed(document))
    except RefusedError:
        return
    path = f"{path}/{metadata['name']}"
    if document["kind"] in ("Pod", "PodDisruptionBudget"):
        _write_status(plane, path, status)
    if is_leaving:
        plane.request("DELETE", path)


def _write_status(plane: ControlPlane, path: str, status: Object) -> None:
    try:
        plane.request("PATCH", f"{path}/status", {"status": status})
    except RefusedError:
        # A kubelet's resize status must match the containers; anything else is fine.
        plain = {key: status[key] for key in ("phase", "startTime") if key in status}
        plane.request("PATCH", f"{path}/status", {"status": plain})


def completed(document: Object) -> Object:
    """Add what the API server requires and schedulers ignore."""
    spec: Any = document.get("spec", {})
    if document["kind"] == "Node":
        for taint in spec.get("taints", []):
            # No one evicts here, and the scheduler does not distinguish these two.
            taint["effect"] = taint["effect"].replace("NoExecute", "NoSchedule")
        spec["taints"] = list({(each["key"], each["effect"]): each for each in spec.get("taints", [])}.values())
    if document["kind"] == "Service":
        spec["ports"] = [{"port": 80}]
    if document["kind"] in ("ReplicationController", "ReplicaSet", "StatefulSet"):
        selected = spec["selector"].get("matchLabels", spec["selector"])
        containers = [{"name": "c0", "image": "img0"}]
        spec["template"] = {"metadata": {"labels": selected}, "spec": {"containers": containers}}
        if document["kind"] == "StatefulSet":
            spec["serviceName"] = "none"
    return document


def clear(plane: ControlPlane) -> None:
    """Delete everything except what all scenarios share."""
    for kind, path in reversed(RESOURCES.items()):
        if kind in KEPT:
            continue
        if kind == "Node":
            plane.request("DELETE", path)
            continue
        group, _, plural = path.rpartition("/")
        for namespace in NAMES:
            for item in plane.request("GET", f"{group}/namespaces/{namespace}/{plural}")["items"]:
                name = item["metadata"]["name"]
                if name != "kubernetes":
                    grace = "?gracePeriodSeconds=0" if kind == "Pod" else ""
                    plane.request("DELETE", f"{group}/namespaces/{namespace}/{plural}/{name}{grace}")
