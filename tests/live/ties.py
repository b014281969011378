"""Random scenarios in which pods of equal priority and start time are interchangeable victims."""

from __future__ import annotations

from random import Random

from tests.live import cluster
from tests.live.plane import ControlPlane, Object

NAMESPACE = "default"
START = "2026-11-22T10:00:00Z"
LOW, HIGH = 10, 1000
_NODE_CPU = 4000
_APPS = ("web", "db", "batch")


def tie_scenario(random: Random) -> Object:
    """Nodes full of equal pods, budgets for some of them, later changes, and an incoming pod.

    ``later`` are pods that are ``touched``, ``removed`` and ``added``, in an order that no list shows afterwards.
    """
    sizes = random.choice([(500,), (1000,), (500, 1000), (500, 1000, 1500)])
    objects: list[Object] = []
    pods: list[Object] = []
    for node in [f"node-{number}" for number in range(random.choice([1, 1, 2, 3]))]:
        objects.append(_node(node))
        free = _NODE_CPU
        while (size := random.choice(sizes)) <= free:
            pods.append(_pod(f"p{len(pods):03}-{random.randrange(1000):03}", node, size, random.choice(_APPS)))
            free -= size
    objects += [_budget(app, random.choice([0, 0, 1, 2])) for app in _APPS if random.random() < 0.4]
    random.shuffle(pods)
    leaving = random.sample(pods, random.choice([0, 1, 2]))
    later = [("touch", pod) for pod in pods if pod not in leaving and random.random() < 0.5]
    later += [("remove", pod) for pod in leaving]
    random.shuffle(later)
    # Replacements of the removed ones.
    for number, pod in enumerate(leaving):
        name = f"q{number}-{random.randrange(1000):03}"
        later.append(("add", _pod(name, pod["spec"]["nodeName"], _cpu(pod), random.choice(_APPS))))
    size = random.choice([500, 1000, 1500, 2000, 2500])
    return {"objects": objects, "pods": pods, "later": later, "pod": _pod("incoming", "", size, "new", HIGH)}


def play_ties(plane: ControlPlane, scenario: Object) -> None:
    """Create the scenario's objects, and make the changes that shuffle the scheduler's lists of pods."""
    for document in (*scenario["objects"], *scenario["pods"]):
        cluster.create(plane, document)
    for what, pod in scenario["later"]:
        if what == "touch":
            cluster.touch(plane, pod)
        elif what == "remove":
            name = pod["metadata"]["name"]
            plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}?gracePeriodSeconds=0")
        else:
            cluster.create(plane, pod)


def _node(name: str) -> Object:
    amounts = {"cpu": f"{_NODE_CPU}m", "memory": "64Gi", "pods": "50"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _pod(name: str, node: str, cpu: int, app: str, priority: int = LOW) -> Object:
    containers = [{"name": "main", "image": "main:1", "resources": {"requests": {"cpu": f"{cpu}m"}}}]
    spec = {
        "priorityClassName": cluster.priority_class(priority),
        "terminationGracePeriodSeconds": 3600,
        "containers": containers,
        **({"nodeName": node} if node else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}},
        "spec": spec,
        "status": {"phase": "Running", "startTime": START} if node else {},
    }


def _cpu(pod: Object) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))


def _budget(app: str, allowed: int) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{app}", "namespace": NAMESPACE},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": allowed + 1,
            "desiredHealthy": 1,
            "expectedPods": allowed + 1,
            "observedGeneration": 1,
        },
    }
