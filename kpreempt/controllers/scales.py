"""How many pods the owners of a set of pods want to have together.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/disruption/disruption.go`` (``getExpectedScale`` and its
finders): a ReplicaSet counts as its Deployment where it has one; pods without an owner count nothing. Departure: an
owner that is not in the input counts as many pods as it has, which ``Scale`` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property

import msgspec

from kpreempt.controllers.actions import SyncError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import OwnerReference, controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet

_Workload = ReplicaSet | Deployment | StatefulSet | ReplicationController
_Key = tuple[str, str, str]

# Owners that have no size, with the resource that upstream names when it refuses to compute with them.
WITHOUT_SCALE = {
    ("apps", "DaemonSet"): "daemonsets.apps",
    ("batch", "Job"): "jobs.batch",
    ("batch", "CronJob"): "cronjobs.batch",
    ("", "Node"): "nodes",
    ("", "Pod"): "pods",
}


class Scale(msgspec.Struct, frozen=True):
    """How many pods a workload should have; ``is_guessed`` where it had to be counted by the pods that there are."""

    namespace: str
    kind: str
    name: str
    replicas: int
    is_guessed: bool = False


# The workload that an owner in a namespace counts as, ``None`` where there is none such; raises ``SyncError`` for one
# that has no size.
ScaleOf = Callable[[str, OwnerReference], Scale | None]


def owner_scales(pods: Iterable[Pod], scale_of: ScaleOf) -> list[Scale]:
    """Each workload that ``pods`` belong to, once, in their order.

    Raises ``SyncError`` for a pod whose owner has no size.
    """
    scales: dict[Scale, None] = {}
    seen: set[tuple[str, str, str, str]] = set()
    errors: list[SyncError] = []
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is None:
            continue
        key = (pod.metadata.namespace, owner.kind, owner.name, owner.uid)
        if key in seen:
            continue
        try:
            scales[_scale_of_owner(pod, owner, scale_of)] = None
            seen.add(key)
        except SyncError as error:
            errors.append(error)
    if errors:
        # Pods come in no order, and the first that fails is the one that is told of.
        told = tuple(dict.fromkeys(error.controllers_words for error in errors))
        raise SyncError(errors[0].message, controllers_words=told[0], any_of=told if len(told) > 1 else ())
    return list(scales)


def _scale_of_owner(pod: Pod, owner: OwnerReference, scale_of: ScaleOf) -> Scale:
    if resource := WITHOUT_SCALE.get((owner.api_version.rpartition("/")[0], owner.kind)):
        raise SyncError(
            f"pod {pod.key} belongs to {owner.kind} {owner.name}, which has no scale",
            controllers_words=f"{resource} does not implement the scale subresource",
        )
    scale = scale_of(pod.metadata.namespace, owner)
    if scale is None:
        raise SyncError(f'found no controllers for pod "{pod.metadata.name}"')
    return scale


class Scales:
    """The sizes of a cluster's workloads."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._cluster = cluster

    def scale_of(self, namespace: str, owner: OwnerReference) -> Scale:
        """The workload that ``owner`` counts as: itself, or the Deployment that it belongs to."""
        workload = self._find((namespace, owner.kind, owner.name), owner.uid)
        if workload is None:
            pods = self._pods_by_owner[namespace, owner.kind, owner.name]
            return Scale(namespace, owner.kind, owner.name, pods, is_guessed=True)
        above = controller_of(workload.metadata)
        if owner.kind == "ReplicaSet" and above is not None and above.kind == "Deployment":
            deployment = self._find((namespace, above.kind, above.name), above.uid)
            if deployment is not None:
                return Scale(namespace, above.kind, above.name, _replicas(deployment))
        return Scale(namespace, owner.kind, owner.name, _replicas(workload))

    def _find(self, key: _Key, uid: str) -> _Workload | None:
        workload = self._workloads.get(key)
        return workload if workload is not None and workload.metadata.uid == uid else None

    @cached_property
    def _workloads(self) -> dict[_Key, _Workload]:
        cluster = self._cluster
        kinds: tuple[tuple[str, Iterable[_Workload]], ...] = (
            ("ReplicaSet", cluster.replica_sets),
            ("Deployment", cluster.deployments),
            ("StatefulSet", cluster.stateful_sets),
            ("ReplicationController", cluster.replication_controllers),
        )
        return {(each.metadata.namespace, kind, each.metadata.name): each for kind, group in kinds for each in group}

    @cached_property
    def _pods_by_owner(self) -> Counter[_Key]:
        owners = ((pod.metadata.namespace, controller_of(pod.metadata)) for pod in self._cluster.pods)
        return Counter((namespace, owner.kind, owner.name) for namespace, owner in owners if owner is not None)


def _replicas(workload: _Workload) -> int:
    return 1 if workload.spec.replicas is None else workload.spec.replicas
