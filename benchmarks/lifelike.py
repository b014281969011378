"""Seeded clusters like real ones: replicas that start in the same second, big and small apps, and much more.

App sizes follow Zipf's law, and a quarter of an app's replicas start in one second, as in a rollout. There are seven
priorities, pods without requests, DaemonSets, budgets that select an app or an entire namespace, terminating pods, and
nodes of several sizes. ``Feature`` names optional features, each of which a tenth of the apps or nodes has.
``preemptor`` is a pod that must preempt there, with a dry run on every node; ``waiting`` are pending pods of several
kinds: some fit, some preempt, and some fit on no node.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

Feature = Literal["affinity", "volumes", "ports", "nominated", "extended"]
FEATURES: tuple[Feature, ...] = get_args(Feature)
Object = dict[str, Any]

_SEED = 20261123
_NUM_APPS = 600
_NUM_BUDGETS = 200
_PRIORITIES = (-10, 0, 0, 0, 100, 1000, 5000, 10_000, 50_000)
_SHAPES = (("2", "4Gi"), ("250m", "512Mi"), ("1", "2Gi"), ("100m", "128Mi"), None, ("4", "8Gi"), ("500m", "1Gi"))
_WAITING_CPUS = ("500m", "4", "30", "50", "60", "100")
_DAEMONS = ("network", "logs", "metrics")
_GPU = "example.com/gpu"
_PORT = 8443
_TIME = "2026-11-{:02d}T{:02d}:{:02d}:{:02d}Z"


class _App(NamedTuple):
    number: int
    namespace: str
    priority: int
    shape: tuple[str, str] | None
    starts: Sequence[str]

    @property
    def name(self) -> str:
        return f"app-{self.number:03d}"

    @property
    def is_special(self) -> bool:
        """Return whether it is one of those that have the cluster's features."""
        return self.number % 10 == 3


def write_lifelike(path: Path, *, nodes: int, pods_per_node: int, features: Sequence[Feature] = ()) -> int:
    """Write a List to ``path``, and return the number of pods on its nodes."""
    chance = random.Random(_SEED)
    count = 0
    with path.open("w", encoding="utf-8") as file:
        file.write('{"apiVersion":"v1","items":[')
        for index, item in enumerate(_items(chance, nodes, pods_per_node, frozenset(features))):
            count += item["kind"] == "Pod" and "nodeName" in item["spec"]
            file.write(f"{',' if index else ''}{json.dumps(item, separators=(',', ':'))}")
        file.write('],"kind":"List"}')
    return count


