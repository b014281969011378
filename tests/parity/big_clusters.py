"""Full clusters of more than a hundred nodes, so that the search for candidates stops early."""

from __future__ import annotations

import json
import random
from typing import Any

Object = dict[str, Any]

STARTS = ("2026-11-02T00:00:00Z", "2026-11-02T07:00:00Z", "2026-11-09T00:00:00Z")


def big_scenario(seed: int) -> Object:
    """A scenario of 150 to 400 nodes; the seed decides on how many of them preemption helps, and at what cost."""
    rng = random.Random(seed)
    size = rng.randint(150, 400)
    objects = [_node(rng, index) for index in range(size)]
    # If few help, or few without violations, the search goes far; with many it ends early.
    helpful, protected = rng.choice([0.05, 0.3, 0.7, 1.0]), rng.choice([0.0, 0.1, 0.9, 1.0])
    number = 0
    for index in range(size):
        movable = rng.random() < helpful
        app = "web" if rng.random() < protected else "batch"
        for _ in range(rng.choice([1, 1, 2])):
            objects.append(_pod(rng, number, f"n{index}", app, movable))
            number += 1
    selector = {"matchLabels": {"app": "web"}}
    objects.append(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": selector},
            "status": {"disruptionsAllowed": rng.choice([0, 0, 1]), "expectedPods": 2, "currentHealthy": 2},
        }
    )
    incoming = _incoming(rng.choice(["1", "1500m"]))
    scenario: Object = {"name": f"big-{seed}", "objects": objects, "pod": incoming}
    if rng.random() < 0.5:
        scenario["config"] = _search_of(rng.choice([1, 5, 30]), rng.choice([1, 7, 50]))
    return scenario


def few_nodes(size: int, wanted: int, parallelism: int) -> Object:
    """A scenario of full nodes, each slightly worse than the previous one; the search ends with some of them."""
    names = [f"n{index}" for index in range(size)]
    objects = [_plain_node(name) for name in names]
    for index, name in enumerate(names):
        containers = [{"name": "c0", "image": "img0", "resources": {"requests": {"cpu": "2"}}}]
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"p{index}", "namespace": "default", "uid": f"uid-{index}"},
                "spec": {"priority": index, "nodeName": name, "containers": containers},
                "status": {"phase": "Running", "startTime": STARTS[0]},
            }
        )
    config = json.dumps(json.loads(_search_of(0, wanted)) | {"parallelism": parallelism})
    return {"name": f"few-{size}", "objects": objects, "pod": _incoming("2"), "config": config}


def free_scenario(seed: int, parallelism: int) -> Object:
    """A scenario of nodes with free capacity, the first with the most: not all of them are scored."""
    rng = random.Random(seed)
    objects = [_plain_node("n0", "8")]
    objects += [_plain_node(f"n{index}", rng.choice(["2", "4"])) for index in range(1, rng.randint(130, 200))]
    config = json.dumps(json.loads(_search_of(10, 100)) | {"parallelism": parallelism})
    return {"name": f"free-{seed}", "objects": objects, "pod": _incoming("1"), "config": config}


def _incoming(cpu: str) -> Object:
    containers = [{"name": "c0", "image": "img0", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "metadata": {"name": "incoming", "namespace": "default", "uid": "uid-incoming"},
        "spec": {"priority": 1000, "containers": containers},
    }


def _plain_node(name: str, cpu: str = "2") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "110"}},
    }


def _node(rng: random.Random, index: int) -> Object:
    labels = {"kubernetes.io/hostname": f"n{index}"}
    if rng.random() < 0.8:
        labels["topology.kubernetes.io/zone"] = rng.choice(["z0", "z1", "z2"])
    node: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{index}", "labels": labels},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}},
    }
    if rng.random() < 0.1:
        node["spec"] = {"unschedulable": True}
    return node


def _pod(rng: random.Random, number: int, node: str, app: str, movable: bool) -> Object:
    containers = [{"name": "c0", "image": "img0", "resources": {"requests": {"cpu": rng.choice(["1500m", "1800m"])}}}]
    priority = rng.choice([0, 10, 10, 100]) if movable else 5000
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default", "uid": f"uid-{number}", "labels": {"app": app}},
        "spec": {"priority": priority, "nodeName": node, "containers": containers},
        "status": {"phase": "Running", "startTime": rng.choice(STARTS)},
    }


def _search_of(percentage: int, absolute: int) -> str:
    arguments = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
    profile = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [{"name": "DefaultPreemption", "args": arguments}],
    }
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
        }
    )
