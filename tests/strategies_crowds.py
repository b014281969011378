"""Crowded nodes with everything that affects victims: replicas that start together, budgets, ports, volumes.

There are more pods on a node than Go's insertion sort handles, so that equal ones change their order. Built from a
seed, because Hypothesis is slow to draw some hundred pods one by one.
"""

from __future__ import annotations

import random
from typing import Any

from tests.strategies import APPS, EXTENDED, HOSTNAME, NAMESPACE, NAMESPACES, STARTS, ZONE

Object = dict[str, Any]
_PORTS = (80, 443)
_DRIVER = "disk.example.com"


def crowded_scenario(seed: int) -> Object:
    """The scenario of one seed."""
    chance = random.Random(seed)
    features = {
        name for name in ("ports", "volumes", "extended", "affinity", "spread", "startless") if chance.random() < 0.3
    }
    objects = [*NAMESPACES]
    count = chance.randrange(1, 4)
    for index in range(count):
        node = f"n{index}"
        objects += _node(chance, node, index)
        objects += [_running(chance, node, number, features, objects) for number in range(chance.randrange(8, 36))]
    objects += [_budget(chance, number) for number in range(chance.randrange(4))]
    for number in range(chance.randrange(3)):
        objects.append(_nominated(chance, number, count, features, objects))
    pod = _pod(chance, "incoming", features, objects, is_wanting=True)
    pod["spec"] |= {"priority": chance.choice((50, 1000))}
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = f"{chance.randrange(1, 9)}"
    return {"name": f"crowd {seed}", "objects": objects, "pod": pod, "queued": chance.random() < 0.7}


def _node(chance: random.Random, name: str, index: int) -> list[Object]:
    offers = {"cpu": "8", "memory": "16Gi", "pods": chance.choice(("110", "30")), EXTENDED: chance.choice(("0", "4"))}
    labels = {HOSTNAME: name, ZONE: f"z{index % 2}"}
    csi_node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": _DRIVER, "nodeID": name, "allocatable": {"count": chance.choice((1, 3, 20))}}]},
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": offers, "capacity": offers},
    }
    return [node, csi_node] if chance.random() < 0.8 else [node]


def _running(chance: random.Random, node: str, number: int, features: set[str], objects: list[Object]) -> Object:
    pod = _pod(chance, f"{node}-{number}", features, objects, is_wanting=chance.random() < 0.2)
    pod["spec"] |= {"nodeName": node, "priority": chance.choice((-10, 0, 0, 0, 100))}
    pod["status"] = {"phase": "Running"}
    if "startless" not in features or chance.random() < 0.9:
        pod["status"]["startTime"] = chance.choice(STARTS[:3])
    pod["metadata"]["resourceVersion"] = str(chance.randrange(10**6))
    if chance.random() < 0.05:
        pod["metadata"]["deletionTimestamp"] = "2026-11-20T00:00:00Z"
    return pod


def _nominated(chance: random.Random, number: int, nodes: int, features: set[str], objects: list[Object]) -> Object:
    pod = _pod(chance, f"nominated-{number}", features, objects, is_wanting=chance.random() < 0.4)
    pod["spec"]["priority"] = chance.choice((0, 50, 1000, 5000))
    pod["status"] = {"phase": "Pending", "nominatedNodeName": f"n{chance.randrange(nodes)}"}
    return pod


def _pod(chance: random.Random, name: str, features: set[str], objects: list[Object], *, is_wanting: bool) -> Object:
    """A pod; demanding ones use the features."""
    app = chance.choice(APPS)
    requests = {"cpu": chance.choice(("50m", "100m", "250m", "500m")), "memory": chance.choice(("128Mi", "512Mi"))}
    container: Object = {"name": "c0", "image": "img0", "resources": {"requests": requests}}
    spec: Object = {"schedulerName": "default-scheduler", "containers": [container]}
    if is_wanting and "ports" in features:
        addresses = ("", "", "10.0.0.1", "10.0.0.2")
        ports = [
            {"containerPort": 80, "hostPort": port, "protocol": "TCP", "hostIP": chance.choice(addresses)}
            for port in chance.choices(_PORTS, k=chance.choice((1, 1, 2)))
        ]
        if chance.random() < 0.3:
            spec["initContainers"] = [{"name": "sidecar", "image": "img1", "restartPolicy": "Always", "ports": ports}]
        else:
            container["ports"] = ports
    if is_wanting and "extended" in features:
        requests[EXTENDED] = str(chance.choice((1, 2)))
    if is_wanting and "volumes" in features:
        # Sometimes one that another pod uses as well.
        claim = "shared" if chance.random() < 0.15 else f"claim-{name}"
        if not any(each["metadata"]["name"] == claim for each in objects):
            objects += _storage(chance, claim)
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": chance.choice((HOSTNAME, ZONE))}
    if is_wanting and "affinity" in features:
        kind = chance.choice(("podAntiAffinity", "podAntiAffinity", "podAffinity"))
        spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term] * chance.choice((1, 1, 2))}}
    if is_wanting and "spread" in features:
        spread = {"maxSkew": chance.choice((1, 5)), "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [term | spread]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "labels": {"app": app}},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _storage(chance: random.Random, name: str) -> list[Object]:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"accessModes": [chance.choice(("ReadWriteOnce", "ReadWriteOncePod"))], "volumeName": f"pv-{name}"},
        "status": {"phase": "Bound"},
    }
    spec: Object = {
        "capacity": {"storage": "1Gi"},
        "accessModes": claim["spec"]["accessModes"],
        "claimRef": {"name": name, "namespace": NAMESPACE, "uid": name},
        "csi": {"driver": _DRIVER, "volumeHandle": name},
    }
    if chance.random() < 0.3:
        zone = {"key": ZONE, "operator": "In", "values": [f"z{chance.randrange(2)}"]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"}, "spec": spec}
    return [claim, volume | {"status": {"phase": "Bound"}}]


def _budget(chance: random.Random, number: int) -> Object:
    selector = chance.choice(({"matchLabels": {"app": chance.choice(APPS)}}, {"matchExpressions": [_ANY_APP]}))
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{number}", "namespace": NAMESPACE},
        "spec": {"selector": selector, "minAvailable": 1},
        "status": {
            "disruptionsAllowed": chance.choice((0, 1, 4)),
            "currentHealthy": 2,
            "desiredHealthy": 1,
            "expectedPods": 2,
        },
    }


_ANY_APP = {"key": "app", "operator": "Exists"}