def preemptor(features: Sequence[Feature] = ()) -> Object:
    """Return a pod that fits on no node without evictions, and that uses the cluster's ``features``."""
    container: Object = {"name": "main", "resources": {"requests": {"cpu": "55", "memory": "64Gi"}}}
    spec: Object = {"priority": 100_000, "schedulerName": "default-scheduler", "containers": [container]}
    if "affinity" in features:
        spec |= _placement("app-013", max_skew=100)
    if "volumes" in features:
        spec |= _volumes("preemptor")
    if "ports" in features:
        container["ports"] = [{"containerPort": _PORT, "hostPort": _PORT}]
    if "extended" in features:
        container["resources"]["requests"][_GPU] = "2"
    metadata = {"name": "preemptor", "namespace": "team-03", "uid": "preemptor", "labels": {"app": "app-013"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def waiting(count: int, kinds: int) -> Iterator[Object]:
    """Return pending pods of several kinds, each with a different priority, size or app."""
    for index in range(count):
        kind = index % kinds
        app, cpu = f"waiting-{kind:03d}", _WAITING_CPUS[kind % len(_WAITING_CPUS)]
        pod = _pod(f"{app}-{index:05d}", f"team-{kind % 20:02d}", 0, _PRIORITIES[kind % 9] + kind, (cpu, "4Gi"), "")
        del pod["spec"]["nodeName"]
        pod["metadata"] |= {
            "labels": {"app": app},
            "creationTimestamp": _TIME.format(21, 11, index // 60 % 60, index % 60),
        }
        pod["status"] = {"phase": "Pending"}
        yield pod


def _items(chance: random.Random, nodes: int, pods_per_node: int, features: frozenset[Feature]) -> Iterator[Object]:
    apps = [_app(chance, number) for number in range(_NUM_APPS)]
    yield from (_node(index, features) for index in range(nodes))
    yield from (_budget(chance, app) for app in apps[: _NUM_BUDGETS - 2])
    yield from (_budget_of_namespace(f"team-{number:02d}") for number in range(2))
    if "volumes" in features:
        yield from _storage("preemptor", "team-03", 0)
    weights = list(accumulate(1 / (number + 1) for number in range(_NUM_APPS)))
    for index in range(nodes):
        for name in _DAEMONS:
            yield _daemon(name, index)
        drawn = chance.choices(apps, cum_weights=weights, k=pods_per_node - len(_DAEMONS))
        # Two pods on a node cannot use the same port.
        holder = next((place for place, app in enumerate(drawn) if app.is_special), None)
        for place, app in enumerate(drawn):
            yield from _replica(chance, app, index, features if place == holder else features - {"ports"})
        if "nominated" in features and index % 10 == 0:
            yield _nominated(index)


def _app(chance: random.Random, number: int) -> _App:
    start = (chance.randrange(1, 21), chance.randrange(24), chance.randrange(60))
    starts = [_TIME.format(*start, 10 * batch + chance.randrange(10)) for batch in range(4)]
    return _App(number, f"team-{number % 20:02d}", _PRIORITIES[number % 9], _SHAPES[number % 7], starts)


def _replica(chance: random.Random, app: _App, node: int, features: frozenset[Feature]) -> Iterator[Object]:
    name = f"{app.name}-{chance.randrange(16**8):08x}"
    pod = _pod(name, app.namespace, node, app.priority, app.shape, chance.choice(app.starts))
    pod["metadata"] |= {
        "labels": {"app": app.name, "pod-template-hash": "6d4cf56db6"},
        "ownerReferences": [_owner("ReplicaSet", f"{app.name}-6d4cf56db6")],
        "resourceVersion": str(chance.randrange(10**8)),
    }
    if chance.random() < 0.01:
        pod["metadata"] |= {"deletionTimestamp": "2026-11-21T12:00:30Z", "deletionGracePeriodSeconds": 30}
    if app.is_special:
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        if "affinity" in features:
            spec |= _placement(app.name, max_skew=5)
        if "volumes" in features:
            yield from _storage(name, app.namespace, node % 3)
            spec |= _volumes(name)
        if "ports" in features:
            container["ports"] = [{"containerPort": _PORT, "hostPort": _PORT}]
        if "extended" in features:
            requests = {**container.get("resources", {}).get("requests", {}), _GPU: "1"}
            container["resources"] = {"requests": requests, "limits": {_GPU: "1"}}
    yield pod


def _pod(
    name: str, namespace: str, node: int, priority: int, shape: tuple[str, str] | None, start: str
) -> dict[str, Any]:
    container: Object = {"name": "main"}
    if shape is not None:
        container["resources"] = {"requests": {"cpu": shape[0], "memory": shape[1]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"containers": [container], "nodeName": f"node-{node:05d}", "priority": priority},
        "status": {"phase": "Running", "startTime": start},
    }


def _daemon(name: str, node: int) -> Object:
    pod = _pod(f"{name}-{node:05d}", "kube-system", node, 2_000_001_000, ("100m", "128Mi"), "2026-11-01T00:00:00Z")
    pod["metadata"] |= {"labels": {"app": name}, "ownerReferences": [_owner("DaemonSet", name)]}
    return pod


def _nominated(node: int) -> Object:
    """A nominated pod with a lower or higher priority than the pod in question."""
    priority = 200_000 if node % 20 else 20_000
    pod = _pod(f"nominated-{node:05d}", "team-07", node, priority, ("2", "4Gi"), "")
    del pod["spec"]["nodeName"]
    pod["metadata"]["labels"] = {"app": "nominated"}
    pod["status"] = {"phase": "Pending", "nominatedNodeName": f"node-{node:05d}"}
    return pod


def _owner(kind: str, name: str) -> Object:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}


def _placement(app: str, *, max_skew: int) -> Object:
    """Separate from pods of the same app, and spread over zones."""
    selector = {"matchLabels": {"app": app}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    zones = {"labelSelector": selector, "maxSkew": max_skew, "topologyKey": "topology.kubernetes.io/zone"}
    return {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "topologySpreadConstraints": [zones | {"whenUnsatisfiable": "DoNotSchedule"}],
    }


def _volumes(claim: str) -> Object:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def _storage(name: str, namespace: str, zone: int) -> list[Object]:
    """A claim and the volume that it is bound to; that of the pod in question is usable anywhere."""
    size = {"storage": "10Gi"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"claim-{name}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}, "volumeName": f"pv-{name}"},
        "status": {"phase": "Bound"},
    }
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": size,
        "claimRef": {"name": name, "namespace": namespace, "uid": f"claim-{name}"},
        "csi": {"driver": "disk.example.com", "volumeHandle": name},
    }
    if name != "preemptor":
        expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [f"zone-{zone}"]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{name}"},
        "spec": spec,
        "status": {"phase": "Bound"},
    }
    return [claim, volume]


def _budget(chance: random.Random, app: _App) -> Object:
    return _budget_for(app.name, app.namespace, {"matchLabels": {"app": app.name}}, chance.choice((0, 0, 1, 2, 50)))


def _budget_of_namespace(namespace: str) -> Object:
    return _budget_for("all", namespace, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, 20)


def _budget_for(name: str, namespace: str, selector: Object, allowed: int) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"maxUnavailable": 5, "selector": selector},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 5, "desiredHealthy": 5, "expectedPods": 5},
    }


def _node(index: int, features: frozenset[Feature]) -> Object:
    name, chassis = f"node-{index:05d}", ("64", "64", "64", "66", "68")[index % 5]
    offers = {"cpu": chassis, "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    if "extended" in features:
        offers[_GPU] = "8"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{index % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]} if index % 50 == 7 else {},
        "status": {
            "allocatable": offers,
            "capacity": dict(offers),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }
