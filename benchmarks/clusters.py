"""Seeded clusters of any size, in kubectl's format, to load and analyze in benchmarks.

The variants other than ``plain`` are ``budgets`` (every app has a PodDisruptionBudget), ``affinity`` (in addition, a
third of the apps separate their pods by required anti-affinity and spread them over zones) and ``volumes`` (in
addition, a tenth of the apps have a claim per pod, bound to a volume in the node's zone). ``preemptor`` is a pod that
must preempt there.

``lean`` pods have only what a scheduler reads. ``fat`` ones have everything that kubectl prints for a running pod:
environment, mounts, conditions, container statuses, managed fields; about 7 KB each with indentation.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

Style = Literal["json", "yaml"]
Flavour = Literal["plain", "budgets", "affinity", "volumes"]
FLAVOURS: tuple[Flavour, ...] = get_args(Flavour)

_SEED = 20261121
_APPS = 400
_SHAPES = (("100m", "128Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"), ("2", "4Gi"))
_PRIORITIES = ((0, "batch"), (1000, "standard"), (100000, "production"))
_TIME = "2026-11-{:02d}T{:02d}:{:02d}:{:02d}Z"


def write_cluster(
    path: Path, *, nodes: int, pods_per_node: int, style: Style, fat: bool, flavour: Flavour = "plain"
) -> int:
    """Write a List of nodes, priority classes and running pods to ``path``, and return its size in bytes."""
    chance = random.Random(_SEED)
    with path.open("w", encoding="utf-8") as file:
        begin, separator, end = _frame(style, fat)
        file.write(begin)
        for index, item in enumerate(_items(chance, nodes, pods_per_node, style, fat, flavour)):
            file.write(f"{separator if index else ''}{item}")
        file.write(end)
    return path.stat().st_size


def objects(*, nodes: int, pods_per_node: int) -> Iterator[dict[str, Any]]:
    """Yield what ``write_cluster`` writes for a fat, plain cluster."""
    for item in _items(random.Random(_SEED), nodes, pods_per_node, "json", True, "plain"):
        yield json.loads(item)


def _frame(style: Style, fat: bool) -> tuple[str, str, str]:
    if style == "yaml":
        return "apiVersion: v1\nitems:\n", "", 'kind: List\nmetadata:\n  resourceVersion: ""\n'
    if fat:
        return '{\n    "apiVersion": "v1",\n    "items": [\n', ",\n", '\n    ],\n    "kind": "List"\n}\n'
    return '{"apiVersion":"v1","items":[', ",", '],"kind":"List"}'


def preemptor(flavour: Flavour) -> dict[str, Any]:
    """Return a pod that fits on no node of a cluster with 30 pods per node until some are evicted."""
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "preemptor", "namespace": "team-01", "uid": "preemptor", "labels": {"app": "app-201"}},
        "spec": {
            "priority": 100000,
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "55", "memory": "64Gi"}}}],
        },
    }
    if flavour == "affinity":
        pod["spec"] |= _placement("app-201", max_skew=25)
    if flavour == "volumes":
        pod["spec"] |= _volumes("preemptor")
    return pod


def _items(
    chance: random.Random, nodes: int, pods_per_node: int, style: Style, fat: bool, flavour: Flavour
) -> Iterator[str]:
    for value, name in _PRIORITIES:
        priority_class = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        yield _text({**priority_class, "metadata": {"name": name}, "value": value}, style, fat)
    node, pod_of = _text(_node(), style, fat), _fat_pod if fat else _pod
    for index in range(nodes):
        yield _fill(node, {"NODE": f"node-{index:05d}", "ZONE": f"zone-{index % 3}", "VERSION": str(1000 + index)})
    for number in range(_APPS if flavour != "plain" else 0):
        yield _text(_budget(number), style, fat)
    if flavour == "volumes":
        yield from (_text(each, style, fat) for each in _storage("preemptor", 0))
    templates = {name: _text(_with(pod_of(), name), style, fat) for name in ("plain", flavour)}
    for index in range(nodes * pods_per_node):
        values = _choices(chance, index, nodes)
        app = int(values["APP"].removeprefix("app-"))
        is_special = (flavour == "affinity" and app % 3 == 0) or (flavour == "volumes" and app % 10 == 0)
        pod = templates[flavour if is_special else "plain"]
        if is_special and flavour == "volumes":
            for each in _storage(values["POD"], index % nodes % 3, values["NAMESPACE"]):
                yield _text(each, style, fat)
        if style == "yaml":
            values["CPU"] = f'"{values["CPU"]}"' if values["CPU"].isdecimal() else values["CPU"]
        yield _fill(pod, values)


def _with(pod: dict[str, Any], flavour: str) -> dict[str, Any]:
    if flavour == "affinity":
        pod["spec"] |= _placement("XAPPX", max_skew=5)
    if flavour == "volumes":
        pod["spec"] |= _volumes("XPODX")
    return pod


def _placement(app: str, *, max_skew: int) -> dict[str, Any]:
    """Separate from pods of the same app, and spread over zones."""
    selector = {"matchLabels": {"app": app}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "topologySpreadConstraints": [
            {
                "labelSelector": dict(selector),
                "maxSkew": max_skew,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
            }
        ],
    }


def _volumes(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def _storage(name: str, zone: int, namespace: str = "team-01") -> list[dict[str, Any]]:
    """A claim, and the volume in a zone that it is bound to."""
    term = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [f"zone-{zone}"]}
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
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{name}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": size,
            "claimRef": {"name": name, "namespace": namespace, "uid": f"claim-{name}"},
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
        "status": {"phase": "Bound"},
    }
    return [claim, volume]


def _budget(app: int) -> dict[str, Any]:
    allowed = app % 4
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"app-{app:03d}", "namespace": f"team-{app % 20:02d}"},
        "spec": {"maxUnavailable": 5, "selector": {"matchLabels": {"app": f"app-{app:03d}"}}},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": 5,
            "desiredHealthy": 5 - allowed,
            "expectedPods": 5,
        },
    }


def _choices(chance: random.Random, index: int, nodes: int) -> dict[str, str]:
    app = chance.randrange(_APPS)
    cpu, memory = _SHAPES[app % len(_SHAPES)]
    priority, priority_class = _PRIORITIES[app % len(_PRIORITIES)]
    return {
        "APP": f"app-{app:03d}",
        "POD": f"app-{app:03d}-{chance.randrange(16**5):05x}-{index:06d}",
        "NAMESPACE": f"team-{app % 20:02d}",
        "NODE": f"node-{index % nodes:05d}",
        "VERSION": str(100000 + index),
        "UID": f"{chance.getrandbits(32):08x}-{index:04x}-4bcd-9f00-{chance.getrandbits(48):012x}",
        "CPU": cpu,
        "MEMORY": memory,
        "CLASS": priority_class,
        "PRIORITY": str(priority),
        "TIME": _TIME.format(*(chance.randrange(low, high) for low, high in ((1, 21), (0, 24), (0, 60), (0, 60)))),
    }


def _fill(template: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"X{name}X", value)
    return template


def _text(item: dict[str, Any], style: Style, fat: bool) -> str:
    """One item as kubectl writes it in a List: keys sorted, YAML lists not indented."""
    if style == "yaml":
        text = yaml.safe_dump([item], width=1 << 20).replace("'", '"')
        for number in ("XTIMEX", "XVERSIONX"):
            text = text.replace(number, f'"{number}"')
        return text
    text = json.dumps(item, indent=4, sort_keys=True) if fat else json.dumps(item, separators=(",", ":"))
    text = text.replace('"XPRIORITYX"', "XPRIORITYX")
    return "\n".join(" " * 8 + line for line in text.splitlines()) if fat else text


def _node() -> dict[str, Any]:
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "500Gi"}
    labels = {"kubernetes.io/hostname": "XNODEX", "topology.kubernetes.io/zone": "XZONEX"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "XNODEX", "labels": labels, "resourceVersion": "XVERSIONX"},
        "spec": {},
        "status": {
            "allocatable": capacity,
            "capacity": dict(capacity),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def _pod() -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "XCPUX", "memory": "XMEMORYX"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "XPODX", "namespace": "XNAMESPACEX", "uid": "XUIDX", "labels": {"app": "XAPPX"}},
        "spec": {"containers": [container], "nodeName": "XNODEX", "priority": "XPRIORITYX"},
        "status": {"phase": "Running", "startTime": "XTIMEX"},
    }


def _fat_pod() -> dict[str, Any]:
    pod = _pod()
    container = pod["spec"]["containers"][0]
    container |= {
        "image": "registry.example/team/XAPPX:v1.2.3",
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": f"SETTING_{each}", "value": f"value-{each}"} for each in range(2)],
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "terminationMessagePath": "/dev/termination-log",
        "volumeMounts": [
            {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": True}
        ],
    }
    pod["metadata"] |= {
        "annotations": {"checksum/config": "0123456789abcdef" * 4},
        "creationTimestamp": "XTIMEX",
        "generateName": "XAPPX-",
        "labels": {"app": "XAPPX", "pod-template-hash": "6d4cf56db6", "app.kubernetes.io/part-of": "shop"},
        "managedFields": [_managed_fields("kubelet")],
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "blockOwnerDeletion": True,
                "controller": True,
                "kind": "ReplicaSet",
                "name": "XAPPX-6d4cf56db6",
                "uid": "0b5a1f0e-7a0b-4c62-9a3c-5a1f0e7a0b4c",
            }
        ],
        "resourceVersion": "XVERSIONX",
    }
    pod["spec"] |= {
        "dnsPolicy": "ClusterFirst",
        "preemptionPolicy": "PreemptLowerPriority",
        "priorityClassName": "XCLASSX",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ],
        "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": []}}],
    }
    pod["status"] |= {
        "conditions": [
            {"lastTransitionTime": "XTIMEX", "status": "True", "type": kind}
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [
            {
                "allocatedResources": {"cpu": "XCPUX", "memory": "XMEMORYX"},
                "containerID": "containerd://" + "89abcdef" * 8,
                "image": "registry.example/team/XAPPX:v1.2.3",
                "imageID": "registry.example/team/XAPPX@sha256:" + "89abcdef" * 8,
                "lastState": {},
                "name": "main",
                "ready": True,
                "resources": {"requests": {"cpu": "XCPUX", "memory": "XMEMORYX"}},
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": "XTIMEX"}},
            }
        ],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "qosClass": "Burstable",
    }
    return pod


def _managed_fields(manager: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {}}},
        "manager": manager,
        "operation": "Update",
        "time": "XTIMEX",
    }
