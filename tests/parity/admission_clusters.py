"""Objects for the admission plugins, which look at the cluster: one of those in ``clusters.yaml``."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import yaml

from tests.conformance.api_server import FOLDER, Change, Document, Keys, keys_of

_RANDOM_PODS = 900


class Question(NamedTuple):
    """An object that is created in a cluster, or updated from ``old``."""

    cluster: str
    object: Document
    old: Document | None = None


_CONTEXT = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
# What is allowed at all levels.
_POD: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pod", "namespace": "default"},
    "spec": {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [{"name": "first", "image": "a", "securityContext": _CONTEXT}],
        "containers": [
            {"name": "main", "image": "a", "securityContext": _CONTEXT},
            {"name": "other", "image": "a", "securityContext": _CONTEXT},
        ],
    },
}
_CONTAINER = "spec.containers.0"
# The namespaces for changes that matter to PodSecurity, and for those that matter to other plugins.
_LEVELS = ("privileged", "baseline", "restricted", "former", "pinned", "thirties", "unborn", "mistaken", "warned")
_PLACES = (
    "default", "kube-system", "leaving", "limited", "bounded", "counted", "computed", "scoped", "full",
)  # fmt: skip
_MISSING = "missing"
_SELECTED = ("default", "selected", "narrowed", "allowed")


@cache
def pod_changes(of: str) -> Sequence[Change]:
    """The changes of the pod that matter to PodSecurity (``security``), or to other plugins (``settings``)."""
    read = yaml.safe_load((FOLDER / "pods.yaml").read_text(encoding="utf-8"))
    return [Change(keys_of(path), value) for path, values in read[of].items() for value in values]


def questions() -> Iterator[Question]:
    """All of them, in a fixed order."""
    for cluster, namespaces, of in (
        ("main", _LEVELS, "security"),
        ("main", (*_PLACES, _MISSING), "settings"),
        ("configured", _SELECTED, "settings"),
    ):
        for namespace in namespaces:
            yield Question(cluster, _pod(namespace))
            yield from (Question(cluster, _pod(namespace, change)) for change in pod_changes(of))
    yield from _random_pods()
    yield from _accounts()
    yield from _workloads()
    yield from _claims()
    yield from _services()
    yield from _classes()
    yield from _namespaces()
    yield from _updates()


def _pod(namespace: str, *changes: Change) -> Document:
    pod = {**_POD, "metadata": {"name": "pod", "namespace": namespace}}
    for change in changes:
        pod = change.applied(_with_parents(pod, change.at))
    return pod


def _with_parents(pod: Document, at: Keys) -> Document:
    """The pod with objects for all keys but the last."""
    completed = deepcopy(pod)
    parent: Any = completed
    for key in at[:-1]:
        parent = parent[key] if isinstance(parent, list) else parent.setdefault(key, {})
    return completed


def _random_pods() -> Iterator[Question]:
    chance = random.Random(44)
    security, settings = pod_changes("security"), pod_changes("settings")
    for _ in range(_RANDOM_PODS):
        changes = chance.sample(settings, chance.randint(1, 4)) + chance.sample(security, chance.randint(0, 1))
        yield Question("main", _pod(chance.choice(_PLACES), *changes))
        yield Question("main", _pod(chance.choice(_LEVELS), *chance.sample(security, 2)))


def _accounts() -> Iterator[Question]:
    reference = {"secretKeyRef": {"name": "other", "key": "k"}}
    more: list[list[Change]] = [
        [],
        *(
            [Change(("spec", "volumes"), [{"name": "v", "secret": {"secretName": name}}])]
            for name in ("token", "other")
        ),
        [Change(("spec", "imagePullSecrets"), [{"name": "other"}])],
        [Change(keys_of(f"{_CONTAINER}.env"), [{"name": "A", "valueFrom": reference}])],
    ]
    for name in ("", "default", "web", "strict", "gone"):
        account = [Change(("spec", "serviceAccountName"), name)] if name else []
        yield from (Question("accounts", _pod("default", *account, *changes)) for changes in more)


def _object(api_version: str, kind: str, name: str, namespace: str, spec: Document) -> Document:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _workloads() -> Iterator[Question]:
    """Workloads in all namespaces: most plugins do not check their templates, except for warnings."""
    selector = {"matchLabels": {"app": "web"}}
    privileged = Change(keys_of(f"{_CONTAINER}.securityContext.privileged"), True)
    unknown = Change(("spec", "priorityClassName"), "gone")
    for namespace in (*_LEVELS, *_PLACES):
        for changes in ([], [privileged], [unknown]):
            template = {"metadata": {"labels": {"app": "web"}}, "spec": _pod(namespace, *changes)["spec"]}
            spec = {"selector": selector, "template": template}
            yield Question("main", _object("apps/v1", "Deployment", "web", namespace, spec))
            yield Question("main", _object("apps/v1", "StatefulSet", "web", namespace, {**spec, "serviceName": "web"}))
            job = {"template": {"spec": {**template["spec"], "restartPolicy": "Never"}}}
            yield Question("main", _object("batch/v1", "Job", "web", namespace, job))


def _claim(namespace: str, storage: str, storage_class: str | None) -> Document:
    spec: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return _object("v1", "PersistentVolumeClaim", "claim", namespace, spec)


def _claims() -> Iterator[Question]:
    sizes = ("100Mi", "1Gi", "4Gi", "5Gi", "8Gi", "20Gi")
    for namespace, storage in product(("default", "leaving", "bounded", "counted"), sizes):
        for storage_class in (None, "", "fast", "slow", "gone"):
            claim = _claim(namespace, storage, storage_class)
            yield Question("main", claim)
            old = _claim(namespace, "2Gi", storage_class)
            old["status"] = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
            old["spec"]["volumeName"] = "volume"
            yield Question("main", {**claim, "spec": {**claim["spec"], "volumeName": "volume"}}, old)


def _services() -> Iterator[Question]:
    one, two = [{"port": 80}], [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    types = ("ClusterIP", "NodePort", "LoadBalancer")
    for namespace, kind, ports in product(("default", "leaving", "counted"), types, (one, two)):
        spec = {"type": kind, "selector": {"app": "web"}, "ports": ports}
        yield Question("main", _object("v1", "Service", "web", namespace, spec))


def _classes() -> Iterator[Question]:
    for name in ("new", "usual", "system-new", "system-cluster-critical"):
        for is_default in (False, True):
            for value in (-5, 0, 1000000000, 1000000001, 2000000000):
                described = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
                yield Question("main", {**described, "value": value, "globalDefault": is_default})
                yield Question(
                    "main", {**described, "value": value, "globalDefault": is_default}, {**described, "value": value}
                )


def _namespaces() -> Iterator[Question]:
    labels = [
        {f"pod-security.kubernetes.io/{mode}": value}
        for mode in ("enforce", "warn", "audit", "enforce-version", "warn-version")
        for value in ("privileged", "baseline", "restricted", "bogus", "latest", "v1.25", "1.25", "v1.99")
    ]
    for each in labels:
        described = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new", "labels": each}}
        yield Question("main", described)
        old = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        yield Question("main", {**described, "metadata": {"name": "default", "labels": each}}, old)


def _updates() -> Iterator[Question]:
    """Pods that exist: most plugins look at their creation only."""
    chosen = (*pod_changes("security")[:2], *pod_changes("settings")[::6])
    for namespace, change in product((*_LEVELS, *_PLACES), chosen):
        old = _pod(namespace, change, Change(("spec", "nodeName"), "node"))
        yield Question("main", Change(keys_of(f"{_CONTAINER}.image"), "b").applied(old), old)
        yield Question("main", Change(("metadata", "labels"), {"a": "b"}).applied(old), old)
