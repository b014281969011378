"""Defaults of the API types for the objects of a cluster that come straight from manifests.

What an API server hands out has them already; this is for clusters written by hand. Follows ``k8s.io/kubernetes``
v1.36.3 ``pkg/apis/core/v1/defaults.go`` (pods, nodes, namespaces).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from kpreempt.admission.api_defaults import apply_api_defaults
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, Pod
from kpreempt.model.quantity import NANO_PER_MILLI
from kpreempt.model.workloads import Namespace

_NAME_LABEL = "kubernetes.io/metadata.name"

_Object = TypeVar("_Object", Pod, Node, Namespace)


def apply_cluster_defaults(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster with the defaults that decide about scheduling; the very same one where nothing is missing.

    Pods get their limits as requests (``apply_api_defaults``), nodes their capacity as allocatable, namespaces the
    label with their name.
    """
    pods = _completed(cluster.pods, _lacks_defaults, apply_api_defaults)
    nodes = _completed(cluster.nodes, _lacks_allocatable, _with_allocatable)
    namespaces = _completed(cluster.namespaces, _lacks_name_label, _with_name_label)
    if pods is cluster.pods and nodes is cluster.nodes and namespaces is cluster.namespaces:
        return cluster
    return msgspec.structs.replace(cluster, pods=pods, nodes=nodes, namespaces=namespaces)


def _completed(
    objects: list[_Object], lacks: Callable[[_Object], bool], complete: Callable[[_Object], _Object]
) -> list[_Object]:
    if not any(map(lacks, objects)):
        return objects
    return [complete(each) if lacks(each) else each for each in objects]


def _lacks_defaults(pod: Pod) -> bool:
    spec = pod.spec
    resources = spec.resources
    if not spec.scheduler_name or (resources is not None and (resources.limits or resources.requests)):
        return True
    return _lack_defaults(spec.containers, spec.host_network) or (
        bool(spec.init_containers) and _lack_defaults(spec.init_containers, spec.host_network)
    )


def _lack_defaults(containers: Sequence[Container], host_network: bool) -> bool:
    for container in containers:
        resources = container.resources
        if not resources.limits.keys() <= resources.requests.keys():
            return True
        for amount in resources.requests.values():
            if amount.nano % NANO_PER_MILLI:
                return True
        if host_network and any(not port.host_port for port in container.ports):
            return True
    return False


def _lacks_allocatable(node: Node) -> bool:
    return not node.status.allocatable and bool(node.status.capacity)


def _with_allocatable(node: Node) -> Node:
    status = msgspec.structs.replace(node.status, allocatable=node.status.capacity)
    return msgspec.structs.replace(node, status=status)


def _lacks_name_label(namespace: Namespace) -> bool:
    return bool(namespace.metadata.name) and namespace.metadata.labels.get(_NAME_LABEL) != namespace.metadata.name


def _with_name_label(namespace: Namespace) -> Namespace:
    metadata = namespace.metadata
    labels = {**metadata.labels, _NAME_LABEL: metadata.name}
    return msgspec.structs.replace(namespace, metadata=msgspec.structs.replace(metadata, labels=labels))
