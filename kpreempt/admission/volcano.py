"""Pod groups that Volcano's controller creates for pods without one, and their minimum resources.

Follows Volcano v1.8.0 ``pkg/controllers/podgroup/pg_controller_handler.go``, ``pkg/controllers/util/util.go`` and
``pkg/webhooks/admission/podgroups/mutate/mutate_podgroup.go``. Annotations inherited from the pods' owner, and the
disruption budget and cooldown time of a pod, are omitted because no plugin of the default configurations reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from kpreempt.admission.pod_resources import add_amounts, format_nano, raise_amounts
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import is_label_key
from kpreempt.model.meta import AnnotatedMeta, OwnerReference, controller_of, replace_in
from kpreempt.model.pod import Container, Pod, PodAnnotations, PodSpec, ResourceList
from kpreempt.model.quantity import quantity
from kpreempt.model.volcano import (
    DEFAULT_QUEUE,
    PREEMPTABLE,
    QUEUE_NAME,
    REVOCABLE_ZONE,
    VOLCANO_SCHEDULER_NAME,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
)

_REQUESTS = "requests."
_HUGE_PAGES = "hugepages-"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_ONE = quantity("1")


def with_pod_groups(cluster: ClusterSnapshot, scheduler_name: str = VOLCANO_SCHEDULER_NAME) -> ClusterSnapshot:
    """Return the cluster with a pod group for every pod of Volcano's scheduler, as its controller creates them.

    Pods with the same controller share a new group with a minimum of one member in phase ``Pending``. If the
    controller's uid is unknown, its name is used in the group's name. The creation time is the pod's. If no group is
    missing, the same object is returned.
    """
    if all(map(_has_group, (pod for pod in cluster.pods if pod.spec.scheduler_name == scheduler_name))):
        return cluster
    groups = {each.key: each for each in cluster.pod_groups}
    queues = {each.metadata.name: each.metadata.annotations.get(QUEUE_NAME) for each in cluster.namespaces}
    pods = []
    for pod in cluster.pods:
        if pod.spec.scheduler_name != scheduler_name or _has_group(pod):
            pods.append(pod)
            continue
        group = _group_for(pod, queues)
        groups.setdefault(group.key, group)
        annotations = (pod.metadata.annotations or PodAnnotations()).changed(group_name=group.metadata.name)
        pods.append(replace_in(pod, "metadata", annotations=annotations))
    return msgspec.structs.replace(cluster, pods=pods, pod_groups=list(groups.values()))


def admit_pod_group(group: PodGroup, cluster: ClusterSnapshot) -> PodGroup:
    """Set the queue of a new group: from its namespace's annotation, or ``default``."""
    if group.spec.queue:
        return group
    queues = {each.metadata.name: each.metadata.annotations.get(QUEUE_NAME) for each in cluster.namespaces}
    return replace_in(group, "spec", queue=_queue_of(group.metadata.namespace, queues))


def quota_usage(spec: PodSpec, count: int = 1) -> ResourceList:
    """Return the quota usage of ``count`` pods, which is what a group must fit in before it is enqueued.

    Follows ``k8s.io/kubernetes`` v1.25.0 ``pkg/quota/v1/evaluator/core/pods.go``: each init container counts by itself,
    including sidecars, and without a request nothing is counted. Extended resources appear under both names.
    """
    requests = _total(spec, lambda container: container.resources.requests)
    limits = _total(spec, lambda container: container.resources.limits)
    usage: ResourceList = {"count/pods": _ONE, "pods": _ONE}
    for name in _COMPUTE:
        if name in requests:
            usage[name] = usage[f"{_REQUESTS}{name}"] = requests[name]
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        has_domain = "/" in name and "kubernetes.io/" not in name and not name.startswith(_REQUESTS)
        if name.startswith(_HUGE_PAGES) or (has_domain and is_label_key(f"{_REQUESTS}{name}")):
            usage[name] = usage[f"{_REQUESTS}{name}"] = amount
    if count == 1:
        return usage
    return {
        name: quantity(format_nano(amount.nano * count, binary=amount.text.endswith("i")))
        for name, amount in usage.items()
    }


def _has_group(pod: Pod) -> bool:
    annotations = pod.metadata.annotations
    return annotations is not None and bool(annotations.group_name)


def _group_for(pod: Pod, queues: Mapping[str, str | None]) -> PodGroup:
    meta = pod.metadata
    controller = controller_of(meta)
    owners = meta.owner_references
    if controller is None:
        controller = OwnerReference(kind="Pod", name=meta.name, uid=meta.uid, api_version="v1", controller=True)
        owners = [controller]
    annotations_of_pod = meta.annotations or PodAnnotations()
    annotations = {PREEMPTABLE: annotations_of_pod.preemptable, REVOCABLE_ZONE: annotations_of_pod.revocable_zone}
    return PodGroup(
        metadata=AnnotatedMeta(
            name=f"podgroup-{controller.uid or controller.name}",
            namespace=meta.namespace,
            owner_references=owners,
            annotations={key: value for key, value in annotations.items() if value is not None},
            labels={PREEMPTABLE: meta.labels[PREEMPTABLE]} if PREEMPTABLE in meta.labels else {},
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=PodGroupSpec(
            min_member=1,
            queue=annotations_of_pod.queue_name or _queue_of(meta.namespace, queues),
            priority_class_name=pod.spec.priority_class_name,
            min_resources=quota_usage(pod.spec),
        ),
        status=PodGroupStatus(phase="Pending"),
    )


def _queue_of(namespace: str, queues: Mapping[str, str | None]) -> str:
    queue = queues.get(namespace)
    return DEFAULT_QUEUE if queue is None else queue


def _total(spec: PodSpec, of: Callable[[Container], ResourceList]) -> ResourceList:
    total: ResourceList = {}
    for container in spec.containers:
        add_amounts(total, of(container))
    for container in spec.init_containers:
        raise_amounts(total, of(container))
    add_amounts(total, spec.overhead)
    return total
