"""The pods that count as a pod's peers where only defaults say how to spread (``plugins/helper/spread.go``, v1.36.3).

They are selected by the services that match the pod together with the controller that owns it.
"""

from __future__ import annotations

from typing import TypeVar

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kpreempt.schedulers.kube.framework.label_selectors import narrowed, selector_error

_Owner = TypeVar("_Owner", ReplicationController, ReplicaSet, StatefulSet)


def default_selector(pod: Pod, cluster: ClusterSnapshot) -> LabelSelector:
    """All of what the pod's services and its controller select; empty where there is neither."""
    labels: dict[str, str] = {}
    for service in services_of(pod, cluster.services):
        labels |= service.spec.selector
    owner = controller_of(pod.metadata)
    if owner is None:
        return LabelSelector(match_labels=labels)
    namespace = pod.metadata.namespace
    kind = (owner.api_version, owner.kind)
    if kind == ("v1", "ReplicationController"):
        controller = _named(cluster.replication_controllers, namespace, owner.name)
        return LabelSelector(match_labels=labels | (controller.spec.selector if controller else {}))
    selector = None
    if kind == ("apps/v1", "ReplicaSet"):
        replica_set = _named(cluster.replica_sets, namespace, owner.name)
        selector = replica_set.spec.selector if replica_set else None
    elif kind == ("apps/v1", "StatefulSet"):
        stateful_set = _named(cluster.stateful_sets, namespace, owner.name)
        selector = stateful_set.spec.selector if stateful_set else None
    # A controller's selector that cannot be parsed is left out, as upstream.
    if selector is None or selector_error(selector) is not None:
        return LabelSelector(match_labels=labels)
    return narrowed(selector, labels)


def services_of(pod: Pod, services: list[Service]) -> list[Service]:
    """The services of the pod's namespace that select it; a service without selector selects nothing."""
    labels = pod.metadata.labels.items()
    return [
        service
        for service in services
        if service.metadata.namespace == pod.metadata.namespace
        and service.spec.selector
        and service.spec.selector.items() <= labels
    ]


def _named(objects: list[_Owner], namespace: str, name: str) -> _Owner | None:
    return next((each for each in objects if each.metadata.name == name and each.metadata.namespace == namespace), None)
