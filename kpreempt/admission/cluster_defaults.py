"""What the API server would have filled in to the objects of a cluster that no API server has seen.

What an API server hands out has it already, which is found out fast; this is for clusters written by hand. Follows
``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/v1/defaults.go`` (pods, nodes, namespaces).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from kpreempt.admission.api_defaults import ApiDefaults, apply_api_defaults
from kpreempt.admission.budgets import fill_budget_statuses
from kpreempt.admission.cluster_priorities import fill_priorities
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import Namespace
from kpreempt.verdict import Assumption

_NAME_LABEL = "kubernetes.io/metadata.name"

_Object = TypeVar("_Object", Node, Namespace)
_Record = TypeVar("_Record")


def complete_cluster(
    cluster: ClusterSnapshot, *, created: Collection[str] = ()
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster as an API server and its controllers would have it, and what is assumed for that.

    Objects get the defaults of their types, pods the priority of their class, budgets a status. ``created`` are the
    keys of the pods that come now, to which the global default class applies. The very same cluster comes back where
    nothing is missing.
    """
    cluster = apply_cluster_defaults(cluster)
    cluster, about_priorities = fill_priorities(cluster, created)
    cluster, about_budgets = fill_budget_statuses(cluster)
    return cluster, [*about_priorities, *about_budgets]


def apply_cluster_defaults(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster with the defaults that decide about scheduling; the very same one where nothing is missing.

    Pods get what ``apply_api_defaults`` gives, nodes their capacity as allocatable, namespaces the label with their
    name.
    """
    pods = _completed_pods(cluster.pods)
    nodes = _completed(cluster.nodes, _lacks_allocatable, _with_allocatable)
    namespaces = _completed(cluster.namespaces, _lacks_name_label, _with_name_label)
    if pods is cluster.pods and nodes is cluster.nodes and namespaces is cluster.namespaces:
        return cluster
    return msgspec.structs.replace(cluster, pods=pods, nodes=nodes, namespaces=namespaces)


def apply_object_defaults(record: _Record) -> _Record:
    """One object with the same defaults; the very same one where nothing is missing, or of another kind."""
    completed: object = record
    if isinstance(record, Pod):
        completed = apply_api_defaults(record)
    elif isinstance(record, Node) and _lacks_allocatable(record):
        completed = _with_allocatable(record)
    elif isinstance(record, Namespace) and _lacks_name_label(record):
        completed = _with_name_label(record)
    return completed  # type: ignore[return-value]


def _completed_pods(pods: list[Pod]) -> list[Pod]:
    """The pods with their defaults. This runs for every pod of every snapshot, so what is usual is passed over fast.

    Pods of a snapshot share their lists of containers, so that a list which lacks nothing is known by its identity.
    """
    complete: tuple[set[int], set[int]] = (set(), set())
    defaults = ApiDefaults()
    changed: dict[int, Pod] = {}
    for index, pod in enumerate(pods):
        spec = pod.spec
        known = complete[spec.host_network]
        if (
            id(spec.containers) in known
            and id(spec.init_containers) in known
            and spec.termination_grace_period_seconds is not None
            and spec.restart_policy
            and spec.scheduler_name
            and spec.resources is None
            and not spec.overhead
            and (not spec.volumes or all(volume.rbd is None for volume in spec.volumes))
        ):
            continue
        completed = defaults.applied_to(pod)
        if completed is pod:
            known.update((id(spec.containers), id(spec.init_containers)))
        else:
            changed[index] = completed
    return [changed.get(index, pod) for index, pod in enumerate(pods)] if changed else pods


def _completed(
    objects: list[_Object], lacks: Callable[[_Object], bool], complete: Callable[[_Object], _Object]
) -> list[_Object]:
    if not any(map(lacks, objects)):
        return objects
    return [complete(each) if lacks(each) else each for each in objects]


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
