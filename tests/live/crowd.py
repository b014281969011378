"""A full cluster of many nodes and workloads, and a rollout of 30 to 45 replicas that needs many evictions."""

from __future__ import annotations

from random import Random

from tests.live.plane import Object

NAMESPACE = "crowd"
REPLICAS = (30, 45)
_NODES, _APPS = 32, 12
_CLASSES = {"batch": 10, "low": 100, "mid": 500, "high": 1000}


def crowd(random: Random) -> list[Object]:
    """Nodes of uneven sizes; workloads, the n-th of which requests 1/n of the first one's; ``web``.

    Many pods of a workload are created in one second, so that they are equal.
    """
    nodes = [_node(number, random.choice((4, 4, 8, 8, 16))) for number in range(1, _NODES + 1)]
    room = sum(int(node["status"]["allocatable"]["cpu"]) for node in nodes) * 1000
    parts = [1 / number for number in range(1, _APPS + 1)]
    apps = []
    for number, part in enumerate(parts):
        cpu = random.choice((250, 500, 500, 1000, 1000, 2000))
        replicas = max(1, int(room * part / sum(parts) / cpu))
        name, grace = random.choice(("batch", "low", "low", "mid", "mid")), random.choice((2, 2, 3, 5))
        apps.append(_deployment(f"app-{number:02}", replicas, cpu, name, grace))
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in _CLASSES.items()
    ]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return [namespace, *classes, *nodes, web(REPLICAS[0], 1000), *apps]


def web(replicas: int, cpu: int) -> Object:
    """The workload that rolls out, with ``cpu`` milli-CPU per pod."""
    return _deployment("web", replicas, cpu, "high", 2)


def _node(number: int, cpu: int) -> Object:
    name, amounts = f"gp-{number:03}", {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "60"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _deployment(name: str, replicas: int, cpu: int, priority_class: str, grace_seconds: int) -> Object:
    requests = {"cpu": f"{cpu}m", "memory": f"{2 * cpu}Mi"}
    pod = {
        "priorityClassName": priority_class,
        "terminationGracePeriodSeconds": grace_seconds,
        "containers": [{"name": "main", "image": f"{name}:1", "resources": {"requests": requests}}],
    }
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
