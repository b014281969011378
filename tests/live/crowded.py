"""Random clusters that are almost full, and a queue of pods in front of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from tests.live.plane import Object

CLASSES = {"low": 10, "mid": 100, "high": 1000}
# The pods of this class wait for room.
PATIENT = "patient"
PATIENT_PRIORITY = 500
MAX_PENDING = 40

_WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "Pod")
_TAINT = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
_TOLERATION = {"key": "dedicated", "operator": "Exists"}
_DISKS, _ZONES = ("hdd", "ssd"), ("a", "b", "c")
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
# Milli-CPU that are seldom multiples of each other, so that few nodes and victims are equal.
_SIZES = (210, 340, 450, 620, 780, 950, 1300, 1750)
_TOO_LARGE = 90_000


class Kind(NamedTuple):
    """What is drawn: the part of a node that running pods leave free, and the priority classes of pods."""

    free: Sequence[float]
    running: Sequence[str]
    pending: Sequence[str]


# Few of the pending pods can evict others: after some evictions, their end depends on how fast the components are.
EVICTING = Kind(
    (0.1, 0.2, 0.3, 0.4, 0.6),
    ("low", "mid", "mid", "high"),
    ("low", "low", "low", "mid", PATIENT, PATIENT, PATIENT, "high"),
)
# Nothing happens after the first attempt of each pod.
REJECTED = Kind((0.0, 0.05, 0.1), ("mid", "high"), ("low", PATIENT))


class Running(NamedTuple):
    """A workload, and the node of each of its pods."""

    workload: Object
    nodes: list[str]


@dataclass
class Queue:
    """A cluster, and the workloads whose pods are in its queue, in the order of their creation.

    ``later`` is a node that is added after the scheduler has rejected pods.
    """

    namespace: str
    nodes: list[Object] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)
    budgets: list[Object] = field(default_factory=list)
    pending: list[Object] = field(default_factory=list)
    later: Object = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of pending pods."""
        return sum(map(pods_of, self.pending))


def pods_of(workload: Object) -> int:
    """How many pods a new workload has."""
    return int(workload["spec"].get("replicas", 1))


def drawn(random: Random, namespace: str, size: int, kind: Kind) -> Queue:
    """An almost full cluster of a kind, with ``size`` pending pods."""
    queue = Queue(namespace)
    names = [f"{namespace}-n{number}" for number in range(random.randint(3, 8) + 1)]
    nodes = [_node(random, name) for name in names]
    queue.nodes, queue.later = nodes[:-1], nodes[-1]
    free = {name(node): _capacity(node) * (1 - random.choice(kind.free)) for node in queue.nodes}
    while free:
        _run(random, queue, free, kind.running)
    for running in queue.running:
        if running.workload["kind"] != "Pod" and random.random() < 0.4:
            queue.budgets.append(_budget(random, running.workload))
    while queue.size < size:
        most = min(size - queue.size, 8)
        queue.pending.append(_workload(random, queue, f"new-{len(queue.pending)}", most, kind.pending))
    return queue


def name(document: Object) -> str:
    """The object's name."""
    return str(document["metadata"]["name"])


def _node(random: Random, node_name: str) -> Object:
    cpu = random.choice((2, 3, 4, 4, 6, 8)) * 1000 - random.randrange(0, 400, 10)
    memory = cpu * random.randint(3, 5)
    amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": "60"}
    labels = {_HOST: node_name, _ZONE: random.choice(_ZONES), "disk": random.choice(_DISKS)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node_name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": [_TAINT]} if random.random() < 0.15 else {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _capacity(node: Object) -> int:
    return _milli(node["status"]["allocatable"]["cpu"])


def _milli(text: str) -> int:
    return int(text.removesuffix("m"))


def _run(random: Random, queue: Queue, free: dict[str, float], classes: Sequence[str]) -> None:
    """Add a running workload where there is room, and forget the nodes that are full."""
    cpu = random.choice(_SIZES)
    for each in [each for each, left in free.items() if left < cpu]:
        # Some small remainder is left on every node.
        del free[each]
    placed: Counter[str] = Counter()
    for _ in range(random.choice((1, 1, 2, 3, 4))):
        fitting = [each for each, left in free.items() if left >= cpu]
        if fitting:
            node = random.choice(fitting)
            free[node] -= cpu
            placed[node] += 1
    if not placed:
        return
    nodes = list(placed.elements())
    spec = _pod_spec(random, cpu, random.choice(classes))
    if any(each["spec"] for each in queue.nodes if name(each) in placed):
        spec["tolerations"] = [_TOLERATION]
    kind = "Pod" if len(nodes) == 1 and random.random() < 0.5 else random.choice(_WORKLOADS[:-1])
    queue.running.append(Running(_owned(kind, queue.namespace, f"run-{len(queue.running)}", spec, len(nodes)), nodes))


def _workload(random: Random, queue: Queue, workload_name: str, most: int, classes: Sequence[str]) -> Object:
    kind = random.choice((*_WORKLOADS, "Pod"))
    replicas = 1 if kind == "Pod" else random.randint(1, most)
    spec = _pod_spec(random, random.choice(_SIZES), random.choice(classes))
    if random.random() < 0.25:
        spec["nodeSelector"] = random.choice(({"disk": random.choice(_DISKS)}, {_ZONE: random.choice(_ZONES)}))
    if random.random() < 0.3:
        spec["tolerations"] = [_TOLERATION]
    selector = {"matchLabels": {"app": workload_name}}
    if random.random() < 0.15:
        term = {"labelSelector": selector, "topologyKey": _HOST}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif random.random() < 0.1:
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": _HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        ]
    if random.random() < 0.1:
        spec["containers"][0]["resources"]["requests"]["cpu"] = f"{_TOO_LARGE}m"
    if kind == "Pod" and random.random() < 0.1:
        spec["schedulingGates"] = [{"name": "test.example/gate"}]
    return _owned(kind, queue.namespace, workload_name, spec, replicas)


def _pod_spec(random: Random, cpu: int, priority_class: str) -> Object:
    requests = {"cpu": f"{cpu}m", "memory": f"{cpu * random.randint(1, 3)}Mi"}
    return {
        "priorityClassName": priority_class,
        "terminationGracePeriodSeconds": random.choice((3, 3, 4, 5)),
        "containers": [{"name": "main", "image": "main:1", "resources": {"requests": requests}}],
    }


def _owned(kind: str, namespace: str, workload_name: str, pod_spec: Object, replicas: int) -> Object:
    """The workload of these pods, or the pod itself."""
    labels = {"app": workload_name}
    metadata = {"name": workload_name, "namespace": namespace}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": {**metadata, "labels": labels}, "spec": pod_spec}
    spec: Object = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec},
    }
    if kind == "StatefulSet":
        # Its controller creates all pods at once, before the scheduler starts.
        spec |= {"serviceName": "none", "podManagementPolicy": "Parallel"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _budget(random: Random, workload: Object) -> Object:
    replicas = workload["spec"]["replicas"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": workload["metadata"],
        "spec": {"minAvailable": random.randint(0, replicas), "selector": workload["spec"]["selector"]},
    }
